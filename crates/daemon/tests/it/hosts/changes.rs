//! Hosts change while mail is on its way. Whatever a host records after a change was judged under it, so that the
//! others can follow.

use daemon::schedule::Wakeup;
use log_suite::{Shared, Weather};
use review::{Event, HostChange, HostDecision, JoinedHost};
use workspace::orders::{self, Order};

use super::*;

/// A policy under which a request leads to another record than under the defaults.
const THREE_ROUNDS: &str = "[rounds]\nmax = 3\n";

/// Three hosts that have joined.
fn joined(log: &Shared) -> (Vec<Host>, i64) {
    let mut hosts = started(log);
    let mut ms = 0;
    for (number, (host, agent)) in HOSTS.into_iter().enumerate() {
        let joined = HostChange::Joined(JoinedHost {
            host: host.to_owned(),
            key: host.to_owned(),
            version: "0.1.0".to_owned(),
            agents: vec![agent.parse().expect("an agent's name")],
            policy: String::new(),
        });
        hosts[number].change(&joined, ms);
        settle(&mut hosts, &mut ms);
    }
    (hosts, ms)
}

fn decision() -> HostDecision {
    HostDecision {
        by: "ann".to_owned(),
        reason: "a test".to_owned(),
    }
}

fn policy(policy: &str) -> HostChange {
    HostChange::PolicyChanged {
        policy: policy.to_owned(),
        decision: decision(),
    }
}

fn retired(host: &str) -> HostChange {
    HostChange::KeyRetired {
        host: host.to_owned(),
        decision: decision(),
    }
}

fn request(from: &str, to: &str) -> String {
    let body = "pr: 86\n  branch: x\n  diff_summary: y\n  max_runtime_s_reviewer: 600";
    review_message(from, to, "review_request", body)
}

impl Host {
    fn change(&mut self, change: &HostChange, ms: i64) {
        let moment = self.moment(ms);
        let changed = self.mailroom().change_hosts(change, None, moment);
        changed.expect("a change");
    }

    /// Writes another `settled.toml`, which takes effect at the next start.
    fn edit(&self, policy: &str) {
        fs::write(self.path(config::FILE), policy).expect("a config");
    }

    /// As the laptop: records its policy for all hosts, restarts with it, and judges a request under it.
    fn changes_the_policy_and_judges(&mut self, text: &str, log: &Shared, ms: &mut i64) {
        *ms += 10_000;
        self.edit(text);
        self.change(&policy(text), *ms);
        self.start(log);
        self.put("review_request.yaml", &request("codex", "claude"));
        for _ in 0..2 {
            *ms += 10_000;
            self.pass(*ms);
        }
    }

    fn order(&self, change: &HostChange, ms: i64) {
        let id = workspace::clock::new_order_id();
        let order = Order::new(id, self.moment(ms).utc, Event::Host(change.clone()));
        orders::write(self.root.path(), &order).expect("an order");
    }

    fn orders(&self) -> usize {
        orders::waiting(self.root.path()).expect("orders").len()
    }

    fn outbox(&self) -> Vec<String> {
        names(&self.path(&format!("agents/{}/outbox", HOSTS[self.number].1)))
    }
}

fn has_other_policy(sharing_state: &SharingState) -> bool {
    matches!(sharing_state, SharingState::Outdated { why } if why.contains("settled host policy --take"))
}

#[test]
fn a_host_that_learns_of_a_change_judges_nothing_by_what_was_before() {
    let changes = [
        policy(THREE_ROUNDS),
        retired("tower"),
        HostChange::HomeMoved {
            agent: "claude".parse().expect("an agent's name"),
            from: "tower".to_owned(),
            to: "laptop".to_owned(),
            decision: decision(),
        },
    ];
    for change in changes {
        let log = Shared::new(1, Weather::default());
        let (mut hosts, mut ms) = joined(&log);
        ms += 10_000;
        hosts[1].change(&change, ms);
        let records = hosts[1].entries().len();
        hosts[0].put("review_request.yaml", &request("claude", "codex"));
        for _ in 0..3 {
            ms += 10_000;
            hosts[0].pass(ms);
        }
        assert_eq!(hosts[0].outbox(), ["review_request.yaml"], "{change:?}");
        // The tower has the change, and no host has more.
        assert_eq!(hosts[0].entries().len(), records, "{change:?}");
        assert_eq!(bytes_of(&log.batches()), hosts[0].ledger(), "{change:?}");
    }
}

