//! The commands with which an agent reads and moves its mail: its inbox, taken messages, waiting, and its status.

use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use settled_tests::mailroom::{Mailroom, said, settled};
use settled_tests::{golden, names, read, seed};

/// A command of an agent in this mailroom.
fn by(mailroom: &Mailroom, agent: &str, args: &[&str]) -> Command {
    let mut command = settled();
    command
        .args(args)
        .env("SETTLED_ROOT", mailroom.root())
        .env("SETTLED_AGENT", agent);
    command
}

fn run(mailroom: &Mailroom, agent: &str, args: &[&str]) -> Output {
    by(mailroom, agent, args)
        .output()
        .expect("settled can be run")
}

fn text(output: &Output, exit: i32) -> String {
    assert_eq!(output.status.code(), Some(exit), "{}", said(output));
    String::from_utf8(output.stdout.clone()).expect("we print UTF-8")
}

fn as_json(output: &Output, exit: i32) -> Value {
    serde_json::from_str(&text(output, exit)).expect("one JSON document")
}

/// A mailroom in which two questions and then a request wait for codex.
fn with_mail() -> Mailroom {
    let mailroom = Mailroom::new(&["claude", "codex", "gemini"]);
    for id in ["q-1", "q-2"] {
        mailroom.post(
            "claude",
            &format!("{id}.yaml"),
            &seed::note("question", id, "claude", "codex", "Which?"),
        );
        mailroom.once();
    }
    let [request, ..] = seed::review();
    mailroom.post(request.from, request.file, &request.text);
    mailroom.once();
    mailroom
}

/// Output without the parts that differ between runs: the root, and ages.
fn steady(text: &str, mailroom: &Mailroom) -> String {
    let text = text.replace(&mailroom.root().display().to_string(), "ROOT");
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    for at in 1..words.len() {
        let is_span = words[at - 1].parse::<u64>().is_ok()
            && ["s", "min", "h", "d"]
                .iter()
                .any(|unit| words[at].trim_end_matches([',', '\n']) == *unit);
        if is_span {
            words[at - 1] = "N".to_owned();
        }
    }
    words.join(" ")
}

const REQUEST: &str = "msg-20260213T1000Z-claude-001";

