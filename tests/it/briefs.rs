//! Briefs on real files: each accepted request has one beside it, and its schema distinguishes right responses from
//! wrong ones.

use settled_tests::mailroom::Mailroom;
use settled_tests::{names, read, seed, wait};

/// A brief as an agent reads it, once the file is there.
fn brief(mailroom: &Mailroom, file: &str) -> serde_json::Value {
    let path = mailroom.root().join("packets/briefs").join(file);
    wait::until("the brief", || path.exists());
    serde_yaml::from_str(&read(path)).expect("a brief is YAML")
}

#[test]
fn a_brief_lies_beside_each_request_and_tells_a_right_response_from_a_wrong_one() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    seed::lay_packet(mailroom.root());
    let daemon = mailroom.serve();
    let posts = seed::review();
    for post in &posts[..4] {
        mailroom.post(post.from, post.file, &post.text);
        assert_eq!(
            mailroom.delivered(post.to, post.file),
            post.text,
            "a delivered message is never altered"
        );
    }
    let first = brief(&mailroom, "86_claude_codex_r1.yaml");
    assert_eq!(
        (&first["round"], &first["last_round"]),
        (&1.into(), &false.into())
    );
    assert_eq!(first["open_threads"], serde_json::json!([]));

    let last = brief(&mailroom, "86_claude_codex_r2.yaml");
    assert_eq!(last["request"], seed::id(&posts[3].text));
    assert_eq!(
        (&last["round"], &last["last_round"]),
        (&2.into(), &true.into())
    );
    let threads = last["open_threads"].as_array().expect("a list");
    let ids: Vec<&str> = threads
        .iter()
        .filter_map(|thread| thread["id"].as_str())
        .collect();
    let schema = jsonschema::validator_for(&last["response_schema"]).expect("a schema");
    let feedback = |action: &str| {
        let deal =
            serde_json::json!({ "action": action, "stance": "seeks_change", "evidence": "" });
        let threads: serde_json::Map<_, _> = ids
            .iter()
            .map(|id| ((*id).to_owned(), deal.clone()))
            .collect();
        serde_json::json!({ "response": {
            "type": "review_feedback", "threads": threads, "findings": [], "commands_run": [],
            "examined": { "diff_digest": "", "declared": [] }, "escalation": "", "validated_head": "",
        } })
    };
    assert!(
        ids.len() > 1
            && schema.is_valid(&feedback("resolve"))
            && schema.is_valid(&feedback("escalate"))
    );
    assert!(
        !schema.is_valid(&feedback("reply")),
        "the last round takes no reply"
    );

    // After a second request the new brief takes a free name; the old one stays unchanged.
    let again = posts[3].text.replace("claude-003", "claude-004").replace(
        "  pr: 86\n",
        &format!(
            "  pr: 86\n  supersedes_message_id: {}\n",
            seed::id(&posts[3].text)
        ),
    );
    mailroom.post("claude", "request-2b.yaml", &again);
    mailroom.delivered("codex", "request-2b.yaml");
    assert!(daemon.interrupt().success());
    let briefs = names(mailroom.root().join("packets/briefs"));
    assert_eq!(briefs.len(), 3, "{briefs:?}");
    let newest = briefs
        .iter()
        .find(|name| name.starts_with("86_claude_codex_r2.") && *name != "86_claude_codex_r2.yaml");
    let newest = brief(&mailroom, newest.expect("a numbered name"));
    assert_eq!(newest["request"], seed::id(&again));
    assert_eq!(brief(&mailroom, "86_claude_codex_r2.yaml"), last);
}

#[test]
fn a_person_who_decides_while_a_request_is_open_brings_a_new_brief() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    seed::lay_packet(mailroom.root());
    let _daemon = mailroom.serve();
    for post in &seed::review()[..4] {
        mailroom.post(post.from, post.file, &post.text);
        mailroom.delivered(post.to, post.file);
    }
    let before = brief(&mailroom, "86_claude_codex_r2.yaml");
    let output = mailroom.at_terminal(&["thread", "resolve", "86", "F-001"], "it is as we want it");
    assert!(
        output.status.success(),
        "{}",
        settled_tests::mailroom::said(&output)
    );
    // The command answers once the ledger has the order; the brief follows.
    let newest = wait::for_some("a brief with a numbered name", || {
        let briefs = names(mailroom.root().join("packets/briefs"));
        let is_newest = |name: &String| name.starts_with("86_claude_codex_r2.") && name.len() > 23;
        briefs.into_iter().find(is_newest)
    });
    let newest = brief(&mailroom, &newest);
    assert_eq!(newest["request"], before["request"]);
    let ids = |brief: &serde_json::Value| -> Vec<String> {
        let threads = brief["open_threads"].as_array().expect("a list");
        threads
            .iter()
            .filter_map(|thread| thread["id"].as_str().map(str::to_owned))
            .collect()
    };
    let takes = |brief: &serde_json::Value, ids: &[String]| {
        let deal = serde_json::json!({ "action": "resolve", "stance": "accepts", "evidence": "" });
        let threads: serde_json::Map<_, _> =
            ids.iter().map(|id| (id.clone(), deal.clone())).collect();
        let mut response = serde_json::json!({ "response": {
            "type": "review_feedback", "threads": threads, "findings": [], "commands_run": [],
            "examined": { "diff_digest": "", "declared": [] }, "escalation": "", "validated_head": "",
        } });
        if *brief == newest {
            // A thread that a person settled can still be escalated.
            response["response"]["escalate"] = serde_json::json!([]);
        }
        jsonschema::validator_for(&brief["response_schema"])
            .expect("a schema")
            .is_valid(&response)
    };
    let (old, new) = (ids(&before), ids(&newest));
    assert!(
        old.iter().any(|id| id == "F-001") && new.iter().all(|id| id != "F-001"),
        "{old:?} {new:?}"
    );
    assert_eq!([&old, &new].map(|ids| takes(&before, ids)), [true, false]);
    assert_eq!([&old, &new].map(|ids| takes(&newest, ids)), [false, true]);
}
