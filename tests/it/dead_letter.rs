//! `settled dead-letter`: a refused message is listed with its reason, and goes back complete, under a free name, only
//! if the validator accepts it.

use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{golden, names, read, seed};

/// Two refused messages of claude, one of them corrected since, and a hopeless one of codex.
fn mailroom() -> Mailroom {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.post(
        "claude",
        "lost.yaml",
        &seed::note("question", "q-1", "claude", "gemini", "?"),
    );
    mailroom.once();
    mailroom.post(
        "claude",
        "wrong.yaml",
        &seed::note("question", "q-2", "claude", "nobody", "?"),
    );
    mailroom.once();
    mailroom.post(
        "claude",
        "right.yaml",
        &seed::note("question", "q-2", "claude", "codex", "?"),
    );
    mailroom.once();
    mailroom.post(
        "codex",
        "bad.yaml",
        &seed::note("question", "q-3", "codex", "claude", "?").replace("P2", "high"),
    );
    mailroom.once();
    mailroom
}

fn dead_letters(mailroom: &Mailroom, args: &[&str]) -> Vec<(String, Value)> {
    let listed = mailroom.json(&[&["dead-letter", "list"], args].concat());
    let messages = listed["data"]["letters"]
        .as_array()
        .unwrap_or_else(|| panic!("no list: {listed}"))
        .iter();
    messages
        .map(|one| {
            (
                one["file"].as_str().unwrap_or("-").to_owned(),
                one["corrected_by"].clone(),
            )
        })
        .collect()
}

#[test]
fn what_was_refused_is_listed_with_what_was_corrected_since() {
    let mailroom = mailroom();
    let mut all = dead_letters(&mailroom, &[]);
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [
        ("bad.yaml", Value::Null),
        ("lost.yaml", Value::Null),
        ("wrong.yaml", 3.into()),
    ];
    assert_eq!(all, expected.map(|(file, by)| (file.to_owned(), by)));
    assert_eq!(dead_letters(&mailroom, &["--agent", "codex"]).len(), 1);
    let nobody = mailroom.run(&["dead-letter", "list", "--agent", "nobody"]);
    assert_eq!(nobody.status.code(), Some(5), "{}", said(&nobody));
}

/// However a message is corrected or dismissed, the list, the status and the problems agree on it.
#[test]
fn what_is_open_is_open_for_everybody_who_is_asked() {
    let mailroom = mailroom();
    let agree = |open: &[&str]| {
        let mut listed = files_that(&mailroom, |refused| refused["open"] == true);
        listed.sort();
        assert_eq!(listed, open, "the list");
        let status = mailroom.status();
        let counts = status["dead_letters"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let counted: u64 = counts.iter().filter_map(|one| one["count"].as_u64()).sum();
        assert_eq!(counted, open.len() as u64, "the status: {status}");
        let problems = mailroom.json(&["problems"]);
        let problems = problems["data"]["problems"]
            .as_array()
            .expect("a list")
            .clone();
        let dead = problems
            .iter()
            .filter(|problem| problem["kind"] == "dead_letter")
            .count();
        assert_eq!(dead, open.len(), "the problems: {problems:?}");
    };
    agree(&["bad.yaml", "lost.yaml"]);
    // Under the same file name, with another id.
    mailroom.post(
        "claude",
        "lost.yaml",
        &seed::note("question", "q-9", "claude", "codex", "?"),
    );
    mailroom.once();
    agree(&["bad.yaml"]);
    // To the same review.
    let [request, ..] = seed::review();
    seed::lay_packet(mailroom.root());
    mailroom.post(request.from, request.file, &request.text);
    mailroom.once();
    let again = request.text.replace(seed::id(&request.text), "again");
    mailroom.post("claude", "again.yaml", &again);
    mailroom.once();
    agree(&["again.yaml", "bad.yaml"]);
    // Its review is over.
    assert!(mailroom.run(&["pr", "closed", "86"]).status.success());
    agree(&["bad.yaml"]);
    // A reader who is finished with it removes it; the report stays.
    std::fs::remove_file(mailroom.agent("codex", "dead_letter").join("bad.yaml"))
        .expect("it was there");
    agree(&[]);
    let same = |refused: &Value| refused["corrected_same"].as_str().is_some();
    assert_eq!(files_that(&mailroom, same), ["lost.yaml", "wrong.yaml"]);
}

fn files_that(mailroom: &Mailroom, is_wanted: impl Fn(&Value) -> bool) -> Vec<String> {
    let listed = mailroom.json(&["dead-letter", "list"]);
    let messages = listed["data"]["letters"].as_array().expect("a list").iter();
    let wanted = messages.filter(|refused| is_wanted(refused));
    wanted
        .map(|refused| refused["file"].as_str().unwrap_or("-").to_owned())
        .collect()
}

#[test]
fn the_list_is_as_it_was() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.post(
        "claude",
        "lost.yaml",
        &seed::note("question", "q-1", "claude", "gemini", "?"),
    );
    mailroom.once();
    let steady = |output: std::process::Output| {
        let text = String::from_utf8_lossy(&output.stdout)
            .replace(&mailroom.root().display().to_string(), "ROOT");
        let steady = |word: &str| match word.trim_matches(['"', '\'']) {
            instant if instant.len() == 20 && instant.starts_with("20") => "INSTANT".to_owned(),
            digest if digest.starts_with("sha256:") => "DIGEST".to_owned(),
            _ => word.to_owned(),
        };
        text.lines()
            .map(|line| line.split(' ').map(steady).collect::<Vec<_>>().join(" ") + "\n")
            .collect::<String>()
    };
    golden::check(
        "dead-letter-list.txt",
        &steady(mailroom.run(&["dead-letter", "list"])),
    );
    golden::check(
        "dead-letter-show.txt",
        &steady(mailroom.run(&["dead-letter", "show", "q-1"])),
    );
    golden::check(
        "dead-letter-retry.txt",
        &steady(mailroom.run(&["dead-letter", "retry", "q-1"])),
    );
}