#[test]
fn an_inbox_is_listed_the_most_urgent_first() {
    let mailroom = with_mail();
    golden::check(
        "inbox.txt",
        &steady(&text(&run(&mailroom, "codex", &["inbox"]), 0), &mailroom),
    );
    let answer = as_json(
        &run(&mailroom, "codex", &["list", "--json", "--limit", "2"]),
        0,
    );
    assert_eq!(
        (&answer["data"]["waiting"], &answer["data"]["taken"]),
        (&json!(3), &json!(0))
    );
    let ids: Vec<_> = answer["data"]["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|it| &it["id"])
        .collect();
    assert_eq!(ids, [REQUEST, "q-1"]);
    assert_eq!(answer["next"][0]["run"], format!("settled show {REQUEST}"));
    assert_eq!(
        text(&run(&mailroom, "gemini", &["inbox"]), 0)
            .lines()
            .next(),
        Some("nothing waits for gemini")
    );
}

#[test]
fn a_message_is_taken_by_one_worker_shown_and_put_away() {
    let mailroom = with_mail();
    text(&run(&mailroom, "codex", &["take"]), 0);
    assert_eq!(
        names(mailroom.agent("codex", "inbox/taken")),
        ["request-1.yaml"]
    );
    let again = run(&mailroom, "codex", &["take", REQUEST]);
    assert!(
        said(&again).contains("was taken already"),
        "{}",
        said(&again)
    );
    assert_eq!(again.status.code(), Some(1));
    let inbox = text(&run(&mailroom, "codex", &["inbox"]), 0);
    assert!(
        inbox.starts_with("2 waiting for codex, 1 taken\n* P1 review_request"),
        "{inbox}"
    );
    mailroom.once();
    assert!(
        mailroom.status()["reviews"][0]["taken_at"].is_string(),
        "what left the inbox is taken"
    );
    let shown = text(&run(&mailroom, "codex", &["get", "request-1.yaml"]), 0);
    assert!(
        shown.contains("\npr: \"86\"\n") || shown.contains("  pr: "),
        "{shown}"
    );
    for _ in 0..2 {
        text(&run(&mailroom, "codex", &["ack", REQUEST, "q-1"]), 0);
    }
    let mut archived = names(mailroom.agent("codex", "archive"));
    // Beside the receipts of what was shown.
    archived.retain(|name| !name.starts_with('.'));
    assert_eq!(archived, ["q-1.yaml", "request-1.yaml"]);
    assert_eq!(
        names(mailroom.agent("codex", "inbox")),
        ["q-2.yaml", "taken"]
    );
    text(&run(&mailroom, "codex", &["done", "q-3"]), 3);
    // The file that was put away is the delivery: the daemon must not deliver it again.
    mailroom.once();
    assert_eq!(
        names(mailroom.agent("codex", "inbox")),
        ["q-2.yaml", "taken"]
    );
}

#[test]
fn of_workers_that_take_at_once_each_gets_another_message() {
    let mailroom = with_mail();
    let workers: Vec<_> = (0..5)
        .map(|_| {
            by(&mailroom, "codex", &["take", "--json"])
                .stdout(Stdio::piped())
                .spawn()
                .expect("settled runs")
        })
        .collect();
    let mut exits = Vec::new();
    for worker in workers {
        exits.push(
            worker
                .wait_with_output()
                .expect("it is our child")
                .status
                .code(),
        );
    }
    exits.sort_unstable();
    assert_eq!(exits, [Some(0), Some(0), Some(0), Some(3), Some(3)]);
    assert_eq!(names(mailroom.agent("codex", "inbox/taken")).len(), 3);
}

#[test]
fn names_that_are_taken_in_the_archive_are_not_replaced() {
    let mailroom = with_mail();
    mailroom.put("agents/codex/archive/q-1.yaml", "kept");
    text(&run(&mailroom, "codex", &["done", "q-1"]), 0);
    assert_eq!(
        names(mailroom.agent("codex", "archive")),
        ["q-1.2.yaml", "q-1.yaml"]
    );
    assert_eq!(
        read(mailroom.agent("codex", "archive").join("q-1.yaml")),
        "kept"
    );
}

#[test]
fn a_message_prints_nothing_that_moves_the_cursor() {
    let mailroom = Mailroom::new(&["codex"]);
    let message = seed::note("question", "q-1", "x", "codex", "a\u{1b}[2Jb\u{202e}c");
    mailroom.put("agents/codex/inbox/q.yaml", &message);
    for args in [&["show", "q.yaml"][..], &["inbox"]] {
        let shown = text(&run(&mailroom, "codex", args), 0);
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
    }
    std::fs::create_dir(mailroom.agent("codex", "inbox").join("d.yaml")).expect("a directory");
    let fifo = mailroom.agent("codex", "inbox").join("p.yaml");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .expect("a pipe");
    std::os::unix::fs::symlink(
        "/etc/passwd",
        mailroom.agent("codex", "inbox").join("l.yaml"),
    )
    .expect("a link");
    let inbox = text(&run(&mailroom, "codex", &["inbox"]), 0);
    assert!(
        inbox.contains("p.yaml: no message") && !inbox.contains("root:"),
        "{inbox}"
    );
}

#[test]
fn who_asks_is_never_guessed() {
    let mailroom = with_mail();
    for (agent, says) in [
        ("", "no agent given"),
        ("nobody", "has no mailboxes"),
        ("../codex", "../codex"),
    ] {
        let output = settled()
            .args(["inbox", "--json"])
            .env("SETTLED_ROOT", mailroom.root())
            .env("SETTLED_AGENT", agent)
            .current_dir(mailroom.agent("codex", "inbox"))
            .output()
            .expect("settled can be run");
        let answer = as_json(&output, 5);
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(
            message.contains(says) && message.contains("claude, codex, gemini"),
            "{message}"
        );
    }
    let flags = settled()
        .args(["inbox", "--agent", "codex", "--root"])
        .arg(mailroom.root())
        .env("SETTLED_AGENT", "claude")
        .output()
        .expect("settled can be run");
    let said = text(&flags, 0);
    assert!(
        said.contains("waiting for codex") && said.contains("--agent codex"),
        "{said}"
    );
}

#[test]
fn settled_alone_says_where_an_agent_stands() {
    let mailroom = with_mail();
    for agent in ["claude", "codex", "gemini"] {
        let home = steady(&text(&run(&mailroom, agent, &[]), 0), &mailroom);
        golden::check(&format!("home-{agent}.txt"), &home);
    }
    let answer = as_json(&run(&mailroom, "codex", &["robot", "triage"]), 6);
    assert_eq!(answer["data"]["reviews"][0]["move"], "yours");
    assert_eq!(answer["alerts"][0]["code"], "not_served");
    as_json(&run(&mailroom, "gemini", &["robot", "triage"]), 0);
    text(&settled().output().expect("settled can be run"), 5);
}

#[test]
fn wait_ends_with_what_comes_and_with_the_time() {
    let mailroom = with_mail();
    let answer = as_json(&run(&mailroom, "codex", &["wait", "--json"]), 0);
    assert_eq!(answer["data"]["messages"][0]["id"], REQUEST);
    let none = as_json(
        &run(&mailroom, "claude", &["wait", "--timeout", "0", "--json"]),
        4,
    );
    assert_eq!(
        (&none["ok"], &none["error"]["exit"]),
        (&json!(false), &json!(4))
    );
    assert_eq!(none["data"]["reviews"][0]["move"], "theirs");
    golden::check(
        "wait-timeout.txt",
        &steady(
            &text(&run(&mailroom, "claude", &["wait", "--timeout", "0s"]), 4),
            &mailroom,
        ),
    );
    let daemon = mailroom.serve();
    let waiting = by(
        &mailroom,
        "claude",
        &[
            "wait",
            "--for",
            "reply",
            "--id",
            "q-1",
            "--timeout",
            "30s",
            "--json",
        ],
    )
    .stdout(Stdio::piped())
    .spawn()
    .expect("settled can be run");
    let answer = |id: &str, parent: &str| {
        seed::note("follow_up", id, "codex", "claude", "That one.")
            + &format!("parent_message_id: {parent}\n")
    };
    mailroom.post("codex", "other.yaml", &answer("a-2", "q-2"));
    mailroom.delivered("claude", "other.yaml");
    mailroom.post("codex", "answer.yaml", &answer("a-1", "q-1"));
    let came = as_json(&waiting.wait_with_output().expect("it is our child"), 0);
    assert_eq!(came["data"]["messages"].as_array().map(Vec::len), Some(1));
    assert_eq!(came["data"]["messages"][0]["id"], "a-1");
    drop(daemon);
}

#[test]
fn a_wait_for_the_reply_to_a_refused_message_ends_at_once() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.post(
        "claude",
        "lost.yaml",
        &seed::note("question", "q-1", "claude", "nobody", "?"),
    );
    mailroom.once();
    let output = run(
        &mailroom,
        "claude",
        &["wait", "--for", "reply", "--id", "q-1", "--timeout", "1h"],
    );
    assert!(
        text(&output, 7).is_empty() && said(&output).contains("lost.report.yaml"),
        "{}",
        said(&output)
    );
}

