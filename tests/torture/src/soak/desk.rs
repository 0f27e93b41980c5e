//! The agents' work at their mailboxes: writes messages, in place or by renaming, and takes what arrives.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use settled_tests::write;

use crate::dice::Dice;
use crate::taker::{Take, name_of, visible};

/// The mailboxes of a workspace, everything taken from them, and files in progress.
#[derive(Debug)]
pub(super) struct Desk {
    root: PathBuf,
    pub(super) dice: Dice,
    pub(super) takes: Vec<Take>,
    /// Files whose first half was written in place, each with its second half.
    halves: Vec<(PathBuf, String)>,
    written: u64,
}

/// A message that arrived.
#[derive(Clone, Debug)]
pub(super) struct Came {
    pub(super) to: &'static str,
    text: String,
}

impl Came {
    /// Returns the first value of a field, of the envelope or the body.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.text.lines();
        let rest =
            lines.find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
        Some(rest.trim().trim_matches(['"', '\'']))
    }

    /// True if it says that a review was escalated.
    pub(super) fn is_escalation(&self) -> bool {
        self.field("subject")
            .is_some_and(|subject| subject.contains(" is with a person"))
    }

    /// Returns its pull request.
    pub(super) fn pr(&self) -> Option<u64> {
        self.field("related_pr")
            .or_else(|| self.field("pr"))?
            .parse()
            .ok()
    }
}

impl Desk {
    pub(super) fn new(root: &Path, dice: Dice) -> Self {
        Self {
            root: root.to_owned(),
            dice,
            takes: Vec::new(),
            halves: Vec::new(),
            written: 0,
        }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns a unique id.
    pub(super) fn id(&mut self, word: &str) -> String {
        self.written += 1;
        format!("{word}-{:06}", self.written)
    }

    /// Returns true with a probability of `percent`.
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.dice.roll(100) < percent
    }

    /// Posts a message: mostly by a rename, sometimes in place, and rarely in two halves with time between.
    pub(super) fn post(&mut self, from: &str, name: &str, text: &str) {
        let outbox = self.root.join("agents").join(from).join("outbox");
        let path = outbox.join(format!("{name}.yaml"));
        match self.dice.roll(20) {
            0 => {
                let middle = (0..=text.len() / 2)
                    .rev()
                    .find(|at| text.is_char_boundary(*at))
                    .unwrap_or(0);
                write(&path, &text[..middle]);
                self.halves.push((path, text[middle..].to_owned()));
            }
            1..5 => write(&path, text),
            _ => {
                let temporary = outbox.join(format!(".{name}.part"));
                write(&temporary, text);
                std::fs::rename(&temporary, path).expect("both names lie in one directory");
            }
        }
    }

    /// Writes the second halves, except where the daemon put the file away meanwhile.
    pub(super) fn finish_halves(&mut self) {
        for (path, rest) in self.halves.drain(..) {
            if let Ok(mut file) = OpenOptions::new().append(true).open(&path) {
                // If the disk is full, the daemon refuses the half.
                let _ = file.write_all(rest.as_bytes());
            }
        }
    }

    /// Writes a findings packet.
    pub(super) fn lay(&self, name: &str, text: &str) {
        write(self.root.join("packets/findings").join(name), text);
    }

    /// Takes everything in an inbox: one reader archives it, the others remove it.
    pub(super) fn take(&mut self, agent: &'static str) -> Vec<Came> {
        let of = self.root.join("agents").join(agent);
        let mut came = Vec::new();
        for path in visible(&of.join("inbox")) {
            let bytes = std::fs::read(&path).expect("nobody else takes from this inbox");
            let file = name_of(&path);
            came.push(Came {
                to: agent,
                text: String::from_utf8_lossy(&bytes).into_owned(),
            });
            if agent == "claude" {
                // A file put there by hand may have the name of an archived one.
                let archived = of.join("archive").join(&file);
                std::fs::rename(&path, archived).expect("both lie on one file system");
            } else {
                std::fs::remove_file(&path).expect("nobody else takes from this inbox");
                self.takes.push(Take {
                    agent: agent.to_owned(),
                    file,
                    bytes,
                });
            }
        }
        came
    }

    /// Counts the files in all outboxes.
    pub(super) fn unjudged(&self) -> usize {
        let outboxes = settled_tests::list(self.root.join("agents"));
        outboxes
            .iter()
            .map(|agent| visible(&agent.join("outbox")).len())
            .sum()
    }
}
