//! The key of a host: lost, retired, replaced by another machine, or new.

use std::fs;
use std::process::Command;

use super::hosts::{Host, Hosts};

#[test]
fn a_host_that_lost_its_key_is_told_how_to_go_on_and_leaves_once_it_is_retired() {
    let hosts = Hosts::joined();
    fs::remove_file(hosts.laptop.0.join(".settled/host/key")).expect("a key");
    for command in [&["claim", "pi"][..], &["leave"], &["serve", "--once"]] {
        let told = hosts.laptop.fails(6, command);
        assert!(told.contains("host laptop has no key here"), "{told}");
        assert!(
            told.contains("settled host retire-key laptop") && told.contains(" --new-key --root "),
            "{told}"
        );
    }
    hosts.tower.done(&["retire-key", "laptop", "--by", "ann"]);
    hosts.laptop.done(&["leave"]);
    // The last host leaves with or without a key.
    fs::remove_file(hosts.tower.0.join(".settled/host/key")).expect("a key");
    hosts.tower.done(&["leave"]);
}

#[test]
fn a_host_whose_key_is_retired_joins_again_with_another_one() {
    let hosts = Hosts::joined();
    hosts.tower.done(&["retire-key", "laptop", "--by", "ann"]);
    let told = hosts.tower.fails(6, &["retire-key", "nowhere"]);
    assert!(told.contains("`settled host list` has the hosts"), "{told}");
    let told = hosts.laptop.fails(6, &["serve", "--once"]);
    assert!(
        told.contains("the key of host laptop was retired"),
        "{told}"
    );
    let log = hosts.log("ledger.git");
    let join = ["join", &log, "--as", "laptop"];
    let told = hosts.laptop.fails(6, &join);
    assert!(told.contains("join with another key"), "{told}");
    hosts.laptop.pastes(&told);
    hosts.laptop.ask("codex", "claude", "q-1");
    hosts.laptop.done(&["serve", "--once"]);
    hosts.tower.done(&["serve", "--once"]);
    assert_eq!(hosts.tower.inbox("claude"), ["q-1.yaml"]);
}

#[test]
fn a_valid_key_stays_whatever_the_log_and_the_command_line_say() {
    let hosts = Hosts::joined();
    let log = hosts.log("ledger.git");
    let join = ["join", &log, "--as", "tower", "--new-key"];
    let key = || fs::read_to_string(hosts.tower.0.join(".settled/host/key")).expect("a key");
    let before = key();
    fs::rename(hosts.path("ledger.git"), hosts.path("away.git")).expect("a repository to move");
    hosts.tower.fails(3, &join);
    fs::rename(hosts.path("away.git"), hosts.path("ledger.git")).expect("a repository to move");
    assert_eq!(key(), before);
    let told = hosts.tower.done(&join);
    assert!(
        told.contains("its key is not retired, so it keeps that key"),
        "{told}"
    );
    assert_eq!(key(), before);
    hosts.tower.done(&["serve", "--once"]);
    // With a key that is retired, the second join finds the key of the first.
    hosts.laptop.done(&["retire-key", "tower", "--by", "ann"]);
    hosts.tower.done(&join);
    let after = key();
    assert_ne!(after, before);
    assert_eq!(hosts.tower.json(&join)["data"]["kept_key"], true);
    assert_eq!(key(), after);
    hosts.tower.done(&["serve", "--once"]);
}

