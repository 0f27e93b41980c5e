//! Decides in which files a command works: those of the commit under review, in a tree of the run's own, or those that
//! in the agent's `workdir`. Reads the repository; the keeper makes the tree, since a large one takes its time.

use std::path::{Path, PathBuf};

use git::{GitError, Repository};
use message_schema::id::CommitSha;
use runner::checkout::Checkout;
use workspace::config::{AgentSection, CheckoutMode};
use workspace::error::chain;

/// The directory a command starts in, and its checkout.
#[derive(Clone, Debug)]
pub(super) struct CodePlace {
    /// The directory it starts in.
    pub(super) workdir: PathBuf,
    /// The checkout that contains it, if the command has one of its own.
    pub(super) checkout: Option<Checkout>,
}

impl CodePlace {
    /// The place of the run with that id, which is to review this commit, if one is known.
    pub(super) fn of(
        root: &Path,
        agent: &AgentSection,
        id: &str,
        (base, head): (Option<&CommitSha>, Option<&CommitSha>),
    ) -> Self {
        let workdir = root.join(&agent.workdir);
        let found = match (agent.checkout, head) {
            (CheckoutMode::Head, Some(head)) => Self::of_commit(root, agent, id, (base, head)),
            (CheckoutMode::Workdir, _) | (_, None) => Ok(None),
        };
        let found = found.unwrap_or_else(|error| {
            tracing::warn!(run = id, error = %chain(&error), "git cannot be asked for the commit under review");
            None
        });
        found.unwrap_or(Self {
            workdir,
            checkout: None,
        })
    }

    /// The place in a tree of that commit, if the directory is in a repository.
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
            // No tree can be made of it, and the start fails: the repository does not have the commit to review.
            None if repository.exists() => head.clone(),
            None => return Ok(None),
        };
        let below = repository.prefix()?;
        let is_in_commit =
            !below.as_os_str().is_empty() && repository.has_directory(&commit, &below)?;
        // Git knows a worktree by the path without links.
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

    /// The top of the code, as far as it is known.
    pub(super) fn tree(&self) -> &Path {
        self.checkout
            .as_ref()
            .map_or(&self.workdir, |own| &own.tree)
    }
}
