//! Hosts change while mail is on its way: whatever a host records after a change was judged by it, so that the others can
//! follow.

use log_suite::{Shared, Weather};
use review::{Event, HostChange, HostDecision, JoinedHost};
use workspace::orders::{self, Order};

use super::*;

/// A policy by which a request is accepted with another record than by the defaults.
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

    /// Another `settled.toml`, which counts from the next start on.
    fn edit(&self, policy: &str) {
        fs::write(self.path(config::FILE), policy).expect("a config");
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

fn has_other_policy(standing: &Standing) -> bool {
    matches!(standing, Standing::Outdated { why } if why.contains("settled host policy --take"))
}

#[test]
fn a_host_that_learns_of_a_change_judges_nothing_by_what_was_before() {
    let changes = [
        policy(THREE_ROUNDS),
        HostChange::KeyRetired {
            host: "tower".to_owned(),
            decision: decision(),
        },
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
        // It has the change, and nobody has more.
        assert_eq!(hosts[0].entries().len(), records, "{change:?}");
        assert_eq!(bytes_of(&log.batches()), hosts[0].ledger(), "{change:?}");
    }
}

#[test]
fn records_by_another_policy_stop_a_host_and_do_not_freeze_it() {
    let log = Shared::new(1, Weather::default());
    let (mut hosts, mut ms) = joined(&log);
    ms += 10_000;
    hosts[1].edit(THREE_ROUNDS);
    hosts[1].change(&policy(THREE_ROUNDS), ms);
    hosts[1].start(&log);
    hosts[1].put("review_request.yaml", &request("codex", "claude"));
    for _ in 0..2 {
        ms += 10_000;
        hosts[1].pass(ms);
    }
    assert_eq!(hosts[1].entries().len(), 5);
    // The log has both records when the tower looks again.
    ms += 10_000;
    hosts[0].pass(ms);
    assert_eq!(hosts[0].standing(), Standing::InStep);
    ms += 10_000;
    hosts[0].pass(ms);
    let standing = hosts[0].standing();
    assert!(has_other_policy(&standing), "{standing:?}");
    hosts[0].edit(THREE_ROUNDS);
    hosts[0].start(&log);
    ms += 10_000;
    hosts[0].pass(ms);
    assert_eq!(hosts[0].standing(), Standing::InStep);
    assert_eq!(hosts[0].ledger(), hosts[1].ledger());
}

#[test]
fn the_order_that_changes_the_policy_is_over_though_what_comes_after_it_waits() {
    let log = Shared::new(1, Weather::default());
    let (mut hosts, mut ms) = joined(&log);
    ms += 10_000;
    hosts[0].order(&policy(THREE_ROUNDS), ms);
    let retired = HostChange::KeyRetired {
        host: "box".to_owned(),
        decision: decision(),
    };
    hosts[0].order(&retired, ms + 1);
    ms += 10_000;
    hosts[0].pass(ms);
    assert_eq!(hosts[0].orders(), 1);
    assert_eq!(hosts[0].entries().len(), 4);
    ms += 10_000;
    hosts[0].pass(ms);
    let standing = hosts[0].standing();
    assert!(has_other_policy(&standing), "{standing:?}");
    hosts[0].edit(THREE_ROUNDS);
    hosts[0].start(&log);
    ms += 10_000;
    hosts[0].pass(ms);
    assert_eq!((hosts[0].orders(), hosts[0].entries().len()), (0, 5));
}
