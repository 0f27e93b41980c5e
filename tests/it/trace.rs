//! `settled trace`: it shows each step of a message's life with its evidence, and nothing unproven.

use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{golden, seed};

/// The life of one message: each step as `word state`, with its agent where it has one.
fn steps(life: &Value) -> Vec<String> {
    let steps = life["steps"].as_array().expect("steps").iter();
    steps
        .map(|step| {
            let word = |key: &str| step[key].as_str().unwrap_or_default().to_owned();
            [word("step"), word("agent"), word("state")]
                .join(" ")
                .replace("  ", " ")
        })
        .collect()
}

fn messages(mailroom: &Mailroom, args: &[&str]) -> Vec<Value> {
    let answer = mailroom.json(&[&["trace"], args].concat());
    answer["data"]["messages"]
        .as_array()
        .unwrap_or_else(|| panic!("no messages in {answer}"))
        .clone()
}

fn life(mailroom: &Mailroom, id: &str) -> Value {
    let found = messages(mailroom, &[id]);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

/// The step of this name.
fn step<'a>(life: &'a Value, name: &str) -> &'a Value {
    let steps = life["steps"].as_array().expect("steps");
    steps
        .iter()
        .find(|step| step["step"] == name)
        .unwrap_or_else(|| panic!("no {name} in {life}"))
}

/// The first round of a review.
fn mailroom() -> Mailroom {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    seed::lay_packet(mailroom.root());
    let [request, ..] = seed::review();
    mailroom.post(request.from, request.file, &request.text);
    mailroom.once();
    mailroom
}

fn request_id() -> String {
    seed::id(&seed::review()[0].text).to_owned()
}

fn answer(mailroom: &Mailroom) {
    let [_, feedback, ..] = seed::review();
    mailroom.post(feedback.from, feedback.file, &feedback.text);
    mailroom.once();
}

fn rename(mailroom: &Mailroom, agent: &str, file: &str, to: &str) {
    let directory = mailroom.agent(agent, to);
    std::fs::create_dir_all(&directory).expect("a directory");
    std::fs::rename(
        mailroom.agent(agent, "inbox").join(file),
        directory.join(file),
    )
    .expect("a rename");
}

#[test]
fn a_request_is_followed_to_its_answer() {
    let mailroom = mailroom();
    let id = request_id();
    let first = life(&mailroom, &id);
    assert_eq!(
        steps(&first),
        [
            "written yes",
            "accepted yes",
            "delivered codex yes",
            "taken codex no",
            "answered no"
        ]
    );
    assert_eq!(
        (&first["from"], &first["type"]),
        (&"claude".into(), &"review_request".into())
    );
    assert_eq!(
        step(&first, "written")["path"],
        "agents/claude/outbox/request-1.yaml"
    );
    assert_eq!(step(&first, "accepted")["record"], 1);
    assert_eq!(
        step(&first, "delivered")["path"],
        "agents/codex/inbox/request-1.yaml"
    );

    for place in ["inbox/taken", "archive"] {
        rename(&mailroom, "codex", "request-1.yaml", place);
        let taken = life(&mailroom, &id);
        let path = format!("agents/codex/{place}/request-1.yaml");
        assert_eq!(
            (
                &step(&taken, "taken")["state"],
                &step(&taken, "taken")["path"]
            ),
            (&"yes".into(), &path.into())
        );
        let back = mailroom.agent("codex", "inbox").join("request-1.yaml");
        std::fs::rename(mailroom.agent("codex", place).join("request-1.yaml"), back)
            .expect("a rename");
    }
    rename(&mailroom, "codex", "request-1.yaml", "archive");
    mailroom.once();
    answer(&mailroom);
    let last = life(&mailroom, &id);
    let taken = step(&last, "taken");
    assert_eq!(
        (&taken["record"], &taken["path"]),
        (&2.into(), &"agents/codex/archive/request-1.yaml".into())
    );
    let answered = step(&last, "answered");
    assert_eq!(
        (&answered["state"], &answered["agent"], &answered["record"]),
        (&"yes".into(), &"codex".into(), &3.into())
    );
}

