//! Two real hosts of one ledger: the programs as people start them, on one broker and on one repository.

use std::path::Path;

use serde_json::Value;
use settled_tests::broker::Broker;
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{list, names, read, seed, sh, wait, write};
use spool::Digest;
use tempfile::TempDir;

use super::git_daemon::GitDaemon;

const HEAD: &str = "9b2f41c07de1a3b85c6f2e94d1a07b3c5e8f6a21";

/// The place of the shared ledger.
pub(super) enum Place {
    Broker(Broker),
    Repository,
    Served(GitDaemon),
}

pub(super) struct Hosts {
    pub(super) place: Place,
    pub(super) directory: TempDir,
    pub(super) tower: Mailroom,
    pub(super) laptop: Mailroom,
}

impl Hosts {
    pub(super) fn on_a_broker() -> Hosts {
        Hosts::on_a_broker_with("")
    }

    fn on_a_broker_with(more: &str) -> Hosts {
        let directory = settled_tests::scratch();
        let place = Place::Broker(Broker::with(directory.path(), more));
        Hosts::joined(place, directory)
    }

    pub(super) fn on_a_repository() -> Hosts {
        let directory = settled_tests::scratch();
        sh(directory.path(), "git init --quiet --bare ledger.git");
        Hosts::joined(Place::Repository, directory)
    }

    pub(super) fn on_a_served_repository() -> Hosts {
        let directory = settled_tests::scratch();
        let place = Place::Served(GitDaemon::start(directory.path()));
        Hosts::joined(place, directory)
    }

    /// The tower shares its workspace; the laptop begins with nothing.
    fn joined(place: Place, directory: TempDir) -> Hosts {
        let hosts = Hosts {
            place,
            directory,
            tower: Mailroom::new(&["claude"]),
            laptop: Mailroom::absent(),
        };
        let log = hosts.log();
        done(&hosts.tower, &["host", "join", &log, "--as", "tower"]);
        let join = ["host", "join", &log, "--as", "laptop", "--agents", "codex"];
        done(&hosts.laptop, &join);
        hosts
    }

    pub(super) fn log(&self) -> String {
        match &self.place {
            Place::Broker(broker) => broker.url(),
            Place::Served(daemon) => daemon.url(),
            Place::Repository => self
                .directory
                .path()
                .join("ledger.git")
                .display()
                .to_string(),
        }
    }

    /// Makes the broker forget what happens meanwhile, as if its disk had lost it.
    fn broker_without_what_happens_in(&mut self, happens: impl FnOnce(&Hosts)) {
        self.broker().kill();
        sh(self.directory.path(), "cp -a n1 n1.before");
        self.broker().start();
        happens(self);
        self.broker().kill();
        sh(self.directory.path(), "rm -r n1 && mv n1.before n1");
        self.broker().start();
    }

    pub(super) fn broker(&mut self) -> &mut Broker {
        match &mut self.place {
            Place::Broker(broker) => broker,
            Place::Repository | Place::Served(_) => unreachable!("it is on a broker"),
        }
    }

    pub(super) fn have_the_same_ledger(&self) {
        wait::until("both mirrors to have the same bytes", || {
            let [tower, laptop] = [&self.tower, &self.laptop].map(|host| ledger(host.root()));
            !tower.is_empty() && tower == laptop
        });
    }
}

pub(super) fn done(host: &Mailroom, args: &[&str]) -> String {
    let output = host.run(args);
    assert!(output.status.success(), "{args:?}: {}", said(&output));
    String::from_utf8(output.stdout).expect("text")
}

/// Runs a command that must be refused, and returns its output.
pub(super) fn refused(host: &Mailroom, args: &[&str]) -> String {
    let output = host.run(args);
    assert!(!output.status.success(), "{args:?}: {}", said(&output));
    said(&output)
}

pub(super) fn question(from: &str, to: &str, id: &str) -> String {
    format!(
        "id: \"{id}\"\nfrom: {from}\nto: {to}\ntype: question\npriority: P2\n\
         created_at_utc: \"2026-02-13T10:00:00Z\"\nsubject: \"Which?\"\nbody: \"{id}\"\n"
    )
}

pub(super) fn ledger(root: &Path) -> String {
    let mut segments = list(root.join(".settled/ledger"));
    segments.sort();
    segments.iter().map(read).collect()
}

