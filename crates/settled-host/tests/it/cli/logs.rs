//! A log that lost records or has a wrong one: restored, or left behind.

use super::hosts::Hosts;
use crate::sh::sh;

#[test]
fn hosts_leave_a_record_that_breaks_the_rules_behind_in_another_log() {
    let hosts = Hosts::joined();
    let (log, spare) = (hosts.log("ledger.git"), hosts.log("spare.git"));
    // A commit that no host could follow stands for a record of a program that is not ours.
    let other = hosts.third();
    other.done(&["join", &log, "--as", "box"]);
    let forge = "commit=$(git cat-file commit refs/settled/mailroom | sed 's/^Settled-Host: .*/Settled-Host: laptop/' \
         | git hash-object -t commit -w --stdin) && git update-ref refs/settled/mailroom $commit";
    sh(&hosts.path("ledger.git"), forge);
    for host in [&hosts.tower, &hosts.laptop] {
        let told = host.fails(6, &["serve", "--once"]);
        assert!(told.contains("frozen at record 3"), "{told}");
    }
    hosts.tower.done(&["restore", &spare]);
    hosts.laptop.done(&["join", &spare]);
    hosts.laptop.ask("codex", "claude", "q-1");
    for host in [&hosts.laptop, &hosts.tower] {
        host.done(&["serve", "--once"]);
    }
    assert_eq!(hosts.tower.inbox("claude"), ["q-1.yaml"]);
    assert_eq!(hosts.tower.ledger(), hosts.laptop.ledger());
}

#[test]
fn a_host_that_judged_alone_since_it_left_brings_its_ledger_to_no_log() {
    let hosts = Hosts::apart();
    hosts.give_tower_a_past();
    hosts
        .tower
        .done(&["join", &hosts.log("ledger.git"), "--as", "tower"]);
    hosts.tower.done(&["leave"]);
    hosts.tower.ask("claude", "pi", "q-2");
    daemon::serve::serve_once(&hosts.tower.0).expect("a run");
    let told = hosts
        .tower
        .fails(6, &["join", &hosts.log("spare.git"), "--as", "tower"]);
    assert!(
        told.contains("judged record 3 while it shared nothing"),
        "{told}"
    );
}

#[test]
fn what_the_log_lost_is_put_back_and_a_lost_log_is_restored() {
    let hosts = Hosts::joined();
    hosts.tower.ask("claude", "codex", "q-1");
    hosts.tower.done(&["serve", "--once"]);
    let (log, before) = (hosts.log("ledger.git"), hosts.tower.ledger());
    let lose = "git update-ref refs/settled/mailroom refs/settled/mailroom~1";
    sh(&hosts.path("ledger.git"), lose);
    let told = hosts.tower.fails(6, &["join", &log, "--as", "tower"]);
    assert!(
        told.contains("1 more from it: `settled host republish` puts them back"),
        "{told}"
    );
    let told = hosts.tower.done(&["republish"]);
    let said = format!(
        "the log at {log} had records up to 2; 1 were put back, and it ends with record 3 now\n\
         the daemons of the other frozen hosts go on by themselves\nnext: settled serve"
    );
    assert!(told.starts_with(&said), "{told}");
    hosts.laptop.done(&["serve", "--once"]);
    assert_eq!(hosts.laptop.ledger(), before);
    // If the log went on without the lost records, nothing is put back.
    sh(&hosts.path("ledger.git"), lose);
    let third = hosts.third();
    third.done(&["join", &log, "--as", "box"]);
    let told = hosts.tower.fails(6, &["republish"]);
    assert!(
        told.contains("record 3 of the log is not this host's"),
        "{told}"
    );
    let told = hosts.tower.fails(6, &["join", &log, "--as", "tower"]);
    assert!(
        told.contains("has a ledger of its own, with 3 records"),
        "{told}"
    );

    let spare = hosts.log("spare.git");
    let told = hosts.tower.done(&["restore", &spare]);
    let said = "had records up to 0; 3 were put back, and it ends with record 3 now\nnext: ";
    assert!(told.contains(said), "{told}");
    assert!(hosts.tower.config().contains("spare.git"));
    hosts.laptop.done(&["join", &spare]);
    hosts.tower.ask("claude", "codex", "q-2");
    hosts.tower.done(&["serve", "--once"]);
    hosts.laptop.done(&["serve", "--once"]);
    assert_eq!(hosts.laptop.inbox("codex"), ["q-1.yaml", "q-2.yaml"]);
    // This host's ledger ends before the log: there is nothing to put back.
    hosts.tower.ask("claude", "codex", "q-3");
    hosts.tower.done(&["serve", "--once"]);
    let told = hosts.laptop.fails(6, &["republish"]);
    assert!(told.contains("there is nothing to put back"), "{told}");
}
