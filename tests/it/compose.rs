//! Writing as an agent with its commands: a whole review with nothing else, the answers to refusals, the same message
//! again, two at the same time, and what real `oacp` says of the results.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said, settled, yaml};
use settled_tests::{golden, ledger, list, names, peer, read, wait, write};

const AGENTS: [&str; 2] = ["claude", "codex"];

fn command(mailroom: &Mailroom, agent: &str, args: &[&str]) -> Command {
    let mut command = settled();
    command
        .args(args)
        .args(["--agent", agent])
        .env("SETTLED_ROOT", mailroom.root())
        .env("COLUMNS", "100");
    command.current_dir(mailroom.root().parent().expect("it is in a directory"));
    command
}

fn run(mailroom: &Mailroom, agent: &str, args: &[&str]) -> Output {
    command(mailroom, agent, args)
        .output()
        .expect("settled can be run")
}

/// Like [`run`], with a text on standard input.
fn fed(mailroom: &Mailroom, agent: &str, args: &[&str], text: &str) -> Output {
    let mut command = command(mailroom, agent, args);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("settled can be run");
    let mut input = child.stdin.take().expect("it was piped");
    // It may end before it has read everything; the assertions look at its output.
    let _ = input.write_all(text.as_bytes());
    drop(input);
    child.wait_with_output().expect("it is our child")
}

