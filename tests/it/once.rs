//! `settled serve --once` judges and delivers everything it finds; the exit code reports the result. No daemon, no
//! watcher, as a cron job or a hook would run it.

use std::process::Output;

use settled_tests::approval::approved;
use settled_tests::mailroom::{Mailroom, said, settled, yaml};
use settled_tests::{ledger, list, names, read, seed, sh, write};

fn assert_exit(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}", said(output));
}

fn last_line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .last()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn nothing_to_do_is_no_failure() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let output = mailroom.once();
    assert_exit(&output, 0);
    assert_eq!(last_line(&output), "0 accepted, 0 refused, 0 duplicates");
}

#[test]
fn a_whole_review_runs_without_a_daemon_that_stays() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    seed::lay_packet(mailroom.root());
    for post in seed::review() {
        mailroom.post(post.from, post.file, &post.text);
        let output = mailroom.once();
        assert_exit(&output, 0);
        assert_eq!(last_line(&output), "1 accepted, 0 refused, 0 duplicates");
        assert_eq!(
            read(mailroom.agent(post.to, "inbox").join(post.file)),
            post.text
        );
        assert_eq!(mailroom.status()["reviews"][0]["phase"], post.phase);
    }
}

#[test]
fn the_eight_other_types_are_delivered_and_start_no_review() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let kinds = [
        "notification",
        "question",
        "task_request",
        "follow_up",
        "handoff",
        "handoff_complete",
        "brainstorm_request",
        "brainstorm_followup",
    ];
    for kind in kinds {
        mailroom.post(
            "claude",
            &format!("{kind}.yaml"),
            &seed::note(kind, kind, "claude", "codex", "text"),
        );
    }
    let output = mailroom.once();
    assert_exit(&output, 0);
    assert_eq!(last_line(&output), "8 accepted, 0 refused, 0 duplicates");
    let mut expected: Vec<String> = kinds.iter().map(|kind| format!("{kind}.yaml")).collect();
    expected.sort();
    assert_eq!(names(mailroom.agent("codex", "inbox")), expected);
    assert_eq!(mailroom.status()["reviews"], serde_json::json!([]));
}

#[test]
fn two_outboxes_are_emptied_and_a_bad_file_in_one_holds_up_nothing() {
    let mailroom = Mailroom::new(&["claude", "codex", "gemini"]);
    mailroom.post("claude", "1-bad.yaml", "id: [\n");
    for n in 2..5 {
        let (to_codex, to_claude) = (format!("c{n}"), format!("x{n}"));
        mailroom.post(
            "claude",
            &format!("{n}.yaml"),
            &seed::note("question", &to_codex, "claude", "codex", "?"),
        );
        mailroom.post(
            "codex",
            &format!("{n}.yaml"),
            &seed::note("question", &to_claude, "codex", "claude", "?"),
        );
    }
    let output = mailroom.once();
    assert_exit(&output, 7);
    assert_eq!(last_line(&output), "6 accepted, 1 refused, 0 duplicates");
    assert_eq!(
        names(mailroom.agent("codex", "inbox")),
        ["2.yaml", "3.yaml", "4.yaml"]
    );
    assert_eq!(
        names(mailroom.agent("claude", "dead_letter")),
        ["1-bad.report.yaml", "1-bad.yaml"]
    );
    for agent in ["claude", "codex"] {
        assert_eq!(
            names(mailroom.agent(agent, "outbox")),
            [""; 0],
            "left in the outbox of {agent}"
        );
        assert_eq!(names(mailroom.agent(agent, "sent")).len(), 3);
    }
}

#[test]
fn a_message_to_several_recipients_reaches_each_once() {
    let mailroom = Mailroom::new(&["claude", "codex", "gemini"]);
    let text = seed::note(
        "notification",
        "n-1",
        "claude",
        "[codex, gemini]",
        "for both",
    );
    mailroom.post("claude", "both.yaml", &text);
    assert_exit(&mailroom.once(), 0);
    for agent in ["codex", "gemini"] {
        assert_eq!(read(mailroom.agent(agent, "inbox").join("both.yaml")), text);
    }
    let records = ledger::records(mailroom.root());
    assert_eq!(records.len(), 1);
    assert_eq!(records[0]["deliveries"].as_array().map(Vec::len), Some(2));
}

#[test]
fn the_same_bytes_again_are_put_away_without_effect_or_notice() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let text = seed::note("notification", "n-1", "claude", "codex", "once");
    mailroom.post("claude", "a.yaml", &text);
    assert_exit(&mailroom.once(), 0);
    for file in ["a.yaml", "b.yaml"] {
        mailroom.post("claude", file, &text);
        let output = mailroom.once();
        assert_exit(&output, 0);
        assert_eq!(last_line(&output), "0 accepted, 0 refused, 1 duplicates");
    }
    assert_eq!(names(mailroom.agent("codex", "inbox")), ["a.yaml"]);
    for directory in ["outbox", "inbox", "dead_letter"] {
        assert_eq!(
            names(mailroom.agent("claude", directory)),
            [""; 0],
            "{directory} of the sender"
        );
    }
}