#[test]
fn a_wait_for_a_verdict_passes_over_other_mail() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    seed::lay_packet(mailroom.root());
    let posts = seed::review();
    mailroom.post(
        "codex",
        "q.yaml",
        &seed::note("question", "q-1", "codex", "claude", "?"),
    );
    mailroom.post(posts[0].from, posts[0].file, &posts[0].text);
    mailroom.once();
    let wait = [
        "wait",
        "--for",
        "verdict",
        "--pr",
        "0086",
        "--timeout",
        "0",
        "--json",
    ];
    as_json(&run(&mailroom, "claude", &wait), 4);
    mailroom.post(posts[1].from, posts[1].file, &posts[1].text);
    mailroom.once();
    let came = as_json(&run(&mailroom, "claude", &wait), 0);
    assert_eq!(came["data"]["messages"][0]["type"], "review_feedback");
    as_json(
        &run(
            &mailroom,
            "claude",
            &[
                "wait",
                "--for",
                "verdict",
                "--pr",
                "87",
                "--timeout",
                "0",
                "--json",
            ],
        ),
        4,
    );
}

#[test]
fn a_wait_for_a_verdict_ends_at_once_when_the_agent_itself_must_move() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    seed::lay_packet(mailroom.root());
    let [request, feedback, ..] = seed::review();
    mailroom.post(request.from, request.file, &request.text);
    mailroom.once();
    text(&run(&mailroom, "codex", &["take"]), 0);
    let verdict = ["wait", "--timeout", "0", "--json", "--for", "verdict"];
    let own = as_json(&run(&mailroom, "codex", &verdict), 6);
    assert_eq!(own["data"]["reviews"][0]["move"], "yours");

    mailroom.post(feedback.from, feedback.file, &feedback.text);
    mailroom.once();
    text(&run(&mailroom, "claude", &["take"]), 0);
    let wait = |what: &[&str]| {
        let args = [&["wait", "--timeout", "0", "--json", "--for"], what].concat();
        run(&mailroom, "claude", &args)
    };
    let own = as_json(&wait(&["verdict"]), 6);
    assert_eq!(own["data"]["reviews"][0]["move"], "yours");
    // A question can be answered at any time.
    as_json(&wait(&["reply", "--id", "q-1"]), 4);
}

