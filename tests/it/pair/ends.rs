//! The ends of a pair without reviews: by a signal, by giving up, by a used-up budget; never by silence.

use super::*;

#[test]
fn done_and_pass_complete_a_pair_and_every_step_is_in_the_ledger_first() {
    let room = Room::new();
    let held = room.held("done", "agree", &[]);
    assert_eq!((held.code, held.word()), (Some(0), "complete"), "{held:?}");
    let expected = [
        "submitted opened",
        "working started",
        "working began",
        "reviewing ended",
        "reviewing began",
        "completed ended",
    ];
    assert_eq!(room.steps(), expected);
    let told: Vec<&str> = held
        .lines
        .iter()
        .filter_map(|line| line["data"]["step"].as_str())
        .collect();
    assert_eq!(
        told,
        [
            "opened", "started", "began", "ended", "began", "ended", "over"
        ]
    );
    assert_eq!((room.starts("author"), room.starts("agree")), (1, 1));
    // Each run needs its own control group: with a shared one, ending one run would end the other.
    let pair = room.mailroom.root().join(".settled/pairs").join(held.id());
    for run in ["001", "002"] {
        let processes = settled_tests::read(pair.join(run).join("process.json"));
        let processes: serde_json::Value = serde_json::from_str(&processes).expect("JSON");
        let group = processes["group"].as_str();
        assert!(
            group.is_none_or(|group| group.contains(held.id())),
            "{group:?}"
        );
    }
    // It cannot be resumed.
    let again = Held::of(
        &room
            .command(&["--resume", held.id()])
            .output()
            .expect("settled can be run"),
    );
    assert_eq!(again.code, Some(3), "{again:?}");
}

#[test]
fn without_a_reviewer_done_is_the_end_and_nothing_else() {
    let room = Room::new();
    assert_eq!(room.held("done", "", &[]).word(), "complete");
    let held = room.held("pass", "", &["--max-iterations", "3"]);
    assert_eq!(
        (held.code, held.word()),
        (Some(1), "iteration_limit"),
        "{held:?}"
    );
    assert_eq!(room.starts("author"), 1 + 3);
}

#[test]
fn whatever_the_two_say_a_pair_ends_within_its_bound() {
    // Author, reviewer, the end, and the most starts of each.
    let table = [
        ("pass", "agree", "complete", 1, 1),
        ("never", "agree", "complete", 1, 1),
        ("once", "agree", "complete", 2, 1),
        ("fail", "agree", "gave_up", 1, 0),
        ("crash", "agree", "crashed", 2, 0),
        ("done", "prose", "iteration_limit", 2, 2),
        ("done", "done", "iteration_limit", 2, 2),
        ("done", "fail", "gave_up", 1, 1),
        ("done", "crash", "crashed", 1, 2),
        ("done", "code", "crashed", 1, 2),
        ("done", "flood", "crashed", 1, 2),
        ("done", "endless", "crashed", 1, 2),
        ("done", "nonsense", "crashed", 1, 2),
    ];
    std::thread::scope(|scope| {
        for (author, reviewer, word, authors, reviewers) in table {
            scope.spawn(move || {
                let room = Room::new();
                // Only the endless one may reach its bound, however slow the machine is.
                let seconds = if reviewer == "endless" { "3" } else { "60" };
                let held = room.held(
                    author,
                    reviewer,
                    &["--max-iterations", "2", "--run-seconds", seconds],
                );
                assert_eq!(held.word(), word, "{author} and {reviewer}: {held:?}");
                let code = if word == "complete" { 0 } else { 1 };
                assert_eq!(held.code, Some(code), "{author} and {reviewer}: {held:?}");
                assert_eq!(
                    room.starts("author"),
                    authors,
                    "{author} and {reviewer}: {held:?}"
                );
                assert_eq!(
                    room.starts(reviewer),
                    reviewers,
                    "{author} and {reviewer}: {held:?}"
                );
            });
        }
    });
}

#[test]
fn a_command_that_hears_no_signal_is_ended_with_all_it_started() {
    let room = Room::new();
    // Enough time for the shell to ignore signals first.
    let held = room.held("done", "silent", &["--run-seconds", "3"]);
    assert_eq!(held.word(), "crashed", "{held:?}");
    assert_eq!(held.reasons(), ["it used up its seconds"; 2]);
    let notes = settled_tests::read(room.place.join("notes"));
    for line in notes.lines() {
        let pid = line.rsplit(' ').next().expect("a number");
        assert!(!runs(pid), "{line} still runs");
    }
}

#[test]
fn seconds_and_turns_of_all_runs_are_counted_together() {
    let room = Room::new();
    let held = room.held(
        "done",
        "endless",
        &["--run-seconds", "60", "--seconds", "1"],
    );
    assert_eq!(
        (held.code, held.word()),
        (Some(1), "budget_spent"),
        "{held:?}"
    );
    assert_eq!(held.end()["seconds_left"], 0);
    let room = Room::new();
    let held = room.held(
        "done",
        "turns",
        &["--reviewer-output", "claude", "--turns", "5"],
    );
    assert_eq!(held.word(), "budget_spent", "{held:?}");
    assert_eq!(
        (held.end()["turns_left"].as_u64(), room.starts("turns")),
        (Some(0), 1)
    );
    assert_eq!(held.reasons(), ["it used up its turns"]);
}

