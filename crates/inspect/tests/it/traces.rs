//! The life of a message where a file was moved, changed or lost, where the daemon answered for a reviewer, and where
//! there is no ledger: each case changes a recorded workspace.

use std::fs;
use std::path::Path;

use inspect::trace::{self, Life, LifeStep, Stage};
use spool::Digest;

use crate::recorded_workspace::workspace;
use crate::rewritten::rewrite;

const LEDGER: &str = ".settled/ledger/00000000000000000001.jsonl";

fn line(step: &LifeStep) -> String {
    let state = serde_json::to_value(step.state).expect("a word");
    let state = state.as_str().expect("a word");
    let record = step
        .record
        .map_or_else(String::new, |seq| format!(" ({seq})"));
    let path = step.path.as_ref();
    let path = path.map_or_else(String::new, |path| format!(" [{path}]"));
    format!("{} {state}{record}: {}{path}", step.step.word(), step.what)
}

/// The lives of all messages with this id, each a sender and its steps of some stages.
fn lives(root: &Path, id: &str, stages: &[Stage]) -> Vec<(String, Vec<String>)> {
    let trace = trace::of(root, &id.parse().expect("an id"), None);
    let told = |life: &Life| {
        let steps = life.steps.iter().filter(|step| stages.contains(&step.step));
        let from = life.from.clone().unwrap_or_default();
        (from, steps.map(line).collect())
    };
    trace.messages.iter().map(told).collect()
}

/// The steps of the only message with this id.
fn steps(root: &Path, id: &str, stages: &[Stage]) -> Vec<String> {
    let [(_, steps)] = &lives(root, id, stages)[..] else {
        panic!("{:?}", lives(root, id, stages));
    };
    steps.clone()
}

#[test]
fn each_stage_has_one_word_on_the_screen_and_in_json() {
    for stage in [
        Stage::Written,
        Stage::Waiting,
        Stage::Accepted,
        Stage::Refused,
        Stage::Duplicate,
        Stage::Delivered,
        Stage::Taken,
        Stage::Answered,
    ] {
        let word = serde_json::to_value(stage).expect("a word");
        assert_eq!(word, stage.word());
    }
}

#[test]
fn a_request_is_taken_by_the_first_take_of_its_own_review_before_its_answer() {
    const TAKEN: &[Stage] = &[Stage::Taken];
    let as_recorded = "taken yes (12): as the record says [agents/gemini/inbox/taken/req-87.yaml]";
    let root = workspace();
    assert_eq!(steps(root.path(), "req-87", TAKEN), [as_recorded]);
    // Record 12 takes the request of another review.
    let not_yet = "taken no: not yet: it is still in the inbox";
    assert_eq!(steps(root.path(), "req-86-2", TAKEN), [not_yet]);

    // Record 12 takes a request of #86: the second one, because the first one has an answer.
    let of_86 = r#""review":{"pr":"86","author":"claude","reviewer":"codex"}"#;
    let of_87 = r#""review":{"pr":"87","author":"claude","reviewer":"gemini"}"#;
    rewrite(root.path(), 12, of_87, of_86);
    assert_eq!(steps(root.path(), "req-86", TAKEN), [not_yet]);
    let again = "taken yes (12): as the record says";
    assert_eq!(steps(root.path(), "req-86-2", TAKEN), [again]);

    // Other notes of the daemon are not takes.
    let root = workspace();
    let taken = r#"{"taken":{"pr":"87","reviewer":"gemini"}}"#;
    let observed = r#"{"observed":{"pr":"87","reviewer":"gemini","files":["a.rs"]}}"#;
    rewrite(root.path(), 12, taken, observed);
    let moved = "taken yes: out of the inbox; the time is not known [agents/gemini/inbox/taken/req-87.yaml]";
    assert_eq!(steps(root.path(), "req-87", TAKEN), [moved]);
}

#[test]
fn the_first_message_that_names_it_is_the_answer() {
    let root = workspace();
    for record in [8, 9] {
        let below = r"\nparent_message_id: q-1\nsubject:";
        rewrite(root.path(), record, r"\nsubject:", below);
    }
    let answered = steps(root.path(), "q-1", &[Stage::Answered]);
    assert_eq!(answered, ["answered yes (8): a-86 names it as its parent"]);
}

