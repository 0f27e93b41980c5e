//! Decides which files a command works on: those of the commit under review, in a tree of the run's own, or those in
//! the agent's `workdir`. Reads the repository, on a thread, and leaves the tree to the keeper, because a large one takes
//! long.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use git::{GitError, Repository};
use message_schema::id::CommitSha;
use review::ReviewKey;
use runner::checkout::Checkout;
use workspace::clock;
use workspace::config::{AgentSection, CheckoutMode};
use workspace::error::chain;

/// The reason not to start an agent that must not read some files when it has no tree to leave them out of.
const NOTHING_LEFT_OUT: &str = "`leave_out` needs a tree of the commit under review, but the request names no commit or `workdir` \
                                is outside any repository; `checkout = \"workdir\"` lets the command read all files of `workdir`";

/// The time limit of each question to git.
const PATIENCE: Duration = Duration::from_secs(10);

/// The wait for the answer of a search that begins: git nearly always gives it within some milliseconds.
const PROMPT: Duration = Duration::from_millis(100);

/// Everything on which the place of a run depends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlaceQuestion {
    pub(super) root: PathBuf,
    pub(super) agent: AgentSection,
    /// The commit to compare with, if the request names one.
    pub(super) base: Option<CommitSha>,
    /// The commit under review, if the request names one.
    pub(super) head: Option<CommitSha>,
}

/// A search for the place of a run, on a thread of its own: others write the repository, and a pipe in place of one of
/// its files keeps git waiting. The daemon's loop must never block.
#[derive(Debug)]
pub(super) struct PlaceSearch {
    /// The id of the run.
    pub(super) id: String,
    question: PlaceQuestion,
    answer: Receiver<io::Result<CodePlace>>,
}

impl PlaceSearch {
    /// Begins a search for the run with this id.
    fn begin(id: String, question: PlaceQuestion) -> Self {
        let (tell, answer) = sync_channel(1);
        let (asked, run) = (question.clone(), id.clone());
        let search = move || {
            let commits = (asked.base.as_ref(), asked.head.as_ref());
            // Nobody listens any more if the request is over.
            let _ = tell.send(CodePlace::of(&asked.root, &asked.agent, &run, commits));
        };
        // Without a thread the channel closes, and the start fails.
        let _ = thread::Builder::new().spawn(search);
        Self {
            id,
            question,
            answer,
        }
    }

    /// Returns the place once the search for this question has ended, and starts a search if there is none.
    pub(super) fn poll_or_begin(
        searches: &mut BTreeMap<ReviewKey, Self>,
        key: &ReviewKey,
        question: PlaceQuestion,
    ) -> Option<(String, io::Result<CodePlace>)> {
        let known = searches
            .remove(key)
            .filter(|known| known.question == question);
        let wait = if known.is_some() {
            Duration::ZERO
        } else {
            PROMPT
        };
        let search = known.unwrap_or_else(|| Self::begin(clock::new_name(), question));
        match search.answer.recv_timeout(wait) {
            Ok(answer) => Some((search.id, answer)),
            Err(RecvTimeoutError::Disconnected) => {
                let why = "the search for the commit under review did not run to its end";
                Some((search.id, Err(io::Error::other(why))))
            }
            Err(RecvTimeoutError::Timeout) => {
                searches.insert(key.clone(), search);
                None
            }
        }
    }
}

/// The directory a command starts in, and its checkout.
#[derive(Clone, Debug)]
pub(super) struct CodePlace {
    /// The directory in which the command starts.
    pub(super) workdir: PathBuf,
    /// The checkout that contains it, if the command has one of its own.
    pub(super) checkout: Option<Checkout>,
}

