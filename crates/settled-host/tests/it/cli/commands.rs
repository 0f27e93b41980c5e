//! Tests the commands' output and suggestions.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::hosts::Hosts;
use crate::sh::sh;

#[test]
fn the_commands_that_a_join_and_a_daemon_suggest_can_be_pasted() {
    let hosts = Hosts::apart();
    let log = hosts.new_log("the team's.git");
    for (host, name) in [(&hosts.tower, "tower"), (&hosts.laptop, "laptop")] {
        host.done(&["join", &log, "--as", name]);
    }
    hosts.tower.done(&["retire-key", "laptop", "--by", "ann"]);
    let told = hosts.laptop.fails(6, &["serve", "--once"]);
    assert!(
        told.contains("the key of host laptop was retired"),
        "{told}"
    );
    let told = hosts.laptop.fails(6, &["serve", "--once"]);
    hosts.laptop.pastes(&told);
    hosts.laptop.done(&["serve", "--once"]);
    // It is a host of that log already: the suggestion joins it again as that.
    let told = hosts
        .laptop
        .fails(2, &["join", &log, "--workspace", "other", "--as", "box"]);
    hosts.laptop.pastes(&told);
    // Another policy is shown, since a host that has not joined has no command to take it.
    hosts.tower.done(&["serve", "--once"]);
    let config = hosts.tower.config() + "\n[rounds]\nmax = 3\n";
    fs::write(hosts.tower.0.join("settled.toml"), config).expect("a config");
    hosts.tower.done(&["policy", "--give", "--by", "ann"]);
    let third = hosts.third();
    fs::create_dir(&third.0).expect("a directory");
    fs::write(third.0.join("settled.toml"), "[rounds]\nmax = 1\n").expect("a config");
    let told = third.fails(6, &["join", &log, "--as", "box"]);
    assert!(told.contains("[rounds]\nmax = 3\n"), "{told}");
}

#[test]
fn a_command_needs_a_workspace_that_shares_its_ledger() {
    let hosts = Hosts::apart();
    let told = hosts.tower.fails(3, &["list"]);
    assert!(told.contains("is not a workspace"), "{told}");
    let none = Command::new(env!("CARGO_BIN_EXE_settled-host"))
        .args(["list", "--json"])
        .env_remove("SETTLED_ROOT")
        .output()
        .expect("the program runs");
    assert_eq!(none.status.code(), Some(5));
    let answer: Value = serde_json::from_slice(&none.stdout).expect("a JSON document");
    assert_eq!(answer["ok"], false);
    let told = String::from_utf8_lossy(&none.stderr);
    assert!(
        told.starts_with("settled host: no workspace given"),
        "{told}"
    );
}

#[test]
fn a_check_says_what_is_well_and_names_a_repository_that_does_not_answer() {
    let hosts = Hosts::joined();
    let log = hosts.log("ledger.git");
    let well = format!(
        "ok     host tower has joined with the key it has here\n\
         ok     all hosts judge by the policy in settled.toml\n\
         ok     {log} answers, with records up to 2; a push is as durable as its server makes it\n"
    );
    assert_eq!(hosts.tower.done(&["check"]), well);
    fs::rename(hosts.path("ledger.git"), hosts.path("away.git")).expect("a new name");
    let told = hosts.tower.fails(6, &["check", "--wait", "0"]);
    assert!(
        told.contains(&format!("\nwrong  {log} does not answer: ")),
        "{told}"
    );
    assert!(
        told.contains("\n       fix: repair the network or the repository\n"),
        "{told}"
    );
}

#[test]
fn a_check_of_a_frozen_host_says_why_and_names_the_cure() {
    let hosts = Hosts::joined();
    let ledger = hosts.path("ledger.git");
    hosts.laptop.done(&["serve", "--once"]);
    hosts.tower.ask("claude", "codex", "q1");
    hosts.tower.done(&["serve", "--once"]);
    sh(
        &ledger,
        "git update-ref refs/kept refs/settled/mailroom; git update-ref refs/settled/mailroom refs/kept~1",
    );
    let told = hosts.tower.fails(6, &["check"]);
    assert!(
        told.contains("wrong  this host is frozen, because the log lost records"),
        "{told}"
    );
    assert!(told.contains("settled host republish"), "{told}");
    // Another host goes on without the lost record.
    hosts.laptop.ask("codex", "claude", "q2");
    hosts.laptop.done(&["serve", "--once"]);
    hosts.tower.fails(6, &["serve", "--once"]);
    let told = hosts.tower.fails(6, &["check"]);
    assert!(
        told.contains("has other records in the place of its own"),
        "{told}"
    );
    assert!(told.contains("Two histories"), "{told}");
    // Something that is no batch.
    sh(
        &ledger,
        "batch=$(git commit-tree -p refs/kept -m hello refs/kept^{tree}); git update-ref refs/settled/mailroom $batch",
    );
    let told = hosts.tower.fails(6, &["check"]);
    assert!(
        told.contains("wrong  this host is frozen: the log is damaged"),
        "{told}"
    );
    assert!(!told.contains("does not answer"), "{told}");
    // Once the log is whole, what is left is a daemon that has to look again.
    sh(&ledger, "git update-ref refs/settled/mailroom refs/kept");
    let told = hosts.tower.fails(6, &["check"]);
    assert!(
        told.contains("the daemon goes on by itself once it serves"),
        "{told}"
    );
    hosts.tower.done(&["serve", "--once"]);
    hosts.tower.done(&["check"]);
}