#[test]
fn a_wait_for_a_verdict_waits_for_the_file_of_an_answer_that_the_ledger_has() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let request = &seed::review()[0];
    mailroom.post(request.from, request.file, &request.text);
    mailroom.once();
    let wait = ["wait", "--for", "verdict", "--timeout", "0", "--json"];
    as_json(&run(&mailroom, "claude", &wait), 4);
    // The answer is recorded while the inbox is not writable.
    let (inbox, away) = (
        mailroom.agent("claude", "inbox"),
        mailroom.agent("claude", "away"),
    );
    std::fs::rename(&inbox, &away).expect("a directory to move");
    std::fs::write(&inbox, "").expect("a file");
    text(&run(&mailroom, "codex", &["lgtm", "86", "--no-wait"]), 0);
    mailroom.once();
    assert_eq!(mailroom.status()["reviews"][0]["phase"], "approved");
    std::fs::remove_file(&inbox).expect("a file to remove");
    std::fs::rename(&away, &inbox).expect("a directory to move");
    as_json(&run(&mailroom, "claude", &wait), 4);
    mailroom.once();
    let came = as_json(&run(&mailroom, "claude", &wait), 0);
    assert_eq!(came["data"]["messages"][0]["type"], "review_lgtm");
    // Once it is taken, nothing more arrives.
    text(&run(&mailroom, "claude", &["take"]), 0);
    as_json(
        &run(&mailroom, "claude", &[&wait[..], &["--pr", "86"]].concat()),
        6,
    );
}

