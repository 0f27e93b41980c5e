//! The one policy of all hosts: a host that has another one is stopped, gives its own, or takes theirs.

use settled_tests::mailroom::Mailroom;
use settled_tests::{read, wait};

use super::programs::{Hosts, done, ledger, refused, review};

#[test]
fn another_policy_stops_a_host_until_it_takes_it() {
    let hosts = Hosts::on_a_repository();
    hosts.tower.put(
        "settled.toml",
        &format!(
            "{}\n[rounds]\nmax = 3\n",
            read(hosts.tower.root().join("settled.toml"))
        ),
    );
    let told = refused(&hosts.tower, &["doctor"]);
    assert!(
        told.contains("the policy in settled.toml differs from that of the other hosts"),
        "{told}"
    );
    done(&hosts.tower, &["host", "policy", "--give", "--by", "ann"]);
    let laptop = hosts.laptop.serve();
    wait::until("the laptop to stop following", || {
        done(&hosts.laptop, &["status"]).contains("settled host policy --take")
    });
    drop(laptop);
    done(&hosts.laptop, &["host", "policy", "--take"]);
    let _daemons = (hosts.tower.serve(), hosts.laptop.serve());
    review(&hosts, "86");
    hosts.have_the_same_ledger();
    // One that joins judges the records before the change by the policy of their time.
    let ci = Mailroom::absent();
    let join = ["host", "join", &hosts.log(), "--as", "ci", "--agents", "pi"];
    done(&ci, &join);
    let config = read(ci.root().join("settled.toml"));
    assert!(config.contains("max = 3"), "{config}");
    let [ours, theirs] = [ci.root(), hosts.tower.root()].map(ledger);
    assert!(ours.starts_with(&theirs), "{ours}\n{theirs}");
}

/// This host has another number of rounds in its `settled.toml` from now on.
fn set_rounds(host: &Mailroom, max: u8) {
    let text = read(host.root().join("settled.toml"));
    let rest = text.split("\n[rounds]").next().expect("a first part");
    host.put("settled.toml", &format!("{rest}\n[rounds]\nmax = {max}\n"));
}

/// The laptop judges a request. Its record is another one with another number of rounds.
fn laptop_judges_a_request(hosts: &Hosts, pr: &str) {
    let to = [
        "send",
        "review_request",
        "--agent",
        "codex",
        "--to",
        "claude",
    ];
    let about = [
        "--pr",
        pr,
        "--branch",
        "b",
        "--diff-summary",
        "Says something.",
    ];
    let args = [&to[..], &about, &["--no-wait"]].concat();
    done(&hosts.laptop, &args);
    let told = done(&hosts.laptop, &["serve", "--once"]);
    assert!(told.contains("1 accepted"), "{told}");
}

/// The laptop judges a request, changes the policy of all hosts, and judges another request.
fn laptop_changes_the_policy(hosts: &Hosts, max: u8) {
    laptop_judges_a_request(hosts, &format!("{max}0"));
    set_rounds(&hosts.laptop, max);
    done(&hosts.laptop, &["host", "policy", "--give", "--by", "bob"]);
    laptop_judges_a_request(hosts, &format!("{max}1"));
}

fn has_rounds(host: &Mailroom, max: u8) -> bool {
    let text = read(host.root().join("settled.toml"));
    text.contains(&format!("\nmax = {max}\n"))
}

#[test]
fn a_host_that_is_behind_gives_its_policy_after_all_that_the_others_recorded() {
    let hosts = Hosts::on_a_repository();
    set_rounds(&hosts.tower, 3);
    laptop_changes_the_policy(&hosts, 1);
    done(&hosts.tower, &["host", "policy", "--give", "--by", "ann"]);
    let [ours, theirs] = [&hosts.tower, &hosts.laptop].map(|host| ledger(host.root()));
    let given = ours.strip_prefix(&theirs).expect("all that the laptop has");
    assert_eq!(given.lines().count(), 1, "{given}");
    assert!(given.contains("max = 3"), "{given}");
    done(&hosts.tower, &["serve", "--once"]);
    done(&hosts.laptop, &["host", "policy", "--take"]);
    laptop_judges_a_request(&hosts, "9");
    done(&hosts.tower, &["serve", "--once"]);
    hosts.have_the_same_ledger();
}

#[test]
fn a_host_that_is_behind_takes_the_last_policy_at_once() {
    let hosts = Hosts::on_a_repository();
    laptop_changes_the_policy(&hosts, 1);
    let told = refused(&hosts.tower, &["serve", "--once"]);
    assert!(told.contains("settled host policy --take"), "{told}");
    laptop_changes_the_policy(&hosts, 3);
    // While a daemon serves, its ledger stays where it stopped.
    let daemon = hosts.tower.serve();
    let told = refused(&hosts.tower, &["host", "policy", "--take"]);
    assert!(told.contains("a daemon serves this workspace"), "{told}");
    assert!(!has_rounds(&hosts.tower, 1), "{told}");
    drop(daemon);
    done(&hosts.tower, &["host", "policy", "--take"]);
    assert!(has_rounds(&hosts.tower, 3));
    hosts.have_the_same_ledger();
    done(&hosts.tower, &["serve", "--once"]);
    // Nothing is missing, so it may take it beside a daemon.
    let _daemon = hosts.tower.serve();
    done(&hosts.tower, &["host", "policy", "--take"]);
}
