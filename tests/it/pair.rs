//! `settled pair` with real processes: whatever its author and reviewer do, the pair ends within its bound, and no word
//! of either approves what the gate has not (`tests/fakes/author.sh`, `tests/fakes/reviewer.sh`).

mod edges;
mod ends;
mod resumed;
mod reviews;
mod shown;

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said, settled};
use settled_tests::{binaries, ledger, repository, wait, write};

use crate::runner::runs;

/// A mailroom prepared for pairs.
struct Room {
    mailroom: Mailroom,
    place: PathBuf,
}

impl Room {
    fn new() -> Self {
        let mailroom = Mailroom::new(&["claude", "codex", "gemini"]);
        let place = mailroom
            .root()
            .parent()
            .expect("it is in a directory")
            .to_owned();
        mailroom.run(&["init", "--agents", "claude,codex,gemini"]);
        write(place.join("task.md"), "Let there be light.\n");
        Self { mailroom, place }
    }

    /// The number of starts of a fake, by the first word of its lines.
    fn starts(&self, who: &str) -> usize {
        let notes = std::fs::read_to_string(self.place.join("notes")).unwrap_or_default();
        notes
            .lines()
            .filter(|line| line.split(' ').next() == Some(who))
            .count()
    }

    fn fake(&self, name: &str, behaviour: &str) -> String {
        format!(
            "'{}' {behaviour}",
            repository().join("tests/fakes").join(name).display()
        )
    }

    /// `settled pair` with these options.
    fn command(&self, options: &[&str]) -> Command {
        let mut command = settled();
        command
            .arg("pair")
            .args(options)
            .arg("--root")
            .arg(self.mailroom.root());
        command
            .env("FAKE_NOTES", self.place.join("notes"))
            .current_dir(&self.place);
        // The fakes use the tested programs.
        let others = std::env::var("PATH").unwrap_or_default();
        command.env(
            "PATH",
            format!("{}:{others}", binaries::directory().display()),
        );
        command
    }

    /// A pair of fakes; without a behaviour there is no reviewer.
    fn pair(&self, author: &str, reviewer: &str, more: &[&str]) -> Command {
        let (author, reviewer_command) = (
            self.fake("author.sh", author),
            self.fake("reviewer.sh", reviewer),
        );
        let mut options = vec![
            "--author",
            "claude",
            "--author-command",
            &author,
            "--task",
            "task.md",
        ];
        if !reviewer.is_empty() {
            options.extend([
                "--reviewer",
                "codex",
                "--reviewer-command",
                &reviewer_command,
            ]);
        }
        self.command(&[&options, more].concat())
    }

    fn held(&self, author: &str, reviewer: &str, more: &[&str]) -> Held {
        Held::of(
            &self
                .pair(author, reviewer, more)
                .output()
                .expect("settled can be run"),
        )
    }

    /// The steps of pairs in the ledger, such as `working began`.
    fn steps(&self) -> Vec<String> {
        let records = ledger::records(self.mailroom.root());
        let happened = records
            .iter()
            .filter_map(|record| record["decision"]["happened"].as_object());
        let steps = happened.filter_map(|happened| {
            let what = &happened["event"]["pair"]["what"];
            let word = what
                .as_str()
                .map(str::to_owned)
                .or_else(|| Some(what.as_object()?.keys().next()?.clone()))?;
            Some(format!(
                "{} {word}",
                happened["pair"]["pair"]["run"].as_str()?
            ))
        });
        steps.collect()
    }
}

/// The result of a pair.
#[derive(Debug)]
struct Held {
    code: Option<i32>,
    lines: Vec<Value>,
    said: String,
}

impl Held {
    fn of(output: &Output) -> Self {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        Self {
            code: output.status.code(),
            lines,
            said: said(output),
        }
    }

    /// The data of the last line.
    fn end(&self) -> &Value {
        &self
            .lines
            .last()
            .unwrap_or_else(|| panic!("nothing was said: {self:?}"))["data"]
    }

    /// `complete`, or the reason of the failure.
    fn word(&self) -> &str {
        let end = self.end();
        end["failure"]
            .as_str()
            .or(end["state"].as_str())
            .unwrap_or_default()
    }

    fn id(&self) -> &str {
        self.end()["pair"].as_str().expect("a name")
    }

    /// The reason of each failed run.
    fn reasons(&self) -> Vec<&str> {
        self.lines
            .iter()
            .filter_map(|line| line["data"]["why"].as_str())
            .collect()
    }
}

/// A pair in the background.
struct Going(Option<Child>);

impl Going {
    fn start(mut command: Command) -> Self {
        let started = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        Self(Some(started.expect("settled can be run")))
    }

    fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(self.0.as_ref().expect("it is not ended"))
    }

    fn ended(mut self) -> Held {
        let child = self.0.take().expect("it is not ended");
        Held::of(&child.wait_with_output().expect("it is our child"))
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        // A test failed, and the pair must not outlive it.
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
