//! The commands that agents get as next steps: each runs as printed, in every common situation. They lead through a
//! whole review, and no message is waited for twice or stays taken forever.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use settled_tests::mailroom::{Mailroom, said, settled};
use settled_tests::{binaries, names, read, seed, write};

/// A command in the mailroom's parent directory, as an agent that names the mailroom in its environment.
fn command(mailroom: &Mailroom, agent: &str, args: &[&str]) -> Command {
    let mut command = settled();
    command
        .args(args)
        .env("SETTLED_ROOT", "mailroom")
        .env("SETTLED_AGENT", agent);
    command.current_dir(mailroom.root().parent().expect("a directory around it"));
    command
}

fn fed(mut command: Command, text: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("settled can be run");
    // A command that does not read its input closes the pipe.
    let _ = child
        .stdin
        .take()
        .expect("it was piped")
        .write_all(text.as_bytes());
    child.wait_with_output().expect("it is our child")
}

/// The only JSON answer, which has the common form.
fn answer(output: &Output) -> Value {
    let answer: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("no JSON document ({error}): {}", said(output)));
    assert_eq!(answer["schema_version"], 1, "{answer}");
    assert!(
        answer["alerts"].is_array() && answer["next"].is_array(),
        "{answer}"
    );
    let exit = output.status.code().expect("it was not killed");
    match answer["ok"].as_bool().expect("whether it did as asked") {
        true => assert!(
            answer["error"].is_null() && [0, 6].contains(&exit),
            "{exit}: {answer}"
        ),
        false => assert_eq!(answer["error"]["exit"], exit, "{answer}"),
    }
    answer
}

fn ask(mailroom: &Mailroom, agent: &str, args: &[&str]) -> Value {
    answer(&fed(
        command(mailroom, agent, &[args, &["--json"]].concat()),
        "",
    ))
}

fn runs(answer: &Value) -> Vec<String> {
    let next = answer["next"].as_array().expect("a list");
    next.iter()
        .map(|next| next["run"].as_str().expect("a command").to_owned())
        .collect()
}

