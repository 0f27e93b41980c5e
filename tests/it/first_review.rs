//! The first review on real files with the real daemon: five messages up to the approval, the ways to write a file,
//! wrong messages, and a daemon that is stopped at every step.

use std::path::Path;
use std::process::Command;

use settled_tests::mailroom::Mailroom;
use settled_tests::seed::{self, Post};
use settled_tests::{ledger, names, read, settle, wait, write};

const AGENTS: [&str; 2] = ["claude", "codex"];

/// A way to write a text to a path.
type Way<'a> = Box<dyn Fn(&str, &Path) + 'a>;

/// The phase of the only review, if there is one.
fn phase(mailroom: &Mailroom) -> Option<String> {
    let status = mailroom.status();
    Some(
        status["reviews"].as_array()?.first()?["phase"]
            .as_str()?
            .to_owned(),
    )
}

/// Checks what must be true of an accepted and delivered message.
fn assert_arrived(mailroom: &Mailroom, post: &Post) {
    assert_eq!(
        mailroom.delivered(post.to, post.file),
        post.text,
        "{} changed on its way",
        post.file
    );
    mailroom.cleared(post.from);
    assert_eq!(
        read(mailroom.agent(post.from, "sent").join(post.file)),
        post.text,
        "{} in sent/",
        post.file
    );
    assert_eq!(
        phase(mailroom).as_deref(),
        Some(post.phase),
        "after {}",
        post.file
    );
}

/// Checks that every message is in exactly one inbox, once, and was accepted once.
fn assert_nothing_lost_and_nothing_twice(mailroom: &Mailroom, posts: &[Post]) {
    let accepted = ledger::accepted(&ledger::records(mailroom.root()));
    assert_eq!(accepted.len(), posts.len(), "{accepted:?}");
    for post in posts {
        let id = seed::id(&post.text);
        assert_eq!(accepted.get(id), Some(&1), "{id} in the ledger");
        let copies: Vec<_> = AGENTS
            .iter()
            .flat_map(|agent| mailroom.with_id(agent, "inbox", id))
            .collect();
        assert_eq!(copies.len(), 1, "{id} lies in {copies:?}");
        assert_eq!(
            mailroom.with_id(post.from, "sent", id).len(),
            1,
            "{id} in sent/"
        );
    }
}

#[test]
fn five_messages_lead_to_approval_and_each_arrives_byte_for_byte() {
    let mailroom = Mailroom::absent();
    let daemon = mailroom.up(&AGENTS);
    seed::lay_packet(mailroom.root());
    let posts = seed::review();
    for post in &posts {
        mailroom.post(post.from, post.file, &post.text);
        assert_arrived(&mailroom, post);
    }
    let status = mailroom.status();
    assert_eq!(status["serving"], true);
    assert_eq!(status["accepted"], 5);
    assert_eq!(status["reviews"][0]["approved_commit"], "abc1234");
    assert_eq!(status["reviews"][0]["merge_ready"], true);
    assert_eq!(status["reviews"][0]["open_threads"], 0);
    assert!(daemon.interrupt().success());
    assert_nothing_lost_and_nothing_twice(&mailroom, &posts);
}