#[test]
fn the_daemon_answers_for_a_reviewer_whose_budget_is_spent() {
    let root = workspace();
    let root = root.path();
    let review = r#"{"pr":"87","author":"claude","reviewer":"gemini"}"#;
    let other = review.replace("87", "88");
    let messages = format!(
        r#""letters":[{{"id":"settled-1","to":"claude","says":{{"escalated":{{"review":{review},"reason":"reviewer_budget_exceeded"}}}}}},{{"id":"settled-2","to":"claude","says":{{"budget_spent":{{"review":{other},"round":1}}}}}},{{"id":"settled-3","to":"claude","says":{{"budget_spent":{{"review":{review},"round":1}}}}}}],"steps""#
    );
    rewrite(root, 12, r#""steps""#, &messages);
    let answered = "answered yes (12): settled-3 is the review's next response";
    assert_eq!(steps(root, "req-87", &[Stage::Answered]), [answered]);
    // The daemon wrote its own message, and nothing else that the record is about.
    let written = "written yes (12): by the daemon itself".to_owned();
    assert_eq!(
        lives(root, "settled-3", &[Stage::Written]),
        [("settled".to_owned(), vec![written])]
    );
}

#[test]
fn an_id_that_waits_in_an_outbox_again_goes_on_with_its_own_sender() {
    let root = workspace();
    let agents = root.path().join("agents");
    for agent in ["codex", "gemini"] {
        let outbox = agents.join(agent).join("outbox");
        fs::copy(agents.join("codex/sent/q-1.yaml"), outbox.join("q-1.yaml")).expect("a copy");
    }
    // This one only mentions it.
    fs::write(agents.join("claude/outbox/b.yaml"), "id: b\nsubject: q-1\n").expect("a file");
    let waiting = |agent: &str| {
        let path = format!("agents/{agent}/outbox/q-1.yaml");
        let waiting = format!("waiting yes: in the outbox, until a daemon serves [{path}]");
        (agent.to_owned(), vec![waiting])
    };
    assert_eq!(
        lives(root.path(), "q-1", &[Stage::Waiting]),
        [waiting("codex"), waiting("gemini")]
    );
}

#[test]
fn the_time_of_writing_is_known_where_the_record_has_it() {
    let root = workspace();
    let at = |root: &Path| {
        let id = "q-1".parse().expect("an id");
        let trace = trace::of(root, &id, None);
        let step = &trace.messages[0].steps[0];
        (step.at.clone(), step.what.clone())
    };
    let known = Some("2026-11-23T08:01:28.855Z".to_owned());
    assert_eq!(at(root.path()), (known, "into the outbox".to_owned()));
    rewrite(
        root.path(),
        7,
        r#""mtime_ns":1795420888855875492"#,
        r#""mtime_ns":0"#,
    );
    let unknown = "into the outbox; the time is not known".to_owned();
    assert_eq!(at(root.path()), (None, unknown));
}

/// The cursor of claude's inbox after its first file of record 10, as it is after a power cut.
fn cursor() -> String {
    let text = format!(
        "{:<9} {:020}.{:06} verify {:020} boot {:<36} ",
        "durable", 10, 0, 0, "b"
    );
    let sum = Digest::of(text.as_bytes()).to_string();
    let sum = &sum[sum.len() - 16..];
    format!("{:<127}\n", format!("{text}{sum}"))
}

#[test]
fn a_file_that_is_nowhere_was_delivered_if_the_cursor_or_its_take_says_so() {
    const INBOX: &[Stage] = &[Stage::Delivered, Stage::Taken];
    let unknown = |record: u64| {
        [
            format!(
                "delivered unknown ({record}): unknown: the file is nowhere and no cursor mentions it"
            ),
            "taken unknown: unknown: the file is nowhere".to_owned(),
        ]
    };
    let root = workspace();
    let root = root.path();
    // Another file under its name is not it.
    fs::write(root.join("agents/claude/inbox/q-1.yaml"), "id: q-1\n").expect("a file");
    assert_eq!(steps(root, "q-1", INBOX), unknown(7));

    fs::remove_file(root.join("agents/gemini/inbox/taken/req-87.yaml")).expect("a file");
    assert_eq!(
        steps(root, "req-87", INBOX),
        [
            "delivered yes (3): as its take says",
            "taken yes (12): as the record says"
        ]
    );

    let notice = "settled-01M83PS8E55YR422A2KM9KVV8S";
    let inbox = root.join("agents/claude/inbox");
    fs::remove_file(inbox.join("20261123080129_settled_notice_10.yaml")).expect("a notice");
    assert_eq!(steps(root, notice, INBOX), unknown(10));
    // It is the record's second file and the first in this inbox.
    fs::create_dir_all(root.join(".settled/cursors")).expect("a directory");
    fs::write(root.join(".settled/cursors/claude.inbox.cursor"), cursor()).expect("a cursor");
    assert_eq!(
        steps(root, notice, INBOX),
        [
            "delivered yes (10): as the mailbox's cursor says",
            "taken yes: it has left the inbox; who moved it and when is not known"
        ]
    );
}

#[test]
fn without_a_ledger_the_directories_show_what_was_refused_and_what_nobody_proves() {
    let root = workspace();
    let root = root.path();
    fs::remove_file(root.join(LEDGER)).expect("a segment");
    let trace = |id: &str| {
        let id = id.parse().expect("an id");
        serde_json::to_value(trace::of(root, &id, None).messages).expect("plain values")
    };
    // The notice in claude's inbox names it as its parent and is another message.
    assert_eq!(
        trace("bad-1"),
        serde_json::json!([{"from": "claude", "steps": [{
            "step": "refused", "state": "yes", "at": "2026-11-23T08:01:29Z",
            "what": "unknown_recipient: `nobody` is not an agent of this workspace",
            "path": "agents/claude/dead_letter/bad-1.report.yaml",
            "digest": "sha256:246e015f683d25f493bfe951250de0e811426390fdc18a73b6cc79c725fdc7fb",
        }]}])
    );
    assert_eq!(
        trace("req-87"),
        serde_json::json!([{"steps": [{
            "step": "delivered", "state": "unknown", "agent": "gemini",
            "what": "in the inbox without a proven sender: no record made it",
            "path": "agents/gemini/inbox/taken/req-87.yaml",
        }]}])
    );
    assert_eq!(trace("never"), serde_json::json!([]));
}
