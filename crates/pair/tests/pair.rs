//! Tests pairs of shell commands on a real workspace: whose turn it is, what counts as a signal, and why a pair stops.
//!
//! The driver starts its own program as the keeper of each command and as a daemon. Here that program is this file: it
//! is the keeper, and serves if a test asks for it; otherwise every order is processed without a daemon.

#![allow(
    clippy::print_stdout,
    reason = "it has a main of its own, which reports its tests"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use daemon::serve::{Until, serve};
use pair::{Driver, PairError, Progress, Role, Stop, history, view};
use review::{
    PairFailure, PairMember, PairSetup, PairStanding, PairStep, Phase, RunState, Signal,
    SignalWords,
};
use runner::folder::Folder;
use runner::{keeper, launch};
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
            }
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

/// A workspace, and a folder where each run of a command leaves its letter.
struct Table {
    directory: TempDir,
}

fn config(root: &Path) -> Config {
    Config::load(root).expect("a config")
}

/// The end of a pair.
struct Over {
    standing: PairStanding,
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
        let standing = driver.drive().expect("it goes on");
        drop(driver);
        let (id, past) = history::of(&root, None).expect("a ledger").expect("a pair");
        let transcript = view::transcript(&id, &past).text();
        Over {
            standing,
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
        let pair = self.standing.pair;
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
    ] {
        let table = Table::new();
        let mut setup = table.setup(author, Some(reviewer));
        setup.iterations = 1;
        let over = table.hold(setup);
        assert_eq!(
            (over.standing.pair.failure(), table.turns().as_str()),
            (Some(PairFailure::IterationLimit), "ar"),
            "{author}, {reviewer}: {:?}",
            over.steps
        );
        let none = format!("ended {}", Signal::None.word());
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
            over.standing.pair.run(),
            RunState::Failed,
            "{author}, {reviewer}"
        );
        (
            over.standing.pair.failure().expect("a reason"),
            table.turns(),
        )
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
}