#[test]
fn a_message_arrives_whichever_way_its_file_is_written() {
    let mailroom = Mailroom::new(&AGENTS);
    seed::lay_packet(mailroom.root());
    let elsewhere = mailroom.root().join("packets/briefs");
    let _daemon = mailroom.serve();
    let ways: [(&str, Way<'_>); 5] = [
        (
            "an editor's write in place",
            Box::new(|text, to| write(to, text)),
        ),
        (
            "shell redirection",
            Box::new(|text, to| shell(&format!("cat > '{}' <<'EOF'\n{text}EOF", to.display()))),
        ),
        (
            "a temporary name beside it, then a rename",
            Box::new(|text, to| {
                let temporary = to.with_extension("yaml.tmp");
                write(&temporary, text);
                std::fs::rename(&temporary, to).expect("a rename");
            }),
        ),
        (
            "cp",
            Box::new(|text, to| {
                let source = elsewhere.join("copied");
                write(&source, text);
                shell(&format!("cp '{}' '{}'", source.display(), to.display()));
            }),
        ),
        (
            "line by line, with pauses",
            Box::new(|text, to| {
                let lines = text
                    .split_inclusive('\n')
                    .map(|line| format!("printf '%s' {}\n", quoted(line)));
                shell(&format!(
                    "{{ {}sleep 0.2\n{} }} > '{}'",
                    lines.clone().take(9).collect::<String>(),
                    lines.skip(9).collect::<String>(),
                    to.display()
                ));
            }),
        ),
    ];
    for (post, (way, drop_file)) in seed::review().iter().zip(&ways) {
        drop_file(
            &post.text,
            &mailroom.agent(post.from, "outbox").join(post.file),
        );
        assert_arrived(&mailroom, post);
        assert_eq!(
            mailroom.status()["refused"],
            0,
            "refused although it was written by {way}"
        );
    }
}

#[test]
fn a_request_without_a_branch_is_refused_with_its_place_and_its_sender_is_told() {
    let mailroom = Mailroom::new(&AGENTS);
    let _daemon = mailroom.serve();
    let [request, ..] = seed::review();
    let wrong = request
        .text
        .replace("  branch: claude/review-loop-protocol\n", "");
    mailroom.post("claude", "request-1.yaml", &wrong);

    let report = mailroom.refused("claude", "request-1.yaml");
    assert_eq!(report["refused"], "body_field_missing");
    assert_eq!(report["violations"][0]["field"], "body.branch");
    assert_eq!(
        report["violations"][0]["line"], 10,
        "the body's first line: {report}"
    );
    assert_eq!(report["retryable"], true);
    assert_eq!(
        read(
            mailroom
                .agent("claude", "dead_letter")
                .join("request-1.yaml")
        ),
        wrong
    );
    wait::until("the notice", || {
        mailroom.notices("claude", "body_field_missing").len() == 1
    });
    assert_eq!(names(mailroom.agent("codex", "inbox")), [""; 0]);

    // The id of a refused message stays free: the corrected file is accepted under the same name.
    mailroom.post("claude", "request-1.yaml", &request.text);
    assert_arrived(&mailroom, &request);
}

#[test]
fn a_forged_sender_is_refused_and_the_owner_of_the_outbox_is_told() {
    let mailroom = Mailroom::new(&AGENTS);
    let _daemon = mailroom.serve();
    let [request, ..] = seed::review();
    let forged = request
        .text
        .replace("from: claude\nto: codex", "from: codex\nto: claude");
    mailroom.post("claude", "forged.yaml", &forged);

    let report = mailroom.refused("claude", "forged.yaml");
    assert_eq!(report["refused"], "sender_mismatch");
    assert_eq!(
        (
            &report["violations"][0]["line"],
            &report["violations"][0]["found"]
        ),
        (&2.into(), &"codex".into())
    );
    wait::until("the notice", || {
        mailroom.notices("claude", "sender_mismatch").len() == 1
    });
    assert_eq!(
        names(mailroom.agent("codex", "inbox")),
        [""; 0],
        "the forged name hears nothing"
    );
    assert_eq!(mailroom.status()["reviews"], serde_json::json!([]));
}

#[test]
fn a_second_verdict_is_refused_and_the_first_one_stands() {
    let mailroom = Mailroom::new(&AGENTS);
    seed::lay_packet(mailroom.root());
    let _daemon = mailroom.serve();
    let [request, feedback, .., lgtm] = seed::review();
    for post in [&request, &feedback] {
        mailroom.post(post.from, post.file, &post.text);
        assert_arrived(&mailroom, post);
    }
    let again = feedback.text.replace("codex-001", "codex-009");
    for (file, second) in [("again.yaml", &again), ("lgtm.yaml", &lgtm.text)] {
        mailroom.post("codex", file, second);
        let report = mailroom.refused("codex", file);
        assert_eq!(report["refused"], "duplicate_terminal_response");
        assert_eq!(report["review"], "#86 claude -> codex");
        assert_eq!(
            report["legal_next"][0],
            "claude: review_addressed with round: 1"
        );
    }
    wait::until("both notices", || {
        mailroom
            .notices("codex", "duplicate_terminal_response")
            .len()
            == 2
    });
    assert_eq!(phase(&mailroom).as_deref(), Some("fixing"));
    assert_eq!(
        names(mailroom.agent("claude", "inbox")),
        ["feedback-1.yaml"]
    );
}

#[test]
fn a_third_round_is_refused_once_both_rounds_are_used() {
    let mailroom = Mailroom::new(&AGENTS);
    seed::lay_packet(mailroom.root());
    let _daemon = mailroom.serve();
    let [request, feedback, addressed, second, _] = seed::review();
    for post in [&request, &feedback, &addressed, &second] {
        mailroom.post(post.from, post.file, &post.text);
        assert_arrived(&mailroom, post);
    }
    // F-002 is still open, so the last round escalates to a person.
    let packet = read(mailroom.root().join(seed::PACKET))
        .replace("round: 1", "round: 2")
        .replacen("status: open", "status: fixed", 1)
        .replacen("blocking_count: 2", "blocking_count: 1", 1);
    mailroom.put("packets/findings/r2.yaml", &packet);
    let last = Post {
        file: "feedback-2.yaml",
        text: feedback
            .text
            .replace("codex-001", "codex-002")
            .replace("20260213_review_loop_codex_r1", "r2")
            .replace(
                "round: 1\n  blocking_count: 2",
                "round: 2\n  blocking_count: 1",
            ),
        phase: "escalated",
        ..feedback.clone()
    };
    mailroom.post(last.from, last.file, &last.text);
    assert_arrived(&mailroom, &last);
    assert_eq!(
        mailroom.status()["reviews"][0]["reason"],
        "max_rounds_exceeded"
    );
    assert_eq!(mailroom.status()["reviews"][0]["mover"], "person");

    mailroom.post(
        "claude",
        "request-3.yaml",
        &second.text.replace("claude-003", "claude-005"),
    );
    let report = mailroom.refused("claude", "request-3.yaml");
    assert_eq!(report["refused"], "round_limit_exceeded");
    assert_eq!(report["retryable"], false);
    wait::until("the notice", || {
        mailroom.notices("claude", "round_limit_exceeded").len() == 1
    });
    assert_eq!(phase(&mailroom).as_deref(), Some("escalated"));
}

#[test]
fn a_daemon_stopped_after_every_message_goes_on_where_it_was() {
    let mailroom = Mailroom::new(&AGENTS);
    seed::lay_packet(mailroom.root());
    let posts = seed::review();
    for (n, post) in posts.iter().enumerate() {
        let daemon = mailroom.serve();
        mailroom.post(post.from, post.file, &post.text);
        assert_arrived(&mailroom, post);
        let status = if n % 2 == 0 {
            daemon.interrupt()
        } else {
            daemon.terminate()
        };
        assert!(
            status.success(),
            "a stop that was asked for is no failure: {status}"
        );
        assert_eq!(mailroom.status()["serving"], false);
    }
    assert!(mailroom.serve().interrupt().success());
    assert_nothing_lost_and_nothing_twice(&mailroom, &posts);
}

#[test]
fn a_daemon_stopped_in_the_middle_of_a_message_loses_nothing_and_repeats_nothing() {
    let mailroom = Mailroom::new(&AGENTS);
    seed::lay_packet(mailroom.root());
    let posts = seed::review();
    for (n, post) in posts.iter().enumerate() {
        let daemon = mailroom.serve();
        mailroom.post(post.from, post.file, &post.text);
        // The message may be unread, committed or delivered at this moment.
        let status = if n % 2 == 0 {
            daemon.terminate()
        } else {
            daemon.interrupt()
        };
        assert!(
            status.success(),
            "a stop that was asked for is no failure: {status}"
        );
        // The next daemon finds it, whether or not one served when it was written.
        let _daemon = mailroom.serve();
        assert_arrived(&mailroom, post);
    }
    assert_nothing_lost_and_nothing_twice(&mailroom, &posts);
}

#[test]
fn messages_dropped_while_nobody_serves_are_judged_in_the_order_they_were_written() {
    let mailroom = Mailroom::new(&AGENTS);
    seed::lay_packet(mailroom.root());
    let posts = seed::review();
    let [request, feedback, addressed, second, _] = &posts;
    for post in [request, feedback] {
        mailroom.post(post.from, post.file, &post.text);
        assert!(mailroom.once().status.success());
    }
    // Both of the author's next messages wait together. The request is only correct after the other, whose name sorts
    // after it.
    mailroom.post(addressed.from, "z.yaml", &addressed.text);
    settle(mailroom.agent("claude", "outbox").join("z.yaml"));
    mailroom.post(second.from, "a.yaml", &second.text);
    let _daemon = mailroom.serve();
    assert_eq!(mailroom.delivered("codex", "a.yaml"), second.text);
    assert_eq!(phase(&mailroom).as_deref(), Some("reviewing"));
    assert_eq!(mailroom.status()["refused"], 0);
}

fn shell(script: &str) {
    let status = Command::new("bash")
        .args(["-euo", "pipefail", "-c", script])
        .status()
        .expect("bash can be run");
    assert!(status.success(), "{script}");
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[test]
fn messages_of_one_sender_are_judged_in_the_order_they_were_dropped() {
    let mailroom = Mailroom::new(&AGENTS);
    let daemon = mailroom.serve();
    let ids: Vec<String> = (0..40).map(|n| format!("n-{}", (n * 17) % 40)).collect();
    for id in &ids {
        let text = seed::note("notification", id, "claude", "codex", "x");
        mailroom.post("claude", ".next", &text);
        // Renamed in, because the end of a rename is certain. A process that another test starts now may inherit the
        // open file for some milliseconds, and the kernel reports the close only after that.
        let outbox = mailroom.agent("claude", "outbox");
        std::fs::rename(outbox.join(".next"), outbox.join(format!("{id}.yaml"))).expect("a rename");
    }
    mailroom.cleared("claude");
    assert!(daemon.interrupt().success());
    let records = ledger::records(mailroom.root());
    let judged: Vec<&str> = records
        .iter()
        .filter_map(|record| record["id"].as_str())
        .collect();
    assert_eq!(judged, ids);
}
