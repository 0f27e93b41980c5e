//! Plays the rows again and again beside scripts that fork, some of its own and some started by a daemon. Counts the
//! children that somebody else stopped or ended, and the leftover processes.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use settled_tests::mailroom::Mailroom;
use settled_tests::{list, repository, seed, write};

use super::Played;

/// The number of unrelated scripts that run beside the rows.
const BYSTANDERS: usize = 4;

/// The number of agents that fork under one daemon; four run at a time.
const FORKING: usize = 8;

/// Forks forever: adds a line to `$1` for each child, and to `$2` for each that did not end by itself.
const BYSTANDER: &str = r#"while :; do
    (exit 7) & wait $!; [ $? = 7 ] || echo ended >> "$2"
    sh -c 'sleep 0.1; exit 3' & wait $!; [ $? = 3 ] || echo ended >> "$2"
    echo 2 >> "$1"
done"#;

/// The same loop as an agent of a daemon, for some seconds.
const AGENT: &str = r#"for i in $(seq 60); do
    (exit 7) & wait $!; [ $? = 7 ] || echo ended >> "$2"
    sh -c 'sleep 0.02; exit 3' & wait $!; [ $? = 3 ] || echo ended >> "$2"
    echo 2 >> "$1"
done; echo PASS"#;

/// Returns the file with the sentence about the last such run, which the page prints.
pub(super) fn figure() -> PathBuf {
    repository().join("tests/agents/repeated.txt")
}

/// The scripts and agents that run beside the rows.
pub(super) struct Beside {
    place: PathBuf,
    scripts: Vec<Child>,
    is_over: Arc<AtomicBool>,
    /// Counts the scans that found one of the scripts or a child of theirs stopped.
    watch: JoinHandle<usize>,
    /// Counts the runs of forking agents, and those that did not end well.
    agents: JoinHandle<(usize, usize)>,
}

/// The counts at the end.
pub(super) struct Counted {
    children: usize,
    runs: usize,
    bad_runs: usize,
    touched: usize,
    left: Vec<String>,
}

impl Beside {
    /// Starts it; the scripts take their notes in a folder of the bench.
    pub(super) fn start(bench: &Path) -> Result<Self, String> {
        let place = bench.join("beside");
        std::fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
        let script = |text: &str, arguments: [&Path; 2]| {
            let mut command = Command::new("bash");
            command.args(["-c", text, "bash"]).args(arguments);
            command.stdin(Stdio::null());
            command
        };
        let (children, ended) = (place.join("children"), place.join("ended"));
        let mut scripts = Vec::new();
        for at in 0..BYSTANDERS {
            let mut command = script(BYSTANDER, [&children, &ended]);
            if at % 2 == 0 {
                command.process_group(0);
            }
            scripts.push(command.spawn().map_err(|error| format!("bash: {error}"))?);
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let watch = {
            let (is_over, pids) = (
                Arc::clone(&is_over),
                scripts.iter().map(Child::id).collect::<Vec<_>>(),
            );
            thread::spawn(move || watch(&pids, &is_over))
        };
        let agents = {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                let (mut runs, mut bad) = (0, 0);
                while !is_over.load(Ordering::Relaxed) {
                    runs += FORKING;
                    bad += FORKING - forking_agents(&children, &ended);
                }
                (runs, bad)
            })
        };
        Ok(Self {
            place,
            scripts,
            is_over,
            watch,
            agents,
        })
    }

    /// Ends it, and looks for leftovers of it and of the programs in this folder.
    pub(super) fn end(mut self, installed: &Path) -> Result<Counted, String> {
        self.is_over.store(true, Ordering::Relaxed);
        let panicked = |_| "a thread panicked".to_owned();
        let (runs, bad_runs) = self.agents.join().map_err(panicked)?;
        let stopped = self.watch.join().map_err(panicked)?;
        let mut touched = stopped;
        for script in &mut self.scripts {
            // A missing script was ended by somebody.
            touched += usize::from(!matches!(script.try_wait(), Ok(None)));
            let _ = script.kill();
            let _ = script.wait();
        }
        let lines = |name: &str| {
            let text = std::fs::read_to_string(self.place.join(name)).unwrap_or_default();
            text.lines().count()
        };
        touched += lines("ended");
        Ok(Counted {
            children: 2 * lines("children"),
            runs,
            bad_runs,
            touched,
            left: left(installed, &self.place),
        })
    }
}