/// Runs a command in a shell, on a copy of the workspace.
fn try_it(mailroom: &Mailroom, agent: &str, run: &str) {
    let copy = settled_tests::scratch();
    let around = mailroom.root().parent().expect("a directory around it");
    let copied = Command::new("cp")
        .arg("-a")
        .arg(around.join("mailroom"))
        .arg(copy.path())
        .status();
    assert!(copied.expect("cp can be run").success());
    let word = run.split_whitespace().nth(1).unwrap_or_default();
    let ends_soon = match word {
        "wait" | "lgtm" => format!("{run} --timeout 0"),
        "serve" if !run.contains("--once") => format!("{run} --once"),
        "up" => format!("{run} --help"),
        _ => run.to_owned(),
    };
    let path = format!(
        "{}:{}",
        binaries::directory().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let output = Command::new("sh")
        .args(["-c", &ends_soon])
        .env("PATH", path)
        .env("SETTLED_ROOT", "mailroom")
        .env("SETTLED_AGENT", agent)
        .current_dir(copy.path())
        .stdin(Stdio::null())
        .output()
        .expect("sh can be run");
    let exit = output.status.code();
    assert!(
        ![Some(2), Some(126), Some(127), None].contains(&exit),
        "`{run}`: {exit:?}: {}",
        said(&output)
    );
    for word in run.split_whitespace() {
        let is_placeholder = ["FILE", "DIR", "NAME", "PR", "SHA", "ID", "…", "..."].contains(&word);
        assert!(!is_placeholder, "`{run}` has to be filled in first");
    }
}

const REQUEST: &[&str] = &[
    "send",
    "review_request",
    "--to",
    "codex",
    "--pr",
    "86",
    "--branch",
    "b",
    "--diff-summary",
    "a lock",
];

const FINDINGS: &str =
    "findings:\n- {severity: P1, title: the lock is never released, file: src/lock.rs}\n";

/// Questions that an agent may ask at any time. Most have no good answer.
const ANY_TIME: &[&[&str]] = &[
    &[],
    &["robot", "triage"],
    &["inbox"],
    &["show"],
    &["show", "nope"],
    &["done", "nope"],
    &["take", "nope"],
    &["reply", "nope", "--body", "x"],
    &["wait", "--timeout", "0"],
    &["wait", "--for", "verdict", "--pr", "86", "--timeout", "0"],
    &["wait", "--for", "reply", "--id", "-x", "--timeout", "0"],
    &["brief"],
    &["brief", "99"],
    &["lgtm", "86", "--dry-run"],
    &["threads", "86"],
    &["threads", "99"],
    &["why", "86"],
    &["why", "99"],
    &["status"],
    &["problems"],
    &["trace", "nope"],
    &["dead-letter", "list"],
    &["dead-letter", "show", "nope"],
    &["gate", "check", "--pr", "86", "--head", "abc1234"],
    &["verdict", "verify", "nope.json", "--head", "abc1234"],
    &["explain", "action_mising"],
    &["agents-md", "--check", "nope.md"],
    &["doctor"],
    &["ledger", "verify"],
    &[
        "send",
        "question",
        "--body",
        "whom?",
        "--pr",
        "99",
        "--dry-run",
    ],
    &[
        "send",
        "review_request",
        "--to",
        "codex",
        "--pr",
        "86",
        "--dry-run",
    ],
    &["send", "nope"],
    &["wait", "--for", "reply"],
    &["inbox", "--root", "a b"],
    &["inbox", "--agent", "nobody"],
    &["inbox", "--limit", "0"],
];

#[test]
fn every_command_that_is_told_to_come_next_runs_as_it_stands() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let mut tried: BTreeSet<(String, String)> = BTreeSet::new();
    let mut follow = |mailroom: &Mailroom, agent: &str, answer: &Value| {
        for run in runs(answer) {
            // A different id does not make it a different command.
            let shape: String = run.chars().filter(|c| !c.is_ascii_digit()).collect();
            if tried.insert((agent.to_owned(), shape)) {
                try_it(mailroom, agent, &run);
            }
        }
    };
    let mut look_around = |mailroom: &Mailroom| {
        for agent in ["claude", "codex"] {
            for args in ANY_TIME {
                let answer = ask(mailroom, agent, args);
                follow(mailroom, agent, &answer);
            }
        }
    };
    look_around(&mailroom);
    let daemon = mailroom.serve();
    let steps: &[(&str, &[&str], &str, i64)] = &[
        ("claude", REQUEST, "", 0),
        ("claude", REQUEST, "", 7),
        (
            "claude",
            &[
                "send", "question", "--to", "codex", "--id=-x", "--body", "?",
            ],
            "",
            0,
        ),
        (
            "claude",
            &[
                "send", "question", "--to", "codex", "--id=-x", "--body", "!",
            ],
            "",
            1,
        ),
        (
            "claude",
            &["send", "question", "--to", "nobody", "--body", "?"],
            "",
            7,
        ),
        ("codex", &["take"], "", 0),
        ("codex", &["take"], "", 0),
        (
            "codex",
            &["feedback", "86", "--findings", "-"],
            "findings:\n- {severity: P2, title: x}\n",
            7,
        ),
        ("codex", &["feedback", "86", "--findings", "-"], FINDINGS, 0),
        (
            "claude",
            &[
                "send",
                "review_addressed",
                "--pr",
                "86",
                "--commit-sha",
                "abc1234",
            ],
            "",
            7,
        ),
        (
            "claude",
            &[
                "send",
                "review_addressed",
                "--pr",
                "86",
                "--commit-sha",
                "abc1234",
                "--changes-summary",
                "so",
            ],
            "",
            0,
        ),
        ("claude", REQUEST, "", 0),
        ("codex", &["lgtm", "86", "--action", "F-1-001=veto"], "", 8),
        (
            "codex",
            &["feedback", "86", "--action", "F-1-001=escalate"],
            "",
            0,
        ),
    ];
    for (agent, args, input, exit) in steps {
        let told = answer(&fed(
            command(&mailroom, agent, &[args, &["--json"][..]].concat()),
            input,
        ));
        let found = told["error"]["exit"].as_i64().unwrap_or(0);
        assert_eq!(found, *exit, "{args:?}: {told}");
        let follow = |agent: &str, answer: &Value| {
            for run in runs(answer) {
                try_it(&mailroom, agent, &run);
            }
        };
        follow(agent, &told);
    }
    look_around(&mailroom);
    drop(daemon);
}