/// Fails unless the command ended with this code; returns its output.
fn ended(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{}", said(output));
    let text = if code == 0 {
        &output.stdout
    } else {
        &output.stderr
    };
    String::from_utf8(text.clone()).expect("we print UTF-8")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

/// The text without the root.
fn steady(text: &str, mailroom: &Mailroom) -> String {
    text.replace(&mailroom.root().display().to_string(), "ROOT")
}

fn request(mailroom: &Mailroom, id: &str) -> Output {
    let args = [
        "send",
        "review_request",
        "--to",
        "codex",
        "--pr",
        "86",
        "--branch",
        "fix/login",
        "--id",
        id,
    ];
    fed(
        mailroom,
        "claude",
        &[&args[..], &["--body-file", "-"]].concat(),
        "It's \"quoted\": $HOME\n\n- and long\n",
    )
}

const FINDINGS: &str = "\
findings:
- {severity: P1, title: the lock is never released, file: src/lock.rs, line: 40}
- {severity: P1, title: the port is not checked, file: src/port.rs, line: 7}
- {severity: P2, blocking: true, title: errors are swallowed, file: src/log.rs}
";

#[test]
fn a_whole_review_is_held_with_these_commands_alone() {
    let mailroom = Mailroom::new(&AGENTS);
    let _daemon = mailroom.serve();
    golden::check(
        "send.txt",
        &steady(&ended(&request(&mailroom, "req-1"), 0), &mailroom),
    );
    let sent = read(mailroom.agent("claude", "sent").join("req-1.yaml"));
    assert!(
        sent.contains("It's \"quoted\": $HOME") && sent.contains("- and long"),
        "{sent}"
    );

    let brief = ended(&run(&mailroom, "codex", &["brief"]), 0);
    assert!(
        brief.starts_with("#86 claude -> codex: claude asks for round 1, the first of 2\n"),
        "{brief}"
    );
    let feedback = [
        "feedback",
        "86",
        "--findings",
        "-",
        "--id",
        "fb-1",
        "--turns",
        "3",
        "--model",
        "m",
    ];
    golden::check(
        "feedback.txt",
        &ended(&fed(&mailroom, "codex", &feedback, FINDINGS), 0),
    );
    let packet = yaml(&mailroom.root().join("packets/findings/86_codex_r1.yaml"));
    assert_eq!(packet["findings"][2]["id"], "F-1-003");
    let message = read(mailroom.agent("codex", "sent").join("fb-1.yaml"));
    assert!(
        message.contains("blocking_count: 3") && message.contains("turns: 3"),
        "{message}"
    );

    // The author reports two of the three; the third needs an action.
    let addressed = [
        "reply",
        "fb-1",
        "--commit-sha",
        "abc1234",
        "--body-file",
        "-",
        "--id",
        "ad-1",
    ];
    let named = ["--addressed-finding-ids", "F-1-001", "F-1-002"];
    let output = fed(
        &mailroom,
        "claude",
        &[&addressed[..], &named].concat(),
        "Both locks.\n",
    );
    assert!(
        ended(&output, 0).contains("addressed, round 1; claude moves"),
        "{}",
        said(&output)
    );
    ended(&request(&mailroom, "req-2"), 0);

    let brief = ended(&run(&mailroom, "codex", &["brief", "86"]), 0);
    let brief: String = brief
        .lines()
        .filter(|line| !line.contains(" by 20"))
        .map(|line| format!("{line}\n"))
        .collect();
    golden::check("brief.txt", &brief);
    let nothing = run(
        &mailroom,
        "codex",
        &["feedback", "86", "--findings", "-", "--json"],
    );
    assert_eq!(
        nothing.status.code(),
        Some(7),
        "an empty standard input is not a list of findings: {}",
        said(&nothing)
    );
    let open = fed(
        &mailroom,
        "codex",
        &["feedback", "86", "--findings", "-"],
        "findings: []\n",
    );
    golden::check("feedback-gaps.txt", &ended(&open, 7));
    let illegal = run(
        &mailroom,
        "codex",
        &["feedback", "86", "--action", "F-1-003=reply", "--json"],
    );
    assert_eq!(
        json(&illegal)["error"]["code"],
        "action_illegal",
        "the last round takes no reply: {}",
        said(&illegal)
    );
    let held = run(
        &mailroom,
        "codex",
        &["lgtm", "86", "--action", "F-1-003=escalate"],
    );
    golden::check("lgtm-gate.txt", &ended(&held, 8));
    let silent = fed(
        &mailroom,
        "codex",
        &["feedback", "86", "--findings", "-", "--json"],
        "findings: []\n",
    );
    golden::check(
        "feedback-gaps-json.txt",
        &String::from_utf8_lossy(&silent.stdout),
    );
    let brief = json(&run(&mailroom, "codex", &["brief", "--json"]));
    let keys: Vec<_> = brief["data"]
        .as_object()
        .expect("a brief")
        .keys()
        .map(String::as_str)
        .collect();
    golden::check("brief-json-keys.txt", &(keys.join("\n") + "\n"));
    assert_eq!(
        names(mailroom.agent("codex", "dead_letter")),
        [""; 0],
        "none of these cost an attempt"
    );

    // A wrong message of the same reviewer costs an attempt, and the report says how many are left.
    let wrong = "findings:\n- {id: F-9, severity: P3, status: open, title: the port is not checked, file: src/port.rs, line: 7}\n\
                 - {id: F-1-003, severity: P1, status: fixed, title: errors are swallowed, file: src/log.rs}\n";
    let outside = mailroom
        .root()
        .parent()
        .expect("a directory")
        .join("wrong.yaml");
    write(&outside, wrong);
    let args = [
        "send",
        "review_feedback",
        "--pr",
        "86",
        "--findings-packet",
        "wrong.yaml",
        "--id",
        "fb-2",
    ];
    let refused = run(&mailroom, "codex", &args);
    golden::check("send-refused.txt", &steady(&ended(&refused, 7), &mailroom));
    let escalate = [
        "feedback",
        "86",
        "--action",
        "F-1-003=escalate",
        "--id",
        "fb-2",
    ];
    let silent = ended(&run(&mailroom, "codex", &escalate), 0);
    golden::check("feedback-silent.txt", &silent);
    assert_eq!(
        mailroom.status()["reviews"][0]["threads"]["F-1-001"],
        "resolved"
    );
    let none = run(&mailroom, "codex", &["brief"]);
    golden::check("brief-none.txt", &ended(&none, 3));
    for message in AGENTS
        .iter()
        .flat_map(|agent| list(mailroom.agent(agent, "sent")))
    {
        peer::validates(&message).expect("oacp takes what settled send writes");
    }
}

#[test]
fn an_lgtm_approves_with_nits_and_what_was_run() {
    let mailroom = Mailroom::new(&AGENTS);
    let _daemon = mailroom.serve();
    ended(&request(&mailroom, "req-1"), 0);
    let lgtm = [
        "lgtm",
        "--head",
        "abc1234",
        "--ran",
        "cargo test=pass",
        "--nit",
        "rename the flag",
        "--id",
        "ok-1",
    ];
    let dry = ended(
        &run(&mailroom, "codex", &[&lgtm[..], &["--dry-run"]].concat()),
        0,
    );
    let steady: String = dry
        .lines()
        .filter(|line| !line.starts_with("created_at"))
        .map(|line| format!("{line}\n"))
        .collect();
    golden::check("lgtm-dry-run.txt", &steady);
    assert_eq!(
        names(mailroom.root().join("packets/findings")),
        [""; 0],
        "a dry run writes nothing"
    );
    let answer = json(&run(&mailroom, "codex", &[&lgtm[..], &["--json"]].concat()));
    assert_eq!(
        (
            &answer["data"]["outcome"],
            &answer["data"]["review"]["phase"]
        ),
        (&"accepted".into(), &"approved".into())
    );
    assert_eq!(
        mailroom.status()["reviews"][0]["approved_commit"],
        "abc1234"
    );
}

#[test]
fn a_response_answers_only_the_request_that_its_reviewer_has_read() {
    let mailroom = Mailroom::new(&AGENTS);
    let _daemon = mailroom.serve();
    let ask = |id: &str, head: &str, more: &[&str]| {
        let args = [
            "send",
            "review_request",
            "--to",
            "codex",
            "--pr",
            "86",
            "--branch",
            "b",
        ];
        let named = ["--diff-summary", "x", "--id", id, "--declared-head", head];
        ended(
            &run(&mailroom, "claude", &[&args[..], &named, more].concat()),
            0,
        );
    };
    let [first, second] = [&"a1".repeat(20), &"b2".repeat(20)];
    ask("r1", first, &[]);
    ended(&run(&mailroom, "codex", &["brief", "86"]), 0);
    ask("r2", second, &["--supersedes-message-id", "r1"]);
    for verdict in [
        &["lgtm", "86"][..],
        &["feedback", "86", "--action", "F-1=resolve"],
    ] {
        let refused = run(&mailroom, "codex", verdict);
        let told = ended(&refused, 7);
        assert!(
            told.contains(&format!(
                "you have read the request r1, and r2 for {second} is the open one now"
            )) && told.contains("brief 86"),
            "{told}"
        );
    }
    // A command that the daemon started for the first request answers no other, whatever it has read since.
    mailroom.put(
        "brief.yaml",
        "request: \"r1\"\npr: \"86\"\nauthor: claude\n",
    );
    ended(&run(&mailroom, "codex", &["brief", "86"]), 0);
    let mut of_run = command(&mailroom, "codex", &["lgtm", "86"]);
    of_run.env("SETTLED_BRIEF", mailroom.root().join("brief.yaml"));
    ended(&of_run.output().expect("settled can be run"), 7);
    let approved = ended(&run(&mailroom, "codex", &["lgtm", "86"]), 0);
    assert!(
        approved.contains(&format!("\n  approved commit: {second}\n")),
        "{approved}"
    );

    // An answered request is not remembered.
    ask("r3", first, &[]);
    ended(&run(&mailroom, "codex", &["lgtm", "86"]), 0);
}

#[test]
fn a_command_that_the_gate_requires_is_recorded_by_an_option() {
    let mailroom = Mailroom::new(&AGENTS);
    mailroom.put(
        "settled.toml",
        "[gate]\nvalidation_commands = [\"cargo test\"]\n",
    );
    let _daemon = mailroom.serve();
    ended(&request(&mailroom, "req-1"), 0);
    let lgtm = |ran: &[&str]| {
        let args = ["lgtm", "--head", "abc1234", "--nit", "rename the flag"];
        run(&mailroom, "codex", &[&args[..], ran].concat())
    };
    golden::check("lgtm-gate-commands.txt", &ended(&lgtm(&[]), 8));
    let failed = ended(&lgtm(&["--ran", "cargo test=fail"]), 8);
    assert!(failed.contains("did not pass"), "{failed}");
    ended(&lgtm(&["--ran", "cargo test =pass"]), 0);
    let refused = names(mailroom.agent("codex", "dead_letter"));
    assert_eq!(refused, [""; 0], "none of these cost an attempt");
}

#[test]
fn who_writes_into_a_review_that_is_over_is_told_so() {
    let mailroom = Mailroom::new(&AGENTS);
    let _daemon = mailroom.serve();
    ended(&request(&mailroom, "req-1"), 0);
    ended(
        &run(
            &mailroom,
            "codex",
            &["lgtm", "--head", "abc1234", "--id", "ok-1"],
        ),
        0,
    );
    let other = ["lgtm", "87", "--head", "abc1234", "--id", "ok-1"];
    let nothing = ended(&run(&mailroom, "codex", &other), 3);
    assert!(nothing.contains("no request is open"), "{nothing}");
    let late = ["send", "review_addressed", "--pr", "86", "--json"];
    let answer = json(&run(&mailroom, "claude", &late));
    assert_eq!(
        answer["error"],
        serde_json::json!({
            "exit": 7,
            "code": "review_closed",
            "message": "nothing was written:\n#86 claude -> codex: approved; the review is over",
        })
    );
}

#[test]
fn structured_output_by_the_schema_of_the_brief_is_sent_as_it_is() {
    let mailroom = Mailroom::new(&AGENTS);
    let _daemon = mailroom.serve();
    ended(&request(&mailroom, "req-1"), 0);
    let schema: Value =
        serde_json::from_str(&ended(&run(&mailroom, "codex", &["brief", "--schema"]), 0))
            .expect("JSON");
    let response = serde_json::json!({ "response": {
        "type": "review_feedback", "threads": {}, "commands_run": [],
        "examined": { "diff_digest": "", "declared": [] }, "escalation": "", "validated_head": "",
        "findings": [{
            "severity": "P1", "blocking": true, "title": "no lock", "file": "src/a.rs", "lines": "7", "category": "",
            "evidence": "", "recommendation": "", "introduced_by": "",
        }],
    } });
    assert!(
        jsonschema::validator_for(&schema)
            .expect("a schema")
            .is_valid(&response)
    );
    let text = response.to_string();
    let other = fed(&mailroom, "codex", &["lgtm", "--findings", "-"], &text);
    assert!(
        ended(&other, 2).contains("use `settled feedback`"),
        "{}",
        said(&other)
    );
    let sent = ended(
        &fed(&mailroom, "codex", &["feedback", "--findings", "-"], &text),
        0,
    );
    assert!(sent.contains("fixing, round 1; claude moves"), "{sent}");
}

#[test]
fn what_is_wrong_is_told_before_anything_is_written() {
    let mailroom = Mailroom::new(&AGENTS);
    let args = [
        "send",
        "review_request",
        "--to",
        "codex",
        "--pr",
        "86",
        "--max-rounds",
        "9",
        "--id",
        "x",
    ];
    let output = run(&mailroom, "claude", &args);
    golden::check("send-invalid.txt", &ended(&output, 7));
    let answer = json(&run(
        &mailroom,
        "claude",
        &[&args[..], &["--json"]].concat(),
    ));
    assert_eq!(
        (&answer["ok"], &answer["data"]["outcome"]),
        (&false.into(), &"invalid".into())
    );
    assert_eq!(answer["data"]["violations"][0]["field"], "body.branch");
    assert_eq!(names(mailroom.agent("claude", "outbox")), [""; 0]);
    let foreign = run(
        &mailroom,
        "claude",
        &[
            "send", "question", "--to", "codex", "--branch", "b", "--body", "?",
        ],
    );
    assert!(
        ended(&foreign, 2).contains("a question has no `branch`"),
        "{}",
        said(&foreign)
    );
    let nobody = run(&mailroom, "claude", &["send", "question", "--body", "?"]);
    assert!(
        ended(&nobody, 2).contains("use --to with one of codex"),
        "{}",
        said(&nobody)
    );
}

#[test]
fn the_same_id_again_says_what_became_of_the_first_and_writes_nothing() {
    let mailroom = Mailroom::new(&AGENTS);
    let question = |body: &str| {
        run(
            &mailroom,
            "claude",
            &[
                "send",
                "question",
                "--to",
                "codex",
                "--id",
                "q-1",
                "--body",
                body,
                "--timeout",
                "1",
            ],
        )
    };
    let waiting = ended(&question("why?"), 9);
    assert!(
        waiting.contains("no daemon serves. It is written and safe: do not send it again"),
        "{waiting}"
    );
    ended(&question("why?"), 9);
    assert_eq!(names(mailroom.agent("claude", "outbox")), ["q-1.yaml"]);
    let _daemon = mailroom.serve();
    wait::until("the verdict", || {
        mailroom.agent("claude", "sent").join("q-1.yaml").exists()
    });
    golden::check("send-again.txt", &ended(&question("why?"), 0));
    let other = run(
        &mailroom,
        "claude",
        &[
            "send", "question", "--to", "codex", "--id", "q-1", "--body", "how?", "--json",
        ],
    );
    assert_eq!(
        (other.status.code(), &json(&other)["error"]["code"]),
        (Some(1), &"id_collision".into())
    );
    let again = run(
        &mailroom,
        "claude",
        &[
            "send", "question", "--to", "codex", "--id", "q-1", "--body", "why?", "--json",
        ],
    );
    golden::check("send-json.txt", &steady(&ended(&again, 0), &mailroom));
    assert_eq!(mailroom.status()["accepted"], 1);

    // A refused message leaves its id free.
    let lost = run(
        &mailroom,
        "claude",
        &[
            "send", "question", "--to", "gemini", "--id", "q-2", "--body", "?", "--json",
        ],
    );
    assert_eq!(
        (lost.status.code(), &json(&lost)["error"]["code"]),
        (Some(7), &"unknown_recipient".into())
    );
    ended(
        &run(
            &mailroom,
            "claude",
            &[
                "send", "question", "--to", "codex", "--id", "q-2", "--body", "?",
            ],
        ),
        0,
    );
}

#[test]
fn two_sends_at_the_same_time_both_arrive_and_one_id_arrives_once() {
    let mailroom = Mailroom::new(&AGENTS);
    let _daemon = mailroom.serve();
    let spawn = |id: Option<&str>| {
        let args = ["send", "notification", "--to", "codex", "--body", "hello"];
        let id: Vec<&str> = id.into_iter().flat_map(|id| ["--id", id]).collect();
        let mut command = command(&mailroom, "claude", &[&args[..], &id].concat());
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("settled can be run")
    };
    let children = [
        spawn(None),
        spawn(None),
        spawn(Some("one")),
        spawn(Some("one")),
    ];
    for child in children {
        ended(&child.wait_with_output().expect("it is our child"), 0);
    }
    assert_eq!(mailroom.status()["accepted"], 3);
    let outbox = std::fs::read_dir(mailroom.agent("claude", "outbox"))
        .expect("an outbox")
        .count();
    assert_eq!(outbox, 0, "no temporary file is left");
}

#[test]
fn a_dry_run_says_what_the_daemon_would_say_and_costs_nothing() {
    let mailroom = Mailroom::new(&AGENTS);
    let ask = [
        "send",
        "review_request",
        "--to",
        "codex",
        "--pr",
        "86",
        "--branch",
        "b",
        "--head",
        "abc1234",
        "--body",
        "A parser.",
        "--dry-run",
    ];
    let dry = |agent: &str, args: &[&str], exit: i32| {
        let output = run(&mailroom, agent, &[args, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(exit), "{}", said(&output));
        json(&output)["data"]["forecast"].clone()
    };
    let opened = dry("claude", &ask, 0);
    assert_eq!(opened["verdict"], "accepted", "{opened}");
    assert_eq!(
        (
            &opened["review"]["phase"],
            &opened["review"]["round"],
            &opened["head"]
        ),
        (&"reviewing".into(), &1.into(), &"abc1234".into())
    );

    let _daemon = mailroom.serve();
    ended(&run(&mailroom, "claude", &ask[..ask.len() - 1]), 0);
    let records = ledger::records(mailroom.root()).len();
    let twice = dry("claude", &ask, 7);
    assert_eq!(
        twice["report"]["refused"], "request_already_open",
        "{twice}"
    );
    // Refusals that the command itself cannot foresee: three of these would end the review.
    let failed = [
        "send",
        "review_lgtm",
        "--pr",
        "86",
        "--quality-gate-result",
        "fail",
        "--dry-run",
    ];
    for _ in 0..4 {
        let failed = dry("codex", &failed, 8);
        assert_eq!(failed["verdict"], "refused");
        assert_eq!(
            failed["gate"],
            serde_json::json!(["contradiction"]),
            "{failed}"
        );
        assert_eq!(failed["report"]["attempts_left"], 2);
    }
    let approved = dry("codex", &["lgtm", "86", "--dry-run"], 0);
    assert_eq!(
        (&approved["head"], &approved["gate"]),
        (&"abc1234".into(), &serde_json::json!([])),
        "{approved}"
    );
    assert_eq!(ledger::records(mailroom.root()).len(), records);
    ended(&run(&mailroom, "codex", &["lgtm", "86"]), 0);
}

#[test]
fn a_packet_whose_message_was_not_written_is_used_by_the_next_try() {
    let mailroom = Mailroom::new(&AGENTS);
    let _daemon = mailroom.serve();
    ended(&request(&mailroom, "req-1"), 0);
    let dry = json(&fed(
        &mailroom,
        "codex",
        &["feedback", "--findings", "-", "--dry-run", "--json"],
        FINDINGS,
    ));
    let (path, text) = (&dry["data"]["packet"], &dry["data"]["packet_text"]);
    // A kill between the two files leaves the packet, and a message under a hidden name.
    mailroom.put(
        path.as_str().expect("a path"),
        text.as_str().expect("a text"),
    );
    write(
        mailroom.agent("codex", "outbox").join(".01jabc.tmp"),
        "id: half",
    );
    ended(
        &fed(
            &mailroom,
            "codex",
            &["feedback", "--findings", "-"],
            FINDINGS,
        ),
        0,
    );
    assert_eq!(
        names(mailroom.root().join("packets/findings")),
        ["86_codex_r1.yaml"]
    );
}

#[test]
fn a_reply_goes_back_with_its_parent_its_conversation_and_its_number() {
    let mailroom = Mailroom::new(&AGENTS);
    let _daemon = mailroom.serve();
    let args = [
        "send",
        "question",
        "--to",
        "codex",
        "--pr",
        "86",
        "--id",
        "q-1",
        "--body",
        "80?",
        "--subject",
        "Which port?",
    ];
    ended(
        &run(
            &mailroom,
            "claude",
            &[&args[..], &["--conversation-id", "conv-20260213-ports-1"]].concat(),
        ),
        0,
    );
    ended(
        &run(
            &mailroom,
            "codex",
            &["reply", "q-1", "--body", "8080", "--id", "a-1"],
        ),
        0,
    );
    let answer = read(mailroom.agent("claude", "inbox").join("a-1.yaml"));
    let answer: String = answer
        .lines()
        .filter(|line| !line.starts_with("created_at"))
        .map(|line| format!("{line}\n"))
        .collect();
    golden::check("reply-message.txt", &answer);
    let none = run(&mailroom, "codex", &["reply", "nothing", "--body", "x"]);
    assert!(
        ended(&none, 3).contains("codex has no message nothing"),
        "{}",
        said(&none)
    );
    ended(&request(&mailroom, "req-1"), 0);
    let request = run(&mailroom, "codex", &["reply", "req-1"]);
    assert!(
        ended(&request, 2).contains("`settled feedback 86` or `settled lgtm 86`"),
        "{}",
        said(&request)
    );
}