/// The files that a ledger has judged, each by the home of its sender.
pub(super) fn judged(ledger: &str) -> Vec<String> {
    let mut judged = Vec::new();
    for line in ledger.lines() {
        let entry: Value = serde_json::from_str(line).expect("a record");
        if let Some(outbox) = entry["original"]["outbox"].as_str() {
            judged.push(format!("{outbox} {}", entry["original"]["file"]));
            let home = if outbox == "claude" {
                "tower"
            } else {
                "laptop"
            };
            assert_eq!(entry["host"], home, "{line}");
        }
    }
    judged
}

/// Plays a review from the tower to the laptop and back.
pub(super) fn review(hosts: &Hosts, pr: &str) {
    let Hosts { tower, laptop, .. } = hosts;
    done(
        tower,
        &[
            "send",
            "review_request",
            "--agent",
            "claude",
            "--to",
            "codex",
            "--pr",
            pr,
            "--branch",
            "b",
            "--declared-head",
            HEAD,
            "--diff-summary",
            "Says something.",
        ],
    );
    wait::until("the request on the laptop", || has(laptop, "codex", pr));
    done(laptop, &["lgtm", pr, "--agent", "codex"]);
    wait::until("the approval on the tower", || has(tower, "claude", pr));
}

/// True if a message about this pull request is in the agent's inbox. An unfinished one has another name.
fn has(host: &Mailroom, agent: &str, pr: &str) -> bool {
    let line = format!("related_pr: '{pr}'");
    let inbox = list(host.agent(agent, "inbox")).into_iter();
    let mut texts = inbox.filter_map(|path| std::fs::read_to_string(path).ok());
    texts.any(|text| text.contains(&line))
}

fn two_hosts_have_the_same_reviews(hosts: &Hosts) {
    let (tower, laptop) = (hosts.tower.serve(), hosts.laptop.serve());
    for pr in ["86", "87", "88"] {
        review(hosts, pr);
    }
    hosts.have_the_same_ledger();
    let reviews = |host: &Mailroom| {
        let status = host.status();
        let reviews = status["reviews"].as_array().expect("reviews").clone();
        let about = |review: &Value| format!("{} {}", review["review"], review["phase"]);
        reviews.iter().map(about).collect::<Vec<_>>()
    };
    assert_eq!(reviews(&hosts.tower), reviews(&hosts.laptop));
    assert_eq!(reviews(&hosts.tower).len(), 3);
    // The sender's home host judges each file, once.
    let ledger = ledger(hosts.tower.root());
    let mut judged = judged(&ledger);
    judged.sort();
    let count = judged.len();
    judged.dedup();
    assert_eq!((judged.len(), count), (6, 6), "{ledger}");
    // Mail arrives only at its reader's home.
    assert_eq!(names(hosts.laptop.agent("claude", "inbox")), [""; 0]);
    assert_eq!(names(hosts.laptop.agent("codex", "inbox")).len(), 3);
    drop((tower, laptop));
}

#[test]
fn two_hosts_on_a_broker_have_the_same_reviews_and_judge_each_file_once() {
    two_hosts_have_the_same_reviews(&Hosts::on_a_broker());
}

#[test]
fn two_hosts_on_a_repository_have_the_same_reviews_and_judge_each_file_once() {
    two_hosts_have_the_same_reviews(&Hosts::on_a_repository());
}

#[test]
fn the_hosts_are_listed_with_their_agents() {
    let hosts = Hosts::on_a_repository();
    let listed = hosts.laptop.json(&["host", "list"]);
    let about = |host: &Value| {
        (
            host["name"].clone(),
            host["agents"].clone(),
            host["is_retired"].clone(),
        )
    };
    let all: Vec<_> = listed["data"]["hosts"]
        .as_array()
        .expect("hosts")
        .iter()
        .map(about)
        .collect();
    let expected = [
        (
            Value::from("laptop"),
            Value::from(vec!["codex"]),
            Value::from(false),
        ),
        (
            Value::from("tower"),
            Value::from(vec!["claude"]),
            Value::from(false),
        ),
    ];
    assert_eq!(all, expected);
    assert_eq!(listed["data"]["host"], "laptop");
    let status = hosts.laptop.status();
    assert_eq!(status["hosts"][1]["name"], "tower");
    // The laptop has a directory for claude's name, which nobody reads there.
    let told = refused(&hosts.laptop, &["inbox", "--agent", "claude"]);
    assert!(
        told.contains("claude is at home on host tower: run this there"),
        "{told}"
    );
}