#[test]
fn other_bytes_under_a_used_id_are_refused() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.post(
        "claude",
        "a.yaml",
        &seed::note("notification", "n-1", "claude", "codex", "first"),
    );
    assert_exit(&mailroom.once(), 0);
    mailroom.post(
        "claude",
        "b.yaml",
        &seed::note("notification", "n-1", "claude", "codex", "changed"),
    );
    assert_exit(&mailroom.once(), 7);
    assert_eq!(
        mailroom.refused("claude", "b.yaml")["refused"],
        "id_collision"
    );
    assert_eq!(names(mailroom.agent("codex", "inbox")), ["a.yaml"]);
}

#[test]
fn two_messages_in_files_of_one_name_both_arrive() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    for n in 1..4 {
        mailroom.post(
            "claude",
            "m.yaml",
            &seed::note("notification", &format!("n-{n}"), "claude", "codex", "x"),
        );
        assert_exit(&mailroom.once(), 0);
    }
    assert_eq!(
        names(mailroom.agent("codex", "inbox")),
        ["m.2.yaml", "m.3.yaml", "m.yaml"]
    );
    assert_eq!(
        names(mailroom.agent("claude", "sent")),
        ["m.2.yaml", "m.3.yaml", "m.yaml"]
    );
}

#[test]
fn an_unknown_recipient_is_refused_and_gets_no_mailbox() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.post(
        "claude",
        "a.yaml",
        &seed::note("question", "q-1", "claude", "codx", "?"),
    );
    assert_exit(&mailroom.once(), 7);
    let report = mailroom.refused("claude", "a.yaml");
    assert_eq!(report["refused"], "unknown_recipient");
    assert_eq!(report["violations"][0]["found"], "codx");
    assert!(!mailroom.root().join("agents/codx").exists());
    assert_eq!(mailroom.notices("claude", "unknown_recipient").len(), 1);
}

#[test]
fn mail_to_the_daemon_is_refused_without_a_notice() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.post(
        "claude",
        "a.yaml",
        &seed::note("question", "q-1", "claude", "settled", "why?"),
    );
    assert_exit(&mailroom.once(), 7);
    assert_eq!(
        mailroom.refused("claude", "a.yaml")["refused"],
        "not_for_the_daemon"
    );
    assert_eq!(names(mailroom.agent("claude", "inbox")), [""; 0]);
}

#[test]
fn an_answer_to_a_notice_gets_no_notice_of_its_own() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.post(
        "claude",
        "a.yaml",
        &seed::note("question", "q-1", "claude", "codx", "?"),
    );
    assert_exit(&mailroom.once(), 7);
    let notices = mailroom.notices("claude", "unknown_recipient");
    let id = yaml(&notices[0])["id"]
        .as_str()
        .expect("a notice has an id")
        .to_owned();

    let answer = seed::note("question", "q-2", "claude", "codx", "??").replace(
        "subject:",
        &format!("parent_message_id: \"{id}\"\nsubject:"),
    );
    mailroom.post("claude", "b.yaml", &answer);
    assert_exit(&mailroom.once(), 7);
    assert_eq!(
        mailroom.refused("claude", "b.yaml")["refused"],
        "unknown_recipient"
    );
    assert_eq!(
        mailroom.notices("claude", "unknown_recipient"),
        notices,
        "one notice, the first"
    );
}

#[test]
fn a_packet_outside_the_workspace_is_not_read() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let [request, feedback, ..] = seed::review();
    mailroom.post("claude", "request.yaml", &request.text);
    assert_exit(&mailroom.once(), 0);
    let outside = mailroom.root().with_file_name("outside.yaml");
    write(&outside, "findings: []\n");
    std::os::unix::fs::symlink(&outside, mailroom.root().join(seed::PACKET)).expect("a link");
    mailroom.post("codex", "feedback.yaml", &feedback.text);
    assert_exit(&mailroom.once(), 7);
    assert_eq!(
        mailroom.refused("codex", "feedback.yaml")["refused"],
        "packet_unsafe"
    );
}

#[test]
fn only_one_process_serves_a_workspace() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let daemon = mailroom.serve();
    let output = mailroom.once();
    assert_exit(&output, 9);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("it is being served already"), "{said}");
    assert!(said.contains("try: settled status"), "{said}");
    // The lock is the kernel's and ends with the process, however that ends.
    daemon.kill();
    assert_exit(&mailroom.once(), 0);
}

#[test]
fn a_bad_config_stops_everything_with_its_place() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.post(
        "claude",
        "a.yaml",
        &seed::note("question", "q-1", "claude", "codex", "?"),
    );
    for (config, place) in [
        ("[rounds]\nmax = 4\n", "settled.toml:2:7: config_invalid"),
        ("round = 2\n", "settled.toml:1:1: config_invalid"),
    ] {
        mailroom.put("settled.toml", config);
        let output = mailroom.once();
        assert_exit(&output, 2);
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(place),
            "{}",
            said(&output)
        );
    }
    assert_eq!(
        names(mailroom.agent("claude", "outbox")),
        ["a.yaml"],
        "nothing starts on half a config"
    );
}