#[test]
fn the_words_are_those_that_were_given() {
    let room = Room::new();
    let held = room.held(
        "done",
        "agree",
        &["--pass", "MERGE IT", "--max-iterations", "1"],
    );
    assert_eq!(
        held.word(),
        "iteration_limit",
        "PASS is a word like any other: {held:?}"
    );
    write(
        room.mailroom.root().join("settled.toml"),
        "[runner]\ndone = \"READY\"\n",
    );
    assert_eq!(
        room.held("done", "", &["--max-iterations", "1"]).word(),
        "iteration_limit"
    );
    assert_eq!(
        room.held("done", "", &["--max-iterations", "1", "--done", "DONE"])
            .word(),
        "complete"
    );
}

#[test]
fn a_folder_nobody_can_work_in_starts_nothing() {
    let room = Room::new();
    let held = room.held("done", "agree", &["--workdir", "not/there"]);
    assert_eq!(
        (held.code, held.word()),
        (Some(1), "not_started"),
        "{held:?}"
    );
    assert_eq!(room.starts("author"), 0);
    assert_eq!(room.steps(), ["submitted opened", "failed not_started"]);
}

#[test]
fn mail_is_drained_into_the_turn_of_its_reader_and_handed_over_once() {
    let room = Room::new();
    for n in 1..=3 {
        let id = format!("note-{n}");
        let text =
            settled_tests::seed::note("notification", &id, "gemini", "claude", "look at this");
        room.mailroom.post("gemini", &format!("{id}.yaml"), &text);
    }
    let held = room.held("mail", "prose", &["--max-iterations", "2"]);
    let said: Vec<&str> = held
        .lines
        .iter()
        .filter_map(|line| line["data"]["used"]["said"].as_str())
        .collect();
    assert!(
        said[0].contains("mail: 3\n") && said[2].contains("mail: 0\n"),
        "{said:?}"
    );
    let taken = std::fs::read_dir(room.mailroom.agent("claude", "inbox").join("taken"))
        .expect("it is there");
    assert_eq!(taken.count(), 3);
}

#[test]
fn an_agent_that_is_run_otherwise_is_not_run_twice() {
    let room = Room::new();
    write(
        room.mailroom.root().join("settled.toml"),
        "[agents.codex]\ncommand = [\"true\"]\n",
    );
    let held = room.held("done", "agree", &[]);
    assert_eq!(held.code, Some(2), "{held:?}");
    assert!(
        held.said.contains("codex has a command in settled.toml"),
        "{held:?}"
    );
    assert_eq!(room.steps(), [""; 0]);
    let same = room.command(&[
        "--author",
        "claude",
        "--author-command",
        "true",
        "--task",
        "task.md",
        "--reviewer",
        "claude",
        "--reviewer-command",
        "true",
    ]);
    let held = Held::of(&{ same }.output().expect("settled can be run"));
    assert!(
        held.code == Some(1) && held.said.contains("author and reviewer are the same agent"),
        "{held:?}"
    );
}

#[test]
fn what_was_said_is_read_again_with_its_time_and_steers_no_terminal() {
    let room = Room::new();
    let escape = "printf 'an \\033[31mescape\\n'; echo DONE";
    let options = [
        "--author",
        "claude",
        "--author-command",
        escape,
        "--task",
        "task.md",
    ];
    let held = Held::of(&room.command(&options).output().expect("settled can be run"));
    assert_eq!(held.word(), "complete", "{held:?}");
    let shown = room
        .command(&["--transcript"])
        .output()
        .expect("settled can be run");
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        text.contains("    | Let there be light.\n") && text.contains("claude: done"),
        "{text}"
    );
    assert!(
        text.contains("    | an \\u{1b}[31mescape\n") && !text.contains('\u{1b}'),
        "{text}"
    );
    let missing = room
        .command(&["--transcript", "pair-0"])
        .output()
        .expect("settled can be run");
    assert_eq!(missing.status.code(), Some(3));
}

#[test]
fn what_a_pair_uses_counts_in_the_budgets_of_the_day_and_it_goes_on_with_another_one() {
    let room = Room::new();
    let done = room.place.join("done.json");
    write(
        &done,
        r#"{"type":"result","subtype":"success","is_error":false,"result":"DONE","total_cost_usd":0.75,"usage":{"input_tokens":900,"output_tokens":100}}"#,
    );
    let config = room.mailroom.root().join("settled.toml");
    let before = settled_tests::read(&config);
    write(
        &config,
        &format!("{before}\n[budget]\nper_day = {{ usd = 0.5 }}\n"),
    );
    let author = format!("cat '{}'", done.display());
    let reviewer = room.fake("reviewer.sh", "agree");
    let pair = room
        .command(&["--author", "claude", "--author-command", &author])
        .args(["--author-output", "claude", "--task", "task.md"])
        .args(["--reviewer", "codex", "--reviewer-command", &reviewer])
        .output();
    let held = Held::of(&pair.expect("settled can be run"));
    assert_eq!(
        (held.code, held.word()),
        (Some(9), "interrupted"),
        "{held:?}"
    );
    let why = held.reasons().concat();
    assert!(why.starts_with("codex is not started before "), "{why}");
    assert!(
        why.ends_with("budget.per_day is used up: 1000 tokens, 0.75 USD today"),
        "{why}"
    );
    let used = held
        .lines
        .iter()
        .find_map(|line| line["data"].get("used"))
        .expect("the author's run");
    assert_eq!(
        (&used["tokens"], &used["cost_usd"]),
        (&1000.into(), &"0.75".into())
    );
    assert_eq!(room.starts("agree"), 0);

    write(
        &config,
        &format!("{before}\n[budget]\nper_day = {{ usd = 50 }}\n"),
    );
    let resumed = Held::of(&room.command(&["--resume"]).output().expect("it runs"));
    assert_eq!(
        (resumed.code, resumed.word()),
        (Some(0), "complete"),
        "{resumed:?}"
    );
    assert_eq!((resumed.id(), room.starts("agree")), (held.id(), 1));
}
