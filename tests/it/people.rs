//! Questions of people: whose move it is, what is missing and whose command brings it, who has to act; and the live
//! screen. The texts are compared with `tests/golden/`; `UPDATE=1` rewrites them.

use std::fs::File;
use std::io::Write as _;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said, settled};
use settled_tests::{binaries, golden, ledger, seed, wait};

fn text(output: &Output, exit: i32) -> String {
    assert_eq!(output.status.code(), Some(exit), "{}", said(output));
    let stream = if output.stdout.is_empty() {
        &output.stderr
    } else {
        &output.stdout
    };
    String::from_utf8(stream.clone()).expect("we print UTF-8")
}

/// The text without the parts that differ between runs: the root, instants, ages, sizes.
fn steady(text: &str, mailroom: &Mailroom) -> String {
    let text = text.replace(&mailroom.root().display().to_string(), "ROOT");
    let mut steady = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let is_instant =
            |word: &str| word.starts_with("202") && word.ends_with('Z') && word.contains('T');
        let said: Vec<&str> = words
            .iter()
            .enumerate()
            .map(|(n, word)| match *word {
                word if is_instant(word) => "INSTANT",
                word if word.strip_suffix(',').is_some_and(is_instant) => "INSTANT,",
                word if word.parse::<u32>().is_ok() && words.get(n + 1) == Some(&"s") => "N",
                word => word,
            })
            .collect();
        let line = said.join(" ");
        let line = if line.starts_with("ledger: ") {
            "ledger: …"
        } else {
            line.trim_end()
        };
        steady += &format!("{line}\n");
    }
    steady
}

/// A mailroom of claude and codex with the packet of the first round.
fn mailroom() -> Mailroom {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    seed::lay_packet(mailroom.root());
    mailroom
}

/// Posts the first `count` messages of the review and judges each before the next.
fn after(count: usize) -> Mailroom {
    let mailroom = mailroom();
    for post in seed::review().iter().take(count) {
        mailroom.post(post.from, post.file, &post.text);
        assert!(mailroom.once().status.success());
    }
    mailroom
}

/// A refused report of claude's beside a review that waits for the correct one.
fn after_a_refusal() -> Mailroom {
    let mailroom = after(2);
    let addressed = seed::review()[2].text.replace("round: 1", "round: 7");
    mailroom.post("claude", "addressed 1.yaml", &addressed);
    assert_eq!(mailroom.once().status.code(), Some(7));
    mailroom
}

fn escalated() -> Mailroom {
    let mailroom = after(1);
    assert!(
        mailroom
            .run(&["turn", "86", "--count", "8"])
            .status
            .success()
    );
    mailroom
}

fn approved_commit(mailroom: &Mailroom) -> String {
    mailroom.status()["reviews"][0]["approved_commit"]
        .as_str()
        .expect("an approval")
        .to_owned()
}

/// Compares `why 86` for everything that can be missing.
#[test]
fn why_names_the_one_missing_thing_in_every_phase() {
    let mut all = String::new();
    let mut ask = |case: &str, mailroom: &Mailroom, exit| {
        let said = text(&mailroom.run(&["why", "86"]), exit);
        all += &format!("# {case}\n{}\n", steady(&said, mailroom));
    };
    let nothing = mailroom();
    ask("no review", &nothing, 3);
    nothing.post("claude", "request-1.yaml", &seed::review()[0].text);
    ask("its request waits to be judged", &nothing, 3);
    let reviewing = after(1);
    ask("reviewing, not taken", &reviewing, 0);
    assert!(reviewing.run(&["take", "--pr", "86"]).status.success());
    ask("reviewing, taken", &reviewing, 0);
    reviewing.post("codex", "feedback-1.yaml", &seed::review()[1].text);
    ask("its answer waits to be judged", &reviewing, 0);
    ask("fixing", &after(2), 0);
    ask("fixing, the report was refused", &after_a_refusal(), 0);
    ask("addressed", &after(3), 0);
    ask("the last round", &after(4), 0);
    let approved = after(5);
    ask("approved", &approved, 0);
    assert!(
        approved
            .run(&["pr", "synchronize", "86", "--head", "0dd5eed"])
            .status
            .success()
    );
    ask("approved, stale", &approved, 0);
    let escalated = escalated();
    ask("escalated", &escalated, 0);
    let reopened =
        escalated.at_terminal(&["review", "reopen", "86", "--by", "ann"], "it was cut off");
    assert!(reopened.status.success(), "{}", said(&reopened));
    ask("awaiting", &escalated, 0);
    let held = after(2);
    for thread in ["F-001", "F-002"] {
        assert!(
            held.at_terminal(&["thread", "hold", "86", thread, "--by", "ann"], "mine")
                .status
                .success()
        );
        ask(&format!("{thread} is held"), &held, 0);
    }
    let closed = after(1);
    assert!(closed.run(&["pr", "merged", "86"]).status.success());
    ask("closed", &closed, 0);
    golden::check("why.txt", &all);
}