/// No command takes a config that cannot be read for no config, and none waits for it.
#[test]
fn a_config_that_is_no_file_is_never_taken_for_none() {
    let repository = tempfile::tempdir().expect("a directory");
    let head = sh(
        repository.path(),
        "git init -q -b main; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one
         git checkout -q -b pr; echo 1 > a; git add a; git -c user.name=a -c user.email=a@b commit -qm two
         git rev-parse HEAD",
    );
    let mailroom = approved(&head);
    let path = mailroom.root().join("settled.toml");
    let clone = repository.path().display().to_string();
    let verdict_file = repository.path().join("verdict.txt").display().to_string();
    let config = path.display().to_string();
    let root = mailroom.root().display().to_string();
    let commands: [&[&str]; 4] = [
        &[
            "gate",
            "check",
            "--pr",
            "86",
            "--head",
            &head,
            "--repo-dir",
            &clone,
            "--base",
            "main",
        ],
        &["verdict", "export", "86", "-o", &verdict_file],
        &["simulate", "--ledger", &root, "--config", &config],
        &["serve", "--once"],
    ];
    let _ = std::fs::remove_file(&path);
    let links = || std::os::unix::fs::symlink("nowhere", &path).expect("a link");
    let pipes = || {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).expect("a pipe");
    };
    for make in [&links as &dyn Fn(), &pipes] {
        make();
        for command in commands {
            let output = mailroom.run(command);
            assert!(!output.status.success(), "{command:?}: {}", said(&output));
            assert!(
                said(&output).contains("settled.toml:1:1: config_invalid: expected a regular file"),
                "{command:?}: {}",
                said(&output)
            );
        }
        std::fs::remove_file(&path).expect("it was made");
    }
}

#[test]
fn no_workspace_is_not_found_and_the_next_command_is_named() {
    let mailroom = Mailroom::absent();
    for command in [
        &["serve", "--once"][..],
        &["status"],
        &["log"],
        &["ledger", "verify"],
    ] {
        let output = mailroom.run(command);
        assert_exit(&output, 3);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let next = format!(
            "try: settled up {} --agents claude,codex",
            mailroom.root().display()
        );
        assert!(said.contains(&next), "{said}");
    }
    assert!(!mailroom.root().exists(), "looking makes nothing");
}

#[test]
fn sixty_an_hour_between_two_agents_is_the_default_and_the_config_changes_it() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    for n in 0..61 {
        let id = format!("n-{n:02}");
        mailroom.post(
            "claude",
            &format!("{id}.yaml"),
            &seed::note("notification", &id, "claude", "codex", "x"),
        );
    }
    let output = mailroom.once();
    assert_exit(&output, 7);
    assert_eq!(last_line(&output), "60 accepted, 1 refused, 0 duplicates");
    mailroom.put("settled.toml", "[limits]\nmessages_per_hour = 61\n");
    mailroom.post(
        "claude",
        "again.yaml",
        &seed::note("notification", "again", "claude", "codex", "x"),
    );
    assert_exit(&mailroom.once(), 0);
}

#[test]
fn a_flood_of_refusals_is_summed_up() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    for n in 0..40 {
        mailroom.post(
            "claude",
            &format!("{n:02}.yaml"),
            &seed::note("question", "q", "claude", "nobody", "?"),
        );
    }
    assert_exit(&mailroom.once(), 7);
    assert_eq!(
        names(mailroom.agent("claude", "dead_letter")).len(),
        80,
        "each with its report"
    );
    assert_eq!(
        mailroom.notices("claude", "unknown_recipient").len(),
        30,
        "at most 30 a minute"
    );
}

#[test]
fn a_workspace_is_the_same_from_wherever_it_is_named() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.post(
        "claude",
        "a.yaml",
        &seed::note("question", "q-1", "claude", "codex", "?"),
    );
    let inside = settled()
        .args(["serve", "--once", "."])
        .current_dir(mailroom.root())
        .output();
    assert_exit(&inside.expect("settled can be run"), 0);
    let beside = settled()
        .args(["status", "--json", "mailroom/"])
        .current_dir(mailroom.root().join(".."))
        .output();
    let beside: serde_json::Value =
        serde_json::from_slice(&beside.expect("settled can be run").stdout)
            .expect("one JSON document");
    assert_eq!(beside["data"]["accepted"], 1);
}

/// A supervisor would restart a daemon that ended with 1 forever, and it would never read further.
#[test]
fn a_record_that_is_not_understood_is_not_tried_again() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.post(
        "claude",
        "one.yaml",
        &seed::note("question", "q-1", "claude", "codex", "?"),
    );
    assert_exit(&mailroom.once(), 0);
    let segment = list(mailroom.root().join(".settled/ledger"))
        .pop()
        .expect("a ledger has a segment");
    let kept = read(&segment);
    // No later record checks the digest of the last one, so the daemon reads it, and cannot parse it.
    write(&segment, &kept.replacen("\"at\":\"2", "\"at\":\"x", 1));
    let output = mailroom.once();
    assert_exit(&output, 6);
    assert!(
        said(&output).contains("record 1 of the ledger was not understood"),
        "{}",
        said(&output)
    );
}
