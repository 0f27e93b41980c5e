//! Tests pairs of shell commands on a real workspace: whose turn it is, what counts as a signal, and why a pair stops.
//!
//! The driver starts its own program as the keeper of each command and as a daemon. Here that program is this file: it
//! is the keeper, and serves if a test asks for it; otherwise every order is processed without a daemon.

#![allow(
    clippy::print_stdout,
    reason = "it has a main of its own, which reports its tests"
)]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use daemon::serve::{Until, serve};
use daemon::submit_order;
use pair::{Driver, PairError, Progress, Role, Stop, history, view};
use review::{
    Event, PairFailure, PairId, PairMember, PairReport, PairSetup, PairStatus, PairStep, Phase,
    RunState, SignalWords,
};
use runner::folder::Folder;
use runner::{keeper, launch};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use workspace::config::Config;
use workspace::directory;
use workspace::index::LedgerIndex;

macro_rules! tests {
    ($($name:ident)*) => { [$((stringify!($name), $name as fn())),*] };
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some(launch::KEEPER) => {
            keeper::keep(&Folder::at(Path::new(&args[1]))).expect("a run is kept");
            return ExitCode::SUCCESS;
        }
        Some("serve") => {
            let root = Path::new(args.last().expect("a workspace"));
            if root.with_file_name(SLOW_DAEMON).exists() {
                std::thread::sleep(Duration::from_millis(300));
                serve(root, Until::EndOfInput, |_| ()).expect("it serves");
                std::fs::write(root.with_file_name(SERVED), "").expect("a file");
            }
            return ExitCode::SUCCESS;
        }
        Some(DRIVE) => {
            drive(Path::new(&args[1]), &args[2]);
            return ExitCode::SUCCESS;
        }
        Some(_) | None => {}
    }
    let tests = tests! {
        author_and_reviewer_take_turns_until_it_passes
        without_a_reviewer_the_authors_word_is_the_end
        nearly_a_word_runs_the_same_side_once_more
        nearly_a_word_twice_is_no_word
        a_word_amid_prose_or_of_the_other_side_is_none
        every_end_names_its_reason
        a_pass_leaves_a_request_that_lay_there
        a_pass_approves_the_pull_request_that_is_named
        a_pair_that_is_over_cannot_be_resumed
        a_pair_runs_only_agents_that_nobody_else_runs
        the_signal_words_of_a_pair_cannot_be_taken_for_each_other
        a_running_command_is_shown_with_its_turns_if_they_are_counted
        where_no_daemon_serves_one_serves_for_as_long_as_the_pair_goes_on
        each_side_reads_what_the_other_said_and_its_mail
        a_message_counts_as_its_senders_word
        a_message_about_another_review_is_no_word
        a_run_may_take_what_is_left_of_the_time
        a_command_that_used_up_its_seconds_or_its_turns_is_told_from_one_that_crashed
        a_pair_without_budget_for_the_day_is_interrupted
        one_process_resumes_an_interrupted_pair_by_its_name
        a_run_whose_driver_was_killed_is_charged_with_at_most_the_time_of_a_run
        a_pair_that_is_refused_leaves_no_folder
        a_signal_interrupts_a_pair_in_order
    };
    if args.first().is_some_and(|word| word == ONE) {
        let (_, test) = tests
            .iter()
            .find(|(name, _)| *name == args[1])
            .expect("a test");
        test();
        return ExitCode::SUCCESS;
    }
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let is_asked_for = |name: &str| filters.iter().any(|filter| name.contains(*filter));
    let names = tests.iter().map(|(name, _)| *name);
    let names = names.filter(|name| filters.is_empty() || is_asked_for(name));
    match all_hold(names.collect()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// The argument before the name of the one test to run.
const ONE: &str = "one-test";

/// Runs each test in a process of its own, because a process drives one pair: when several tests shared one, they took
/// each other's commands for crashed. As many run at once as in cargo's harness, because they mostly wait.
fn all_hold(tests: Vec<&str>) -> bool {
    let threads = std::env::var("RUST_TEST_THREADS").ok();
    let threads: usize = threads.and_then(|count| count.parse().ok()).unwrap_or(4);
    let itself = std::env::current_exe().expect("this program has a path");
    let left = Mutex::new(tests.into_iter());
    let hold = AtomicBool::new(true);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = left.lock().expect("nobody panics with it").next();
                    let Some(name) = next else { break };
                    let output = Command::new(&itself).args([ONE, name]).output();
                    let output = output.expect("this program can be run");
                    let is_ok = output.status.success();
                    println!("test {name} ... {}", if is_ok { "ok" } else { "FAILED" });
                    if !is_ok {
                        println!("{}", String::from_utf8_lossy(&output.stderr));
                    }
                    hold.fetch_and(is_ok, Ordering::Relaxed);
                }
            });
        }
    });
    hold.into_inner()
}