#[test]
fn a_host_that_knows_of_its_retired_key_follows_the_log_to_join_again() {
    let hosts = Hosts::joined();
    hosts.tower.done(&["retire-key", "laptop", "--by", "ann"]);
    let told = hosts.laptop.fails(6, &["serve", "--once"]);
    assert!(
        told.contains("the key of host laptop was retired"),
        "{told}"
    );
    // Its ledger ends with the retirement, and the others go on, also under another policy.
    let config = hosts.tower.config() + "\n[rounds]\nmax = 3\n";
    hosts.tower.ask("claude", "codex", "q-1");
    hosts.tower.done(&["serve", "--once"]);
    fs::write(hosts.tower.0.join("settled.toml"), config).expect("a config");
    hosts.tower.done(&["policy", "--give", "--by", "ann"]);
    hosts.tower.ask("claude", "codex", "q-2");
    hosts.tower.done(&["serve", "--once"]);
    // The host judges its waiting mail once it has joined, not while it joins.
    hosts.laptop.ask("codex", "claude", "q-3");
    let log = hosts.log("ledger.git");
    let records = hosts.tower.ledger().lines().count();
    let told = hosts
        .laptop
        .done(&["join", &log, "--as", "laptop", "--new-key"]);
    assert!(told.contains("the policy of the other hosts now"), "{told}");
    let ledger = hosts.laptop.ledger();
    assert!(ledger.starts_with(&hosts.tower.ledger()), "{ledger}");
    assert_eq!(ledger.lines().count(), records + 1, "{ledger}");
    hosts.laptop.done(&["serve", "--once"]);
    assert_eq!(hosts.laptop.inbox("codex"), ["q-1.yaml", "q-2.yaml"]);
    hosts.tower.done(&["serve", "--once"]);
    assert_eq!(hosts.tower.inbox("claude"), ["q-3.yaml"]);
    assert_eq!(hosts.tower.ledger(), hosts.laptop.ledger());
}

/// The laptop's key is retired and another machine joined as the laptop; the first one does not know it yet.
fn replaced(hosts: &Hosts) -> Host {
    hosts.tower.done(&["retire-key", "laptop", "--by", "ann"]);
    let other = hosts.third();
    let log = hosts.log("ledger.git");
    other.done(&["join", &log, "--as", "laptop"]);
    other
}

#[test]
fn a_host_that_another_machine_replaced_records_nothing_and_says_why() {
    let hosts = Hosts::joined();
    let other = replaced(&hosts);
    let commands: [&[&str]; 6] = [
        &["serve", "--once"],
        &["claim", "pi"],
        &["move-home", "claude", "--to", "laptop"],
        &["retire-key", "tower"],
        &["retire-key", "laptop"],
        &["policy", "--give"],
    ];
    for (number, command) in commands.into_iter().enumerate() {
        let laptop = Host(hosts.path(&format!("laptop-{number}")));
        let copied = Command::new("cp")
            .arg("-a")
            .args([&hosts.laptop.0, &laptop.0])
            .status();
        assert!(copied.expect("cp runs").success());
        if command[0] == "policy" {
            let config = laptop.config() + "\n[rounds]\nmax = 3\n";
            fs::write(laptop.0.join("settled.toml"), config).expect("a config");
        }
        laptop.ask("codex", "claude", "q-1");
        // At first this host's ledger has no record of the other machine.
        for _ in 0..2 {
            let told = laptop.fails(6, command);
            for part in [
                "another machine joined as host laptop",
                "`settled host retire-key laptop` on another host",
                "--new-key",
            ] {
                assert!(told.contains(part), "{command:?}: {told}");
            }
            // A daemon that learned it while it served names its status instead.
            let (log, root) = (hosts.log("ledger.git"), laptop.0.display());
            let join =
                format!("host join {log} --workspace mailroom --as laptop --new-key --root {root}");
            let is_told = told.ends_with(&format!("  try: settled {join}\n"));
            assert!(is_told || command[0] == "serve", "{command:?}: {told}");
        }
    }
    hosts.tower.done(&["serve", "--once"]);
    other.done(&["serve", "--once"]);
    assert_eq!(hosts.tower.ledger(), other.ledger());
    assert!(hosts.tower.inbox("claude").is_empty());
}

#[test]
fn a_host_that_another_machine_replaced_leaves_and_does_not_retire_the_key_of_that_one() {
    let hosts = Hosts::joined();
    hosts
        .laptop
        .done(&["move-home", "codex", "--to", "tower", "--by", "ann"]);
    let other = replaced(&hosts);
    let told = hosts.laptop.fails(6, &["leave"]);
    assert!(
        told.contains("another machine joined as host laptop"),
        "{told}"
    );
    // It knows now that it is out, and that there is nothing to record.
    let left = hosts.laptop.done(&["leave"]);
    assert!(left.starts_with("host laptop left;"), "{left}");
    other.done(&["serve", "--once"]);
}