#[test]
fn hosts_on_a_broker_hear_of_each_other() {
    let hosts = Hosts::on_a_broker();
    let (_tower, laptop) = (hosts.tower.serve(), hosts.laptop.serve());
    review(&hosts, "86");
    let heard = |status: &Value| status["hosts"][0]["heard"].clone();
    wait::until("the tower to hear that the laptop has all records", || {
        let heard = heard(&hosts.tower.status());
        heard["state"] == "in_step" && heard["behind"] == 0
    });
    let there = heard(&hosts.tower.status());
    assert_eq!(there["version"], env!("CARGO_PKG_VERSION"));
    let ahead = there["clock_ahead_ms"].as_i64().expect("a number");
    assert!(ahead.abs() < 2_000, "one machine has one clock: {there}");
    assert_eq!(hosts.tower.status()["hosts"][1]["heard"], Value::Null);
    let listed = done(&hosts.tower, &["host", "list"]);
    assert!(listed.contains("HEARD"), "{listed}");
    assert!(
        done(&hosts.tower, &["status"]).contains("heard "),
        "{listed}"
    );
    // The ledger has nothing of it, and the last heartbeats survive the end of the laptop's daemon.
    drop(laptop);
    assert_eq!(ledger(hosts.tower.root()).lines().count(), 4);
    assert!(heard(&hosts.tower.status())["at"].is_string());
}

#[test]
fn a_claim_that_does_not_fit_is_refused_with_what_to_do() {
    let hosts = Hosts::on_a_repository();
    let log = hosts.log();
    let before = ledger(hosts.laptop.root());
    // An agent has one home.
    let other = Mailroom::absent();
    let told = refused(
        &other,
        &["host", "join", &log, "--as", "box", "--agents", "claude"],
    );
    assert!(told.contains("agent claude is at home on tower"), "{told}");
    assert!(
        told.contains("settled host move-home claude --from tower"),
        "{told}"
    );
    // A name has one key.
    let told = refused(
        &other,
        &["host", "join", &log, "--as", "tower", "--agents", "pi"],
    );
    assert!(
        told.contains("host tower has joined with another key"),
        "{told}"
    );
    // A workspace has one ledger.
    let own = Mailroom::new(&["pi", "gemini"]);
    own.post("pi", "q.yaml", &question("pi", "gemini", "q-1"));
    own.once();
    let told = refused(&own, &["host", "join", &log, "--as", "box"]);
    assert!(
        told.contains("has a ledger of its own, with 1 records"),
        "{told}"
    );
    // All hosts judge by one policy.
    let strict = Mailroom::new(&["pi"]);
    strict.put("settled.toml", "[rounds]\nmax = 3\n");
    let told = refused(&strict, &["host", "join", &log, "--as", "box"]);
    assert!(
        told.contains("its policy differs from that of the other hosts"),
        "{told}"
    );
    assert_eq!(ledger(hosts.laptop.root()), before);
    // Nothing was written to the log either, so a compatible host can join next.
    done(
        &other,
        &["host", "join", &log, "--as", "box", "--agents", "pi"],
    );
    assert_eq!(
        ledger(other.root()).lines().count(),
        before.lines().count() + 1
    );
}

#[test]
fn a_host_that_comes_and_goes_serves_once() {
    for hosts in [Hosts::on_a_repository(), Hosts::on_a_broker()] {
        hosts
            .tower
            .post("claude", "q.yaml", &question("claude", "codex", "q-1"));
        let told = done(&hosts.tower, &["serve", "--once"]);
        assert!(told.contains("1 accepted, 0 refused"), "{told}");
        assert_eq!(names(hosts.tower.agent("claude", "outbox")), [""; 0]);
        // The other host has nothing to send and adopts the new records.
        let told = done(&hosts.laptop, &["serve", "--once"]);
        assert!(told.contains("0 accepted, 0 refused"), "{told}");
        assert_eq!(names(hosts.laptop.agent("codex", "inbox")), ["q.yaml"]);
        assert_eq!(ledger(hosts.tower.root()), ledger(hosts.laptop.root()));
        hosts.laptop.post("codex", "broken.yaml", "from: [\n");
        let told = refused(&hosts.laptop, &["serve", "--once"]);
        assert!(told.contains("0 accepted, 1 refused"), "{told}");
    }
}

