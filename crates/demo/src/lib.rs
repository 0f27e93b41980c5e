//! Runs a whole review between two scripted agents with real commands, in a workspace of its own, and shows it.
//! `script` has the words and commands.

mod script;
mod svg;

use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub use script::{DemoStep, Who, files, steps};
pub use svg::svg;
use workspace::shell::quoted;

/// The time the daemon has to begin serving.
const PATIENCE: Duration = Duration::from_secs(10);

/// The indentation of a step's output, in columns.
const INDENT: usize = 4;

/// The allowed widths of the story, in columns.
const WIDTH: RangeInclusive<usize> = 60..=200;

/// The reason why a demonstration stopped.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The disk failed, or a process could not start.
    #[error("{what}: {source}")]
    Io {
        /// The operation that failed.
        what: String,
        /// The cause.
        source: io::Error,
    },
    /// The daemon did not begin serving.
    #[error("the daemon did not begin to serve within {} s; its log is {}", PATIENCE.as_secs(), .0.display())]
    NoDaemon(PathBuf),
    /// A command ended differently from the script.
    #[error("`{command}` ended with {found}, expected {expected}:\n{said}")]
    Otherwise {
        /// The command.
        command: String,
        /// Its exit status.
        found: String,
        /// The exit code in the script.
        expected: i32,
        /// Its output.
        said: String,
    },
}

/// A demonstration in a workspace of its own. Dropping the value ends its daemon.
#[derive(Debug)]
pub struct Demo {
    program: PathBuf,
    root: PathBuf,
    columns: usize,
    daemon: Child,
}

/// The result of a step.
#[derive(Debug)]
pub struct DemoResult {
    /// The step.
    pub step: &'static DemoStep,
    /// The output of its command, without lines that differ between runs.
    pub lines: Vec<String>,
    /// The width of the story.
    columns: usize,
}

impl Demo {
    /// Makes the workspace in a new or empty directory, and starts a daemon on it with `program`. The story is
    /// `columns` wide, 60 to 200.
    pub fn start(program: &Path, root: &Path, columns: usize) -> Result<Self, DemoError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |source| DemoError::Io { what, source }
        };
        let made = Command::new(program)
            .args(["init", "--agents", "claude,codex"])
            .arg(root)
            .stdout(Stdio::null())
            .status()
            .map_err(failed("settled init"))?;
        if !made.success() {
            return Err(failed("settled init")(io::Error::other(made.to_string())));
        }
        for (name, text) in files() {
            std::fs::write(root.join(name), text).map_err(failed(name))?;
        }
        let log = spool::Layout::new(root).own().join("demo.log");
        let file = std::fs::File::create(&log).map_err(failed("the daemon's log"))?;
        let daemon = Command::new(program)
            .arg("serve")
            .arg(root)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .map_err(failed("settled serve"))?;
        let demo = Self {
            program: program.to_owned(),
            root: root.to_owned(),
            columns: columns.clamp(*WIDTH.start(), *WIDTH.end()),
            daemon,
        };
        match begins_to_serve(root, PATIENCE) {
            true => Ok(demo),
            false => Err(DemoError::NoDaemon(log)),
        }
    }

    /// Runs one step.
    pub fn step(&self, step: &'static DemoStep) -> Result<DemoResult, DemoError> {
        let mut command = Command::new(&self.program);
        command
            .args(step.words)
            .current_dir(&self.root)
            .env("SETTLED_ROOT", ".")
            .env("COLUMNS", (self.columns - INDENT).to_string());
        match step.who {
            Who::Agent(agent) => command.env("SETTLED_AGENT", agent),
            Who::Person => command.env_remove("SETTLED_AGENT"),
        };
        let failed = |source| DemoError::Io {
            what: step.command(),
            source,
        };
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let mut stdin = child.stdin.take().expect("it was piped");
        // A command that does not read its input closes the pipe, which is no failure.
        let _ = stdin.write_all(step.input.as_bytes());
        drop(stdin);
        let output = child.wait_with_output().map_err(failed)?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        if output.status.code() != Some(step.exit) {
            return Err(DemoError::Otherwise {
                command: step.command(),
                found: output.status.to_string(),
                expected: step.exit,
                said: text,
            });
        }
        // Drop lines with times: they differ in each run.
        let mut lines: Vec<String> = text
            .lines()
            .filter(|line| !has_instant(line))
            .map(str::to_owned)
            .collect();
        if lines.len() > step.shown {
            lines.truncate(step.shown);
            lines.push("…".to_owned());
        }
        let columns = self.columns;
        Ok(DemoResult {
            step,
            lines,
            columns,
        })
    }
}