#[test]
fn a_review_is_held_by_waiting_for_verdicts_without_putting_anything_away() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let _daemon = mailroom.serve();
    let verdict = ["wait", "--for", "verdict", "--pr", "86", "--timeout", "0"];
    assert_eq!(ask(&mailroom, "claude", REQUEST)["ok"], true);
    assert_eq!(ask(&mailroom, "claude", REQUEST)["error"]["exit"], 7);
    // The refusal is in the inbox, and the reviewer has to move, so there is no verdict yet.
    let none = ask(&mailroom, "claude", &verdict);
    assert_eq!(none["error"]["exit"], 4, "{none}");
    assert_eq!(runs(&none), ["settled wait --for verdict --pr 86"]);

    let given = [
        "feedback",
        "86",
        "--findings",
        "-",
        "--id",
        "fb-1",
        "--json",
    ];
    assert_eq!(
        answer(&fed(command(&mailroom, "codex", &given), FINDINGS))["ok"],
        true
    );
    let came = ask(&mailroom, "claude", &verdict);
    assert_eq!(came["data"]["messages"][0]["id"], "fb-1");

    let addressed = [
        "send",
        "review_addressed",
        "--pr",
        "86",
        "--commit-sha",
        "abc1234",
        "--changes-summary",
        "so",
    ];
    assert_eq!(ask(&mailroom, "claude", &addressed)["ok"], true);
    assert_eq!(ask(&mailroom, "claude", REQUEST)["ok"], true);
    let none = ask(&mailroom, "claude", &verdict);
    assert_eq!(
        none["error"]["exit"], 4,
        "the verdict of the round before is none on this one: {none}"
    );

    assert_eq!(
        ask(&mailroom, "codex", &["lgtm", "86", "--id", "ok-1"])["ok"],
        true
    );
    let came = ask(&mailroom, "claude", &verdict);
    let ids: Vec<&Value> = came["data"]["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|it| &it["id"])
        .collect();
    assert_eq!(ids, ["ok-1"]);
}

#[test]
fn a_refusal_that_leaves_its_sender_to_move_ends_the_wait_for_a_verdict() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let [request, ..] = seed::review();
    let wrong = request.text.replace("  branch:", "  brunch:");
    assert_ne!(wrong, request.text);
    mailroom.post("claude", "wrong.yaml", &wrong);
    mailroom.once();
    let came = ask(
        &mailroom,
        "claude",
        &["wait", "--for", "verdict", "--pr", "86", "--timeout", "0"],
    );
    assert_eq!(came["data"]["messages"][0]["from"], "settled", "{came}");
}

