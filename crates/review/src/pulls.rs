//! What is known of pull requests from their events: open or not, by whom, at which commit.

use std::collections::BTreeMap;

use message_schema::id::{CommitSha, PrNumber, Repo};

use crate::event::{PullAction, PullEvent};

/// One pull request, as its events tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    /// The last thing that happened to it.
    pub last: PullAction,
    /// Who opened it, by its name at the forge.
    pub author: Option<String>,
    /// The commit it stands at.
    pub head: Option<CommitSha>,
}

impl Pull {
    /// Whether it can still change.
    pub fn is_open(&self) -> bool {
        match self.last {
            PullAction::Opened | PullAction::Synchronize | PullAction::Reopened => true,
            PullAction::Closed | PullAction::Merged => false,
        }
    }
}

/// The pull requests that had events.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pulls(BTreeMap<PrNumber, BTreeMap<Option<Repo>, Pull>>);

impl Pulls {
    /// A pull request; where one side does not name the repository, the number is enough if only
    /// one repository is known to have it.
    pub(crate) fn get(&self, repo: Option<&Repo>, pr: &PrNumber) -> Option<&Pull> {
        let of_number = self.0.get(&pr.to_canonical())?;
        let repo = repo.map(Repo::to_canonical);
        let exact = of_number.get(&repo);
        let unnamed = || repo.as_ref().and_then(|_| of_number.get(&None));
        let only = || match of_number.iter().next() {
            Some((_, pull)) if repo.is_none() && of_number.len() == 1 => Some(pull),
            Some(_) | None => None,
        };
        exact.or_else(unnamed).or_else(only)
    }

    /// Notes an event; what it does not say stays as it was.
    pub(crate) fn note(&mut self, event: &PullEvent) {
        let before = self.get(event.repo.as_ref(), &event.pr).cloned();
        let (author, head) = before.map_or((None, None), |pull| (pull.author, pull.head));
        let pull = Pull {
            last: event.action,
            author: event.author.clone().or(author),
            head: event.head.clone().or(head),
        };
        let of_number = self.0.entry(event.pr.to_canonical()).or_default();
        of_number.insert(event.repo.as_ref().map(Repo::to_canonical), pull);
    }
}
