//! What is known of pull requests from their events: open or not, by whom, at which commit.

use std::collections::BTreeMap;

use message_schema::id::{CommitSha, PrNumber, Repo};
use serde::{Deserialize, Serialize};

use crate::words::event::{PullAction, PullEvent};
use crate::words::table::{RowKey, Table};

/// One pull request, as its events tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// The pull requests that had events, by number.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pulls(pub(crate) Table<b'p'>);

/// The pull requests of one number. An event that names no repository may be of any, so it is noted
/// for all; a question that names none is answered with what was heard last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PullsOfNumber {
    named: BTreeMap<Repo, Pull>,
    /// From events that name no repository.
    unnamed: Option<Pull>,
    last: Option<Pull>,
}

impl PullsOfNumber {
    fn get(&self, repo: Option<&Repo>) -> Option<&Pull> {
        match repo {
            Some(repo) => self
                .named
                .get(&repo.to_canonical())
                .or(self.unnamed.as_ref()),
            None => self.last.as_ref(),
        }
    }
}

impl Pulls {
    /// The last report about a pull request, or about one that may be the same.
    pub(crate) fn get(&self, repo: Option<&Repo>, pr: &PrNumber) -> Option<Pull> {
        self.of_number(&row_of_number(pr))?.get(repo).cloned()
    }

    fn of_number(&self, row: &RowKey) -> Option<PullsOfNumber> {
        let json = self.0.get(row)?;
        Some(serde_json::from_slice(&json).expect("what was written as JSON"))
    }

    /// Notes an event; what it does not say stays as it was.
    pub(crate) fn note(&mut self, event: &PullEvent) {
        let row = row_of_number(&event.pr);
        let mut of_number = self.of_number(&row).unwrap_or_default();
        let after = |before: Option<&Pull>| Pull {
            last: event.action,
            author: event.author.clone().or_else(|| before?.author.clone()),
            head: event.head.clone().or_else(|| before?.head.clone()),
        };
        let now = after(of_number.get(event.repo.as_ref()));
        match &event.repo {
            Some(repo) => {
                of_number.named.insert(repo.to_canonical(), now.clone());
            }
            None => {
                of_number
                    .named
                    .values_mut()
                    .for_each(|pull| *pull = after(Some(pull)));
                of_number.unnamed = Some(now.clone());
            }
        }
        of_number.last = Some(now);
        let json = serde_json::to_vec(&of_number).expect("text keys and plain values are JSON");
        self.0.put(row, json);
    }
}

/// The row of the pull requests of a number.
pub(crate) fn row_of_number(pr: &PrNumber) -> RowKey {
    Table::<b'p'>::key(&[pr.to_canonical().as_str().as_bytes()])
}