#[test]
fn why_advises_no_lgtm_where_only_a_person_approves() {
    let mailroom = after(1);
    mailroom.put("settled.toml", "[gate]\nhuman_paths = [\"ci/\"]\n");
    let why = mailroom.json(&["why", "86"])["data"]["reviews"][0].take();
    let gate = why["gate"][0].as_str().expect("a clause");
    assert!(gate.contains("does not say which files change"), "{why}");
    let fixes = why["fixes"].to_string();
    assert!(
        fixes.contains("settled review approve 86") && !fixes.contains("settled lgtm"),
        "{fixes}"
    );
}

#[test]
fn why_as_json_names_who_moves_and_commands_that_run_as_they_stand() {
    let mailroom = after_a_refusal();
    let answer = mailroom.json(&["why", "86"]);
    let why = &answer["data"]["reviews"][0];
    assert_eq!(
        (&why["kind"], &why["actor"]),
        (&"correction".into(), &"claude".into())
    );
    let keys: Vec<_> = why
        .as_object()
        .expect("a review")
        .keys()
        .map(String::as_str)
        .collect();
    golden::check("why-json-keys.txt", &(keys.join("\n") + "\n"));
    let run = answer["next"][0]["run"].as_str().expect("a command");
    assert!(
        run.contains("'addressed 1.yaml'") && run.ends_with("--agent claude"),
        "{run}"
    );

    let mailroom = after(2);
    let answer = mailroom.json(&["why", "86"]);
    assert_eq!(answer["data"]["reviews"][0]["kind"], "report");
    assert_eq!(
        answer["next"],
        Value::Array(Vec::new()),
        "only the author knows the commit"
    );
    assert_eq!(
        answer["data"]["reviews"][0]["fixes"][0]["fill"],
        serde_json::json!(["SHA", "TEXT"])
    );
    assert_eq!(mailroom.json(&["why", "87"])["error"]["exit"], 3);
    assert_eq!(
        mailroom.json(&["why", "86", "--reviewer", "gemini"])["error"]["exit"],
        3
    );
}

#[test]
fn a_corrected_message_is_missed_no_more() {
    let mailroom = after_a_refusal();
    assert_eq!(mailroom.status()["dead_letters"][0]["count"], 1);
    let addressed = &seed::review()[2];
    mailroom.post("claude", addressed.file, &addressed.text);
    assert!(mailroom.once().status.success());
    assert_eq!(mailroom.status()["dead_letters"], Value::Null);
    assert_eq!(
        mailroom.json(&["why", "86"])["data"]["reviews"][0]["kind"],
        "request"
    );

    let mailroom = after_a_refusal();
    let dead = mailroom
        .agent("claude", "dead_letter")
        .join("addressed 1.yaml");
    std::fs::remove_file(dead).expect("the sender takes it away");
    assert_eq!(mailroom.status()["dead_letters"], Value::Null);
}

