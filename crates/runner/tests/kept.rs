//! Tests runs with their keeper: what a command gets and what is known of it, and that nothing of it is left. The keeper
//! is a process of our own program, which here is this file.
//!
//! The tests run one after the other, because some of them cover all children of this process.

#![allow(
    clippy::print_stdout,
    reason = "it has a main of its own, which reports its tests"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use message_schema::id::{AgentName, CommitSha};
use runner::checkout::Checkout;
use runner::folder::{ExitReason, Folder, Launch, Processes, RunEnd};
use runner::launch::{self, KeeperNote, RunIdentity};
use runner::stream::OutputFormat;
use runner::tree::{self, Process};
use runner::validation::Validation;
use runner::{keeper, orphans};
use tempfile::TempDir;

macro_rules! tests {
    ($($name:ident)*) => { [$((stringify!($name), $name as fn())),*] };
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [word, folder, ..] = &args[..]
        && word == launch::KEEPER
    {
        keeper::keep(&Folder::at(Path::new(folder))).expect("a run is kept");
        return ExitCode::SUCCESS;
    }
    let tests = tests! {
        a_command_gets_its_surroundings_and_its_end_is_recorded
        what_cannot_be_started_names_the_reason
        progress_is_reported_while_the_command_runs
        nothing_that_a_command_left_running_outlives_its_run_in_a_control_group_or_without
        a_command_runs_in_a_control_group_of_its_own_where_one_can_be_made
        a_run_ends_with_everything_when_its_time_is_over_or_its_daemon_is_gone
        validation_sees_the_whole_commit_and_the_agent_what_is_not_left_out
        an_agent_waits_until_its_validation_is_recorded
        a_run_that_ends_during_its_validation_leaves_nothing_of_it
        an_orphan_is_found_by_its_name_and_by_its_number_in_the_same_boot
        a_stray_is_ended_and_no_keeper_and_nothing_of_our_own_session
    };
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let mut hold = true;
    for (name, test) in tests {
        if !filters.is_empty() && !filters.iter().any(|filter| name.contains(*filter)) {
            continue;
        }
        let is_ok = std::panic::catch_unwind(test).is_ok();
        println!("test {name} ... {}", if is_ok { "ok" } else { "FAILED" });
        hold &= is_ok;
    }
    match hold {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// The longest wait for anything; only a failure takes as long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A workspace with the folder of a run.
struct Run {
    place: TempDir,
    folder: Folder,
    name: String,
    launch: Launch,
}

impl Run {
    /// A run of this script of a shell.
    fn of(script: &str) -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let folder = Folder::make(place.path(), "run-1").expect("a folder");
        let launch = Launch {
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            workdir: place.path().canonicalize().expect("a path"),
            seconds_max: 600,
            ..Launch::default()
        };
        Self {
            place,
            folder,
            name: "run-1".to_owned(),
            launch,
        }
    }

    /// Runs it to its end; `hear` gets each note and the keeper's standard input. Returns the notes and the end.
    fn keep(
        &self,
        mut hear: impl FnMut(&KeeperNote, &mut Option<ChildStdin>),
    ) -> (Vec<String>, RunEnd) {
        let mut keeper = self.begin();
        let mut control = keeper.stdin.take();
        let (tell, told) = channel();
        let heard = keeper.stdout.take().expect("it was piped");
        launch::listen(heard, move |note| {
            let _ = tell.send(note);
        });
        let mut notes = Vec::new();
        loop {
            let note = told.recv_timeout(PATIENCE).expect("a note");
            hear(&note, &mut control);
            if matches!(note, KeeperNote::Silent) {
                break;
            }
            notes.push(format!("{note:?}"));
        }
        assert!(keeper.wait().expect("its end").success());
        (notes, self.folder.end().expect("the end of the run"))
    }

    /// Starts its keeper.
    fn begin(&self) -> Child {
        self.folder.tell_run(&self.launch).expect("a file");
        let agent = AgentName::new("codex").expect("a name");
        let env = BTreeMap::from([("GIVEN".to_owned(), "given".to_owned())]);
        let identity = RunIdentity {
            root: self.place.path(),
            agent: &agent,
            run: &self.name,
            env: &env,
        };
        launch::keeper(&self.folder, &identity).expect("a keeper")
    }

    /// The file that the script writes its process numbers to.
    fn numbers(&self) -> PathBuf {
        self.place.path().join("numbers")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }
}

/// True if none of the processes runs whose numbers are in this file, which names `count` of them.
fn are_gone(numbers: &Path, count: usize) -> bool {
    let numbers = std::fs::read_to_string(numbers).expect("numbers");
    let numbers: Vec<i32> = numbers
        .split_whitespace()
        .map(|number| number.parse().expect("a number"))
        .collect();
    assert_eq!(numbers.len(), count);
    numbers.into_iter().all(|pid| Process::of(pid).is_none())
}

fn fixture(name: &str) -> String {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/stream");
    format!("{fixtures}/{name}")
}

/// Waits for something that takes no time of its own.
fn within(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

fn a_command_gets_its_surroundings_and_its_end_is_recorded() {
    let told = "echo $GIVEN $SETTLED_AGENT $SETTLED_RUN; echo $SETTLED_ROOT; echo $SETTLED_BRIEF; echo $PWD";
    let prompted = "cat; echo last >&2; echo >&2";
    for (script, prompt, how, is_said) in [
        (told, None, ExitReason::Code(0), true),
        (prompted, Some("Do it.\n"), ExitReason::Code(0), true),
        ("exit 3", None, ExitReason::Code(3), false),
        ("kill -9 $$", None, ExitReason::Signal(9), false),
    ] {
        let mut run = Run::of(script);
        let (root, workdir) = (run.place.path().display(), run.launch.workdir.display());
        let brief = run.folder.brief();
        let said = match (prompt, is_said) {
            (Some(prompt), _) => prompt.to_owned(),
            (None, true) => format!(
                "given codex run-1\n{root}\n{}\n{workdir}\n",
                brief.display()
            ),
            (None, false) => String::new(),
        };
        if let Some(prompt) = prompt {
            Folder::write(&run.folder.prompt(), prompt).expect("a prompt");
            run.launch.reads_prompt = true;
        }
        let (notes, end) = run.keep(|_, _| ());
        assert_eq!((end.how, end.said.text), (how, said.clone()), "{script}");
        assert!(notes.is_empty(), "{script}: {notes:?}");
        let stored = std::fs::read_to_string(run.folder.path().join("stdout"));
        assert_eq!(stored.expect("its output"), said);
        let last = if prompt.is_some() { "last" } else { "" };
        assert_eq!(run.folder.last_error_line(), last, "{script}");
        let processes = run.folder.processes();
        assert_eq!(processes.boot, tree::boot());
        let keeper = processes.keeper.expect("it was written");
        // The command may have ended before anybody could see its number.
        let agent = processes.agent.into_iter();
        assert!(agent.chain([keeper]).all(|process| !process.is_running()));
    }
}

fn what_cannot_be_started_names_the_reason() {
    let mut missing = Run::of("");
    missing.launch.command = vec!["no-such-program".to_owned()];
    let mut nothing = Run::of("");
    nothing.launch.command = Vec::new();
    let mut nowhere = Run::of("touch started");
    nowhere.launch.workdir = nowhere.path("nowhere");
    for (run, unprepared, words) in [
        (&missing, false, "`no-such-program`: "),
        (&nothing, false, "the command is empty"),
        (&nowhere, true, "nowhere is not a directory"),
    ] {
        let (notes, end) = run.keep(|_, _| ());
        let why = match (&end.how, unprepared) {
            (ExitReason::NotStarted(why), false) | (ExitReason::Unprepared(why), true) => why,
            (how, _) => panic!("{how:?}, expected {words}"),
        };
        assert!(why.contains(words), "{why}");
        assert!(notes.is_empty(), "{notes:?}");
    }
}

/// The command waits for the test, so that each note comes while it runs.
fn progress_is_reported_while_the_command_runs() {
    for (form, stream, lines, last, expected) in [
        (
            OutputFormat::Claude,
            "claude.jsonl",
            6,
            "Turns(1)",
            &["Read(\"brief.yaml\")", "Turns(1)"][..],
        ),
        (
            OutputFormat::Claude,
            "recorded/claude_ended_by_budget.jsonl",
            1_000,
            "Turns(5)",
            &["Spent(Spend { tokens: 66, micro_usd: 0 })", "Turns(5)"][..],
        ),
        // What is spent together with the answer comes with the end.
        (
            OutputFormat::Codex,
            "codex.jsonl",
            1_000,
            "Turns(1)",
            &["Read(\"brief.yaml\")", "Turns(1)"][..],
        ),
    ] {
        let mut run = Run::of(&format!(
            "head -n {lines} {} > output; cat output; read line < go",
            fixture(stream)
        ));
        let go = run.path("go");
        let made = Command::new("mkfifo").arg(&go).status();
        assert!(made.expect("mkfifo").success());
        run.launch.output = form;
        let (notes, end) = run.keep(|note, _| {
            if format!("{note:?}") == last {
                std::fs::write(&go, "\n").expect("the command reads it");
            }
        });
        // An output may come in several pieces, and then more notes tell of its beginning.
        let kinds = |notes: &mut dyn Iterator<Item = &str>| {
            let mut latest = BTreeMap::new();
            for note in notes {
                let kind = note.split_once('(').expect("a note").0.to_owned();
                latest.insert(kind, note.to_owned());
            }
            latest
        };
        let found = kinds(&mut notes.iter().map(String::as_str));
        assert_eq!(found, kinds(&mut expected.iter().copied()), "{stream}");
        assert_eq!(end.how, ExitReason::Code(0), "{stream}");
    }
}

/// Leaves two processes running, one of them in a session of its own, and writes down their numbers.
const TWO_LEFT: &str =
    "mkfifo ready; setsid sh -c 'echo $$ >> numbers; echo > ready; exec sleep 300' &
    sleep 300 & echo $! >> numbers; read line < ready";

fn nothing_that_a_command_left_running_outlives_its_run_in_a_control_group_or_without() {
    // No group can have a name with a directory that is not there.
    for name in [format!("left-{}", std::process::id()), "no/group".into()] {
        let mut run = Run::of(TWO_LEFT);
        run.name = name;
        let (_, end) = run.keep(|_, _| ());
        assert_eq!(end.how, ExitReason::Code(0), "{}", run.name);
        assert!(are_gone(&run.numbers(), 2), "{}", run.name);
    }
}

fn a_command_runs_in_a_control_group_of_its_own_where_one_can_be_made() {
    // Prints the directory of our own group and, for each of the two steps that works there, a word.
    let probe = r#"mount=$(awk '$4 == "/" && / - cgroup2 / { print $5; exit }' /proc/self/mountinfo)
        own=$(sed -n 's/^0:://p' /proc/self/cgroup)
        group="$mount${own%/}"; probe="$group/probe-$$"
        echo "$group"
        test "$mount" && test "$own" && mkdir "$probe" || exit 0
        echo make
        (echo 0 > "$probe/cgroup.procs" && echo 0 > "$group/cgroup.procs") && echo enter
        rmdir "$probe""#;
    let found = Command::new("sh").args(["-c", probe]).output();
    let found = String::from_utf8(found.expect("a shell").stdout).expect("a path");
    let (above, can) = found.split_once('\n').expect("a line");

    let mut run = Run::of("sed -n s/^0:://p /proc/self/cgroup");
    run.name = format!("own-{}", std::process::id());
    let (_, end) = run.keep(|_, _| ());
    assert_eq!(end.how, ExitReason::Code(0));
    let name = format!("settled-{}", run.name);
    let group = Path::new(above).join(&name);
    let made = serde_json::to_value(run.folder.processes().group).expect("JSON");
    let expected = can.contains("make").then_some(&group);
    assert_eq!(made, serde_json::to_value(expected).expect("JSON"), "{can}");
    let is_inside = end.said.text.trim_end().ends_with(&format!("/{name}"));
    assert_eq!(is_inside, can.contains("enter"), "{} {can}", end.said.text);
    assert!(!group.exists() || !can.contains("enter"), "it is removed");
}

fn a_run_ends_with_everything_when_its_time_is_over_or_its_daemon_is_gone() {
    let mut run = Run::of(&format!("{TWO_LEFT}; cat turns; sleep 300"));
    std::fs::copy(fixture("recorded/claude_tool.jsonl"), run.path("turns")).expect("a stream");
    run.launch.output = OutputFormat::Claude;
    let (_, end) = run.keep(|note, control| {
        if matches!(note, KeeperNote::Turns(_)) {
            *control = None;
        }
    });
    assert_eq!(end.how, ExitReason::Ended);
    assert!(are_gone(&run.numbers(), 2));

    let mut run = Run::of("sleep 300");
    run.launch.seconds_max = 0;
    assert_eq!(run.keep(|_, _| ()).1.how, ExitReason::Ended);
}

/// A run with a tree of its own, in which two commands check the code.
fn validated(script: &str) -> (Run, Checkout) {
    let mut run = Run::of(script);
    let git = |script: &str| {
        let output = Command::new("sh")
            .args(["-euc", script])
            .current_dir(run.place.path())
            .env("HOME", run.place.path())
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@b")])
            .envs([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@b")])
            .output()
            .expect("a shell");
        assert!(output.status.success(), "{script}: {output:?}");
        let commit = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        CommitSha::new(commit).expect("a commit")
    };
    let base = git(
        "git init -q code; cd code; echo obey > GEMINI.md; git add -A; git commit -qm 1; git rev-parse HEAD",
    );
    let commit = git("cd code; echo 2 > a.rs; git add -A; git commit -qm 2; git rev-parse HEAD");
    let code = run.path("code");
    let root = run.place.path().canonicalize().expect("a path");
    let mut checkout = Checkout::of(&root, "run-1", &code, (Some(&base), commit));
    checkout.leave_out = vec!["GEMINI.md".to_owned()];
    run.launch.workdir.clone_from(&checkout.tree);
    run.launch.checkout = Some(checkout.clone());
    run.launch.validation = Some(Validation {
        commands: vec![
            "test -e GEMINI.md && touch built".to_owned(),
            "exit 3".to_owned(),
        ],
        seconds_max: 600,
    });
    (run, checkout)
}

fn validation_sees_the_whole_commit_and_the_agent_what_is_not_left_out() {
    let (run, checkout) = validated("ls");
    let (notes, end) = run.keep(|note, control| {
        if matches!(note, KeeperNote::Validated) {
            use std::io::Write as _;
            let control = control.as_mut().expect("it was not taken");
            control.write_all(b"go\n").expect("the keeper reads it");
        }
    });
    assert_eq!(end.how, ExitReason::Code(0));
    assert_eq!(end.said.text, "a.rs\n");
    let [first, second, validated] = &notes[..] else {
        panic!("{notes:?}");
    };
    assert!(
        first.contains("touch built") && first.contains("exit: Some(0)"),
        "{first}"
    );
    assert!(second.contains("exit: Some(3)"), "{second}");
    assert_eq!(validated, "Validated");
    assert!(run.folder.path().join("validation.json").exists());

    let reviewed = run.folder.reviewed().expect("a review of the tree");
    assert_eq!(reviewed.commit, checkout.commit);
    let code = git::Repository::at(&checkout.repository);
    let base = checkout.base.expect("a base");
    let changes = code.changes(base.as_str(), checkout.commit.as_str());
    assert_eq!(reviewed.diff, Some(changes.expect("a diff").digest));
    assert!(!checkout.tree.exists());
}

fn an_agent_waits_until_its_validation_is_recorded() {
    let (run, checkout) = validated("echo started");
    let (_, end) = run.keep(|note, control| {
        if matches!(note, KeeperNote::Validated) {
            *control = None;
        }
    });
    assert_eq!(end.how, ExitReason::Ended);
    assert_eq!(end.said.text, "");
    assert!(!run.folder.path().join("stdout").exists(), "it was started");
    assert!(!checkout.tree.exists());
}

fn a_run_that_ends_during_its_validation_leaves_nothing_of_it() {
    let (mut run, checkout) = validated("echo started");
    let numbers = run.numbers();
    let validation = run.launch.validation.as_mut().expect("its commands");
    let numbers_at = numbers.display();
    let command = format!(
        "{TWO_LEFT}; cp numbers {numbers_at}.new; mv {numbers_at}.new {numbers_at}; sleep 300"
    );
    validation.commands = vec![command];
    let mut keeper = run.begin();
    within("the command runs", || numbers.exists());
    drop(keeper.stdin.take());
    assert!(keeper.wait().expect("its end").success());
    let end = run.folder.end().expect("the end of the run");
    assert_eq!(end.how, ExitReason::Ended);
    assert!(are_gone(&numbers, 2));
    assert!(!run.folder.path().join("validation.json").exists());
    assert!(!checkout.tree.exists());
}

/// A process in a session of its own, as a keeper leaves it.
fn orphan(run: &str) -> (Child, Process) {
    let child = Command::new("setsid")
        .args(["sh", "-c", "echo; read line"])
        .env("SETTLED_RUN", run)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.expect("a shell");
    let process = Process::of(child.id().cast_signed()).expect("it runs");
    // From now on it has its environment and its session.
    let mut ready = [0];
    let out = child.stdout.as_mut().expect("it was piped");
    std::io::Read::read_exact(out, &mut ready).expect("a line");
    (child, process)
}

fn an_orphan_is_found_by_its_name_and_by_its_number_in_the_same_boot() {
    assert_eq!(tree::boot().len(), 36, "an id of the kernel");
    let name = format!("orphan-{}", std::process::id());
    for (is_keeper, boot, run, is_ended) in [
        (false, "another", name.as_str(), true),
        (true, &tree::boot(), "another-run", true),
        (true, "another", "another-run", false),
        (false, &tree::boot(), "another-run", false),
    ] {
        let (mut child, process) = orphan(&name);
        let place = tempfile::tempdir().expect("a directory");
        let processes = Processes {
            boot: boot.to_owned(),
            keeper: is_keeper.then_some(process),
            ..Processes::default()
        };
        let text = serde_json::to_vec(&processes).expect("JSON");
        std::fs::write(place.path().join("process.json"), text).expect("a file");
        orphans::end(&Folder::at(place.path()), run);
        assert_eq!(!process.is_running(), is_ended, "{is_keeper} {boot} {run}");
        process.signal(rustix::process::Signal::KILL);
        child.wait().expect("its end");
    }
}

fn a_stray_is_ended_and_no_keeper_and_nothing_of_our_own_session() {
    let (mut stray_child, stray) = orphan("stray");
    let (mut keeper, kept) = orphan("keeper");
    let ours = Command::new("sleep").arg("300").spawn();
    let mut ours = ours.expect("sleep");
    let own = Process::of(ours.id().cast_signed()).expect("it runs");
    let mut over = Command::new("true").spawn().expect("a program");
    let mut kept_over = Command::new("true").spawn().expect("a program");
    for child in [&over, &kept_over] {
        let pid = child.id().cast_signed();
        within("it ends", || Process::of(pid).is_none());
    }
    tree::end_strays(&[kept.pid, kept_over.id().cast_signed()]);
    assert!(!stray.is_running() && kept.is_running() && own.is_running());
    // Whoever started a keeper, or a program of our session, reaps it; `end_strays` has reaped only the stray.
    for child in [&mut kept_over, &mut over] {
        assert!(child.wait().expect("nobody reaped it").success());
    }
    assert!(stray_child.wait().is_err());
    for (child, process) in [(&mut keeper, kept), (&mut ours, own)] {
        process.signal(rustix::process::Signal::KILL);
        child.wait().expect("its end");
    }
}