#[test]
fn records_by_another_policy_stop_a_host_and_do_not_freeze_it() {
    let log = Shared::new(1, Weather::default());
    let (mut hosts, mut ms) = joined(&log);
    hosts[1].changes_the_policy_and_judges(THREE_ROUNDS, &log, &mut ms);
    assert_eq!(hosts[1].entries().len(), 5);
    // The log has both records before the tower reads it again.
    ms += 10_000;
    hosts[0].pass(ms);
    assert_eq!(hosts[0].sharing_state(), SharingState::InStep);
    ms += 10_000;
    hosts[0].pass(ms);
    let sharing_state = hosts[0].sharing_state();
    assert!(has_other_policy(&sharing_state), "{sharing_state:?}");
    hosts[0].edit(THREE_ROUNDS);
    hosts[0].start(&log);
    ms += 10_000;
    hosts[0].pass(ms);
    assert_eq!(hosts[0].sharing_state(), SharingState::InStep);
    assert_eq!(hosts[0].ledger(), hosts[1].ledger());
}

#[test]
fn the_order_that_changes_the_policy_is_over_though_what_comes_after_it_waits() {
    let log = Shared::new(1, Weather::default());
    let (mut hosts, mut ms) = joined(&log);
    ms += 10_000;
    hosts[0].order(&policy(THREE_ROUNDS), ms);
    let retired = retired("box");
    hosts[0].order(&retired, ms + 1);
    ms += 10_000;
    hosts[0].pass(ms);
    assert_eq!(hosts[0].orders(), 1);
    assert_eq!(hosts[0].entries().len(), 4);
    ms += 10_000;
    hosts[0].pass(ms);
    let sharing_state = hosts[0].sharing_state();
    assert!(has_other_policy(&sharing_state), "{sharing_state:?}");
    hosts[0].edit(THREE_ROUNDS);
    hosts[0].start(&log);
    ms += 10_000;
    hosts[0].pass(ms);
    assert_eq!((hosts[0].orders(), hosts[0].entries().len()), (0, 5));
}

/// A tower that restarted with another policy than the common one it has seen.
fn stopped(log: &Shared) -> (Vec<Host>, i64) {
    let (mut hosts, mut ms) = joined(log);
    hosts[0].edit(THREE_ROUNDS);
    hosts[0].start(log);
    ms += 10_000;
    hosts[0].pass(ms);
    let sharing_state = hosts[0].sharing_state();
    assert!(has_other_policy(&sharing_state), "{sharing_state:?}");
    (hosts, ms)
}

fn common_policy(host: &mut Host) -> Option<String> {
    let fleet = host.mailroom().fleet().expect("it shares a ledger");
    fleet.policy().map(str::to_owned)
}

#[test]
fn a_host_that_began_again_with_another_policy_still_records_it_for_all() {
    let log = Shared::new(1, Weather::default());
    let (mut hosts, mut ms) = stopped(&log);
    // The others continue under the common policy, and the tower judges nothing under its own.
    hosts[1].put("review_request.yaml", &request("codex", "claude"));
    hosts[0].put("a.yaml", &question("claude", "codex", "msg-a"));
    let retired = retired("box");
    hosts[0].order(&retired, ms);
    for _ in 0..2 {
        ms += 10_000;
        hosts[1].pass(ms);
        hosts[0].pass(ms);
    }
    assert_eq!((hosts[0].entries().len(), hosts[1].entries().len()), (3, 4));
    hosts[0].order(&policy(THREE_ROUNDS), ms);
    // The watcher saw the order, so no sweep is needed.
    let moment = hosts[0].moment(ms + 1_000);
    hosts[0].mailroom().hint_order();
    hosts[0].mailroom().pass(moment).expect("a pass");
    assert_eq!(hosts[0].sharing_state(), SharingState::InStep);
    assert_eq!(common_policy(&mut hosts[0]).as_deref(), Some(THREE_ROUNDS));
    let kinds: Vec<String> = hosts[0].entries().into_iter().map(|it| it.kind).collect();
    assert_eq!(kinds, ["host", "host", "host", "accepted", "host"]);
    assert_eq!(hosts[0].orders(), 1);
    let told = fs::read_to_string(hosts[0].path(".settled/alerts.json")).expect("alerts");
    assert!(!told.contains("stopped following"), "{told}");
    // From now on the tower judges under the new policy, and the others follow.
    ms += 10_000;
    hosts[0].put("b.yaml", &request("claude", "codex"));
    hosts[0].pass(ms);
    hosts[0].pass(ms + 1_000);
    assert!(hosts[0].outbox().is_empty());
    assert_eq!((hosts[0].orders(), hosts[0].entries().len()), (0, 8));
    hosts[1].pass(ms + 2_000);
    hosts[1].edit(THREE_ROUNDS);
    hosts[1].start(&log);
    hosts[1].pass(ms + 3_000);
    assert_eq!(hosts[1].sharing_state(), SharingState::InStep);
    assert_eq!(hosts[1].ledger(), hosts[0].ledger());
}