#[test]
fn threads_tell_what_may_be_done_now_and_by_what_it_came_there() {
    let mailroom = after(4);
    golden::check(
        "threads.txt",
        &steady(&text(&mailroom.run(&["threads", "86"]), 0), &mailroom),
    );
    let answer = mailroom.json(&["threads", "86"]);
    let thread = &answer["data"]["reviews"][0]["threads"][0];
    let keys: Vec<_> = thread
        .as_object()
        .expect("a thread")
        .keys()
        .map(String::as_str)
        .collect();
    golden::check("threads-json-keys.txt", &(keys.join("\n") + "\n"));
    assert_eq!(
        thread["legal"]["seeks_change"],
        serde_json::json!(["resolve", "veto", "escalate"])
    );
    assert_eq!(thread["person"][0]["actor"], "person");

    let settled = after(5);
    let held = after(2);
    assert!(
        held.at_terminal(&["thread", "hold", "86", "F-002", "--by", "ann"], "mine")
            .status
            .success()
    );
    let history = |mailroom: &Mailroom, id: &str| {
        let answer = mailroom.json(&["threads", "86"]);
        let threads = answer["data"]["reviews"][0]["threads"]
            .as_array()
            .expect("threads")
            .clone();
        let thread = threads
            .into_iter()
            .find(|thread| thread["id"] == id)
            .expect("the thread");
        let acts = thread["history"].as_array().expect("a history");
        acts.iter()
            .map(|act| act["act"].as_str().expect("a word").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(history(&settled, "F-001"), ["opened", "resolve"]);
    assert_eq!(history(&settled, "F-003"), ["opened", "defer"]);
    assert_eq!(history(&held, "F-002"), ["opened", "hold"]);
    assert_eq!(mailroom.run(&["threads", "87"]).status.code(), Some(3));
}

#[test]
fn problems_are_told_worst_first_each_with_its_command() {
    let mailroom = after(5);
    assert_eq!(text(&mailroom.run(&["problems"]), 0), "no problems\n");
    assert_eq!(
        mailroom.json(&["problems"])["data"]["problems"],
        serde_json::json!([])
    );

    assert!(
        mailroom
            .run(&["pr", "synchronize", "86", "--head", "0dd5eed"])
            .status
            .success()
    );
    mailroom.post(
        "claude",
        "lost.yaml",
        &seed::note("question", "q-1", "claude", "nobody", "?"),
    );
    mailroom.once();
    let other = seed::review()[0]
        .text
        .replace("claude-001", "claude-100")
        .replace("86", "87");
    mailroom.post("claude", "other.yaml", &other);
    mailroom.once();
    assert!(
        mailroom
            .run(&["turn", "87", "--count", "8"])
            .status
            .success()
    );
    mailroom.post(
        "codex",
        "late.yaml",
        &seed::note("question", "q-2", "codex", "claude", "?"),
    );

    golden::check(
        "problems.txt",
        &steady(&text(&mailroom.run(&["problems"]), 6), &mailroom),
    );
    let answer = mailroom.json(&["problems"]);
    assert_eq!(answer["ok"], true);
    let kinds: Vec<_> = answer["data"]["problems"]
        .as_array()
        .expect("problems")
        .iter()
        .collect();
    let kinds: Vec<_> = kinds
        .iter()
        .filter_map(|problem| problem["kind"].as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            "mail_unjudged",
            "review_escalated",
            "approval_stale",
            "dead_letter"
        ]
    );
    // The status says the same, with the first commands.
    golden::check(
        "status-troubled.txt",
        &steady(&text(&mailroom.run(&["status"]), 0), &mailroom),
    );
    let alerts = mailroom.json(&["status"])["alerts"].take();
    let codes: Vec<_> = alerts
        .as_array()
        .expect("alerts")
        .iter()
        .filter_map(|a| a["code"].as_str())
        .collect();
    assert_eq!(codes, kinds);
}

#[test]
fn status_fits_the_columns_it_is_given() {
    let long = format!("a{}", "x".repeat(60));
    let mailroom = Mailroom::new(&[&long, "codex"]);
    let request = seed::review()[0]
        .text
        .replace("from: claude", &format!("from: {long}"));
    mailroom.post(&long, "request-1.yaml", &request);
    assert!(mailroom.once().status.success());
    for columns in ["60", "80", "100"] {
        let mut status = settled();
        let output = status
            .arg("status")
            .arg(mailroom.root())
            .env("COLUMNS", columns)
            .output()
            .expect("settled");
        let said = text(&output, 0);
        let widest = said
            .lines()
            .map(|line| line.chars().count())
            .max()
            .unwrap_or(0);
        assert!(widest <= columns.parse().expect("a number"), "{said}");
        assert!(said.contains('…'), "{said}");
    }
}

#[test]
fn a_damaged_ledger_sends_whoever_looks_to_the_doctor() {
    let mailroom = after(2);
    let [segment] = &settled_tests::list(mailroom.root().join(".settled/ledger"))[..] else {
        panic!("one segment")
    };
    let damaged = settled_tests::read(segment).replacen("claude", "clauxe", 1);
    settled_tests::write(segment, &damaged);
    for args in [
        &["status"][..],
        &["why", "86"],
        &["threads", "86"],
        &["problems"],
    ] {
        let said = text(&mailroom.run(args), 1);
        assert!(
            said.contains("is damaged at") && said.contains("try: settled doctor --root "),
            "{said}"
        );
    }
}

#[test]
fn looking_changes_nothing_whether_a_daemon_serves_or_none() {
    let mailroom = after_a_refusal();
    let look = |mailroom: &Mailroom| {
        for (args, exit) in [
            (&["status"][..], 0),
            (&["why", "86"], 0),
            (&["threads", "86"], 0),
            (&["problems"], 6),
            (&["watch", "--once"], 0),
        ] {
            text(&mailroom.run(args), exit);
        }
    };
    let before = ledger::records(mailroom.root());
    look(&mailroom);
    let daemon = mailroom.serve();
    look(&mailroom);
    assert!(daemon.interrupt().success());
    assert_eq!(ledger::records(mailroom.root()), before);
}

/// A running `settled watch` that writes into a file; dropping the value kills it.
struct Watching {
    child: Child,
    out: std::path::PathBuf,
    _directory: tempfile::TempDir,
}

impl Watching {
    fn start(mut command: Command) -> Self {
        let directory = settled_tests::scratch();
        let out = directory.path().join("out");
        let child = command
            .stdin(Stdio::piped())
            .stdout(File::create(&out).expect("a file"))
            .spawn();
        Self {
            child: child.expect("it can be run"),
            out,
            _directory: directory,
        }
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.out).expect("its output")).into_owned()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // It has ended, or a test failed and it must not outlive the test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn watch_in_a_pipe_prints_a_document_a_line_at_each_change() {
    let mailroom = mailroom();
    let _daemon = mailroom.serve();
    let mut watch = settled();
    watch.arg("watch").arg("--root").arg(mailroom.root());
    let mut watching = Watching::start(watch);
    wait::until("the first line", || watching.said().lines().count() == 1);
    let post = &seed::review()[0];
    mailroom.post(post.from, post.file, &post.text);
    let phase = |line: &str| {
        let answer: Value = serde_json::from_str(line).unwrap_or_default();
        answer["data"]["status"]["reviews"][0]["phase"].as_str() == Some("reviewing")
    };
    wait::until("the review", || {
        watching.said().lines().last().is_some_and(phase)
    });
    let said = watching.said();
    assert!(!said.contains('\u{1b}'), "{said}");
    let last: Value =
        serde_json::from_str(said.lines().last().unwrap_or_default()).expect("a document");
    assert_eq!(last["data"]["decisions"][0]["verdict"], "accepted");
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        lines.windows(2).all(|pair| pair[0] != pair[1]),
        "a line is a change: {said}"
    );
    kill_process(Pid::from_child(&watching.child), Signal::INT).expect("it still runs");
    assert!(watching.child.wait().expect("it is our child").success());
}