#[test]
fn a_host_starts_the_command_of_its_agent_which_answers_a_review_of_the_other() {
    let hosts = Hosts::on_a_repository();
    let finding = "- {severity: P1, title: It breaks, file: a.rs, line: 1}";
    let answer = format!("printf 'findings:\\n{finding}\\n' | settled feedback --findings -");
    let section = format!("[agents.codex]\ncommand = [\"sh\", \"-c\", '''{answer}''']\n");
    let config = hosts.laptop.root().join("settled.toml");
    write(&config, &(read(&config) + &section));
    let _daemons = [hosts.tower.serve(), hosts.laptop.serve()];
    seed::lay_packet(hosts.tower.root());
    hosts
        .tower
        .post("claude", "request.yaml", &seed::review()[0].text);
    wait::until("the answer of the laptop's command", || {
        ledger(hosts.tower.root()).contains("review_feedback")
    });
    assert!(!ledger(hosts.tower.root()).contains("invocation_failed"));
}

#[test]
fn a_pair_runs_where_both_agents_are_at_home() {
    let hosts = Hosts::on_a_repository();
    let _tower = hosts.tower.serve();
    wait::until("the tower to know of the laptop", || {
        done(&hosts.tower, &["host", "list"]).contains("codex")
    });
    hosts.tower.put("task.md", "Fix it.");
    let task = hosts.tower.root().join("task.md");
    let task = task.to_string_lossy();
    let alone = [
        "pair",
        "--author",
        "claude",
        "--author-command",
        "echo DONE",
        "--task",
        &task,
    ];
    let both = ["--reviewer", "codex", "--reviewer-command", "echo PASS"];
    let told = refused(&hosts.tower, &[&alone[..], &both].concat());
    assert!(told.contains("codex is at home on host laptop"), "{told}");
    assert!(told.contains("settled host move-home codex"), "{told}");
    done(&hosts.tower, &alone);
    let ledger = ledger(hosts.tower.root());
    assert!(ledger.contains("\"host\":\"tower\""), "{ledger}");
}

#[test]
fn where_the_log_cannot_be_reached_serving_once_accepts_nothing_and_says_so() {
    let hosts = Hosts::on_a_repository();
    let before = ledger(hosts.tower.root());
    hosts
        .tower
        .post("claude", "q.yaml", &question("claude", "codex", "q-1"));
    let remote = hosts.directory.path().join("ledger.git");
    let away = hosts.directory.path().join("away.git");
    std::fs::rename(&remote, &away).expect("a repository to move");
    let told = refused(&hosts.tower, &["serve", "--once"]);
    assert!(told.contains("cannot reach the ledger"), "{told}");
    assert_eq!(ledger(hosts.tower.root()), before);
    assert_eq!(names(hosts.tower.agent("claude", "outbox")), ["q.yaml"]);
    std::fs::rename(&away, &remote).expect("a repository to move");
    done(&hosts.tower, &["serve", "--once"]);
    assert_eq!(names(hosts.tower.agent("claude", "sent")), ["q.yaml"]);
}

#[test]
fn a_message_too_large_for_the_log_is_refused_and_smaller_ones_go_on() {
    let hosts = Hosts::on_a_broker_with("max_payload: 16384\n");
    // More than fits into one batch, each of them small enough.
    for number in 0..20 {
        let text = question("claude", "codex", &format!("q-{number}"));
        let text = text.replace("body: ", &format!("body: {}", "x".repeat(1_500)));
        hosts
            .tower
            .post("claude", &format!("q-{number}.yaml"), &text);
    }
    let (_tower, _laptop) = (hosts.tower.serve(), hosts.laptop.serve());
    hosts.tower.cleared("claude");
    let large = question("claude", "codex", "large");
    let large = large.replace("body: ", &format!("body: {}", "x".repeat(18_000)));
    hosts.tower.post("claude", "large.yaml", &large);
    let report = hosts.tower.refused("claude", "large.yaml");
    assert_eq!(report["refused"], "too_large", "{report}");
    hosts.tower.post(
        "claude",
        "after.yaml",
        &question("claude", "codex", "after"),
    );
    hosts.laptop.delivered("codex", "after.yaml");
    assert_eq!(names(hosts.laptop.agent("codex", "inbox")).len(), 21);
    hosts.have_the_same_ledger();
}

