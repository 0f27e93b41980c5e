//! All hosts judge by one policy, which is recorded in the log.

use std::fs;

use super::hosts::Hosts;

#[test]
fn a_host_that_is_behind_follows_the_log_before_it_judges_a_change() {
    let hosts = Hosts::just_joined();
    assert!(!hosts.tower.ledger().contains("laptop"));
    hosts.tower.done(&["retire-key", "laptop", "--by", "ann"]);
    assert!(hosts.tower.ledger().contains("laptop"));
}

#[test]
fn all_hosts_judge_by_one_policy() {
    let hosts = Hosts::joined();
    let told = hosts.laptop.done(&["policy"]);
    assert_eq!(told, "the defaults\nthis host has the same\n");
    let config = hosts.tower.config() + "\n[rounds]\nmax = 3\n";
    fs::write(hosts.tower.0.join("settled.toml"), config).expect("a config");
    let told = hosts.tower.fails(6, &["check"]);
    assert!(told.contains("fix: settled host policy --take"), "{told}");
    assert_eq!(hosts.tower.json(&["policy"])["data"]["is_same"], false);
    hosts.tower.done(&["policy", "--give", "--by", "ann"]);
    let told = hosts.tower.done(&["policy"]);
    assert!(
        told.contains("max = 3") && told.ends_with("this host has the same\n"),
        "{told}"
    );
    let told = hosts.laptop.fails(6, &["serve", "--once"]);
    assert!(told.contains("settled host policy --take"), "{told}");
    let told = hosts.laptop.done(&["policy", "--take"]);
    assert!(told.ends_with("this host has the same\n"), "{told}");
    assert!(hosts.laptop.config().contains("max = 3"));
    hosts.laptop.done(&["serve", "--once"]);
    // A host that joins judges the records before the change by the policy of their time.
    let third = hosts.third();
    let told = third.done(&["join", &hosts.log("ledger.git"), "--as", "box"]);
    assert!(
        told.contains("settled.toml has the policy of the other hosts now\n"),
        "{told}"
    );
    assert!(third.config().contains("max = 3"));
    hosts.tower.done(&["serve", "--once"]);
    assert_eq!(third.ledger(), hosts.tower.ledger());
}

#[test]
fn a_host_that_is_behind_records_nothing_by_an_old_policy_and_takes_that_of_the_log() {
    let hosts = Hosts::joined();
    let third = hosts.third();
    third.done(&["join", &hosts.log("ledger.git"), "--as", "box"]);
    let config = hosts.tower.config() + "\n[rounds]\nmax = 3\n";
    fs::write(hosts.tower.0.join("settled.toml"), config).expect("a config");
    hosts.tower.done(&["policy", "--give", "--by", "ann"]);
    let told = hosts.laptop.done(&["policy", "--take"]);
    assert_eq!(told, "[rounds]\nmax = 3\nthis host has the same\n");
    assert!(hosts.laptop.config().contains("max = 3"));
    let claim = ["claim", "pi"];
    let told = third.fails(6, &claim);
    assert!(told.contains("settled host policy --take"), "{told}");
    third.done(&["policy", "--take"]);
    let told = third.done(&claim);
    assert!(told.starts_with("recorded: "), "{told}");
}

#[test]
fn a_default_that_one_host_writes_out_is_no_other_policy() {
    let hosts = Hosts::joined();
    let written = "\n[rounds]\nmax = 2\n";
    fs::write(
        hosts.laptop.0.join("settled.toml"),
        hosts.laptop.config() + written,
    )
    .expect("a config");
    hosts.laptop.done(&["check"]);
    assert_eq!(hosts.laptop.json(&["policy"])["data"]["is_same"], true);
    hosts.laptop.done(&["serve", "--once"]);
    let third = hosts.third();
    fs::create_dir(&third.0).expect("a directory");
    fs::write(third.0.join("settled.toml"), written).expect("a config");
    third.done(&["join", &hosts.log("ledger.git"), "--as", "box"]);
    // Also written out for all, it is what the tower has.
    hosts.laptop.done(&["policy", "--give", "--by", "ann"]);
    for host in [&hosts.tower, &third] {
        host.done(&["serve", "--once"]);
    }
    assert_eq!(hosts.tower.ledger(), third.ledger());
}

#[test]
fn a_daemon_that_began_with_another_policy_records_it_for_all() {
    let hosts = Hosts::joined();
    let config = hosts.tower.config() + "\n[rounds]\nmax = 3\n";
    fs::write(hosts.tower.0.join("settled.toml"), config).expect("a config");
    let mut daemon = hosts.tower.serving();
    let told = hosts.tower.done(&["policy", "--give", "--by", "ann"]);
    assert!(told.starts_with("recorded: ann: changed"), "{told}");
    drop(daemon.stdin.take());
    assert!(daemon.wait().expect("its end").success());
    // The tower is in step again; the laptop still has the old policy.
    hosts.tower.done(&["serve", "--once"]);
    let told = hosts.laptop.fails(6, &["serve", "--once"]);
    assert!(told.contains("settled host policy --take"), "{told}");
}