#[test]
fn the_text_is_as_it_was() {
    let mailroom = mailroom();
    answer(&mailroom);
    let output = mailroom.run(&["trace", &request_id()]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let steady = |word: &str| match word {
        instant if instant.len() == 24 && instant.starts_with("20") => "INSTANT".to_owned(),
        word => word.to_owned(),
    };
    let text: Vec<String> = text
        .lines()
        .map(|line| line.split(' ').map(steady).collect::<Vec<_>>().join(" "))
        .collect();
    golden::check("trace.txt", &(text.join("\n") + "\n"));
}

#[test]
fn a_file_that_lies_nowhere_is_known_to_be_taken_only_by_a_cursor_or_a_record() {
    let mailroom = mailroom();
    std::fs::remove_file(mailroom.agent("codex", "inbox").join("request-1.yaml"))
        .expect("the request");
    let gone = life(&mailroom, &request_id());
    assert_eq!(
        steps(&gone)[2..4],
        ["delivered codex yes", "taken codex yes"]
    );
    assert!(
        step(&gone, "taken")["what"]
            .as_str()
            .is_some_and(|what| what.contains("not known")),
        "{gone}"
    );

    std::fs::remove_dir_all(mailroom.root().join(".settled/cursors")).expect("cursors");
    let unknown = life(&mailroom, &request_id());
    assert_eq!(
        steps(&unknown)[2..4],
        ["delivered codex unknown", "taken codex unknown"]
    );
}

#[test]
fn another_file_under_the_name_is_not_the_delivery() {
    let mailroom = mailroom();
    std::fs::write(
        mailroom.agent("codex", "inbox").join("request-1.yaml"),
        "other bytes\n",
    )
    .expect("a file");
    assert_eq!(
        steps(&life(&mailroom, &request_id()))[2],
        "delivered codex yes"
    );
    assert_eq!(
        step(&life(&mailroom, &request_id()), "delivered")["path"],
        Value::Null
    );
}

#[test]
fn one_id_of_several_senders_is_told_of_each() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.post(
        "claude",
        "a.yaml",
        &seed::note("question", "q-1", "claude", "codex", "?"),
    );
    mailroom.post(
        "codex",
        "b.yaml",
        &seed::note("question", "q-1", "codex", "nobody", "?"),
    );
    mailroom.once();
    let both = messages(&mailroom, &["q-1"]);
    assert_eq!(
        both.iter().map(|life| &life["from"]).collect::<Vec<_>>(),
        ["claude", "codex"]
    );
    let one = messages(&mailroom, &["q-1", "--from", "codex"]);
    assert_eq!(one.len(), 1);
    assert_eq!(steps(&one[0]), ["written yes", "refused yes"]);
    assert_eq!(
        step(&one[0], "refused")["path"],
        "agents/codex/dead_letter/b.yaml"
    );
}

#[test]
fn an_answer_by_its_parent_is_an_answer() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.post(
        "claude",
        "a.yaml",
        &seed::note("question", "q-1", "claude", "codex", "?"),
    );
    mailroom.once();
    let answer = seed::note("follow_up", "q-2", "codex", "claude", "Yes.");
    mailroom.post(
        "codex",
        "b.yaml",
        &answer.replace("subject:", "parent_message_id: \"q-1\"\nsubject:"),
    );
    mailroom.once();
    let life = life(&mailroom, "q-1");
    assert_eq!(
        step(&life, "answered")["what"],
        "q-2 names it as its parent"
    );
}

#[test]
fn what_waits_is_found_in_its_outbox() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.post(
        "claude",
        "a.yaml",
        &seed::note("question", "q-1", "claude", "codex", "?"),
    );
    let life = life(&mailroom, "q-1");
    assert_eq!(steps(&life), ["waiting yes"]);
    assert_eq!(
        step(&life, "waiting")["what"],
        "in the outbox, until a daemon serves"
    );
}

#[test]
fn mail_nobody_sent_has_no_sender() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let text = seed::note("question", "q-1", "claude", "codex", "?");
    std::fs::write(mailroom.agent("codex", "inbox").join("a.yaml"), text).expect("a file");
    let life = life(&mailroom, "q-1");
    assert_eq!(
        (&life["from"], steps(&life)),
        (&Value::Null, vec!["delivered codex unknown".to_owned()])
    );
}

#[test]
fn a_notice_of_the_daemon_is_followed_as_well() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.post(
        "claude",
        "a.yaml",
        &seed::note("question", "q-1", "claude", "nobody", "?"),
    );
    mailroom.once();
    let notice = mailroom.notices("claude", "unknown_recipient").remove(0);
    let notice = settled_tests::mailroom::yaml(&notice);
    let life = life(&mailroom, notice["id"].as_str().expect("an id"));
    assert_eq!(
        (&life["from"], steps(&life)),
        (
            &"settled".into(),
            vec![
                "written yes".into(),
                "delivered claude yes".into(),
                "taken claude no".into()
            ]
        )
    );
}

#[test]
fn an_id_that_is_nowhere_is_not_found() {
    let mailroom = mailroom();
    for args in [
        &["trace", "lost"][..],
        &["trace", &request_id(), "--from", "codex"],
    ] {
        let output = mailroom.run(args);
        assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    }
    let output = mailroom.run(&["trace", "no id"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}
