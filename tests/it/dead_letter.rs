//! `settled dead-letter`: what was refused is listed with its reason, and goes back whole, under a free name, only if
//! the validator takes it.

use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{golden, names, read, seed};

/// Two messages of claude that were refused, one of them corrected since, and one of codex that no rule takes.
fn mailroom() -> Mailroom {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.post("claude", "lost.yaml", &seed::note("question", "q-1", "claude", "gemini", "?"));
    mailroom.once();
    mailroom.post("claude", "wrong.yaml", &seed::note("question", "q-2", "claude", "nobody", "?"));
    mailroom.once();
    mailroom.post("claude", "right.yaml", &seed::note("question", "q-2", "claude", "codex", "?"));
    mailroom.once();
    mailroom.post(
        "codex",
        "bad.yaml",
        &seed::note("question", "q-3", "codex", "claude", "?").replace("P2", "high"),
    );
    mailroom.once();
    mailroom
}

fn letters(mailroom: &Mailroom, args: &[&str]) -> Vec<(String, Value)> {
    let listed = mailroom.json(&[&["dead-letter", "list"], args].concat());
    let letters =
        listed["data"]["letters"].as_array().unwrap_or_else(|| panic!("no letters: {listed}")).iter();
    letters.map(|one| (one["file"].as_str().unwrap_or("-").to_owned(), one["corrected_by"].clone())).collect()
}

#[test]
fn what_was_refused_is_listed_with_what_was_corrected_since() {
    let mailroom = mailroom();
    let mut all = letters(&mailroom, &[]);
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [("bad.yaml", Value::Null), ("lost.yaml", Value::Null), ("wrong.yaml", 3.into())];
    assert_eq!(all, expected.map(|(file, by)| (file.to_owned(), by)));
    assert_eq!(letters(&mailroom, &["--agent", "codex"]).len(), 1);
    let nobody = mailroom.run(&["dead-letter", "list", "--agent", "nobody"]);
    assert_eq!(nobody.status.code(), Some(5), "{}", said(&nobody));
}

#[test]
fn the_list_is_as_it_was() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.post("claude", "lost.yaml", &seed::note("question", "q-1", "claude", "gemini", "?"));
    mailroom.once();
    let steady = |output: std::process::Output| {
        let text =
            String::from_utf8_lossy(&output.stdout).replace(&mailroom.root().display().to_string(), "ROOT");
        let steady = |word: &str| match word.trim_matches(['"', '\'']) {
            instant if instant.len() == 20 && instant.starts_with("20") => "INSTANT".to_owned(),
            digest if digest.starts_with("sha256:") => "DIGEST".to_owned(),
            _ => word.to_owned(),
        };
        text.lines()
            .map(|line| line.split(' ').map(steady).collect::<Vec<_>>().join(" ") + "\n")
            .collect::<String>()
    };
    golden::check("dead-letter-list.txt", &steady(mailroom.run(&["dead-letter", "list"])));
    golden::check("dead-letter-show.txt", &steady(mailroom.run(&["dead-letter", "show", "q-1"])));
    golden::check("dead-letter-retry.txt", &steady(mailroom.run(&["dead-letter", "retry", "q-1"])));
}

#[test]
fn a_message_goes_back_whole_and_passes_once_the_workspace_lets_it() {
    let mailroom = mailroom();
    let dead = mailroom.agent("claude", "dead_letter").join("lost.yaml");
    let text = read(&dead);
    let sent = mailroom.json(&["dead-letter", "retry", "lost"]);
    assert_eq!(sent["data"]["path"], "agents/claude/outbox/lost.yaml", "{sent}");
    assert_eq!(sent["data"]["may_pass"], serde_json::json!(["unknown_recipient"]));
    assert_eq!(read(mailroom.agent("claude", "outbox").join("lost.yaml")), text);
    assert_eq!(read(&dead), text, "the dead letter stays");
    let again = mailroom.json(&["dead-letter", "retry", "q-1"]);
    assert_eq!(
        again["data"]["path"], "agents/claude/outbox/lost-retry1.yaml",
        "a name that is taken is left alone"
    );

    mailroom.run(&["init", "--agents", "gemini"]);
    mailroom.once();
    assert_eq!(names(mailroom.agent("gemini", "inbox")).len(), 1, "the same bytes twice are one message");
    assert_eq!(letters(&mailroom, &["--agent", "claude"])[0].1, 5, "it was accepted since");
}

#[test]
fn what_the_validator_refuses_is_not_sent_unless_forced() {
    let mailroom = mailroom();
    let refused = mailroom.run(&["dead-letter", "retry", "bad.yaml"]);
    assert_eq!(refused.status.code(), Some(7), "{}", said(&refused));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("`priority` is `high`"), "{}", said(&refused));
    assert!(names(mailroom.agent("codex", "outbox")).is_empty());
    let forced = mailroom.json(&["dead-letter", "retry", "bad.yaml", "--force"]);
    assert_eq!((&forced["data"]["forced"], &forced["ok"]), (&true.into(), &true.into()));
    assert_eq!(names(mailroom.agent("codex", "outbox")), ["bad.yaml"]);
}

#[test]
fn what_was_corrected_since_is_said_before_it_collides() {
    let mailroom = mailroom();
    let sent = mailroom.json(&["dead-letter", "retry", "wrong.yaml"]);
    assert_eq!(sent["alerts"][0]["code"], "id_collision", "{sent}");
}

#[test]
fn a_dead_letter_nobody_knows_is_not_found() {
    let mailroom = mailroom();
    for args in [&["show", "none"][..], &["retry", "none"], &["retry", "bad.yaml", "--agent", "claude"]] {
        let output = mailroom.run(&[&["dead-letter"], args].concat());
        assert_eq!(output.status.code(), Some(3), "{args:?}: {}", said(&output));
    }
    std::fs::remove_file(mailroom.agent("claude", "dead_letter").join("lost.yaml")).expect("the original");
    let output = mailroom.run(&["dead-letter", "retry", "q-1"]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
}

#[test]
fn one_id_of_several_agents_asks_which() {
    let mailroom = mailroom();
    mailroom.post("codex", "other.yaml", &seed::note("question", "q-1", "codex", "nobody", "?"));
    mailroom.once();
    let output = mailroom.run(&["dead-letter", "retry", "q-1"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let sent = mailroom.json(&["dead-letter", "retry", "q-1", "--agent", "codex"]);
    assert_eq!(sent["data"]["path"], "agents/codex/outbox/other.yaml");
}