impl CodePlace {
    /// Finds the place for a run that reviews this commit, if the commit is known. Fails if the commit could only be
    /// reviewed in files other than its own, or if files must be left out and there is no tree.
    fn of(
        root: &Path,
        agent: &AgentSection,
        id: &str,
        (base, head): (Option<&CommitSha>, Option<&CommitSha>),
    ) -> io::Result<Self> {
        let workdir = root.join(&agent.workdir);
        let found = match (agent.checkout, head) {
            (CheckoutMode::Head, Some(head)) => Self::of_commit(root, agent, id, (base, head)),
            (CheckoutMode::Workdir, _) | (_, None) => Ok(None),
        };
        let found = match found {
            Err(error @ GitError::NotRun { .. }) if !is_in_repository(&workdir) => {
                tracing::warn!(run = id, error = %chain(&error), "cannot ask git for the commit under review");
                None
            }
            found => found.map_err(|error| io::Error::other(chain(&error)))?,
        };
        if found.is_none() && agent.checkout == CheckoutMode::Head && !agent.leave_out.is_empty() {
            return Err(io::Error::other(NOTHING_LEFT_OUT));
        }
        Ok(found.unwrap_or(Self {
            workdir,
            checkout: None,
        }))
    }

    /// The place in a tree of that commit, if `workdir` is in a repository.
    fn of_commit(
        root: &Path,
        agent: &AgentSection,
        id: &str,
        (base, head): (Option<&CommitSha>, &CommitSha),
    ) -> Result<Option<Self>, GitError> {
        let workdir = &root.join(&agent.workdir);
        let repository = Repository::at(workdir).within(PATIENCE);
        let commit = match repository.commit(head)? {
            Some(commit) => commit,
            // The repository does not have the commit, so the keeper cannot make the tree and the start fails.
            None if repository.look_for()? => head.clone(),
            None => return Ok(None),
        };
        let below = repository.prefix()?;
        let is_in_commit =
            !below.as_os_str().is_empty() && repository.has_directory(&commit, &below)?;
        // Git knows a worktree by its path without symbolic links.
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let checkout = Checkout {
            leave_out: agent.leave_out.clone(),
            ..Checkout::of(&root, id, workdir, (base, commit))
        };
        let tree = &checkout.tree;
        Ok(Some(Self {
            workdir: if is_in_commit {
                tree.join(below)
            } else {
                tree.clone()
            },
            checkout: Some(checkout),
        }))
    }

    /// The top directory of the code, as far as it is known.
    pub(super) fn tree(&self) -> &Path {
        self.checkout
            .as_ref()
            .map_or(&self.workdir, |own| &own.tree)
    }
}

/// True if the directory or one above it has the entry by which git finds a repository.
fn is_in_repository(directory: &Path) -> bool {
    directory
        .ancestors()
        .any(|above| above.join(".git").exists())
}

#[cfg(test)]
#[path = "../../../../tests/sh.rs"]
mod sh;

#[cfg(test)]
mod tests {
    use super::sh::sh;
    use super::*;

    #[test]
    fn a_run_has_a_tree_of_its_commit_without_what_is_left_out() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("a path");
        let agent = AgentSection {
            checkout: CheckoutMode::Head,
            leave_out: vec!["CLAUDE.md".to_owned()],
            ..AgentSection::default()
        };
        let place = |agent: &AgentSection, head: Option<&CommitSha>| {
            CodePlace::of(&root, agent, "run-1", (None, head)).map_err(|error| error.to_string())
        };
        sh(&root, "git init -q; git commit -q --allow-empty -m x");
        let head = CommitSha::new(sh(&root, "git rev-parse HEAD")).expect("a commit");

        let found = place(&agent, Some(&head)).expect("a tree");
        let own = found.checkout.as_ref().expect("a checkout");
        assert_eq!((&own.commit, &own.leave_out), (&head, &agent.leave_out));
        assert_eq!((&found.workdir, found.tree()), (&own.tree, &*own.tree));
        assert_eq!(place(&agent, None).err().as_deref(), Some(NOTHING_LEFT_OUT));
        let in_workdir = AgentSection {
            checkout: CheckoutMode::Workdir,
            ..agent
        };
        let found = place(&in_workdir, Some(&head)).expect("the files of the workdir");
        assert!(found.checkout.is_none());
        assert_eq!(found.workdir, root.join(&in_workdir.workdir));
    }
}
