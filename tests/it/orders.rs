//! Everything that reaches the daemon besides messages: turns and takes of a reviewer, events of pull requests,
//! decisions of people; with and without a daemon, and after a crash.

use std::process::Output;

use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{ledger, names, seed, wait, write};

/// The review that every test is about, as `status` shows it.
fn review(mailroom: &Mailroom) -> Value {
    mailroom.status()["reviews"][0].clone()
}

fn assert_exit(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}", said(output));
}

/// The data of a command's `--json` answer.
fn json(mailroom: &Mailroom, args: &[&str]) -> Value {
    mailroom.json(args)["data"].take()
}

/// A mailroom with an open request of 8 turns, judged and delivered.
fn reviewing() -> Mailroom {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    seed::lay_packet(mailroom.root());
    let [request, ..] = seed::review();
    mailroom.post(request.from, request.file, &request.text);
    assert_exit(&mailroom.once(), 0);
    mailroom
}

fn escalated() -> Mailroom {
    let mailroom = reviewing();
    assert_exit(&mailroom.run(&["turn", "86", "--count", "8"]), 0);
    assert_eq!(review(&mailroom)["reason"], "reviewer_budget_exceeded");
    mailroom
}

fn post_feedback(mailroom: &Mailroom) {
    let [_, feedback, ..] = seed::review();
    mailroom.post("codex", feedback.file, &feedback.text);
}

#[test]
fn a_person_reopens_an_escalated_review_with_a_daemon_and_without() {
    for with_daemon in [true, false] {
        let mailroom = escalated();
        let daemon = with_daemon.then(|| mailroom.serve());
        let output = mailroom.at_terminal(
            &["review", "reopen", "86", "--by", "ann"],
            "the reviewer was cut off",
        );
        assert_exit(&output, 0);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        // The terminal may echo typed text in the middle of the question.
        for part in [", why?", "awaiting, round 2"] {
            assert!(said.contains(part), "{said}");
        }
        let now = review(&mailroom);
        assert_eq!(
            (
                &now["phase"],
                &now["mover"],
                &now["generation"],
                &now["round"]
            ),
            (&"awaiting".into(), &"claude".into(), &2.into(), &2.into())
        );
        assert_eq!(now["waits_for"], "author");

        // The author has a notice and may request again.
        let request = seed::review()[3].clone();
        mailroom.post("claude", request.file, &request.text);
        match daemon {
            Some(daemon) => {
                mailroom.delivered("codex", request.file);
                assert!(daemon.interrupt().success());
            }
            None => assert_exit(&mailroom.once(), 0),
        }
        assert_eq!(review(&mailroom)["phase"], "reviewing");
        let records = ledger::records(mailroom.root());
        let decided = records
            .iter()
            .find(|record| record["kind"] == "decided")
            .expect("a decision");
        let person = &decided["decision"]["happened"]["event"]["person"];
        assert_eq!(
            (&person["by"], &person["reason"]),
            (&"ann".into(), &"the reviewer was cut off".into())
        );
        assert_eq!(names(mailroom.root().join(".settled/orders")), [""; 0]);
    }
}

#[test]
fn no_script_of_an_agent_can_decide_like_a_person() {
    let mailroom = escalated();
    let before = ledger::records(mailroom.root()).len();
    for (args, how) in [
        (&["review", "reopen", "86"][..], "at a terminal"),
        (
            &["review", "reopen", "86", "--reason", "because"],
            "leave out --reason",
        ),
        (
            &[
                "review", "grant", "86", "--rounds", "1", "--reason", "because",
            ],
            "leave out --reason",
        ),
        (&["thread", "wont-fix", "86", "F-001"], "at a terminal"),
    ] {
        let output = mailroom.run(args);
        assert_exit(&output, 5);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            said.contains("claude runs as your user") && said.contains(how),
            "{said}"
        );
    }
    // A terminal is not enough: the person has to type a reason there.
    assert_exit(
        &mailroom.at_terminal(&["review", "reopen", "86", "--reason", "because"], ""),
        5,
    );
    assert_exit(&mailroom.at_terminal(&["review", "reopen", "86"], "  "), 2);
    assert_eq!(review(&mailroom)["phase"], "escalated");
    assert_eq!(
        ledger::records(mailroom.root()).len(),
        before,
        "nothing of it is recorded"
    );
    assert_eq!(names(mailroom.root().join(".settled/orders")), [""; 0]);
}