#[test]
fn plain_watch_at_a_terminal_draws_anew_and_leaves_the_screen_as_it_was() {
    let mailroom = mailroom();
    let _daemon = mailroom.serve();
    // A shell in between would die of the key that the program catches.
    let line = format!(
        "exec '{}' watch --plain --root '{}'",
        binaries::settled().display(),
        mailroom.root().display()
    );
    let mut script = Command::new("script");
    script
        .args(["-qec", &line, "/dev/null"])
        .env_remove("SETTLED_ROOT")
        .env("TERM", "xterm");
    let mut watching = Watching::start(script);
    wait::until("the first frame", || {
        watching.said().contains("no review yet")
    });
    let post = &seed::review()[0];
    mailroom.post(post.from, post.file, &post.text);
    wait::until("the review", || {
        watching.said().contains("#86 claude -> codex  reviewing")
    });
    assert!(
        watching.said().starts_with("\u{1b}[?1049h"),
        "{:?}",
        watching.said()
    );
    // Ctrl-C.
    let mut keyboard = watching.child.stdin.take().expect("it was piped");
    keyboard
        .write_all(b"\x03")
        .and_then(|()| keyboard.flush())
        .expect("the terminal takes a key");
    let ended = watching.child.wait().expect("it is our child");
    assert!(ended.success(), "{ended}");
    assert!(
        watching
            .said()
            .trim_end()
            .ends_with("\u{1b}[?25h\u{1b}[?1049l"),
        "{:?}",
        watching.said()
    );
}

