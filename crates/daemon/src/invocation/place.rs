//! Decides which files a command works on: those of the commit under review, in a tree of the run's own, or those in
//! the agent's `workdir`. Reads the repository but leaves the tree to the keeper, because a large one takes long.

use std::io;
use std::path::{Path, PathBuf};

use git::{GitError, Repository};
use message_schema::id::CommitSha;
use runner::checkout::Checkout;
use workspace::config::{AgentSection, CheckoutMode};
use workspace::error::chain;

/// The reason not to start an agent that must not read some files when it has no tree to leave them out of.
const NOTHING_LEFT_OUT: &str = "`leave_out` needs a tree of the commit under review, and the request names no commit or `workdir` is \
                                in no repository; `checkout = \"workdir\"` lets the command read all files of `workdir`";

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
    pub(super) fn of(
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
                tracing::warn!(run = id, error = %chain(&error), "git cannot be asked for the commit under review");
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
        let repository = Repository::at(workdir);
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
