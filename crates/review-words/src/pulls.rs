//! The state of pull requests from their events: open or not, their authors and their heads.

use std::collections::BTreeMap;

use message_schema::id::{CommitSha, PrNumber, Repo};
use serde::{Deserialize, Serialize};

use crate::event::{PullAction, PullEvent};
use crate::table::{RowKey, Table};

/// One pull request, according to its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pull {
    /// The last event's action.
    pub last: PullAction,
    /// The author's name at the forge.
    pub author: Option<String>,
    /// Its head commit.
    pub head: Option<CommitSha>,
}

impl Pull {
    /// True if it is neither closed nor merged.
    pub fn is_open(&self) -> bool {
        match self.last {
            PullAction::Opened | PullAction::Synchronize | PullAction::Reopened => true,
            PullAction::Closed | PullAction::Merged => false,
        }
    }
}

/// The pull requests that had events, by number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pulls(pub Table<b'p'>);

/// The pull requests of one number. An event that names no repository may be about any of them, so it applies to all; a
/// query that names none gets the last event of all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PullsOfNumber {
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
    /// Returns the last report about a pull request, or about one that may be the same.
    pub fn get(&self, repo: Option<&Repo>, pr: &PrNumber) -> Option<Pull> {
        self.of_number(&row_of_number(pr))?.get(repo).cloned()
    }

    fn of_number(&self, row: &RowKey) -> Option<PullsOfNumber> {
        let json = self.0.get(row)?;
        Some(serde_json::from_slice(&json).expect("what was written as JSON"))
    }

    /// Applies an event; fields that it leaves out keep their values.
    pub fn note(&mut self, event: &PullEvent) {
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

/// Returns the row of the pull requests of a number.
pub fn row_of_number(pr: &PrNumber) -> RowKey {
    Table::<b'p'>::key(&[pr.to_canonical().as_str().as_bytes()])
}