#[test]
fn what_was_answered_is_put_away_by_the_command_that_comes_next() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let _daemon = mailroom.serve();
    ask(&mailroom, "claude", &[REQUEST, &["--id", "req-1"]].concat());
    ask(&mailroom, "codex", &["take"]);
    let given = [
        "feedback",
        "86",
        "--findings",
        "-",
        "--id",
        "fb-1",
        "--json",
    ];
    let told = answer(&fed(command(&mailroom, "codex", &given), FINDINGS));
    assert_eq!(
        told["next"],
        json!([{ "run": "settled done req-1", "why": "already answered" }])
    );
    // An agent that was killed before it read the answer runs the command again.
    let again = answer(&fed(command(&mailroom, "codex", &given), FINDINGS));
    assert_eq!(
        (&again["data"]["again"], &again["data"]["outcome"]),
        (&json!(true), &json!("accepted"))
    );
    assert_eq!(again["alerts"][0]["code"], "not_compared");
    let other = ["lgtm", "86", "--id", "fb-1", "--json"];
    assert_eq!(
        answer(&fed(command(&mailroom, "codex", &other), ""))["error"]["exit"],
        3
    );
    let addressed = [
        "reply",
        "fb-1",
        "--commit-sha",
        "abc1234",
        "--body",
        "released",
    ];
    let told = ask(&mailroom, "claude", &addressed);
    let next = "settled send review_request --to codex --pr 86 --branch b --declared-head abc1234";
    assert_eq!(runs(&told), [next, "settled done fb-1"]);
    ask(&mailroom, "claude", &["done", "fb-1"]);
    ask(&mailroom, "codex", &["done", "req-1"]);
    assert_eq!(
        ask(&mailroom, "codex", &["robot", "triage"])["data"]["inbox"]["taken"],
        0
    );
}

#[test]
fn the_review_that_a_message_moved_is_shown_also_where_two_repositories_have_its_number() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let _daemon = mailroom.serve();
    for repo in ["ours/here", "ours/there"] {
        let told = ask(&mailroom, "claude", &[REQUEST, &["--repo", repo]].concat());
        let review = format!("{repo}#86 claude -> codex");
        assert_eq!(told["data"]["review"]["review"], review, "{told}");
    }
    let given = [
        "feedback",
        "86",
        "--repo",
        "ours/there",
        "--findings",
        "-",
        "--json",
    ];
    let told = answer(&fed(command(&mailroom, "codex", &given), FINDINGS));
    let moved = &told["data"]["review"];
    assert_eq!(
        (&moved["review"], &moved["phase"]),
        (&json!("ours/there#86 claude -> codex"), &json!("fixing")),
        "{told}"
    );
}

#[test]
fn a_usage_error_is_told_whole_and_only_to_a_hook_as_no_failure() {
    let mailroom = Mailroom::new(&["claude"]);
    let told = ask(&mailroom, "claude", &["wait", "--for", "reply"]);
    let message = told["error"]["message"].as_str().expect("a message");
    assert!(message.contains("--id <ID>"), "{message}");
    assert_eq!(runs(&told), ["settled wait --help"]);
    for (args, exit) in [
        (&["send", "nope", "--subject", "hook"][..], 2),
        (&["hook", "install", "nope"], 2),
        (&["hook", "turn-end", "--for", "nope"], 0),
        (&["hook", "turn-begin"], 0),
    ] {
        let output = fed(command(&mailroom, "claude", args), "");
        assert_eq!(
            output.status.code(),
            Some(exit),
            "{args:?}: {}",
            said(&output)
        );
    }
}

#[test]
fn a_block_is_kept_in_files_of_any_line_end_and_never_in_one_that_was_not_read_whole() {
    let mailroom = Mailroom::new(&["claude"]);
    let keep = |file: &Path, more: &[&str]| {
        let args = [&["agents-md", file.to_str().expect("text")], more].concat();
        fed(command(&mailroom, "claude", &args), "").status.code()
    };
    let around = mailroom.root().parent().expect("a directory around it");
    let (windows, large) = (around.join("windows.md"), around.join("large.md"));
    write(&windows, "# Rules\r\n");
    assert_eq!(keep(&windows, &[]), Some(0));
    assert_eq!(
        read(&windows).matches('\n').count(),
        read(&windows).matches("\r\n").count()
    );
    assert_eq!(keep(&windows, &["--check"]), Some(0));
    let long = "x".repeat(5 * 1024 * 1024);
    write(&large, &long);
    assert_eq!(keep(&large, &[]), Some(1));
    assert!(read(&large) == long, "the file was cut");
}

