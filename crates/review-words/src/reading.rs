//! What a reviewer is asked to read, and what the daemon knows of how that was done: files that its runner saw read,
//! commands that it saw run.

use std::collections::BTreeSet;

use message_schema::id::{CommitSha, DiffDigest, RepoPath};
use serde::{Deserialize, Serialize};

/// What differs, as the request says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Change {
    /// The commit it is based on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub base: Option<CommitSha>,
    /// The head of the round.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub head: Option<CommitSha>,
    /// The digest of the diff.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub digest: Option<DiffDigest>,
    /// The files that differ, sorted; none means that the request does not say.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub files: Vec<RepoPath>,
}

/// What is to be read in a round, and what was seen of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ReadingState {
    /// What is to be read.
    pub change: Change,
    /// The changed files that the runner saw the reviewer read.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub observed: BTreeSet<RepoPath>,
    /// The last run of each validation command that the daemon's side carried out.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub runs: Vec<ObservedRun>,
}

/// A validation command that the daemon's runner or `settled validate-run` carried out itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ObservedRun {
    /// The command line.
    pub command: String,
    /// The code it ended with; none if a signal ended it, or its time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit: Option<i32>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The SHA-256 of what it printed, standard output and errors together.
    pub output: DiffDigest,
    /// The commit that was checked out, where that is known and nothing was changed in it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub head: Option<CommitSha>,
}

impl ObservedRun {
    /// Whether it went as it should.
    pub fn passed(&self) -> bool {
        self.exit == Some(0)
    }
}

impl std::fmt::Display for ObservedRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            command,
            duration_ms,
            output,
            ..
        } = self;
        match self.exit {
            Some(code) => write!(f, "{command}: exit code {code}, ")?,
            None => write!(f, "{command}: ended by a signal or its time limit, ")?,
        }
        write!(f, "{duration_ms} ms, output {output}")
    }
}

/// What a record adds to what is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadingStep {
    /// A request says what is to be read.
    Asked(Change),
    /// The runner saw these files read.
    Observed(Vec<RepoPath>),
    /// A command was run.
    Ran(ObservedRun),
}

impl ReadingState {
    /// Forgets what the runner saw: it was another reviewer that read. Commands were run for every reviewer.
    pub fn forget_reader(&mut self) {
        self.observed.clear();
    }

    /// Adds a step. What was seen of one diff says nothing of another.
    pub fn add(&mut self, step: &ReadingStep) {
        match step {
            ReadingStep::Asked(change) => {
                if change.digest.is_none() || change.digest != self.change.digest {
                    *self = Self::default();
                }
                self.change = change.clone();
            }
            ReadingStep::Observed(files) => self.observed.extend(files.iter().cloned()),
            ReadingStep::Ran(run) => {
                self.runs.retain(|known| known.command != run.command);
                self.runs.push(run.clone());
            }
        }
    }
}

/// What an approval rests on, in numbers of files and commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ApprovalEvidence {
    /// Whether the response names the request's diff.
    pub digest_matches: bool,
    /// Changed files that only the response's own word covers.
    pub declared: usize,
    /// Changed files that `settled diff` printed, as the response says.
    pub served: usize,
    /// Changed files that the runner saw read.
    pub observed: usize,
    /// Changed files that nothing covers.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub missing: Vec<RepoPath>,
    /// Commands that only the response says were run.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub commands_declared: Vec<String>,
    /// Commands that the daemon's side ran itself, on this very commit.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub commands_observed: Vec<ObservedRun>,
}