#[test]
fn what_the_log_lost_freezes_a_host_and_is_put_back_from_its_ledger() {
    let hosts = Hosts::on_a_repository();
    let daemons = (hosts.tower.serve(), hosts.laptop.serve());
    review(&hosts, "86");
    hosts.have_the_same_ledger();
    drop(daemons);
    let before = ledger(hosts.tower.root());
    let remote = hosts.directory.path().join("ledger.git");
    sh(
        &remote,
        "git update-ref refs/settled/mailroom refs/settled/mailroom~1",
    );
    let (tower, _laptop) = (hosts.tower.serve(), hosts.laptop.serve());
    for host in [&hosts.tower, &hosts.laptop] {
        wait::until("a host to freeze", || {
            done(host, &["host", "list"]).contains("frozen at record 4")
        });
    }
    drop(tower);
    let told = refused(
        &hosts.tower,
        &["host", "join", &hosts.log(), "--as", "tower"],
    );
    assert!(
        told.contains("1 more from it: `settled host republish`"),
        "{told}"
    );
    let told = done(&hosts.tower, &["host", "republish"]);
    assert!(told.contains("records up to 3; 1 were put back"), "{told}");
    // The daemon that stays frozen meanwhile looks again by itself.
    let _tower = hosts.tower.serve();
    assert_eq!(ledger(hosts.laptop.root()), before);
    review(&hosts, "87");
    assert!(!done(&hosts.laptop, &["status"]).contains("frozen"));
    hosts.have_the_same_ledger();
    assert!(ledger(hosts.tower.root()).starts_with(&before));
}

#[test]
fn a_host_whose_records_the_log_replaced_joins_again_with_another_directory() {
    let mut hosts = Hosts::on_a_broker();
    let log = hosts.log();
    hosts.broker_without_what_happens_in(|hosts| {
        for id in ["lost-1", "lost-2"] {
            let text = question("claude", "codex", id);
            hosts.tower.post("claude", &format!("{id}.yaml"), &text);
        }
        done(&hosts.tower, &["serve", "--once"]);
    });
    hosts
        .laptop
        .post("codex", "new.yaml", &question("codex", "claude", "new"));
    done(&hosts.laptop, &["serve", "--once"]);

    let join = ["host", "join", &log, "--as", "tower"];
    let told = refused(&hosts.tower, &join);
    assert!(
        told.contains("a ledger of its own, with 4 records"),
        "{told}"
    );
    let told = refused(&hosts.tower, &["host", "republish"]);
    assert!(told.contains("nothing was put back"), "{told}");
    done(
        &hosts.laptop,
        &["host", "retire-key", "tower", "--by", "ann"],
    );
    let old = std::mem::replace(&mut hosts.tower, Mailroom::absent());
    done(&hosts.tower, &join);
    let sent = read(old.root().join("agents/claude/sent/lost-2.yaml"));
    hosts.tower.post("claude", "lost-2.yaml", &sent);
    done(&hosts.tower, &["serve", "--once"]);
    done(&hosts.laptop, &["serve", "--once"]);
    assert_eq!(names(hosts.laptop.agent("codex", "inbox")), ["lost-2.yaml"]);
    hosts.have_the_same_ledger();
}