#[test]
fn a_change_of_the_policy_that_the_log_does_not_answer_is_recorded_once() {
    let troubles = [
        Weather {
            unreachable: 100,
            ..Weather::default()
        },
        Weather {
            request_lost: 100,
            ..Weather::default()
        },
        Weather {
            answer_lost: 100,
            ..Weather::default()
        },
    ];
    for trouble in troubles {
        let log = Shared::new(1, Weather::default());
        let (mut hosts, mut ms) = stopped(&log);
        hosts[0].order(&policy(THREE_ROUNDS), ms);
        log.set_weather(trouble);
        for _ in 0..2 {
            ms += 10_000;
            hosts[0].pass(ms);
            let now = hosts[0].moment(ms);
            let schedule = hosts[0].mailroom().schedule(now);
            let look = schedule.at(Wakeup::Log).expect("it looks again");
            assert!(
                (now.mono + 1..now.mono + 1_000).contains(&look),
                "{trouble:?}"
            );
        }
        assert_eq!((hosts[0].orders(), hosts[0].entries().len()), (1, 3));
        let sharing_state = hosts[0].sharing_state();
        assert!(
            has_other_policy(&sharing_state),
            "{trouble:?}: {sharing_state:?}"
        );
        log.set_weather(Weather::default());
        for _ in 0..2 {
            ms += 10_000;
            hosts[0].pass(ms);
        }
        assert_eq!(
            hosts[0].sharing_state(),
            SharingState::InStep,
            "{trouble:?}"
        );
        assert_eq!((hosts[0].orders(), hosts[0].entries().len()), (0, 4));
        assert_eq!(bytes_of(&log.batches()), hosts[0].ledger(), "{trouble:?}");
    }
}

#[test]
fn a_change_of_the_policy_comes_after_that_of_another_host() {
    const ONE_ROUND: &str = "[rounds]\nmax = 1\n";
    let log = Shared::new(1, Weather::default());
    let (mut hosts, mut ms) = stopped(&log);
    hosts[1].changes_the_policy_and_judges(ONE_ROUND, &log, &mut ms);
    hosts[0].order(&policy(THREE_ROUNDS), ms);
    for _ in 0..2 {
        ms += 10_000;
        hosts[0].pass(ms);
    }
    assert_eq!(hosts[0].sharing_state(), SharingState::InStep);
    let kinds: Vec<String> = hosts[0].entries().into_iter().map(|it| it.kind).collect();
    assert_eq!(kinds, ["host", "host", "host", "host", "accepted", "host"]);
    assert_eq!(common_policy(&mut hosts[0]).as_deref(), Some(THREE_ROUNDS));
}

#[test]
fn a_host_stays_stopped_if_its_policy_is_not_the_one_recorded_or_its_key_is_retired() {
    let log = Shared::new(1, Weather::default());
    let (mut hosts, mut ms) = stopped(&log);
    hosts[0].order(&policy("profile = \"advisory\"\n"), ms);
    ms += 10_000;
    hosts[0].pass(ms);
    let sharing_state = hosts[0].sharing_state();
    assert!(has_other_policy(&sharing_state), "{sharing_state:?}");
    assert_eq!((hosts[0].orders(), hosts[0].entries().len()), (0, 4));

    let log = Shared::new(1, Weather::default());
    let (mut hosts, mut ms) = joined(&log);
    let retired = retired("tower");
    ms += 10_000;
    hosts[0].change(&retired, ms);
    hosts[0].edit(THREE_ROUNDS);
    hosts[0].start(&log);
    hosts[0].order(&policy(THREE_ROUNDS), ms);
    for _ in 0..2 {
        ms += 10_000;
        hosts[0].pass(ms);
    }
    assert_eq!(log.batches().len(), 4);
    assert_eq!(hosts[0].orders(), 1);
}