#[test]
fn watch_once_draws_one_frame_of_status_and_decisions() {
    let mailroom = after(2);
    golden::check(
        "watch.txt",
        &steady(&text(&mailroom.run(&["watch", "--once"]), 0), &mailroom),
    );
    let output = mailroom.run(&["watch", "--once", "--json"]);
    assert_eq!(text(&output, 0).lines().count(), 1);
    let answer = mailroom.json(&["watch", "--once"]);
    assert_eq!(
        answer["data"]["decisions"].as_array().map(Vec::len),
        Some(2)
    );
    assert_eq!(
        Mailroom::absent().run(&["watch", "--once"]).status.code(),
        Some(3)
    );
}

#[test]
fn an_approval_that_holds_misses_nothing_and_is_checked_by_its_commit() {
    let mailroom = after(5);
    let why = mailroom.json(&["why", "86"])["data"]["reviews"][0].take();
    assert_eq!(
        (&why["kind"], &why["missing"]),
        (&"nothing".into(), &Value::Null)
    );
    let run = why["fixes"][0]["run"].as_str().expect("a command");
    assert!(
        run.contains(&format!("--head {}", approved_commit(&mailroom))),
        "{run}"
    );
}

#[test]
fn no_file_name_steers_the_terminal_of_whoever_looks() {
    let mailroom = after(2);
    let trap = "\u{1b}[2J\u{202e}.yaml";
    let addressed = seed::review()[2].text.replace("round: 1", "round: 7");
    mailroom.post("claude", trap, &addressed);
    mailroom.once();
    mailroom.post(
        "claude",
        "-x.yaml",
        &addressed.replace("claude-002", "claude-003"),
    );
    mailroom.once();
    mailroom.post("codex", trap, &seed::review()[4].text);
    for args in [
        &["status"][..],
        &["why", "86"],
        &["threads", "86"],
        &["problems"],
        &["watch", "--once"],
    ] {
        let output = mailroom.run(args);
        let said = said(&output);
        assert!(
            !said.contains(['\u{1b}', '\u{202e}']) && !said.contains("show -x"),
            "{args:?}: {said}"
        );
    }
    assert_eq!(mailroom.status()["dead_letters"][0]["count"], 2);
}