/// The log continues with as many records as it lost, and then with one more than this host has.
#[test]
fn republish_names_the_first_record_in_which_two_histories_differ() {
    let hosts = Hosts::on_a_repository();
    let says = |host: &Mailroom, from: &str, to: &str, id: &str| {
        host.post(from, &format!("{id}.yaml"), &question(from, to, id));
        done(host, &["serve", "--once"]);
    };
    let lost = |id| says(&hosts.tower, "claude", "codex", id);
    let new = |id| says(&hosts.laptop, "codex", "claude", id);
    lost("lost-1");
    lost("lost-2");
    sh(
        &hosts.directory.path().join("ledger.git"),
        "git update-ref refs/settled/mailroom refs/settled/mailroom~2",
    );
    new("new-1");
    new("new-2");
    let digest = |host: &Mailroom| {
        let ledger = ledger(host.root());
        let third = ledger.lines().nth(2).expect("a third record");
        Digest::of(third.as_bytes())
    };
    let names_the_third = || {
        let told = refused(&hosts.tower, &["host", "republish"]);
        let (theirs, ours) = (digest(&hosts.laptop), digest(&hosts.tower));
        for part in [
            "record 3 of the log is not this host's".to_owned(),
            format!("its digest is {theirs} in the log and {ours} here"),
        ] {
            assert!(told.contains(&part), "{part}:\n{told}");
        }
    };
    names_the_third();
    new("new-3");
    names_the_third();
}

/// With a broker that a host follows from its first record, the host's own last record is compared only by another
/// request.
#[test]
fn a_host_that_has_more_than_the_log_cannot_join_it_again() {
    let mut hosts = Hosts::on_a_broker();
    let log = hosts.log();
    hosts.broker_without_what_happens_in(|hosts| {
        hosts
            .tower
            .post("claude", "lost.yaml", &question("claude", "codex", "lost"));
        done(&hosts.tower, &["serve", "--once"]);
    });
    let told = refused(&hosts.tower, &["host", "join", &log, "--as", "tower"]);
    assert!(told.contains("the log ends with record 2"), "{told}");
    let told = done(&hosts.tower, &["host", "republish"]);
    assert!(told.contains("records up to 2; 1 were put back"), "{told}");
    done(&hosts.tower, &["host", "join", &log, "--as", "tower"]);
}

#[test]
fn a_log_that_is_gone_is_restored_from_a_host_into_another() {
    let hosts = Hosts::on_a_broker();
    let daemons = (hosts.tower.serve(), hosts.laptop.serve());
    review(&hosts, "86");
    hosts.have_the_same_ledger();
    drop(daemons);
    // The laptop lacks this record.
    hosts
        .tower
        .post("claude", "last.yaml", &question("claude", "codex", "last"));
    done(&hosts.tower, &["serve", "--once"]);
    let before = ledger(hosts.tower.root());
    sh(hosts.directory.path(), "git init --quiet --bare spare.git");
    let spare = hosts
        .directory
        .path()
        .join("spare.git")
        .display()
        .to_string();
    let told = done(&hosts.tower, &["host", "restore", &spare]);
    assert!(told.contains("records up to 0; 5 were put back"), "{told}");
    let told = done(&hosts.tower, &["host", "restore", &spare]);
    assert!(told.contains("records up to 5; 0 were put back"), "{told}");
    let told = refused(&hosts.laptop, &["host", "restore", &spare]);
    assert!(
        told.contains("`settled host join LOG` takes over"),
        "{told}"
    );
    done(&hosts.laptop, &["host", "join", &spare]);
    let _daemons = (hosts.tower.serve(), hosts.laptop.serve());
    review(&hosts, "87");
    hosts.have_the_same_ledger();
    assert!(ledger(hosts.tower.root()).starts_with(&before));
    // A third host checks every signature from the first record on.
    let third = Mailroom::absent();
    done(
        &third,
        &["host", "join", &spare, "--as", "box", "--agents", "pi"],
    );
    assert!(ledger(third.root()).starts_with(&before));
}

#[test]
fn a_broker_that_lost_its_stream_gets_no_empty_one_but_what_a_host_puts_back() {
    let mut hosts = Hosts::on_a_broker();
    let daemons = (hosts.tower.serve(), hosts.laptop.serve());
    review(&hosts, "86");
    hosts.have_the_same_ledger();
    drop(daemons);
    let whole = ledger(hosts.tower.root());
    hosts.broker().kill();
    sh(hosts.directory.path(), "rm -r n1");
    hosts.broker().start();
    for args in [
        &["host", "check"][..],
        &["serve", "--once"],
        &["host", "claim", "pi"],
    ] {
        let told = refused(&hosts.tower, args);
        assert!(told.contains("stream not found"), "{args:?}: {told}");
    }
    let told = refused(&hosts.tower, &["host", "check"]);
    assert!(told.contains("settled host republish"), "{told}");
    done(&hosts.tower, &["host", "republish"]);
    done(&hosts.tower, &["host", "check"]);
    done(&hosts.laptop, &["serve", "--once"]);
    assert_eq!(ledger(hosts.laptop.root()), whole);
}

