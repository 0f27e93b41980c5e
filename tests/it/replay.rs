//! A real ledger under another policy: the decisions that would differ, and that none would under its own.

use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{names, seed};

/// A mailroom with a review approved in its second round, a refused message, a duplicate, and a merged pull request.
fn after_a_review() -> Mailroom {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    seed::lay_packet(mailroom.root());
    let posts = seed::review();
    for post in &posts {
        mailroom.post(post.from, post.file, &post.text);
        mailroom.once();
    }
    mailroom.post(
        "claude",
        "lost.yaml",
        &seed::note("question", "q-1", "claude", "nobody", "?"),
    );
    mailroom.post("claude", "again.yaml", &posts[0].text);
    mailroom.once();
    let merged = mailroom.run(&["pr", "merged", "86", "--head", "9b2f41c0"]);
    assert!(merged.status.success(), "{}", said(&merged));
    mailroom.once();
    mailroom
}

/// The replay under a config, as JSON.
fn under(mailroom: &Mailroom, config: &str) -> Value {
    mailroom.put("other.toml", config);
    let root = mailroom.root().display().to_string();
    let output = settled_tests::mailroom::settled()
        .args([
            "simulate",
            "--json",
            "--ledger",
            &root,
            "--config",
            &format!("{root}/other.toml"),
        ])
        .output()
        .expect("settled can be run");
    assert!(output.status.success(), "{}", said(&output));
    let mut answer: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    answer["data"].take()
}

#[test]
fn under_its_own_policy_a_ledger_says_the_same() {
    let replay = under(&after_a_review(), "");
    assert_eq!(replay["records"], 8, "{replay}");
    assert_eq!(replay["same"], replay["records"], "{replay}");
    assert_eq!(replay["different"], serde_json::json!([]));
    assert_eq!(replay["reviews"], serde_json::json!([]));
}

#[test]
fn under_another_policy_every_decision_that_follows_is_told() {
    let replay = under(&after_a_review(), "[rounds]\nmax = 1\n");
    let different = replay["different"].as_array().expect("a list");
    assert_eq!(different[0]["seq"], 2, "{replay}");
    assert_eq!(different[0]["then"][0], "accepted -> fixing round 1");
    assert_eq!(
        different[0]["now"][0],
        "accepted -> escalated round 1 max_rounds_exceeded"
    );
    let now: Vec<_> = different[1..4]
        .iter()
        .map(|one| one["now"][0].as_str().expect("a line"))
        .collect();
    assert_eq!(
        now,
        [
            "refused review_closed",
            "refused round_limit_exceeded",
            "refused duplicate_terminal_response"
        ],
        "{replay}"
    );
    let review = &replay["reviews"][0];
    assert_eq!(review["review"], "#86 claude -> codex");
    assert_eq!(review["now"], "escalated round 1 max_rounds_exceeded");
}

#[test]
fn a_refused_message_that_is_gone_is_counted() {
    let mailroom = after_a_review();
    let dead = mailroom.agent("claude", "dead_letter");
    assert_eq!(names(&dead), ["lost.report.yaml", "lost.yaml"]);
    std::fs::remove_file(dead.join("lost.yaml")).expect("it is there");
    let replay = under(&mailroom, "");
    let seq = replay["not_replayed"][0].as_u64().expect("one is gone");
    assert!(
        (6..=7).contains(&seq),
        "the two files of one pass come in any order: {replay}"
    );
    assert_eq!(
        (&replay["records"], &replay["same"]),
        (&8.into(), &7.into()),
        "{replay}"
    );
}

#[test]
fn a_config_that_cannot_be_used_and_a_place_that_is_no_workspace_end_it() {
    let mailroom = Mailroom::new(&["claude"]);
    mailroom.put("wrong.toml", "[rounds]\nmax = 4\n");
    mailroom.put("right.toml", "");
    let root = mailroom.root().display().to_string();
    let file = |name: &str| format!("{root}/{name}");
    for (args, code) in [
        (vec!["--ledger", &root, "--config", &file("wrong.toml")], 2),
        (vec!["--ledger", &root], 2),
        (vec!["--config", &file("right.toml")], 2),
        (
            vec!["--ledger", &file("absent"), "--config", &file("right.toml")],
            3,
        ),
        (vec!["--ledger", &root, "--config", &file("absent.toml")], 3),
        (vec!["--ledger", &root, "--config", &file("right.toml")], 0),
    ] {
        let output = settled_tests::mailroom::settled()
            .arg("simulate")
            .args(&args)
            .output()
            .expect("settled");
        assert_eq!(
            output.status.code(),
            Some(code),
            "{args:?}: {}",
            said(&output)
        );
    }
}

#[test]
fn a_ledger_of_version_0_1_is_replayed_as_judged_by_its_own_rules() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let old = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../crates/daemon/tests/it/ledgers/v1.jsonl"
    );
    let ledger = settled_tests::read(old);
    mailroom.put(".settled/ledger/00000000000000000001.jsonl", &ledger);
    let replay = under(
        &mailroom,
        "[handoff]\nmode = \"full\"\ntarget = \"claude\"\n",
    );
    assert_eq!(replay["records"], ledger.lines().count(), "{replay}");
    assert_eq!(replay["other_rules"], replay["records"], "{replay}");
    let different = replay["different"].as_array().expect("a list");
    assert!(
        different
            .iter()
            .all(|one| one["seq"].is_null() || one["rules"] == 1),
        "{replay}"
    );
    assert_eq!(under(&after_a_review(), "")["other_rules"], 0);
}