#[test]
fn what_files_and_messages_are_called_moves_no_cursor() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let message = |from: &str| seed::note("question", "same", from, "codex", "?");
    mailroom.put("agents/codex/inbox/a\u{1b}[2Jb.yaml", &message("claude"));
    mailroom.put("agents/codex/inbox/c\u{1b}[2Jd.yaml", &message("other"));
    mailroom.put(
        "agents/codex/inbox/e\u{1b}[2J.yaml",
        "id: \"\\e[2J\"\nfrom: claude\n",
    );
    for args in [
        &["done", "same"][..],
        &["show", "a\u{1b}[2Jb.yaml"],
        &["take", "a\u{1b}[2Jb.yaml"],
        &["take", "a\u{1b}[2Jb.yaml"],
        &["done", "a\u{1b}[2Jb.yaml"],
        &["take", "e\u{1b}[2J.yaml"],
        &["inbox"],
        &[],
        &["hook", "turn-end"],
        &["done", "\u{1b}[2J"],
    ] {
        let output = fed(command(&mailroom, "codex", args), "");
        assert!(
            !said(&output).contains('\u{1b}'),
            "{args:?}: {:?}",
            said(&output)
        );
    }
    assert!(names(mailroom.agent("codex", "archive")).len() <= 2);
}

#[test]
fn a_message_written_by_hand_is_named_until_it_is_accepted() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let said_by = |args: &[&str]| said(&fed(command(&mailroom, "claude", args), ""));
    let [request, ..] = seed::review();
    let wrong = request.text.replace("  branch:", "  brunch:");
    assert_ne!(wrong, request.text);
    mailroom.post("claude", "m.yaml", &wrong);
    mailroom.post("claude", "half.yaml.tmp", "id: a");

    // No daemon serves: the answer shows the mistake with its position, and the correction waits for a daemon.
    let home = said_by(&[]);
    for words in [
        "your outbox, not judged yet:",
        "agents/claude/outbox/m.yaml:",
        "fix: rename `brunch` to `branch`",
        "half.yaml.tmp: the daemon reads only .yaml, .yml and .json",
        "note: 1 message in your outbox waits for it",
    ] {
        assert!(home.contains(words), "no {words:?}: {home}");
    }
    let asked = ask(&mailroom, "claude", &["next"]);
    let outbox = "mailroom/agents/claude/outbox";
    let validate = format!("validate-message {outbox}/m.yaml");
    let rename = format!("mv {outbox}/half.yaml.tmp {outbox}/half.yaml");
    assert_eq!(runs(&asked), [validate, rename.clone()], "{asked}");
    assert_eq!(asked["data"]["outbox"].as_array().map(Vec::len), Some(2));
    let triage = fed(command(&mailroom, "claude", &["robot", "triage"]), "");
    assert_eq!(triage.status.code(), Some(6), "{}", said(&triage));

    // It is refused: first the notice has to be read, then the refused message is named until it is corrected.
    mailroom.once();
    let asked = ask(&mailroom, "claude", &["next"]);
    assert!(
        runs(&asked)[0].starts_with("settled show settled-"),
        "{asked}"
    );
    assert_eq!(asked["data"]["refused"].as_array().map(Vec::len), Some(0));
    let notice = asked["data"]["inbox"]["messages"][0]["id"].as_str();
    let notice = notice.expect("an id").to_owned();
    assert!(said_by(&["done", &notice]).contains("settled dead-letter show m.yaml"));
    let home = said_by(&[]);
    assert!(
        home.contains("refused, and not corrected:\n  m.yaml: body_field_missing: "),
        "{home}"
    );
    let asked = ask(&mailroom, "claude", &["next"]);
    assert_eq!(
        runs(&asked),
        ["settled dead-letter show m.yaml", &rename],
        "{asked}"
    );

    mailroom.post("claude", "m.yaml", &request.text);
    let asked = ask(&mailroom, "claude", &["next"]);
    assert_eq!(runs(&asked)[0], "settled serve --once", "{asked}");
    mailroom.once();
    let asked = ask(&mailroom, "claude", &["next"]);
    assert_eq!(
        asked["data"]["refused"].as_array().map(Vec::len),
        Some(0),
        "{asked}"
    );
    assert_eq!(runs(&asked), [rename, "settled wait".to_owned()], "{asked}");
}