impl Counted {
    pub(super) fn is_clean(&self) -> bool {
        self.touched == 0 && self.bad_runs == 0 && self.left.is_empty()
    }

    /// Describes the counts, for the page.
    pub(super) fn sentence(
        &self,
        rows: usize,
        failed: &[&Played],
        jobs: usize,
        minutes: u64,
    ) -> String {
        let Self {
            children,
            runs,
            bad_runs,
            touched,
            left,
        } = self;
        let mut sentence = format!(
            "{minutes} minutes of the rows again and again, {jobs} at a time: {rows} rows were played, {} failed. Beside \
             them {BYSTANDERS} scripts that belong to no run, and {runs} runs of agents that fork, four at a time under one daemon, \
             started {children} processes: {touched} were stopped or ended by others, {bad_runs} of these runs did not end \
             with their approval, and {} processes were left in the end.",
            failed.len(),
            left.len()
        );
        for Played {
            program,
            row,
            outcome,
        } in failed
        {
            sentence += &format!("\n  {} `{}`: {outcome}", program.word(), row.name);
        }
        for process in left {
            sentence += "\n  left: ";
            sentence += process;
        }
        sentence
    }
}

/// Counts the scans that found a script or a child of one stopped.
fn watch(pids: &[u32], is_over: &AtomicBool) -> usize {
    let mut stopped = 0;
    while !is_over.load(Ordering::Relaxed) {
        for pid in pids {
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            let children = children.unwrap_or_default();
            for process in children.split_whitespace().chain([&*pid.to_string()]) {
                let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
                let stat = stat.unwrap_or_default();
                let state = stat
                    .rsplit_once(") ")
                    .map(|(_, rest)| rest.starts_with('T'));
                stopped += usize::from(state == Some(true));
            }
        }
        thread::sleep(Duration::from_millis(20));
    }
    stopped
}

/// Lets forking agents review one request each, and counts those that approve.
fn forking_agents(children: &Path, ended: &Path) -> usize {
    let names: Vec<String> = (0..FORKING).map(|at| format!("forks{at}")).collect();
    let all: Vec<&str> = ["author"]
        .into_iter()
        .chain(names.iter().map(String::as_str))
        .collect();
    let mailroom = Mailroom::on_disk(&all);
    let mut config = "[runner]\nconcurrent = 4\n".to_owned();
    for name in &names {
        config += &format!(
            "[agents.{name}]\ncommand = [\"bash\", \"-c\", '''{AGENT}''', \"bash\", '''{}''', '''{}''']\n",
            children.display(),
            ended.display()
        );
    }
    write(mailroom.root().join("settled.toml"), &config);
    let daemon = mailroom.serve();
    for (at, name) in names.iter().enumerate() {
        let pr = (at + 1).to_string();
        let body =
            format!("pr: {pr}\nbranch: b\ndiff_summary: a change\nmax_runtime_s_reviewer: 300");
        let text = seed::review_message(
            "review_request",
            &format!("ask-{pr}"),
            "author",
            name,
            &pr,
            &body,
        );
        mailroom.post("author", &format!("ask-{pr}.yaml"), &text);
    }
    let start = Instant::now();
    let count = |phase: &str| {
        let status = mailroom.status();
        let reviews = status["reviews"].as_array().cloned().unwrap_or_default();
        reviews
            .iter()
            .filter(|review| review["phase"] == phase)
            .count()
    };
    while count("approved") + count("escalated") < FORKING
        && start.elapsed() < Duration::from_secs(330)
    {
        thread::sleep(Duration::from_millis(500));
    }
    let approved = count("approved");
    daemon.terminate();
    approved
}

/// The command lines that still run: of programs in `installed`, or of scripts that write into `place`.
fn left(installed: &Path, place: &Path) -> Vec<String> {
    let marks = [installed, place].map(|path| path.display().to_string());
    let line = |process: PathBuf| {
        let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ")
    };
    let lines = list("/proc").into_iter().map(line);
    lines
        .filter(|line| marks.iter().any(|mark| line.contains(mark)))
        .collect()
}
