//! Each agent is at home on one host: claims, moves, and hosts that leave.

use std::fs;

use serde_json::Value;

use super::hosts::Hosts;

#[test]
fn agents_are_claimed_and_move_and_a_host_leaves_when_none_is_at_home_there() {
    let hosts = Hosts::joined();
    let told = hosts.laptop.done(&["claim", "pi", "gpt"]);
    assert!(told.starts_with("recorded: "), "{told}");
    // Repeated, it records only what is new.
    let before = hosts.laptop.ledger().lines().count();
    let told = hosts.laptop.done(&["claim", "pi", "gpt"]);
    assert_eq!(
        told,
        "nothing new: host laptop is the home of pi, gpt already\n"
    );
    assert_eq!(hosts.laptop.ledger().lines().count(), before);
    let told = hosts.laptop.done(&["claim", "pi", "kimi"]);
    assert_eq!(told, "recorded: host laptop is the home of kimi\n");
    let moved = ["move-home", "kimi", "--to", "tower", "--by", "ann"];
    hosts.laptop.done(&moved);
    let told = hosts.tower.fails(6, &["claim", "codex", "--json"]);
    assert!(told.contains("\"ok\": false"), "{told}");
    assert!(told.contains("agent codex is at home on laptop"), "{told}");
    assert!(hosts.laptop.0.join("agents/pi/outbox").is_dir());
    let told = hosts.laptop.fails(6, &["leave"]);
    assert!(told.contains("agent codex is at home here"), "{told}");
    assert!(
        told.contains("  try: settled host move-home codex --to HOST"),
        "{told}"
    );
    for agent in ["codex", "pi"] {
        hosts
            .laptop
            .done(&["move-home", agent, "--to", "tower", "--by", "ann"]);
    }
    hosts.tower.done(&["serve", "--once"]);
    // By default, a move goes from the agent's home in the ledger to this host.
    hosts
        .tower
        .done(&["move-home", "gpt", "--by", "ann", "--reason", "for a day"]);
    let told = hosts
        .tower
        .fails(6, &["move-home", "gpt", "--from", "laptop"]);
    assert!(told.contains("agent gpt is at home on tower"), "{told}");
    let told = hosts
        .tower
        .fails(2, &["retire-key", "laptop", "--reason", "two\nlines"]);
    assert!(told.contains("on one line each"), "{told}");
    hosts.laptop.done(&["serve", "--once"]);
    let told = hosts
        .laptop
        .done(&["leave", "--by", "ann", "--reason", "sold"]);
    assert!(told.starts_with("host laptop left;"), "{told}");
    assert!(!hosts.laptop.config().contains("ledger.git"));
    let told = hosts.laptop.fails(3, &["list"]);
    assert!(
        told.contains("shares its ledger with no other host"),
        "{told}"
    );
    hosts.tower.done(&["serve", "--once"]);
    let listed = hosts.tower.json(&["list"]);
    let row = &listed["data"]["hosts"][0];
    assert_eq!(
        (&row["name"], &row["is_retired"]),
        (&Value::from("laptop"), &Value::from(true))
    );
    let home = serde_json::json!(["claude", "codex", "gpt", "kimi", "pi"]);
    assert_eq!(listed["data"]["hosts"][1]["agents"], home);
    // The last host leaves without a record.
    let before = hosts.tower.ledger();
    hosts.tower.done(&["leave"]);
    assert_eq!(hosts.tower.ledger(), before);
}

#[test]
fn a_host_leaves_by_the_homes_that_the_log_has_then() {
    let hosts = Hosts::joined();
    let (third, log) = (hosts.third(), hosts.log("ledger.git"));
    third.done(&["join", &log, "--as", "box"]);
    // The ledger of the box does not have this yet.
    let moves = |to| ["move-home", "codex", "--to", to, "--by", "ann"];
    hosts.laptop.done(&moves("box"));
    let told = third.fails(6, &["leave"]);
    assert!(told.contains("agent codex is at home here"), "{told}");
    assert!(third.config().contains("ledger.git"));
    // The laptop does not have this yet, and a move begins where the home is.
    third.done(&moves("tower"));
    hosts.laptop.done(&moves("laptop"));
    third.done(&["leave"]);
    hosts.tower.done(&["serve", "--once"]);
    let listed = hosts.tower.json(&["list"]);
    let row = &listed["data"]["hosts"][0];
    assert_eq!(
        (&row["name"], &row["is_retired"]),
        (&Value::from("box"), &Value::from(true))
    );
}

#[test]
fn a_host_without_its_log_does_not_leave() {
    let hosts = Hosts::apart();
    let log = hosts.log("ledger.git");
    hosts.tower.done(&["join", &log, "--as", "tower"]);
    // A host may have joined since.
    fs::rename(hosts.path("ledger.git"), hosts.path("away.git")).expect("a repository to move");
    let told = hosts.tower.fails(9, &["leave", "--wait", "0"]);
    assert!(told.contains("if it is gone for good, remove"), "{told}");
    assert!(hosts.tower.config().contains("ledger.git"));
}

#[test]
fn a_claim_that_is_refused_makes_nothing() {
    let hosts = Hosts::joined();
    let before = hosts.tower.files();
    hosts.tower.fails(6, &["claim", "pi", "codex"]);
    assert_eq!(hosts.tower.files(), before);
    for command in [
        &["claim", "pi", "settled"][..],
        &["join", &hosts.log("ledger.git"), "--agents", "settled"],
        &["move-home", "settled", "--to", "laptop"],
    ] {
        let told = hosts.tower.fails(2, command);
        assert!(told.contains("is the daemon's own name"), "{told}");
    }
    assert_eq!(hosts.tower.files(), before);
}