/// A file beside the workspace that makes the daemon serve, but start slowly.
const SLOW_DAEMON: &str = "slow_daemon";

/// A file beside the workspace that the daemon leaves when it ends in order.
const SERVED: &str = "served";

/// The argument before a workspace and a set-up: drives such a pair until a signal ends it.
const DRIVE: &str = "drive";

/// Says when the first command begins.
fn drive(root: &Path, setup: &str) {
    let setup = serde_json::from_str(setup).expect("a set-up");
    let stop = Stop::listen().expect("signals can be heard");
    let mut progress = |progress: &Progress<'_>| {
        if let Progress::Told(told) = progress {
            println!("{}", told.step.word());
        }
    };
    let mut driver = Driver::open(root, &config(root), setup, stop, &mut progress).expect("a pair");
    driver.drive().expect("it goes on");
}

/// A workspace, and a folder where each run of a command leaves its letter.
struct Table {
    directory: TempDir,
}

fn config(root: &Path) -> Config {
    Config::load(root).expect("a config")
}

/// The end of a pair.
struct Over {
    status: PairStatus,
    /// Every step in the ledger, such as `ended done`.
    steps: Vec<String>,
    transcript: String,
}

impl Table {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let agents = ["claude", "codex"].map(|name| name.parse().expect("a name"));
        directory::init(&directory.path().join("mailroom"), &agents).expect("a workspace");
        Self { directory }
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("mailroom")
    }

    fn setup(&self, author: &str, reviewer: Option<&str>) -> PairSetup {
        let member = |agent: &str, letter: &str, command: &str| PairMember {
            agent: agent.parse().expect("a name"),
            command: format!("printf {letter} >> turns; {command}"),
            output: "text".to_owned(),
        };
        PairSetup {
            author: member("claude", "a", author),
            reviewer: reviewer.map(|reviewer| member("codex", "r", reviewer)),
            workdir: self.directory.path().display().to_string(),
            task: "Let there be light.".to_owned(),
            pr: None,
            iterations: 3,
            run_seconds: 60,
            seconds: 600,
            turns: None,
            words: SignalWords::default(),
        }
    }

    fn hold(&self, setup: PairSetup) -> Over {
        let mut steps = Vec::new();
        let mut progress = |progress: &Progress<'_>| {
            if let Progress::Told(told) = progress {
                steps.push(if let PairStep::Ended { signal, .. } = told.step {
                    format!("ended {}", signal.word())
                } else {
                    told.step.word().to_owned()
                });
            }
        };
        let root = self.root();
        let mut driver = Driver::open(&root, &config(&root), setup, Stop::default(), &mut progress)
            .expect("a pair");
        let status = driver.drive().expect("it goes on");
        drop(driver);
        let (id, past) = history::of(&root, None).expect("a ledger").expect("a pair");
        let transcript = view::transcript(&id, &past).text();
        Over {
            status,
            steps,
            transcript,
        }
    }

    /// The letters of the commands that ran, in order.
    fn turns(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("turns")).unwrap_or_default()
    }

    fn phase(&self) -> String {
        let (index, _) = LedgerIndex::read(&self.root()).expect("a ledger");
        let mut reviews = index.state().reviews();
        let phase = reviews.next().map(|(_, review)| {
            if let Phase::Escalated(reason) = &review.phase {
                format!("escalated {reason}")
            } else {
                review.phase.word().to_owned()
            }
        });
        assert!(reviews.next().is_none());
        phase.unwrap_or_default()
    }

    /// Has the author request a review of pull request 86 before any pair.
    fn request(&self) {
        let example =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packets/valid/review_request.yaml");
        let outbox = self.root().join("agents/claude/outbox/request.yaml");
        std::fs::copy(example, outbox).expect("a request");
        daemon::serve::serve_once(&self.root()).expect("it is judged");
        assert_eq!(self.phase(), "reviewing");
    }
}

