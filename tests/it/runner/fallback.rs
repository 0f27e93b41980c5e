//! The next reviewer of the list gets the request as it was written, within the same deadline, and from then on only
//! its answer counts.

use serde_json::Value;
use settled_tests::{ledger, read, repository, seed, wait, write};

use super::Room;

/// A room in which codex prints that its quota is used up, and gemini has this behaviour.
fn room(gemini: &[&str], list: &str) -> Room {
    let quota = r#"{"type":"turn.failed","error":{"message":"You've hit your usage limit. Try again in 2 hours."}}"#;
    let room = Room::new(&["print", quota, "", "1"], "output = \"codex\"");
    add_gemini(&room, gemini, list);
    room
}

/// Gives gemini a command with this behaviour, and the room a list of reviewers.
pub(super) fn add_gemini(room: &Room, gemini: &[&str], list: &str) {
    let config = room.mailroom.root().join("settled.toml");
    let fake = repository().join("tests/fakes/reviewer.sh");
    let words: Vec<String> = std::iter::once(fake.display().to_string())
        .chain(gemini.iter().map(|word| (*word).to_owned()))
        .map(|word| format!("'''{word}'''"))
        .collect();
    let text = format!(
        "reviewers = {list}\n{}\n[agents.gemini]\ncommand = [{}]\nenv = {{ FAKE_NOTES = '''{}''' }}\n",
        read(&config),
        words.join(", "),
        room.notes.display()
    );
    write(&config, &text);
}

#[test]
fn the_next_reviewer_approves_and_the_old_one_is_told_and_refused() {
    let room = room(&["agree"], r#"["codex", "gemini", "person"]"#);
    let daemon = room.serve();
    room.ask("86", "request-1", 20, 8);
    let (review, _) = room.end();
    assert_eq!(
        (
            &review["phase"],
            &review["reviewer"],
            &review["reassigned_from"]
        ),
        (&"approved".into(), &"gemini".into(), &"codex".into()),
        "{review}"
    );
    assert_eq!(room.starts(), 2, "codex once, gemini once");
    // The request is the author's own, byte for byte, and left the old inbox.
    let is_there = |agent: &str, place: &str| room.mailroom.with_id(agent, place, "request-1");
    wait::until("both copies to be put away", || {
        is_there("codex", "inbox").is_empty()
            && is_there("gemini", "inbox").is_empty()
            && !is_there("codex", "archive").is_empty()
            && !is_there("gemini", "archive").is_empty()
    });
    let copies = ["codex", "gemini"].map(|agent| read(&is_there(agent, "archive")[0]));
    assert_eq!(copies[0], copies[1]);
    let records = ledger::records(room.mailroom.root());
    let moved: Vec<&Value> = records
        .iter()
        .filter(|record| record["kind"] == "reassigned")
        .collect();
    assert_eq!(moved.len(), 1);
    let failed = &moved[0]["decision"]["happened"]["event"]["failed"];
    assert_eq!(failed["cause"], "quota", "{failed}");
    assert!(failed["retry_after"].is_string(), "{failed}");
    for agent in ["claude", "codex"] {
        let inbox = room.mailroom.agent(agent, "inbox");
        wait::until("the notice", || {
            settled_tests::list(&inbox)
                .iter()
                .any(|path| read(path).contains("is reassigned to gemini"))
        });
    }
    // A check that names a reviewer passes only with the one that approved.
    let body = "quality_gate_result: pass\nmerge_ready: true";
    let late = seed::review_message("review_lgtm", "late", "codex", "claude", "86", body);
    room.post("codex", "late", &late);
    let report = room.mailroom.refused("codex", "late.yaml");
    assert_eq!(report["refused"], "wrong_direction", "{report}");
    let said = report["summary"].as_str().unwrap_or_default();
    assert!(said.contains("reassigned from `codex`"), "{report}");
    drop(daemon);
}

#[test]
fn when_every_reviewer_failed_a_person_decides_and_sees_why() {
    let room = room(&["crash"], r#"["codex", "gemini", "person"]"#);
    let daemon = room.serve();
    room.ask("86", "request-1", 20, 8);
    let (review, _) = room.end();
    assert_eq!(
        (&review["phase"], &review["reason"]),
        (&"escalated".into(), &"no_reviewer".into()),
        "{review}"
    );
    assert_eq!(review["failed"]["reviewer"], "gemini", "{review}");
    assert_eq!(room.starts(), 3, "codex once, gemini twice");
    let why = room.mailroom.json(&["why", "86"]);
    let missing = why["data"]["reviews"][0]["missing"]
        .as_str()
        .unwrap_or_default();
    assert!(
        missing.contains("nobody is left to ask; the command of gemini failed"),
        "{why}"
    );
    drop(daemon);
}

#[test]
fn a_daemon_that_was_killed_goes_on_with_the_next_reviewer() {
    let directory = settled_tests::scratch();
    let go = directory.path().join("go");
    let room = room(
        &["wait", &go.display().to_string()],
        r#"["codex", "gemini"]"#,
    );
    let daemon = room.serve();
    room.ask("86", "request-1", 60, 8);
    wait::until("the start of gemini", || room.starts() == 2);
    daemon.kill();
    write(&go, "");
    let daemon = room.serve();
    let (review, _) = room.end();
    assert_eq!(
        (&review["phase"], &review["reviewer"]),
        (&"approved".into(), &"gemini".into()),
        "{review}"
    );
    drop(daemon);
}