#[test]
fn a_message_goes_back_whole_and_passes_once_the_workspace_lets_it() {
    let mailroom = mailroom();
    let dead = mailroom.agent("claude", "dead_letter").join("lost.yaml");
    let text = read(&dead);
    let sent = mailroom.json(&["dead-letter", "retry", "lost"]);
    assert_eq!(
        sent["data"]["path"], "agents/claude/outbox/lost.yaml",
        "{sent}"
    );
    assert_eq!(
        sent["data"]["may_pass"],
        serde_json::json!(["unknown_recipient"])
    );
    assert_eq!(
        read(mailroom.agent("claude", "outbox").join("lost.yaml")),
        text
    );
    assert_eq!(read(&dead), text, "the dead letter stays");
    let again = mailroom.json(&["dead-letter", "retry", "q-1"]);
    assert_eq!(
        again["data"]["path"], "agents/claude/outbox/lost-retry1.yaml",
        "a name that is taken is left alone"
    );

    mailroom.run(&["init", "--agents", "gemini"]);
    mailroom.once();
    assert_eq!(
        names(mailroom.agent("gemini", "inbox")).len(),
        1,
        "the same bytes twice are one message"
    );
    assert_eq!(
        dead_letters(&mailroom, &["--agent", "claude"])[0].1,
        5,
        "it was accepted since"
    );
}

#[test]
fn what_the_validator_refuses_is_not_sent_unless_forced() {
    let mailroom = mailroom();
    let refused = mailroom.run(&["dead-letter", "retry", "bad.yaml"]);
    assert_eq!(refused.status.code(), Some(7), "{}", said(&refused));
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("`priority` is `high`"),
        "{}",
        said(&refused)
    );
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("\n    fix: "),
        "{}",
        said(&refused)
    );
    assert!(names(mailroom.agent("codex", "outbox")).is_empty());
    let forced = mailroom.json(&["dead-letter", "retry", "bad.yaml", "--force"]);
    assert_eq!(
        (&forced["data"]["forced"], &forced["ok"]),
        (&true.into(), &true.into())
    );
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
    for args in [
        &["show", "none"][..],
        &["retry", "none"],
        &["retry", "bad.yaml", "--agent", "claude"],
    ] {
        let output = mailroom.run(&[&["dead-letter"], args].concat());
        assert_eq!(output.status.code(), Some(3), "{args:?}: {}", said(&output));
    }
    std::fs::remove_file(mailroom.agent("claude", "dead_letter").join("lost.yaml"))
        .expect("the original");
    let output = mailroom.run(&["dead-letter", "retry", "q-1"]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
}

#[test]
fn one_id_of_several_agents_asks_which() {
    let mailroom = mailroom();
    mailroom.post(
        "codex",
        "other.yaml",
        &seed::note("question", "q-1", "codex", "nobody", "?"),
    );
    mailroom.once();
    let output = mailroom.run(&["dead-letter", "retry", "q-1"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let sent = mailroom.json(&["dead-letter", "retry", "q-1", "--agent", "codex"]);
    assert_eq!(sent["data"]["path"], "agents/codex/outbox/other.yaml");
}
