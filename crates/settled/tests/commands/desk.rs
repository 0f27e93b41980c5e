//! A workspace, the commands that are run in it, and their outputs without what differs between two runs.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::recorded_workspace;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/commands/golden");

/// A workspace in a directory of its own, in which the commands run.
pub(crate) struct Desk {
    directory: TempDir,
    root: PathBuf,
    /// True if the instants and digests of its ledger are the same in each run.
    is_recorded: bool,
}

/// What a command printed, and its exit code.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) exit: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Desk {
    /// A copy of the recorded workspace.
    pub(crate) fn recorded() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().join("room");
        let copy = recorded_workspace::workspace().keep();
        std::fs::rename(copy, &root).expect("both are in one file system");
        Self {
            directory,
            root,
            is_recorded: true,
        }
    }

    /// A new workspace with these agents.
    pub(crate) fn new(agents: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().join("room");
        let desk = Self {
            directory,
            root,
            is_recorded: false,
        };
        let made = desk.run("", &format!("settled init --agents {agents}"));
        assert_eq!(made.exit, 0, "{made:?}");
        desk
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Writes a file below the directory in which the commands run.
    pub(crate) fn put(&self, path: &str, text: &str) {
        let path = self.directory.path().join(path);
        let folder = path.parent().expect("it has a folder");
        std::fs::create_dir_all(folder).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    /// Runs a shell line as this agent, or as nobody.
    pub(crate) fn run(&self, agent: &str, line: &str) -> Said {
        self.fed(agent, line, "")
    }

    /// Like [`run`](Self::run), with a text on standard input.
    pub(crate) fn fed(&self, agent: &str, line: &str, text: &str) -> Said {
        let child = self.spawn(agent, line, text);
        self.said(&child.wait_with_output().expect("it is our child"))
    }

    /// Runs a line that waits for a verdict, and judges what is in the outboxes until it has ended.
    pub(crate) fn judged(&self, agent: &str, line: &str, text: &str) -> Said {
        let mut child = self.spawn(agent, line, text);
        while child.try_wait().expect("it is our child").is_none() {
            self.judge();
        }
        self.said(&child.wait_with_output().expect("it is our child"))
    }

    /// Judges and delivers what is in the outboxes.
    pub(crate) fn judge(&self) {
        let judged = self.run("", "settled serve --once");
        assert!(matches!(judged.exit, 0 | 7), "{judged:?}");
    }

    /// Starts a line whose standard output is a terminal.
    pub(crate) fn on_terminal(&self, line: &str, terminal: File) -> Child {
        let mut shell = self.shell("", line);
        shell.env("TERM", "xterm").stdin(Stdio::null());
        shell.stdout(terminal).stderr(Stdio::null());
        shell.spawn().expect("there is a shell")
    }

    fn spawn(&self, agent: &str, line: &str, text: &str) -> Child {
        let mut shell = self.shell(agent, line);
        shell
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = shell.spawn().expect("there is a shell");
        let mut input = child.stdin.take().expect("it was piped");
        // It may end before it has read everything.
        let _ = input.write_all(text.as_bytes());
        child
    }

    fn shell(&self, agent: &str, line: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_settled"));
        let programs = program.parent().expect("it is in a directory").display();
        let others = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh");
        shell
            .args(["-c", line])
            .current_dir(self.directory.path())
            .env("PATH", format!("{programs}:{others}"))
            .env("SETTLED_ROOT", &self.root)
            .env("SETTLED_AGENT", agent)
            .env(
                "LEDGER",
                self.root.join(".settled/ledger/00000000000000000001.jsonl"),
            )
            .env("COLUMNS", "1000")
            .env_remove("SETTLED_LOG_FORMAT")
            .env_remove("SETTLED_RUN");
        shell
    }

    fn said(&self, output: &Output) -> Said {
        let text = |bytes: &[u8]| self.steady(&String::from_utf8_lossy(bytes));
        Said {
            exit: output.status.code().expect("no signal ended it"),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    /// The text without the place of the workspace and without ages, which grow.
    fn steady(&self, text: &str) -> String {
        let text = text.replace(&self.root.display().to_string(), "ROOT");
        let text = text.replace(&self.directory.path().display().to_string(), "HERE");
        let text = text.replace(env!("CARGO_BIN_EXE_settled"), "PROGRAM");
        let text = text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
        let text: String = text.split_inclusive('\n').map(without_ages).collect();
        if self.is_recorded {
            return text;
        }
        without_instants(&text)
    }

    /// Runs the lines as an agent, and compares all they say with a kept text.
    pub(crate) fn check(&self, agent: &str, name: &str, lines: &[&str]) {
        let mut play = Play::of(self);
        lines.iter().for_each(|line| play.run(agent, line));
        play.check(name);
    }
}

/// The line with `AGE` for every time that passes, and without the columns that its length moves.
fn without_ages(line: &str) -> String {
    let end = if line.ends_with('\n') { "\n" } else { "" };
    let body = line.trim_end();
    let indent = &body[..body.len() - body.trim_start().len()];
    let mut words: Vec<String> = Vec::new();
    for word in body.split_whitespace() {
        let unit = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_unit = ["s", "min", "h", "d"].contains(&unit);
        match words.last_mut() {
            Some(number) if is_unit && number.parse::<u64>().is_ok() => {
                *number = format!("AGE{}", &word[unit.len()..]);
            }
            _ => words.push(word.to_owned()),
        }
    }
    format!("{indent}{}{end}", words.join(" "))
}

/// The text with `N` for everything that is made from the clock: instants, digests, and the names of notices.
fn without_instants(text: &str) -> String {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || "-:._".contains(c);
    let mut steady = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end.max(first.len_utf8()));
        let digits = word.chars().take_while(char::is_ascii_digit).count();
        let is_instant = word.len() >= 20 && word.ends_with('Z') && digits == 4;
        match word {
            digest if digest.starts_with("sha256:") => steady += "DIGEST",
            _ if is_instant => steady += "INSTANT",
            notice if digits == 14 && notice[digits..].starts_with('_') => {
                steady += "N";
                steady += &notice[digits..];
            }
            word => steady += word,
        }
        rest = after;
    }
    steady
}

/// Lines that are run one after the other, and all that they say.
pub(crate) struct Play<'a> {
    desk: &'a Desk,
    text: String,
}