#[test]
fn a_merged_pull_request_closes_its_review_and_a_push_makes_an_approval_stale() {
    let mailroom = reviewing();
    let _daemon = mailroom.serve();
    let closed = json(&mailroom, &["pr", "merged", "86"]);
    assert_eq!(
        (&closed["verdict"], &closed["reviews"][0]["reason"]),
        (&"pull".into(), &"merged".into())
    );
    assert_eq!(review(&mailroom)["phase"], "closed");

    let mailroom = Mailroom::new(&["claude", "codex"]);
    seed::lay_packet(mailroom.root());
    for post in seed::review() {
        mailroom.post(post.from, post.file, &post.text);
        assert_exit(&mailroom.once(), 0);
    }
    let approved = review(&mailroom)["approved_commit"]
        .as_str()
        .expect("a commit")
        .to_owned();
    assert_exit(
        &mailroom.run(&["pr", "synchronize", "86", "--head", &approved]),
        0,
    );
    assert_eq!(review(&mailroom)["stale"], false, "the same commit");
    assert_exit(
        &mailroom.run(&["pr", "synchronize", "0086", "--head", "1234567"]),
        0,
    );
    assert_eq!(review(&mailroom)["stale"], true);
    let table = String::from_utf8_lossy(&mailroom.run(&["status"]).stdout).into_owned();
    assert!(table.contains("approved (stale)"), "{table}");

    // A problem as long as somebody can do something about it.
    assert_exit(&mailroom.run(&["problems"]), 6);
    assert_exit(&mailroom.run(&["pr", "merged", "86"]), 0);
    assert_exit(&mailroom.run(&["problems"]), 0);
}

#[test]
fn a_payload_of_the_forge_is_read_and_what_moves_nothing_is_said_to_be_ignored() {
    let mailroom = reviewing();
    let payload = |action: &str, merged: bool| {
        let text = format!(
            r#"{{"action":"{action}","number":86,"pull_request":{{"merged":{merged},"head":{{"sha":"9b2f41c0"}},
            "user":{{"login":"octocat"}}}},"repository":{{"full_name":"Owner/Name"}}}}"#
        );
        write(mailroom.root().join("payload.json"), &text);
        let path = mailroom.root().join("payload.json");
        mailroom.run(&["pr", "ingest", &path.to_string_lossy()])
    };
    let output = payload("labeled", false);
    assert_exit(&output, 0);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "ignored: `labeled` moves no review\n"
    );
    assert_eq!(ledger::records(mailroom.root()).len(), 1);
    assert_exit(&payload("closed", true), 0);
    assert_eq!(review(&mailroom)["reason"], "merged");

    write(
        mailroom.root().join("payload.json"),
        "{\"action\": \"opened\"}",
    );
    let path = mailroom.root().join("payload.json");
    let output = mailroom.run(&["pr", "ingest", &path.to_string_lossy()]);
    assert_exit(&output, 1);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("missing field `pull_request`") && said.contains("`pull_request` payload"),
        "{said}"
    );
}

#[test]
fn turns_are_counted_to_the_budget_and_a_late_response_comes_too_late() {
    let mailroom = reviewing();
    let daemon = mailroom.serve();
    let first = json(&mailroom, &["turn", "86"]);
    assert_eq!(first["reviews"][0]["turns_left"], 7);
    let now = review(&mailroom);
    assert_eq!(
        (&now["turns_left"], &now["waits_for"]),
        (&7.into(), &"runtime".into())
    );
    assert!(
        now["taken_at"].is_string(),
        "the first turn is a take: {now}"
    );

    assert_exit(
        &mailroom.run(&["turn", "86", "--reviewer", "codex", "--count", "7"]),
        0,
    );
    assert_eq!(review(&mailroom)["reason"], "reviewer_budget_exceeded");
    let [_, feedback, ..] = seed::review();
    mailroom.post("codex", feedback.file, &feedback.text);
    assert_eq!(
        mailroom.refused("codex", feedback.file)["refused"],
        "invocation_closed"
    );
    assert!(daemon.interrupt().success());

    let late = mailroom.run(&["turn", "86"]);
    assert_exit(&late, 3);
    assert!(
        String::from_utf8_lossy(&late.stderr).contains("no_open_request"),
        "{}",
        said(&late)
    );
    assert_exit(&mailroom.run(&["take", "--pr", "87"]), 3);
}

#[test]
fn a_response_that_lay_finished_is_judged_before_the_turn_that_would_end_it() {
    let mailroom = reviewing();
    post_feedback(&mailroom);
    let output = mailroom.run(&["turn", "86", "--count", "8"]);
    assert_exit(&output, 3);
    assert_eq!(review(&mailroom)["phase"], "fixing");
    let kinds: Vec<Value> = ledger::records(mailroom.root())
        .iter()
        .map(|record| record["kind"].clone())
        .collect();
    assert_eq!(kinds, ["accepted", "accepted", "declined"]);
}

