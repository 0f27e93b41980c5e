//! The change that a reviewer must read, and the daemon's evidence that it did: files that its runner saw read,
//! commands that it saw run.

use std::collections::BTreeSet;

use message_schema::id::{CommitSha, DiffDigest, RepoPath};
use serde::{Deserialize, Serialize};

/// The change of a round, as the request describes it.
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
    /// The files that differ, sorted; empty if the request does not name them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub files: Vec<RepoPath>,
}

/// The change of a round, and the evidence that it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ReadingState {
    /// The change to read.
    pub change: Change,
    /// The changed files that the runner saw the reviewer read.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub observed: BTreeSet<RepoPath>,
    /// The last run of each validation command that the daemon's side executed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub runs: Vec<ObservedRun>,
}

/// A validation command that the daemon's runner or `settled validate-run` executed itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ObservedRun {
    /// The command line.
    pub command: String,
    /// Its exit code; `None` if a signal or its time limit ended it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit: Option<i32>,
    /// Its duration in milliseconds.
    pub duration_ms: u64,
    /// The SHA-256 of its output, standard output and errors together.
    pub output: DiffDigest,
    /// The commit it ran on, if that is known and the checkout had no changes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub head: Option<CommitSha>,
}

impl ObservedRun {
    /// True if it ended with exit code 0.
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

/// A record's addition to the reading state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadingStep {
    /// A request names the change to read.
    Asked(Change),
    /// The runner saw these files read.
    Observed(Vec<RepoPath>),
    /// A command ran.
    Ran(ObservedRun),
}

impl ReadingState {
    /// Returns the runs that count for an approval of this commit: those on exactly it. Where either commit is not known
    /// none counts.
    pub fn runs_on(&self, commit: Option<&CommitSha>) -> impl Iterator<Item = &ObservedRun> {
        self.runs.iter().filter(move |run| {
            let on = run.head.as_ref().zip(commit);
            on.is_some_and(|(on, commit)| on.same_commit(commit))
        })
    }

    /// Forgets which files the runner saw read: another reviewer read them. Runs of commands count for every reviewer.
    pub fn forget_reader(&mut self) {
        self.observed.clear();
    }

    /// Adds a step. A request for another diff discards everything seen before.
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

/// The evidence behind an approval, in numbers of files and commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ApprovalEvidence {
    /// True if the response names the request's diff.
    pub digest_matches: bool,
    /// Changed files that only the response's own claim covers.
    pub declared: usize,
    /// Changed files that `settled diff` printed, as the response says.
    pub served: usize,
    /// Changed files that the runner saw read.
    pub observed: usize,
    /// Changed files that nothing covers.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub missing: Vec<RepoPath>,
    /// Commands that only the response claims were run.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub commands_declared: Vec<String>,
    /// Commands that the daemon's side ran itself, on this very commit.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub commands_observed: Vec<ObservedRun>,
}

/// Returns the files of a change that are tests by their path or name.
pub fn edited_tests(files: &[RepoPath]) -> Vec<&RepoPath> {
    files.iter().filter(|file| is_test(file.as_str())).collect()
}

fn is_test(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_folder = |folder: &str| {
        matches!(
            folder,
            "test" | "tests" | "spec" | "specs" | "__tests__" | "testdata" | "__snapshots__"
        )
    };
    let stem = name.split('.').next().unwrap_or(name);
    folders.split('/').any(is_folder)
        || matches!(stem, "test" | "tests" | "conftest")
        || stem.starts_with("test_")
        || ["_test", "_tests", "_spec", "Test", "Tests", "Spec"]
            .iter()
            .any(|end| stem.ends_with(end))
        || [".test.", ".spec."].iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_known_by_their_folder_or_their_name() {
        for test in [
            "tests/it/a.rs",
            "src/parser/test/x.c",
            "a_test.go",
            "test_a.py",
            "web/a.test.ts",
            "spec/a.rb",
            "src/FooTest.java",
            "conftest.py",
        ] {
            assert!(is_test(test), "{test}");
        }
        for other in [
            "src/attest.rs",
            "latest/a.rs",
            "src/contest.py",
            "testing.md",
        ] {
            assert!(!is_test(other), "{other}");
        }
    }
}