/// Runs a hook of this agent with this payload on standard input.
fn hook(mailroom: &Mailroom, agent: &str, args: &[&str], payload: &str) -> Output {
    let mut child = by(mailroom, agent, &[&["hook"], args].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("settled can be run");
    let mut stdin = child.stdin.take().expect("it was piped");
    // A hook may ignore its input.
    let _ = std::io::Write::write_all(&mut stdin, payload.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("it is our child")
}

#[test]
fn hooks_tell_of_mail_once_a_turn_and_never_fail() {
    let mailroom = with_mail();
    let started = as_json(
        &hook(
            &mailroom,
            "codex",
            &["session-start", "--for", "claude"],
            "{}",
        ),
        0,
    );
    let told = started["hookSpecificOutput"]["additionalContext"]
        .as_str()
        .expect("a text");
    assert!(
        told.starts_with("settled: 3 messages wait for you (review_request msg-"),
        "{told}"
    );
    let ended = as_json(
        &hook(
            &mailroom,
            "codex",
            &["turn-end", "--for", "codex"],
            "{\"stop_hook_active\":false}",
        ),
        0,
    );
    assert_eq!(ended["decision"], "block");
    let again = hook(
        &mailroom,
        "codex",
        &["turn-end", "--for", "claude"],
        "{\"stop_hook_active\": true}",
    );
    assert_eq!(text(&again, 0), "");
    assert_eq!(text(&hook(&mailroom, "gemini", &["turn-end"], ""), 0), "");
    // Inside a run of the daemon's, the request itself is waiting mail: the hooks stay silent.
    for (program, quiet) in [("claude", ""), ("codex", "{}\n"), ("gemini", "{}\n")] {
        for moment in ["session-start", "turn-end"] {
            let args = ["hook", moment, "--for", program];
            let mut command = by(&mailroom, "codex", &args);
            let output = command.env("SETTLED_RUN", "run-1").stdin(Stdio::null());
            let output = output.output().expect("settled can be run");
            assert_eq!(text(&output, 0), quiet, "{program} {moment}");
        }
    }
    for (agent, args) in [
        ("nobody", &["turn-end"][..]),
        ("codex", &["turn-end", "--for", "x"]),
        ("codex", &["turn-begin"]),
    ] {
        let output = hook(&mailroom, agent, args, "no JSON");
        assert_eq!(text(&output, 0), "", "{}", said(&output));
    }
}

#[test]
fn installed_hooks_need_no_environment() {
    let mailroom = with_mail();
    let project = settled_tests::scratch();
    let missing = project.path().join("missing");
    let words = ["hook", "install", "claude", "--dir"];
    let refused = run(
        &mailroom,
        "codex",
        &[&words[..], &[missing.to_str().expect("text")]].concat(),
    );
    assert_eq!(refused.status.code(), Some(3), "{}", said(&refused));
    assert!(!missing.exists(), "a mistyped directory is not made");
    let dir = project.path().to_str().expect("a path of text");
    for (program, file, end) in [
        ("claude", ".claude/settings.json", "Stop"),
        ("codex", ".codex/hooks.json", "Stop"),
        ("gemini", ".gemini/settings.json", "AfterAgent"),
    ] {
        let install = |more: &[&str]| {
            text(
                &run(
                    &mailroom,
                    "codex",
                    &[&["hook", "install", program, "--dir", dir], more].concat(),
                ),
                0,
            )
        };
        assert!(install(&[]).starts_with("changed "));
        assert!(install(&[]).starts_with("nothing to change in "));
        let settings: Value = serde_json::from_str(&read(project.path().join(file))).expect("JSON");
        for (event, holds) in [
            ("SessionStart", "additionalContext"),
            (end, "\"decision\":\"block\""),
        ] {
            let command = settings["hooks"][event][0]["hooks"][0]["command"]
                .as_str()
                .expect("a command");
            let output = Command::new("sh")
                .args(["-c", command])
                .env_clear()
                .stdin(Stdio::null())
                .current_dir("/")
                .output()
                .expect("sh can be run");
            assert!(
                text(&output, 0).contains(holds),
                "{command}: {}",
                said(&output)
            );
        }
        assert!(install(&["--uninstall"]).starts_with("changed "));
        assert_eq!(read(project.path().join(file)), "{}\n");
    }
}

#[test]
fn a_block_in_agents_files_is_kept_up_to_date() {
    let mailroom = with_mail();
    let project = settled_tests::scratch();
    let (file, other) = (
        project.path().join("AGENTS.md"),
        project.path().join("CLAUDE.md"),
    );
    settled_tests::write(&file, "# Rules\n");
    let paths = [file.to_str().expect("text"), other.to_str().expect("text")];
    text(
        &run(&mailroom, "codex", &["agents-md", "--check", paths[0]]),
        6,
    );
    text(
        &run(&mailroom, "codex", &["agents-md", paths[0], paths[1]]),
        0,
    );
    let kept = read(&file);
    assert!(
        kept.starts_with("# Rules\n\n<!-- settled:begin") && kept.contains("SETTLED_AGENT"),
        "{kept}"
    );
    text(
        &run(
            &mailroom,
            "codex",
            &["agents-md", "--check", paths[0], paths[1]],
        ),
        0,
    );
    // All agents read the file, so it names none of them, and no path.
    text(
        &run(&mailroom, "claude", &["agents-md", "--check", paths[0]]),
        0,
    );
    let root = mailroom.root().display().to_string();
    assert!(!kept.contains("You are") && !kept.contains(&root), "{kept}");
    text(
        &run(
            &mailroom,
            "codex",
            &["agents-md", "--remove", paths[0], paths[1]],
        ),
        0,
    );
    assert_eq!(
        (read(&file).trim_end(), read(&other)),
        ("# Rules", String::new())
    );
    let block = text(&run(&mailroom, "codex", &["agents-md"]), 0);
    assert!(block.contains("settled brief 86"), "{block}");
}

#[test]
fn a_hook_counts_all_and_names_some() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    for number in 0..120 {
        let id = format!("q-{number:03}");
        mailroom.put(
            &format!("agents/codex/inbox/{id}.yaml"),
            &seed::note("question", &id, "claude", "codex", "?"),
        );
    }
    let started = as_json(&hook(&mailroom, "codex", &["session-start"], "{}"), 0);
    let told = started["hookSpecificOutput"]["additionalContext"]
        .as_str()
        .expect("a text");
    assert!(
        told.starts_with("settled: 120 messages wait for you (question q-000 from claude; "),
        "{told}"
    );
    assert_eq!(told.matches("question q-").count(), 5, "{told}");
}