impl Over {
    fn stands(&self) -> (RunState, u8, Option<PairFailure>) {
        let pair = self.status.pair;
        (pair.run(), pair.iteration(), pair.failure())
    }
}

const COMPLETE: (RunState, u8, Option<PairFailure>) = (RunState::Complete, 1, None);

/// A shell command that prints `first` the first time and `then` from then on.
fn first_then(first: &str, then: &str) -> String {
    format!("if mkdir once 2> log; then echo '{first}'; else echo '{then}'; fi")
}

fn author_and_reviewer_take_turns_until_it_passes() {
    let table = Table::new();
    let reviewer = first_then("The light is too dim.", "PASS");
    let over = table.hold(table.setup("echo DONE", Some(&reviewer)));
    assert_eq!(over.stands(), (RunState::Complete, 2, None));
    assert_eq!(table.turns(), "arar");
    let turn = |signals: [&'static str; 2]| signals.map(|signal| ["began", signal]).concat();
    let steps = [
        vec!["opened", "started"],
        turn(["ended done", "ended none"]),
        turn(["ended done", "ended pass"]),
    ];
    assert_eq!(over.steps, steps.concat());
    for said in ["claude: done", "    | The light is too dim.", "codex: pass"] {
        assert!(over.transcript.contains(said), "{}", over.transcript);
    }
}

fn without_a_reviewer_the_authors_word_is_the_end() {
    let table = Table::new();
    let over = table.hold(table.setup(&first_then("not yet", "DONE"), None));
    assert_eq!(over.stands(), (RunState::Complete, 2, None));
    assert_eq!(table.turns(), "aa");
}

fn nearly_a_word_runs_the_same_side_once_more() {
    let note = r#"cat "$(dirname "$SETTLED_TASK")/reviewer.note"; "#;
    for (author, reviewer, turns) in [
        ("echo DONE", first_then("PASS.", "PASS"), "arr"),
        ("echo DONE", first_then("**pass**", "PASS"), "arr"),
        (
            first_then("Done!", "DONE").as_str(),
            "echo PASS".to_owned(),
            "aar",
        ),
    ] {
        let table = Table::new();
        let over = table.hold(table.setup(author, Some(&format!("{note}{reviewer}"))));
        assert_eq!(
            (over.stands(), table.turns()),
            (COMPLETE, turns.to_owned()),
            "{reviewer}"
        );
        assert!(
            over.steps.contains(&"ended near_miss".to_owned()),
            "{:?}",
            over.steps
        );
        let is_told = over.transcript.contains("nearly `PASS` or `FAIL`");
        assert_eq!(is_told, turns == "arr", "{}", over.transcript);
    }
}

fn nearly_a_word_twice_is_no_word() {
    let table = Table::new();
    let mut setup = table.setup("echo DONE", Some("echo PASS."));
    setup.iterations = 2;
    let over = table.hold(setup);
    assert_eq!(
        over.stands(),
        (RunState::Failed, 2, Some(PairFailure::IterationLimit))
    );
    assert_eq!(table.turns(), "arrarr", "it is told once a turn");
}

fn a_word_amid_prose_or_of_the_other_side_is_none() {
    for (author, reviewer) in [
        ("echo PASS", "echo DONE"),
        ("echo PASS.", "echo DONE."),
        ("echo 'I am DONE'", "echo 'I would say PASS'"),
        ("echo DONE; echo later", "echo PASS; echo but"),
        ("true", "echo PASSED"),
        ("echo DONE", "echo '{}'; echo PASS"),
    ] {
        let table = Table::new();
        let mut setup = table.setup(author, Some(reviewer));
        setup.iterations = 1;
        let over = table.hold(setup);
        assert_eq!(
            (over.status.pair.failure(), table.turns().as_str()),
            (Some(PairFailure::IterationLimit), "ar"),
            "{author}, {reviewer}: {:?}",
            over.steps
        );
        let none = format!("ended {}", review::Signal::None.word());
        assert!(
            !over.steps.contains(&"ended near_miss".to_owned()),
            "{:?}",
            over.steps
        );
        assert!(
            over.steps
                .last()
                .is_some_and(|step| *step == none || step == "ended done")
        );
    }
}

fn every_end_names_its_reason() {
    let of = |author: &str, reviewer: &str, change: fn(&mut PairSetup)| {
        let table = Table::new();
        let mut setup = table.setup(author, Some(reviewer));
        change(&mut setup);
        let over = table.hold(setup);
        assert_eq!(
            over.status.pair.run(),
            RunState::Failed,
            "{author}, {reviewer}"
        );
        (over.status.pair.failure().expect("a reason"), table.turns())
    };
    let asis = |_: &mut PairSetup| {};
    for (found, failure, turns) in [
        (of("echo FAIL", "echo PASS", asis), PairFailure::GaveUp, "a"),
        (
            of("echo DONE", "echo FAIL", asis),
            PairFailure::GaveUp,
            "ar",
        ),
        (
            of("echo DONE; exit 3", "echo PASS", asis),
            PairFailure::Crashed,
            "aa",
        ),
        (
            of("echo DONE", "echo PASS; kill -9 $$", asis),
            PairFailure::Crashed,
            "arr",
        ),
        (
            of("echo DONE", "echo no", asis),
            PairFailure::IterationLimit,
            "ararar",
        ),
        (
            of("sleep 1; echo DONE", "echo PASS", |setup| setup.seconds = 1),
            PairFailure::BudgetSpent,
            "a",
        ),
        (
            of("echo DONE", "echo PASS", |setup| {
                setup.workdir = "/nowhere".to_owned();
            }),
            PairFailure::NotStarted,
            "",
        ),
    ] {
        assert_eq!(found, (failure, turns.to_owned()));
    }
}

fn a_pass_leaves_a_request_that_lay_there() {
    let table = Table::new();
    table.request();
    let over = table.hold(table.setup("echo DONE", Some("ls \"$SETTLED_MAIL\"; echo PASS")));
    assert_eq!(over.stands(), COMPLETE);
    assert_eq!(table.phase(), "reviewing");
    assert!(!over.transcript.contains(".yaml"), "{}", over.transcript);
    let inbox = std::fs::read_dir(table.root().join("agents/codex/inbox")).expect("an inbox");
    let names: Vec<String> = inbox
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    assert!(names.contains(&"request.yaml".to_owned()), "{names:?}");
}

fn a_pass_approves_the_pull_request_that_is_named() {
    let table = Table::new();
    table.request();
    let mut setup = table.setup("echo DONE", Some("echo PASS"));
    setup.pr = Some("86".parse().expect("a number"));
    let over = table.hold(setup);
    assert_eq!(
        (over.stands(), table.phase().as_str()),
        (COMPLETE, "approved")
    );
    assert!(
        over.transcript.contains("codex: pass, sent run-pair-"),
        "{}",
        over.transcript
    );
    // A reviewer that gives up leaves the request to a person.
    let table = Table::new();
    table.request();
    let mut setup = table.setup("echo DONE", Some("echo FAIL"));
    setup.pr = Some("86".parse().expect("a number"));
    table.hold(setup);
    assert_eq!(table.phase(), "escalated invocation_failed");
}

fn a_pair_that_is_over_cannot_be_resumed() {
    let table = Table::new();
    table.hold(table.setup("echo DONE", Some("echo PASS")));
    let root = table.root();
    let (id, _) = history::of(&root, None).expect("a ledger").expect("a pair");
    let mut nobody = |_: &Progress<'_>| {};
    let again = Driver::resume(&root, Some(&id), Stop::default(), &mut nobody);
    assert!(matches!(again.err(), Some(PairError::Unknown(unknown)) if unknown == id));
    assert_eq!(table.turns(), "ar");
}

/// The reason that this set-up does not become a pair, in a workspace with this config.
fn refused(table: &Table, settings: &str, setup: PairSetup) -> String {
    let root = table.root();
    let config = Config::parse(settings, Path::new("settled.toml")).expect("a config");
    let mut nobody = |_: &Progress<'_>| {};
    let opened = Driver::open(&root, &config, setup, Stop::default(), &mut nobody);
    let why = opened.err().expect("it is not opened").to_string();
    assert!(history::of(&root, None).expect("a ledger").is_none());
    why
}

fn a_pair_runs_only_agents_that_nobody_else_runs() {
    let table = Table::new();
    let why = |section: &str| {
        let setup = table.setup("echo DONE", Some("echo PASS"));
        refused(&table, &format!("[agents.codex]\n{section}\n"), setup)
    };
    assert_eq!(
        why("command = [\"true\"]"),
        "codex has a command in settled.toml, and would be run twice"
    );
    assert_eq!(
        why("uid = 1234"),
        "codex has a user of its own, and the pair would run as another"
    );
}

fn the_signal_words_of_a_pair_cannot_be_taken_for_each_other() {
    let table = Table::new();
    let why = |done: &str| {
        let mut setup = table.setup("echo DONE", None);
        setup.words.done = done.to_owned();
        refused(&table, "", setup)
    };
    for padded in ["", " DONE", "DO\nNE"] {
        let expected = "a signal word must be one line without white space around it";
        assert_eq!(why(padded), expected, "{padded:?}");
    }
    assert_eq!(
        why("pass"),
        "two of the signal words are the same, expected three different ones"
    );
}

fn a_running_command_is_shown_with_its_turns_if_they_are_counted() {
    let works = |turns| view::works(Role::Author, Duration::from_secs(90), turns);
    assert_eq!(works(0), "author is working, 90 s");
    assert_eq!(works(1), "author is working, 90 s, 1 turns");
}

fn where_no_daemon_serves_one_serves_for_as_long_as_the_pair_goes_on() {
    let table = Table::new();
    let root = table.root();
    std::fs::write(root.with_file_name(SLOW_DAEMON), "").expect("a file");
    let mut served = Vec::new();
    let mut progress = |_: &Progress<'_>| served.push(spool::is_served(&root));
    let setup = table.setup("echo DONE", None);
    let mut driver =
        Driver::open(&root, &config(&root), setup, Stop::default(), &mut progress).expect("a pair");
    driver.drive().expect("it goes on");
    drop(driver);
    assert!(
        !served.is_empty() && served.iter().all(|is| *is == Some(true)),
        "the pair does not wait for its daemon: {served:?}"
    );
    assert_eq!(
        spool::is_served(&root),
        Some(false),
        "it ends with the pair"
    );
    assert!(root.with_file_name(SERVED).exists(), "it is not killed");
}

fn each_side_reads_what_the_other_said_and_its_mail() {
    let table = Table::new();
    let message = "id: m-1\nfrom: claude\nto: codex\ntype: message\n";
    let inbox = table.root().join("agents/codex/inbox");
    std::fs::write(inbox.join("m-1.yaml"), message).expect("a message");
    let reviewer = r#"cat "$(dirname "$SETTLED_TASK")/author.said" "$SETTLED_MAIL"/*; echo PASS"#;
    let over = table.hold(table.setup("echo The lamp is lit.; echo DONE", Some(reviewer)));
    assert_eq!(over.stands(), COMPLETE);
    let said = over
        .transcript
        .matches("    | The lamp is lit.\n    | DONE\n");
    assert_eq!(said.count(), 2, "{}", over.transcript);
    let mail = message.lines().map(|line| format!("    | {line}\n"));
    assert!(over.transcript.contains(&mail.collect::<String>()));
    assert!(!inbox.join("m-1.yaml").exists(), "it is taken");
}

/// A shell command that puts one of the repository's examples into an outbox.
fn send(table: &Table, agent: &str, example: &str) -> String {
    let packets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packets");
    let outbox = table.root().join(format!("agents/{agent}/outbox"));
    format!(
        "cp {0}/valid/{example}.yaml {1}/{example}.tmp && mv {1}/{example}.tmp {1}/{example}.yaml; ",
        packets.display(),
        outbox.display()
    )
}

fn a_message_counts_as_its_senders_word() {
    // A reviewer that sends its answer itself need not say anything.
    let table = Table::new();
    let author = send(&table, "claude", "review_request");
    let reviewer = send(&table, "codex", "review_lgtm");
    let over = table.hold(table.setup(&author, Some(&reviewer)));
    assert_eq!(
        (over.stands(), table.phase().as_str()),
        (COMPLETE, "approved"),
        "{}",
        over.transcript
    );
    let words = ["began", "ended done", "began", "ended pass"];
    assert_eq!(over.steps[2..], words);
    // A feedback is no approval, whatever is said beside it.
    let table = Table::new();
    let author = send(&table, "claude", "review_request");
    let packet = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packets/findings/20260213_review_loop_codex_r1.yaml");
    let packet = format!(
        "cp {} {}/packets/findings/; ",
        packet.display(),
        table.root().display()
    );
    let feedback = send(&table, "codex", "review_feedback");
    let mut setup = table.setup(&author, Some(&format!("{packet}{feedback}echo PASS")));
    setup.iterations = 1;
    let over = table.hold(setup);
    assert_eq!(
        (over.status.pair.failure(), table.phase().as_str()),
        (Some(PairFailure::IterationLimit), "fixing"),
        "{}",
        over.transcript
    );
    assert_eq!(over.steps[4..], ["began", "ended none"]);
}

fn a_message_about_another_review_is_no_word() {
    let table = Table::new();
    table.request();
    let reviewer = send(&table, "codex", "review_lgtm");
    let mut setup = table.setup("echo DONE", Some(&reviewer));
    setup.iterations = 1;
    let over = table.hold(setup);
    assert_eq!(
        (over.status.pair.failure(), table.phase().as_str()),
        (Some(PairFailure::IterationLimit), "approved"),
        "{}",
        over.transcript
    );
}

fn a_run_may_take_what_is_left_of_the_time() {
    for (run_seconds, seconds, expected) in [(60, 600, 60), (60, 20, 20)] {
        let table = Table::new();
        let mut setup = table.setup("echo DONE", None);
        (setup.run_seconds, setup.seconds) = (run_seconds, seconds);
        table.hold(setup);
        let run = only_pair(&table).join("001");
        let launch = Folder::at(&run).launch().expect("a run");
        assert_eq!(launch.seconds_max, expected);
    }
}

/// The folder of the only pair.
fn only_pair(table: &Table) -> PathBuf {
    let pairs = table.root().join(".settled/pairs");
    let mut entries = std::fs::read_dir(pairs).expect("a folder");
    let pair = entries.next().expect("a pair").expect("an entry").path();
    assert!(entries.next().is_none());
    pair
}

fn a_command_that_used_up_its_seconds_or_its_turns_is_told_from_one_that_crashed() {
    // A turn counts once another one follows.
    let turn = |id: &str| format!(r#"echo '{{"type":"assistant","message":{{"id":"{id}"}}}}'; "#);
    for (command, output, turns, told) in [
        (
            format!("{}{}sleep 20", turn("a"), turn("b")),
            "claude",
            Some(1),
            "claude: it used up its turns, ",
        ),
        (
            "sleep 20".to_owned(),
            "text",
            None,
            "claude: it used up its seconds, ",
        ),
    ] {
        let table = Table::new();
        let mut setup = table.setup(&command, None);
        output.clone_into(&mut setup.author.output);
        setup.turns = turns;
        if turns.is_none() {
            setup.seconds = 1;
        }
        let over = table.hold(setup);
        assert_eq!(
            over.status.pair.failure(),
            Some(PairFailure::BudgetSpent),
            "{}",
            over.transcript
        );
        assert!(over.transcript.contains(told), "{}", over.transcript);
    }
}

fn a_pair_without_budget_for_the_day_is_interrupted() {
    let table = Table::new();
    let config = "[budget]\nper_day = { tokens = 1 }\n";
    std::fs::write(table.root().join("settled.toml"), config).expect("a config");
    let spent = r#"echo '{"type":"turn.completed","usage":{"input_tokens":10}}'"#;
    let mut setup = table.setup(spent, None);
    "codex".clone_into(&mut setup.author.output);
    let over = table.hold(setup);
    assert_eq!(
        over.status.pair.failure(),
        Some(PairFailure::Interrupted),
        "{}",
        over.transcript
    );
    assert_eq!(table.turns(), "a");
    assert_eq!(over.steps[2..], ["began", "ended none", "interrupted"]);
    let told = "claude is not started before ";
    assert!(over.transcript.contains(told), "{}", over.transcript);
}

/// Opens a pair that `agent` alone works in, and leaves it before it starts.
fn left(table: &Table, agent: &str) -> PairId {
    let root = table.root();
    let mut setup = table.setup("echo DONE", None);
    setup.author.agent = agent.parse().expect("a name");
    let mut nobody = |_: &Progress<'_>| {};
    let driver =
        Driver::open(&root, &config(&root), setup, Stop::default(), &mut nobody).expect("a pair");
    let mut nobody = |_: &Progress<'_>| {};
    let busy = Driver::resume(&root, Some(driver.id()), Stop::default(), &mut nobody);
    assert!(busy.err().is_some_and(|error| error.is_busy()));
    driver.id().clone()
}

fn one_process_resumes_an_interrupted_pair_by_its_name() {
    let table = Table::new();
    let root = table.root();
    let [first, second] = ["claude", "codex"].map(|agent| left(&table, agent));
    let mut nobody = |_: &Progress<'_>| {};
    let several = Driver::resume(&root, None, Stop::default(), &mut nobody);
    let several = several.err().expect("one has to be named");
    assert!(!several.is_busy());
    assert!(
        matches!(&several, PairError::Several { count: 2, newest } if *newest == second),
        "{several}"
    );
    let mut nobody = |_: &Progress<'_>| {};
    let mut driver =
        Driver::resume(&root, Some(&first), Stop::default(), &mut nobody).expect("it is left");
    driver.drive().expect("it goes on");
    drop(driver);
    let steps = |id: Option<&PairId>| {
        let (id, past) = history::of(&root, id).expect("a ledger").expect("a pair");
        let steps = past.iter().map(|past| past.step.word());
        (id, steps.collect::<Vec<_>>())
    };
    let resumed = [
        "opened",
        "interrupted",
        "resumed",
        "started",
        "began",
        "ended",
    ];
    assert_eq!(steps(Some(&first)), (first, resumed.to_vec()));
    assert_eq!(steps(None), (second, vec!["opened"]));
}

fn a_run_whose_driver_was_killed_is_charged_with_at_most_the_time_of_a_run() {
    let table = Table::new();
    let root = table.root();
    let id = left(&table, "claude");
    for what in [PairStep::Started, PairStep::Began(1)] {
        let report = PairReport {
            pair: id.clone(),
            what,
        };
        submit_order::submit(&root, Event::Pair(report)).expect("a record");
    }
    // It began long ago.
    let ledger = root.join(".settled/ledger/00000000000000000001.jsonl");
    let text = std::fs::read_to_string(&ledger).expect("a ledger");
    let (before, after) = text.rsplit_once("\"began_at\":\"").expect("a beginning");
    let (_, after) = after.split_once('"').expect("its end");
    let text = format!("{before}\"began_at\":\"2026-01-01T00:00:00Z\"{after}");
    std::fs::write(&ledger, text).expect("a ledger");
    let folder = Folder::make_at(&only_pair(&table).join("001")).expect("a folder");
    std::fs::write(folder.path().join("stdout"), "half done\n").expect("a file");
    let mut nobody = |_: &Progress<'_>| {};
    drop(Driver::resume(&root, Some(&id), Stop::default(), &mut nobody).expect("it is left"));
    let (_, past) = history::of(&root, None).expect("a ledger").expect("a pair");
    let mut runs = past.iter().filter_map(|past| past.step.run());
    let run = runs.next().expect("the run that was cut off");
    assert_eq!((run.start, run.ms, &*run.said), (1, 60_000, "half done\n"));
}

fn a_pair_that_is_refused_leaves_no_folder() {
    let table = Table::new();
    let root = table.root();
    let mut setup = table.setup("echo DONE", None);
    setup.author.agent = "nobody".parse().expect("a name");
    let mut nobody = |_: &Progress<'_>| {};
    let opened = Driver::open(&root, &config(&root), setup, Stop::default(), &mut nobody);
    let error = opened.err().expect("it has no mailbox");
    assert!(matches!(error, PairError::Declined { .. }), "{error}");
    let pairs = std::fs::read_dir(root.join(".settled/pairs")).expect("a folder");
    assert_eq!(pairs.count(), 0);
}

/// Drives a pair in a process of its own, sends it these signals once its command begins, and returns the reason that
/// the ledger has for its end.
fn ended_by(ignored: &[&str], signals: &[Signal]) -> String {
    let table = Table::new();
    let root = table.root();
    let mut setup = table.setup("sleep 20", None);
    setup.seconds = 5;
    let setup = serde_json::to_string(&setup).expect("plain values are JSON");
    // Whoever runs the tests may ignore signals.
    let mut process = Command::new("env")
        .arg("--default-signal")
        .args(ignored)
        .arg(std::env::current_exe().expect("this program"))
        .args([DRIVE, &root.display().to_string(), &setup])
        .stdout(Stdio::piped())
        .spawn()
        .expect("`env` can be run");
    let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
    let mut lines = lines.map(|line| line.expect("text"));
    assert!(lines.any(|line| line == "began"), "no command began");
    for signal in signals {
        kill_process(Pid::from_child(&process), *signal).expect("it runs");
    }
    assert!(process.wait().expect("it is our child").success());
    let (_, past) = history::of(&root, None).expect("a ledger").expect("a pair");
    let last = past.last().expect("a step");
    let PairStep::Interrupted { why, run: Some(_) } = &last.step else {
        panic!("{:?}", last.step);
    };
    why.clone()
}

fn a_signal_interrupts_a_pair_in_order() {
    for (signal, why) in [
        (Signal::INT, "a person ended it with Ctrl-C"),
        (Signal::TERM, "SIGTERM ended it"),
        (Signal::HUP, "its terminal closed"),
    ] {
        assert_eq!(ended_by(&[], &[signal]), why);
    }
    // As under `nohup`.
    let ignored = ["--ignore-signal=HUP"];
    let why = ended_by(&ignored, &[Signal::HUP, Signal::TERM]);
    assert_eq!(why, "SIGTERM ended it");
}