#[test]
fn a_host_with_a_new_key_does_not_sign_what_it_judged_before_it_shared_its_ledger() {
    let hosts = Hosts::apart();
    let (log, spare) = (hosts.log("ledger.git"), hosts.log("spare.git"));
    let agents = ["claude", "pi"].map(|agent| agent.parse().expect("a name"));
    workspace::directory::init(&hosts.tower.0, &agents).expect("a workspace");
    hosts.tower.ask("claude", "pi", "q-1");
    daemon::serve::serve_once(&hosts.tower.0).expect("a run");
    hosts.tower.done(&["join", &log, "--as", "tower"]);
    hosts
        .laptop
        .done(&["join", &log, "--as", "laptop", "--agents", "codex"]);
    hosts.laptop.done(&["retire-key", "tower", "--by", "ann"]);
    hosts.tower.done(&["join", &log, "--new-key"]);
    hosts.laptop.done(&["serve", "--once"]);
    let told = hosts.tower.fails(6, &["restore", &spare]);
    assert!(
        told.contains("`settled host restore` on another host"),
        "{told}"
    );
    hosts.laptop.done(&["restore", &spare]);
    hosts.tower.done(&["join", &spare]);
    let third = hosts.third();
    third.done(&["join", &spare, "--as", "box"]);
    hosts.tower.done(&["serve", "--once"]);
    assert_eq!(third.ledger(), hosts.tower.ledger());
}

#[test]
fn a_host_with_a_new_key_does_not_begin_another_log_with_what_it_judged_before() {
    let hosts = Hosts::apart();
    let (log, spare) = (hosts.log("ledger.git"), hosts.log("spare.git"));
    hosts.give_tower_a_past();
    hosts.tower.done(&["join", &log, "--as", "tower"]);
    hosts.laptop.done(&["join", &log, "--as", "laptop"]);
    hosts.laptop.done(&["retire-key", "tower", "--by", "ann"]);
    hosts.tower.done(&["join", &log, "--new-key"]);
    hosts.tower.done(&["retire-key", "laptop", "--by", "ann"]);
    hosts.tower.done(&["leave"]);
    let told = hosts.tower.fails(6, &["join", &spare, "--as", "tower"]);
    assert!(
        told.contains("only the key that this host had then"),
        "{told}"
    );
    // The laptop is out, and has the signatures all the same.
    hosts.laptop.fails(6, &["serve", "--once"]);
    hosts.laptop.done(&["restore", &spare]);
    hosts.tower.done(&["join", &spare, "--as", "tower"]);
    hosts.third().done(&["join", &spare, "--as", "box"]);
}

#[test]
fn a_first_join_goes_on_only_with_the_key_that_signed_its_records() {
    let hosts = Hosts::apart();
    let (log, repository) = (hosts.log("ledger.git"), hosts.path("ledger.git"));
    hosts.give_tower_a_past();
    // The log takes the ledger, and then not the join.
    hosts.decide_pushes("test ! -e refs/settled/mailroom");
    hosts
        .tower
        .fails(9, &["join", &log, "--as", "tower", "--wait", "1"]);
    fs::remove_file(repository.join("hooks/pre-receive")).expect("a hook");
    let told = hosts
        .tower
        .fails(6, &["join", &log, "--as", "tower", "--new-key"]);
    assert!(
        told.contains("record 1 of the log is signed with another key"),
        "{told}"
    );
    hosts.tower.done(&["join", &log, "--as", "tower"]);
    hosts.laptop.done(&["join", &log, "--as", "laptop"]);
}

#[test]
fn a_host_whose_key_is_retired_changes_nothing_and_names_the_command() {
    let hosts = Hosts::joined();
    hosts.tower.done(&["retire-key", "laptop", "--by", "ann"]);
    for _ in 0..2 {
        let told = hosts.laptop.fails(6, &["claim", "pi"]);
        assert!(
            told.contains("the key of host laptop was retired\n  try: settled host join /"),
            "{told}"
        );
        assert!(told.contains(" --new-key --root "), "{told}");
    }
    let told = hosts.laptop.fails(6, &["serve", "--once"]);
    assert!(told.contains(" --new-key --root "), "{told}");
    hosts.tower.done(&["serve", "--once"]);
    // Its agents are at home under its name, and only another host can move them now.
    hosts.laptop.done(&["leave"]);
}