/// Opens the tower as `join` does, with this key, and lets it follow the log.
fn opened_to_join(tower: &mut Host, key: &'static str, log: &Shared, ms: &mut i64) {
    tower.mailroom = None;
    let sharing = Sharing {
        policy: tower.policy(),
        keys: Box::new(Named(key)),
        key: key.to_owned(),
        ..sharing("tower", Box::new(log.connect()))
    };
    let opened = Mailroom::open_shared(tower.root.path(), sharing);
    let mut mailroom = opened.expect("a start").0;
    mailroom.follow_to_join();
    tower.mailroom = Some(mailroom);
    for _ in 0..4 {
        *ms += 10_000;
        tower.pass(*ms);
        tower.mailroom().take_common_policy();
    }
}

#[test]
fn a_host_with_a_retired_key_follows_the_log_to_join_and_records_nothing_else() {
    let log = Shared::new(1, Weather::default());
    let (mut hosts, mut ms) = joined(&log);
    ms += 10_000;
    hosts[1].change(&retired("tower"), ms);
    for _ in 0..2 {
        ms += 10_000;
        hosts[0].pass(ms);
    }
    let sharing_state = hosts[0].sharing_state();
    assert!(
        matches!(sharing_state, SharingState::Outdated { .. }),
        "{sharing_state:?}"
    );
    hosts[1].changes_the_policy_and_judges(THREE_ROUNDS, &log, &mut ms);
    let claim = HostChange::Claimed {
        host: "tower".to_owned(),
        agents: vec!["gpt".parse().expect("an agent's name")],
    };
    hosts[0].put("a.yaml", &question("claude", "codex", "msg-a"));
    hosts[0].order(&claim, ms);

    for key in ["tower", "another"] {
        opened_to_join(&mut hosts[0], key, &log, &mut ms);
        assert_eq!(hosts[0].sharing_state(), SharingState::InStep, "{key}");
        assert_eq!(hosts[0].ledger(), hosts[1].ledger(), "{key}");
        let late = hosts[0].moment(ms + 100_000_000);
        let mailroom = hosts[0].mailroom();
        let kept = mailroom.keep_deadlines(late.utc, late);
        assert!(kept.is_err(), "{key}: {kept:?}");
        let changed = mailroom.change_hosts(&retired("box"), None, late);
        assert!(changed.is_err(), "{key}: {changed:?}");
        assert_eq!(bytes_of(&log.batches()), hosts[1].ledger(), "{key}");
        assert_eq!(hosts[0].outbox(), ["a.yaml"], "{key}");
        assert_eq!(hosts[0].orders(), 1, "{key}");
    }

    // Another host records something before the join does.
    hosts[1].put("b.yaml", &question("codex", "claude", "msg-b"));
    ms += 10_000;
    hosts[1].pass(ms);
    let joins = HostChange::Joined(JoinedHost {
        host: "tower".to_owned(),
        key: "another".to_owned(),
        version: "0.1.0".to_owned(),
        agents: Vec::new(),
        policy: THREE_ROUNDS.to_owned(),
    });
    let moment = hosts[0].moment(ms);
    let first = hosts[0].mailroom().change_hosts(&joins, None, moment);
    assert!(first.is_err(), "{first:?}");
    ms += 10_000;
    hosts[0].pass(ms);
    hosts[0].change(&joins, ms);
    ms += 10_000;
    hosts[0].pass(ms);
    assert!(hosts[0].outbox().is_empty());
    assert_eq!(hosts[0].orders(), 0);
    let ledger = bytes_of(&log.batches());
    assert_eq!(ledger, hosts[0].ledger());
    ms += 10_000;
    hosts[1].pass(ms);
    assert_eq!(hosts[1].sharing_state(), SharingState::InStep);
    assert_eq!(hosts[1].ledger(), ledger);
}