impl<'a> Play<'a> {
    pub(crate) fn of(desk: &'a Desk) -> Self {
        Self {
            desk,
            text: String::new(),
        }
    }

    pub(crate) fn run(&mut self, agent: &str, line: &str) {
        let said = self.desk.run(agent, line);
        self.note(agent, line, &said);
    }

    pub(crate) fn fed(&mut self, agent: &str, line: &str, text: &str) {
        let said = self.desk.fed(agent, line, text);
        self.note(agent, line, &said);
    }

    /// A line that waits for the verdict, which comes meanwhile.
    pub(crate) fn judged(&mut self, agent: &str, line: &str, text: &str) {
        let said = self.desk.judged(agent, line, text);
        self.note(agent, line, &said);
    }

    fn note(&mut self, agent: &str, line: &str, Said { exit, out, err }: &Said) {
        let out = document(out).unwrap_or_else(|| out.clone());
        self.text += &format!("{agent}$ {line}\n{out}{err}[{exit}]\n\n");
    }

    /// Compares it with a kept text.
    pub(crate) fn check(self, name: &str) {
        recorded_workspace::check(GOLDEN, name, self.desk.root(), &self.text);
    }
}

/// A JSON document in short: of its data only plain values and the names of the others, which the rooms that make them
/// test.
fn document(out: &str) -> Option<String> {
    let mut document: Value = serde_json::from_str(out).ok()?;
    let data = document.get_mut("data").and_then(Value::as_object_mut);
    if let Some(data) = data {
        for value in data.values_mut() {
            match value {
                Value::Array(all) => *value = format!("{} of them", all.len()).into(),
                Value::Object(all) => *value = all.keys().cloned().collect(),
                Value::String(text) => *text = text.chars().take(80).collect(),
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
    }
    let line = |(key, value): (&String, &Value)| format!("{key}: {value}\n");
    Some(document.as_object()?.iter().map(line).collect())
}
