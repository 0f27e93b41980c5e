//! Budgets of tokens and money: the daemon ends a command that uses one up, and starts no agent without a budget left.

use settled_tests::{ledger, read, repository, wait, write};

use super::Room;

/// The output of a program that approves and reports this usage.
const APPROVAL: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"PASS","total_cost_usd":0.75,"usage":{"input_tokens":900,"output_tokens":100}}"#;

fn room(behaviour: &[&str], budget: &str) -> Room {
    Room::new(
        behaviour,
        &format!("output = \"claude\"\n[budget]\n{budget}"),
    )
}

/// True if the ledger has the usage of a pull request's review. Tests do not read a ledger that is being written.
fn has_used(room: &Room, pr: &str) -> bool {
    let reviews = room.mailroom.status()["reviews"].take();
    let mut reviews = reviews.as_array().into_iter().flatten();
    reviews.any(|review| review["pr"] == pr && review["tokens"].is_u64())
}

/// The end of the room's only run.
fn end(room: &Room) -> String {
    let runs = room.mailroom.root().join(".settled/runs");
    let mut found = None;
    wait::until("the end of the run", || {
        found = settled_tests::list(&runs)
            .iter()
            .map(|folder| folder.join("end.json"))
            .find(|end| end.exists());
        found.is_some()
    });
    read(found.expect("it was found"))
}

#[test]
fn a_command_that_uses_the_budget_of_its_review_up_is_ended_and_a_person_decides() {
    let room = room(&["burn", "10"], "per_review = { tokens = 50 }");
    let daemon = room.serve();
    room.ask("86", "request-1", 60, 1000);
    let (review, _) = room.end();
    assert_eq!(review["reason"], "spend_exceeded", "{review}");
    assert!(review["tokens"].as_u64() >= Some(50), "{review}");
    assert_eq!(room.starts(), 1);
    assert!(end(&room).contains("\"how\":\"ended\""), "{}", end(&room));
    let why = room.mailroom.json(&["why", "86"]);
    let missing = why["data"]["reviews"][0]["missing"].as_str();
    assert!(
        missing.is_some_and(|missing| missing.contains("the budget of the review is used up: ")),
        "{why}"
    );
    drop(daemon);
}

#[test]
fn an_answer_counts_although_its_run_used_the_budget_up() {
    let room = room(
        &["print", APPROVAL, "", "0"],
        "per_review = { usd = 0.5 }\nper_day = { tokens = 10 }",
    );
    let daemon = room.serve();
    room.ask("86", "request-1", 60, 8);
    let (review, _) = room.end();
    assert_eq!(review["phase"], "approved", "{review}");
    wait::until("the record of what it used", || has_used(&room, "86"));
    let review = room.review();
    assert_eq!(
        (&review["phase"], &review["tokens"], &review["cost_usd"]),
        (&"approved".into(), &1000.into(), &"0.75".into()),
        "{review}"
    );
    // A start reads the usage in the folders of runs, and counts nothing twice.
    daemon.kill();
    let daemon = room.serve();
    room.ask("87", "request-2", 60, 8);
    wait::until("the request to wait for the next day", || {
        let why = room.mailroom.json(&["why", "87"]);
        let missing = why["data"]["reviews"][0]["missing"].as_str();
        missing.is_some_and(|missing| missing.contains("budget.per_day is used up: 1000 tokens"))
    });
    assert_eq!((room.starts(), room.events("spent")), (1, 1));
    drop(daemon);
}

#[test]
fn the_next_reviewer_is_asked_in_place_of_one_whose_budget_of_the_day_is_used_up() {
    let room = room(&["burn", "10"], "per_agent = { tokens = 50 }");
    let config = room.mailroom.root().join("settled.toml");
    let fake = repository().join("tests/fakes/reviewer.sh");
    let text = format!(
        "reviewers = [\"codex\", \"gemini\"]\n{}\n[agents.gemini]\ncommand = ['''{}''', \"agree\"]\nenv = {{ FAKE_NOTES = '''{}''' }}\n",
        read(&config),
        fake.display(),
        room.notes.display()
    );
    write(&config, &text);
    let daemon = room.serve();
    room.ask("86", "request-1", 60, 1000);
    let (review, _) = room.end();
    assert_eq!(
        (&review["phase"], &review["reviewer"]),
        (&"approved".into(), &"gemini".into()),
        "{review}"
    );
    assert_eq!(room.starts(), 2, "codex once, gemini once");
    let records = ledger::records(room.mailroom.root());
    let moved = records
        .iter()
        .find(|record| record["kind"] == "reassigned")
        .expect("a record");
    let failed = &moved["decision"]["happened"]["event"]["failed"];
    assert_eq!(failed["cause"], "provider_unavailable", "{failed}");
    let retry = failed["retry_after"].as_str().unwrap_or_default();
    assert!(retry.ends_with("T00:00:00Z"), "{failed}");
    drop(daemon);
}

#[test]
fn a_budget_of_all_agents_asks_no_next_reviewer_and_a_higher_one_goes_on_at_once() {
    let room = room(&["print", APPROVAL, "", "0"], "per_day = { tokens = 10 }");
    super::fallback::add_gemini(&room, &["agree"], r#"["codex", "gemini", "person"]"#);
    let daemon = room.serve();
    room.ask("86", "request-1", 60, 8);
    wait::until("the record of what it used", || has_used(&room, "86"));
    room.ask("87", "request-2", 60, 8);
    wait::until("the request to wait for the next day", || {
        let why = room.mailroom.json(&["why", "87"]);
        let missing = why["data"]["reviews"][0]["missing"].as_str();
        missing.is_some_and(|missing| missing.contains("budget.per_day is used up: 1000 tokens"))
    });
    let problems = room.mailroom.json(&["problems"])["data"]["problems"].take();
    let problems = problems.as_array().expect("a list");
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0]["kind"], "budget_used_up");
    let what = problems[0]["what"].as_str().expect("words");
    assert!(
        what.starts_with(
            "budget.per_day is used up: 1000 tokens, 0.75 USD today, so no command starts before "
        ),
        "{what}"
    );
    assert!(what.ends_with("T00:00:00Z"), "{what}");
    assert_eq!((room.starts(), room.events("reassigned")), (1, 0));

    let config = room.mailroom.root().join("settled.toml");
    write(
        &config,
        &read(&config).replace("tokens = 10 ", "tokens = 5000 "),
    );
    daemon.hang_up();
    wait::until("the second review", || has_used(&room, "87"));
    assert_eq!((room.starts(), room.events("reassigned")), (2, 0));
    let problems = room.mailroom.json(&["problems"]);
    assert_eq!(problems["data"]["problems"], serde_json::json!([]));
}