/// Waits at most `patience` for a daemon to serve the workspace.
fn begins_to_serve(root: &Path, patience: Duration) -> bool {
    let start = Instant::now();
    while spool::is_served(root) != Some(true) {
        if start.elapsed() > patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// True if the line has a time such as `2026-02-13T10:00:00.000Z`.
fn has_instant(line: &str) -> bool {
    line.split_whitespace()
        .any(|word| chrono::DateTime::parse_from_rfc3339(word).is_ok())
}

impl Drop for Demo {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.daemon);
        // Nobody has waited for this child yet, so the pid is still its own.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.daemon.wait();
    }
}

impl DemoStep {
    /// Returns the command as one would type it.
    pub fn command(&self) -> String {
        let words = std::iter::once("settled").chain(self.words.iter().copied());
        let words: Vec<String> = words.map(|word| quoted(word.as_ref())).collect();
        words.join(" ")
    }

    /// The command wrapped to lines of this width, as a shell accepts it.
    fn typed(&self, columns: usize) -> String {
        let mut text = String::from("    $");
        let mut column = text.len();
        // An option and its value stay together.
        for word in self
            .command()
            .split(" --")
            .enumerate()
            .map(|(at, word)| match at {
                0 => word.to_owned(),
                _ => format!("--{word}"),
            })
        {
            if column + 1 + word.len() + " \\".len() > columns {
                text += " \\\n       ";
                column = 7;
            }
            text += " ";
            text += &word;
            column += 1 + word.len();
        }
        text + "\n"
    }

    /// Returns the name of the actor: the agent's, or `you` for the person.
    pub fn name(&self) -> &'static str {
        match self.who {
            Who::Agent(agent) => agent,
            Who::Person => "you",
        }
    }
}

impl DemoResult {
    /// Formats the step: the story, the command, its output.
    pub fn text(&self, number: usize) -> String {
        let DemoStep { says, .. } = self.step;
        let mut text = format!(
            "{number:>2}. {}: {says}\n{}",
            self.step.name(),
            self.step.typed(self.columns)
        );
        for line in &self.lines {
            text += format!("    {line}").trim_end();
            text += "\n";
        }
        text + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_does_not_serve_is_not_waited_for_without_end() {
        let nowhere = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(!begins_to_serve(nowhere, Duration::from_millis(1)));
    }

    #[test]
    fn a_line_with_an_instant_is_left_out_because_it_differs_each_time() {
        assert!(has_instant("  accepted  2026-02-13T10:00:00.000Z  claude"));
        assert!(!has_instant("accepted on 2026-02-13 by claude"));
    }

    #[test]
    fn a_typed_command_is_folded_between_its_options() {
        let step = steps().iter().find(|step| step.words.len() > 4);
        let step = step.expect("a step with options");
        let lines = |columns| -> Vec<usize> {
            let typed = step.typed(columns);
            typed.lines().map(|line| line.chars().count()).collect()
        };
        let whole = lines(10_000);
        assert_eq!(whole.len(), 1, "it fits");
        assert_eq!(lines(whole[0] + 2), whole, "with room for a backslash");
        assert_eq!(lines(whole[0] + 1).len(), 2);
        assert!(lines(100).iter().all(|width| *width <= 100));
    }

    #[test]
    fn a_command_is_written_so_that_a_shell_takes_it_as_it_was_run() {
        let step = |who, words: &'static [&'static str]| DemoStep {
            who,
            says: "",
            words,
            input: "",
            exit: 0,
            shown: 0,
        };
        let agent = step(Who::Agent("pi"), &["send", "--why", "two words"]);
        assert_eq!(agent.command(), "settled send --why 'two words'");
        assert_eq!(agent.name(), "pi");
        assert_eq!(
            agent.typed(30),
            "    $ settled send \\\n        --why 'two words'\n"
        );
        let person = step(Who::Person, &[]);
        assert_eq!(
            (person.command().as_str(), person.name()),
            ("settled", "you")
        );
    }

    #[test]
    fn the_further_lines_of_a_command_are_as_full_as_the_first() {
        let step = DemoStep {
            who: Who::Person,
            says: "",
            words: &["a", "--bb", "cc", "--dd", "ee", "--ff", "gg"],
            input: "",
            exit: 0,
            shown: 0,
        };
        // Each line has room for the backslash, also the last.
        assert_eq!(
            step.typed(25),
            "    $ settled a --bb cc \\\n        --dd ee --ff gg\n"
        );
        assert_eq!(
            step.typed(24),
            "    $ settled a \\\n        --bb cc \\\n        --dd ee \\\n        --ff gg\n"
        );
    }
}