#[test]
fn moving_the_request_out_of_the_inbox_takes_it() {
    let mailroom = reviewing();
    let daemon = mailroom.serve();
    assert_eq!(review(&mailroom)["waits_for"], "pick_up");
    let file = seed::review()[0].file;
    let [inbox, archive] =
        ["inbox", "archive"].map(|directory| mailroom.agent("codex", directory).join(file));
    std::fs::rename(inbox, archive).expect("the reviewer takes its request");
    wait::until("the request to be taken", || {
        review(&mailroom)["taken_at"].is_string()
    });
    assert_eq!(review(&mailroom)["waits_for"], "runtime");
    assert!(daemon.interrupt().success());
    // Neither a later take nor a restart changes its time.
    let taken_at = review(&mailroom)["taken_at"].clone();
    assert_exit(&mailroom.run(&["take", "--pr", "86"]), 0);
    assert_exit(&mailroom.once(), 0);
    assert_eq!(review(&mailroom)["taken_at"], taken_at);
}

#[test]
fn an_order_left_over_after_a_crash_counts_once() {
    let mailroom = reviewing();
    let order = r#"{"schema_version": 1, "id": "runner-7:turn-3", "asked_at": "2026-02-13T10:20:00Z",
        "event": {"turns": {"pr": "86", "count": 1}}}"#;
    for file in ["1.json", "1.json", "2.json"] {
        mailroom.put(&format!(".settled/orders/{file}"), order);
        assert_exit(&mailroom.once(), 0);
        assert_eq!(review(&mailroom)["turns_left"], 7);
        assert_eq!(names(mailroom.root().join(".settled/orders")), [""; 0]);
    }
    let daemon = mailroom.serve();
    mailroom.put(".settled/orders/3.json", order);
    mailroom.put(".settled/orders/4.json", &order.replace("turn-3", "turn-4"));
    let orders = mailroom.root().join(".settled/orders");
    wait::until("the orders to be heard", || names(&orders).is_empty());
    assert_eq!(review(&mailroom)["turns_left"], 6);
    assert!(daemon.interrupt().success());
    let turns = ledger::records(mailroom.root())
        .iter()
        .filter(|record| record["kind"] == "turns")
        .count();
    assert_eq!(turns, 2);
}

#[test]
fn what_is_no_order_is_put_aside_and_holds_up_no_other() {
    let mailroom = reviewing();
    mailroom.put(".settled/orders/0.json", "{");
    // Its writer gave up long ago.
    let path = mailroom.root().join(".settled/orders/0.json");
    let order = std::fs::File::options().write(true).open(path);
    let an_hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    let dated = order.and_then(|order| order.set_modified(an_hour_ago));
    dated.expect("its time can be set");
    std::os::unix::fs::symlink(
        "/etc/hostname",
        mailroom.root().join(".settled/orders/1.json"),
    )
    .expect("a link");
    mailroom.put(".settled/orders/half-written", "not yet");
    assert_exit(&mailroom.run(&["turn", "86"]), 0);
    assert_eq!(review(&mailroom)["turns_left"], 7);
    assert_eq!(
        names(mailroom.root().join(".settled/orders")),
        ["half-written", "unreadable"]
    );
    assert_eq!(
        names(mailroom.root().join(".settled/orders/unreadable")),
        ["0.json", "1.json"]
    );
}

#[test]
fn a_person_holds_releases_and_resolves_threads() {
    let mailroom = reviewing();
    post_feedback(&mailroom);
    assert_exit(&mailroom.once(), 0);
    let threads = |mailroom: &Mailroom| review(mailroom)["threads"].clone();
    assert_eq!(threads(&mailroom)["F-001"], "open");
    let _daemon = mailroom.serve();
    for (command, state) in [
        ("hold", "held (person)"),
        ("release", "open"),
        ("queue", "open"),
        ("drop", "open"),
        ("wont-fix", "resolved"),
    ] {
        assert_exit(
            &mailroom.at_terminal(&["thread", command, "86", "F-001"], "for a reason"),
            0,
        );
        assert_eq!(threads(&mailroom)["F-001"], state, "after {command}");
    }
    assert_exit(
        &mailroom.at_terminal(&["thread", "resolve", "86", "F-001"], "again"),
        1,
    );
    assert_exit(
        &mailroom.at_terminal(&["thread", "drop", "86", "F-001"], "it is not queued"),
        1,
    );
    assert_exit(
        &mailroom.at_terminal(&["thread", "resolve", "86", "F-999"], "what?"),
        3,
    );
    assert_exit(
        &mailroom.at_terminal(
            &["review", "grant", "86", "--rounds", "1"],
            "it is nearly done",
        ),
        0,
    );
    assert_eq!(review(&mailroom)["rounds"], 3);
}

#[test]
fn without_a_workspace_nothing_is_ordered() {
    let mailroom = Mailroom::absent();
    for args in [
        &["turn", "86"][..],
        &["pr", "closed", "86"],
        &["review", "reopen", "86"],
    ] {
        assert_exit(&mailroom.run(args), 3);
    }
    assert!(!mailroom.root().exists());
}