#[test]
fn a_home_moves_while_both_hosts_serve_and_a_retired_key_is_refused_by_all() {
    let hosts = Hosts::on_a_broker();
    let (_tower, _laptop) = (hosts.tower.serve(), hosts.laptop.serve());
    done(&hosts.laptop, &["host", "claim", "pi"]);
    done(
        &hosts.laptop,
        &["host", "move-home", "pi", "--to", "tower", "--by", "ann"],
    );
    wait::until("the tower to know its agent", || {
        done(&hosts.tower, &["host", "list"]).contains("claude, pi")
    });
    hosts
        .laptop
        .post("codex", "q.yaml", &question("codex", "pi", "q-1"));
    hosts.tower.delivered("pi", "q.yaml");
    assert!(names(hosts.laptop.agent("pi", "inbox")).is_empty());

    let retire = [
        "host",
        "retire-key",
        "laptop",
        "--by",
        "ann",
        "--reason",
        "stolen",
    ];
    done(&hosts.tower, &retire);
    wait::until("the laptop to say that its key is retired", || {
        done(&hosts.laptop, &["status"]).contains("the key of host laptop was retired")
    });
    let before = ledger(hosts.tower.root());
    hosts
        .laptop
        .post("codex", "late.yaml", &question("codex", "claude", "late"));
    hosts
        .tower
        .post("claude", "on.yaml", &question("claude", "pi", "on"));
    hosts.tower.delivered("pi", "on.yaml");
    assert_eq!(names(hosts.laptop.agent("codex", "outbox")), ["late.yaml"]);
    assert_eq!(
        ledger(hosts.tower.root()).lines().count(),
        before.lines().count() + 1
    );
}

#[test]
fn a_check_names_the_servers_of_a_cluster_that_it_has_not_seen() {
    let directory = settled_tests::scratch();
    let brokers = Broker::cluster(directory.path());
    let urls: Vec<String> = brokers.iter().map(Broker::url).collect();
    let tower = Mailroom::new(&["claude"]);
    let join = ["host", "join", &urls.join(","), "--as", "tower"];
    done(&tower, &join);
    let pages = brokers
        .each_ref()
        .map(|broker| format!("127.0.0.1:{}", broker.monitor));
    let told = done(&tower, &["host", "check", "--monitor", &pages[1]]);
    assert!(told.contains("3 servers hold the ledger"), "{told}");
    assert!(told.contains("not seen of n1, n3: "), "{told}");
    let told = done(&tower, &["doctor", "--monitor", &pages.join(",")]);
    assert!(!told.contains("not seen"), "{told}");
    assert_eq!(
        told.matches("each record is on the broker's disk").count(),
        3
    );
}

#[test]
fn doctor_says_what_the_log_promises() {
    let hosts = Hosts::on_a_broker();
    let Place::Broker(broker) = &hosts.place else {
        unreachable!("it is on a broker");
    };
    let monitor = format!("127.0.0.1:{}", broker.monitor);
    let told = done(&hosts.tower, &["host", "check", "--monitor", &monitor]);
    assert!(
        told.contains("each record is on the broker's disk before it is acknowledged"),
        "{told}"
    );
    assert!(told.contains("one server holds the ledger"), "{told}");
    assert!(told.contains("takes 1024 KiB at once"), "{told}");
    let told = done(&hosts.tower, &["doctor"]);
    assert!(
        told.contains("host tower has joined with the key it has here"),
        "{told}"
    );
    assert!(
        told.contains("cannot see whether the broker syncs"),
        "{told}"
    );
    let told = done(&hosts.tower, &["doctor", "--monitor", &monitor]);
    assert!(
        told.contains("each record is on the broker's disk before it is acknowledged"),
        "{told}"
    );
    let careless = settled_tests::scratch();
    let careless = Broker::careless(careless.path());
    let monitor = format!("127.0.0.1:{}", careless.monitor);
    let told = refused(&hosts.tower, &["host", "check", "--monitor", &monitor]);
    assert!(
        told.contains("records that are not on its disk yet"),
        "{told}"
    );
}
