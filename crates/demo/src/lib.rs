//! A whole review between two scripted agents, held with the very commands real ones would use, on a workspace of its own.
//! `script` has the words and commands; here they are run and shown.

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

/// The time the daemon has to begin to serve.
const PATIENCE: Duration = Duration::from_secs(10);

/// The columns by which the output of a step is indented.
const INDENT: usize = 4;

/// The widths that the story may have, in columns.
const WIDTH: RangeInclusive<usize> = 60..=200;

/// The reason why a demonstration broke off.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The disk, or a process that cannot be started.
    #[error("{what}: {source}")]
    Io {
        /// The operation that failed.
        what: String,
        /// The cause.
        source: io::Error,
    },
    /// The daemon did not begin to serve.
    #[error("the daemon did not begin to serve within {} s; its log is {}", PATIENCE.as_secs(), .0.display())]
    NoDaemon(PathBuf),
    /// A command ended otherwise than the script says.
    #[error("`{command}` ended with {found}, expected {expected}:\n{said}")]
    Otherwise {
        /// The command.
        command: String,
        /// The exit status of the command.
        found: String,
        /// The exit code of the script.
        expected: i32,
        /// The output of the command.
        said: String,
    },
}

/// A demonstration on a workspace of its own; its daemon ends with the value.
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
    /// The output of its command, without what differs between workspaces.
    pub lines: Vec<String>,
    /// The width of the story.
    columns: usize,
}

impl Demo {
    /// Makes the workspace in a directory that is not there yet or empty, and starts a daemon on it with our own program.
    /// The story fits so many columns, 60 to 200.
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

    /// Does one step.
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
        // A command that does not read ends the pipe, which is no failure.
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
        // When something happened is of no interest here, and differs each time.
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

/// Waits for a daemon to serve the workspace, for so long at most.
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

/// True if the line holds an instant, as in `2026-02-13T10:00:00.000Z`.
fn has_instant(line: &str) -> bool {
    line.split_whitespace()
        .any(|word| chrono::DateTime::parse_from_rfc3339(word).is_ok())
}

impl Drop for Demo {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.daemon);
        // It is our child and not waited for yet, so the number is still its own.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.daemon.wait();
    }
}

impl DemoStep {
    /// The command as one would type it.
    pub fn command(&self) -> String {
        let words = std::iter::once("settled").chain(self.words.iter().copied());
        let words: Vec<String> = words.map(|word| quoted(word.as_ref())).collect();
        words.join(" ")
    }

    /// The same on lines of this length, as a shell takes them.
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

    /// The name of the actor: the agent's, or `you` for the person.
    pub fn name(&self) -> &'static str {
        match self.who {
            Who::Agent(agent) => agent,
            Who::Person => "you",
        }
    }
}

impl DemoResult {
    /// The step for a reader: the story, the command, its output.
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
}
