//! A mailroom for measurements: the release binary as a process, and messages for it.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use settled_tests::binaries;

use super::figures::Result;
use super::ground;

/// The observer's pause between two scans of an inbox. Without a pause it would take a core from the daemon that it
/// observes, and measure the scheduler.
pub(crate) const GLANCE: std::time::Duration = std::time::Duration::from_micros(20);

/// The most questions that one agent may send another within an hour in these workspaces.
pub(crate) const QUESTIONS_MAX: usize = 10_000;

/// Builds the measured binary.
pub(crate) fn build() -> Result<()> {
    build_package("settled")
}

/// Builds the programs of a package.
pub(crate) fn build_package(package: &str) -> Result<()> {
    let built = binaries::cargo()
        .args(["build", "--release", "--quiet", "-p", package])
        .status()?;
    if built.success() {
        Ok(())
    } else {
        Err(format!("{package} does not build").into())
    }
}

pub(crate) fn settled() -> PathBuf {
    ground::target().join("release/settled")
}

pub(crate) fn init(root: &Path) -> Result<()> {
    init_for(root, "claude,codex")?;
    // As many questions as one agent may be allowed to send another.
    std::fs::write(
        root.join("settled.toml"),
        format!("[limits]\nmessages_per_hour = {QUESTIONS_MAX}\n"),
    )?;
    Ok(())
}

/// Makes a workspace for these agents.
pub(crate) fn init_for(root: &Path, agents: &str) -> Result<()> {
    let made = Command::new(settled())
        .arg("init")
        .arg(root)
        .args(["--agents", agents])
        .stdout(Stdio::null())
        .status()?;
    if made.success() {
        Ok(())
    } else {
        Err("settled init failed".into())
    }
}

/// Judges and delivers everything that waits.
pub(crate) fn once(root: &Path) -> Result<()> {
    served_once(root, 0)
}

/// Does the same where some of it has to be refused.
pub(crate) fn refusing(root: &Path) -> Result<()> {
    served_once(root, 7)
}

fn served_once(root: &Path, expected: i32) -> Result<()> {
    let status = Command::new(settled())
        .args(["serve", "--once"])
        .arg(root)
        .env("SETTLED_LOG", "warn")
        .stdout(Stdio::null())
        .status()?;
    if status.code() == Some(expected) {
        Ok(())
    } else {
        Err(format!("serve --once: {status}").into())
    }
}

/// The kind of message to send.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One file in, one file out, like the raw limits.
    Question,
    /// Each opens its own review and makes a brief of 2 KiB besides the message.
    Request,
}

impl Kind {
    pub(crate) const ALL: [Kind; 2] = [Kind::Question, Kind::Request];

    /// Returns the words for the table.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Kind::Question => "question, one file each",
            Kind::Request => "review request: two files, a new review",
        }
    }

    /// Returns the number of files that one message makes.
    pub(crate) fn files(self) -> usize {
        match self {
            Kind::Question => 1,
            Kind::Request => 2,
        }
    }

    /// A message of about 1 KiB.
    pub(crate) fn message(self, number: usize) -> String {
        match self {
            Kind::Question => question(number),
            Kind::Request => request(number),
        }
    }
}

fn question(number: usize) -> String {
    let line = "  What was changed, why it was, and where a reader should look at first.\n";
    format!(
        "id: msg-{number:06}\nfrom: claude\nto: codex\ntype: question\npriority: P1\n\
         created_at_utc: \"2026-02-13T10:00:00Z\"\nsubject: \"Question {number}\"\nbody: |\n{}",
        line.repeat(11)
    )
}

/// Makes a review request of about 1 KiB, for a review of its own.
pub(crate) fn request(number: usize) -> String {
    let line = "    What was changed, why it was, and where a reviewer should look at first.\n";
    format!(
        "id: msg-{number:06}\nfrom: claude\nto: codex\ntype: review_request\npriority: P1\n\
         created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"{number}\"\n\
         subject: \"Review: change {number}\"\nbody: |\n  pr: {number}\n  branch: claude/change-{number}\n  \
         diff_summary: |\n{}  max_turns_reviewer: 8\n  max_runtime_s_reviewer: 600\n",
        line.repeat(9)
    )
}

/// Makes the approval of such a request.
pub(crate) fn approval(number: usize) -> String {
    format!(
        "id: lgtm-{number}\nfrom: codex\nto: claude\ntype: review_lgtm\npriority: P1\n\
         created_at_utc: \"2026-02-13T11:30:00Z\"\nrelated_pr: \"{number}\"\nsubject: \"LGTM: change {number}\"\nbody: |\n  \
         quality_gate_result: pass\n  merge_ready: true\n"
    )
}

/// A serving daemon, stopped at the end.
pub(crate) struct Served {
    child: Child,
    pub(crate) root: PathBuf,
}

impl Served {
    pub(crate) fn start(root: &Path) -> Result<Self> {
        let mut child = Command::new(settled())
            .arg("serve")
            .arg(root)
            .env("SETTLED_LOG", "settled=info")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let log = child.stderr.take().expect("standard error is piped");
        let mut lines = BufReader::new(log).lines();
        for line in lines.by_ref() {
            if line?.contains("serving") {
                // Keep reading, or the daemon blocks once the pipe is full.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(Self {
                    child,
                    root: root.to_owned(),
                });
            }
        }
        Err("the daemon did not start".into())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it without letting it finish.
    pub(crate) fn kill(mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub(crate) fn outbox(&self) -> PathBuf {
        self.root.join("agents/claude/outbox")
    }

    pub(crate) fn inbox(&self) -> PathBuf {
        self.root.join("agents/codex/inbox")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None))
            && let Ok(pid) = i32::try_from(self.child.id())
            && let Some(pid) = Pid::from_raw(pid)
        {
            let _ = kill_process(pid, Signal::INT);
        }
        let _ = self.child.wait();
    }
}