/// The tower's key is retired and another machine joins as the tower, while this one is away.
fn replaced(log: &Shared) -> (Vec<Host>, i64) {
    let (mut hosts, mut ms) = joined(log);
    ms += 10_000;
    hosts[1].change(&retired("tower"), ms);
    let mut other = Host::new(0);
    opened_to_join(&mut other, "another", log, &mut ms);
    let joins = HostChange::Joined(JoinedHost {
        host: "tower".to_owned(),
        key: "another".to_owned(),
        version: "0.1.0".to_owned(),
        agents: Vec::new(),
        policy: String::new(),
    });
    other.change(&joins, ms);
    (hosts, ms)
}

#[test]
fn a_host_that_another_machine_replaced_learns_it_in_one_look_and_records_nothing() {
    let claim = HostChange::Claimed {
        host: "tower".to_owned(),
        agents: vec!["gpt".parse().expect("an agent's name")],
    };
    let log = Shared::new(1, Weather::default());
    let (mut hosts, mut ms) = replaced(&log);
    let ledger = bytes_of(&log.batches());
    hosts[0].put("a.yaml", &question("claude", "codex", "msg-a"));
    hosts[0].order(&claim, ms);
    ms += 10_000;
    hosts[0].pass(ms);
    let stopped = hosts[0].sharing_state();
    assert!(
        matches!(&stopped, SharingState::Outdated { why }
            if why.contains("another machine joined as host tower")
                && why.contains("`settled host join ./ledger.git --as tower --new-key`")),
        "{stopped:?}"
    );
    // The host also refuses changes that any other member may record, before and after a restart.
    for is_restarted in [false, true] {
        if is_restarted {
            hosts[0].start(&log);
        }
        for _ in 0..3 {
            ms += 100_000;
            hosts[0].pass(ms);
        }
        let moment = hosts[0].moment(ms);
        for change in [&claim, &retired("box"), &retired("tower")] {
            let changed = hosts[0].mailroom().change_hosts(change, None, moment);
            let told = changed.expect_err("a refusal").to_string();
            assert!(told.contains("joined with another key"), "{told}");
        }
        assert_eq!(hosts[0].sharing_state(), stopped);
        assert_eq!(hosts[0].outbox(), ["a.yaml"]);
        assert_eq!(bytes_of(&log.batches()), ledger);
    }
    hosts[1].pass(ms);
    assert_eq!(hosts[1].sharing_state(), SharingState::InStep);
}

/// The laptop judged a file of codex and could not put it away before the home of codex moved to the tower.
fn moved_with_a_judged_file(log: &Shared) -> (Vec<Host>, i64) {
    let (mut hosts, mut ms) = joined(log);
    let sent = hosts[1].path("agents/codex/sent");
    fs::remove_dir(&sent).expect("an empty directory");
    fs::write(&sent, "").expect("a file in its place");
    hosts[1].put("a.yaml", &question("codex", "claude", "msg-a"));
    ms += 10_000;
    hosts[1].pass(ms);
    assert_eq!(hosts[1].outbox(), ["a.yaml"]);
    let moved = HostChange::HomeMoved {
        agent: "codex".parse().expect("an agent's name"),
        from: "laptop".to_owned(),
        to: "tower".to_owned(),
        decision: decision(),
    };
    hosts[0].pass(ms);
    hosts[0].change(&moved, ms);
    fs::remove_file(&sent).expect("the file is there");
    fs::create_dir(&sent).expect("a directory");
    (hosts, ms)
}

#[test]
fn a_file_that_changed_before_a_host_begins_again_is_not_judged_at_the_old_home() {
    let log = Shared::new(1, Weather::default());
    let (mut hosts, mut ms) = moved_with_a_judged_file(&log);
    hosts[1].put("a.yaml", &question("codex", "claude", "another"));
    for _ in 0..5 {
        ms += 60_000;
        hosts[1].pass(ms);
        hosts[0].pass(ms);
    }
    assert_eq!(hosts[0].sharing_state(), SharingState::InStep);
    assert_eq!(hosts[1].entries().len(), 5);
    assert_eq!(hosts[1].outbox(), ["a.yaml"]);
}
