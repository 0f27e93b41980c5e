//! The cockpit's view of started commands, and of reviewers that replaced one another.

use serde_json::{Value, json};
use settled_tests::{wait, write};

use super::{Room, fallback};

fn model(room: &Room) -> Value {
    room.mailroom.json(&["watch", "--once"])["data"].take()
}

fn named(list: &Value, field: &str, name: &str) -> Value {
    let all = list.as_array().expect("a list");
    let mut found = all.iter().filter(|one| one[field] == name);
    found.next().cloned().unwrap_or_default()
}

#[test]
fn a_run_is_seen_with_its_last_words_while_it_runs_and_when_it_has_ended() {
    let directory = settled_tests::scratch();
    let go = directory.path().join("go");
    let script = format!(
        "echo I read the brief.; until [ -e {} ]; do sleep 0.1; done; echo PASS",
        go.display()
    );
    let room = Room::with_command(&format!("'''sh''', '''-c''', '''{script}'''"), "");
    let daemon = room.serve();
    room.ask("86", "request-1", 600, 8);
    // The keeper notes a run after its start, so the output may appear first.
    let run = wait::for_some("the run's first words", || {
        let run = named(&model(&room)["agents"], "agent", "codex")["run"].take();
        (run["last_words"] == "I read the brief." && run["is_running"] == true).then_some(run)
    });
    assert_eq!(run["program"], "sh", "{run}");
    assert_eq!(run["review"], "#86 claude -> codex", "{run}");
    assert!(run["since"].is_string() && run["ended"].is_null(), "{run}");
    write(&go, "");
    let run = wait::for_some("its end", || {
        let run = named(&model(&room)["agents"], "agent", "codex")["run"].take();
        run["ended"].is_string().then_some(run)
    });
    assert_eq!(
        [&run["is_running"], &run["ended"], &run["last_words"]],
        [&json!(false), &json!("exit code 0"), &json!("PASS")]
    );
    drop(daemon);
}

#[test]
fn what_a_reviewer_found_stays_its_own_when_another_one_takes_over() {
    let quota = r#"{"type":"turn.failed","error":{"message":"You have hit your usage limit. Try again in 2 hours."}}"#;
    let directory = settled_tests::scratch();
    let (finding, full) = (
        directory.path().join("finding"),
        directory.path().join("full"),
    );
    write(
        &finding,
        "findings:\n- {severity: P1, title: a lock, file: src/a.rs, line: 1}\n",
    );
    write(&full, quota);
    // It answers the first request, and then its quota is used up.
    let script = format!(
        "if grep -q \"^round: *1\" \"$SETTLED_BRIEF\"; then settled feedback --findings {}; else cat {}; exit 1; fi",
        finding.display(),
        full.display()
    );
    let room = Room::with_command(
        &format!("'''sh''', '''-c''', '''{script}'''"),
        "output = \"codex\"",
    );
    fallback::add_gemini(&room, &["silent"], r#"["codex", "gemini"]"#);
    let daemon = room.serve();
    room.ask("86", "request-1", 600, 8);
    wait::until("the finding", || room.review()["phase"] == "fixing");
    room.address(1);
    wait::until("the next reviewer", || {
        room.review()["reviewer"] == "gemini"
    });
    let reviewers = model(&room)["history"]["reviewers"].take();
    let score = |name: &str| {
        let score = named(&reviewers, "reviewer", name);
        ["first_verdicts", "findings", "blocking"].map(|field| score[field].as_u64())
    };
    assert_eq!(score("codex"), [Some(1); 3], "{reviewers}");
    assert_eq!(score("gemini"), [Some(0); 3], "{reviewers}");
    drop(daemon);
}
