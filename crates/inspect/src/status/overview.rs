//! The whole workspace at a glance: every review, whose move it is, what waits, and the size of the ledger.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::num::NonZero;

use chrono::{DateTime, Utc};
use message_schema::id::AgentName;
use review::{OpenPair, PairId};
use serde::Serialize;
use workspace::operator_alerts::Alert;

use super::WorkspaceStatus;
use super::hosts::{self, HostRow};
use super::row::ReviewRow;

/// The state of a workspace. Fields are added, never changed.
#[derive(Debug, Serialize)]
pub struct Status {
    /// True if a daemon serves the workspace.
    pub serving: Option<bool>,
    /// The number of accepted messages.
    pub accepted: u64,
    /// The number of refused messages.
    pub refused: u64,
    /// The number of messages in outboxes that the daemon has not judged yet.
    pub waiting: usize,
    /// The same, by agent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting_of: Vec<Count>,
    /// The refused messages that nobody corrected, by agent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dead_letters: Vec<Count>,
    /// The move that has been owed the longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_wait: Option<Wait>,
    /// The extent of the ledger.
    pub ledger: Ledger,
    /// The reviews that somebody has to act on, and the 64 others that changed last; or every review. In the order of
    /// their keys, unless a limit left some out.
    pub reviews: Vec<ReviewRow>,
    /// The number of reviews that a limit left out of the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<NonZero<usize>>,
    /// The number of reviews in each phase, including those that are not in the list.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub phases: BTreeMap<String, u64>,
    /// Pairs that are running or can be resumed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<PairRow>,
    /// The daemon's alerts that only an operator can fix.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alerts: Vec<Alert>,
    /// The hosts that share the ledger.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostRow>,
}

/// A pair of commands that take turns.
#[derive(Debug, Serialize)]
pub struct PairRow {
    /// Its name.
    pub pair: String,
    /// The agent whose command writes.
    pub author: String,
    /// The agent whose command reviews.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<String>,
    /// The state of the pair, in a word.
    pub state: &'static str,
    /// The number of times the author's command has run.
    pub iteration: u8,
    /// The number of times it may run.
    pub iterations: u8,
    /// The start of the command that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<DateTime<Utc>>,
    /// The seconds that are left of its budget.
    pub seconds_left: u64,
}

impl PairRow {
    fn of(id: &PairId, pair: &OpenPair) -> Self {
        let OpenPair { setup, status, .. } = pair;
        Self {
            pair: id.to_string(),
            author: setup.author.agent.to_string(),
            reviewer: setup
                .reviewer
                .as_ref()
                .map(|reviewer| reviewer.agent.to_string()),
            state: status.pair.run().word(),
            iteration: status.pair.iteration(),
            iterations: setup.iterations,
            since: status.began_at,
            seconds_left: status.ms_left / 1_000,
        }
    }
}

/// An agent's number of something.
#[derive(Debug, Serialize)]
pub struct Count {
    /// The agent.
    pub agent: String,
    /// The number.
    pub count: usize,
}

/// The move that somebody owes.
#[derive(Debug, Serialize)]
pub struct Wait {
    /// The review.
    pub review: String,
    /// The agent or person who owes the move.
    pub mover: String,
    /// The time since when the mover owes the move.
    pub since: DateTime<Utc>,
}

/// The extent of the ledger.
#[derive(Debug, Serialize)]
pub struct Ledger {
    /// The number of records.
    pub records: u64,
    /// The number of files that hold them.
    pub segments: usize,
    /// Their total size.
    pub bytes: u64,
    /// The last record of the newest usable snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<u64>,
    /// The old files that `settled gc` would remove; absent where everything is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removable: Option<Removable>,
}

/// The files that `settled gc` would remove.
#[derive(Debug, Serialize)]
pub struct Removable {
    /// Their number.
    pub files: u64,
    /// Their size.
    pub bytes: u64,
}

/// The reviews that an overview lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedReviews {
    /// Those that somebody has to act on, and the others that changed last.
    Current,
    /// Every review there ever was.
    All,
}

impl Status {
    /// The number of reviews that would not be in the list without a limit either.
    pub fn unlisted(&self) -> u64 {
        let all: u64 = self.phases.values().sum();
        let current = self.reviews.len() + self.left_out.map_or(0, NonZero::get);
        all.saturating_sub(current as u64)
    }

    /// Lists at most `most` reviews: first those that somebody has to act on, of each kind the newest first.
    pub fn limit(&mut self, most: usize) {
        self.left_out = NonZero::new(self.reviews.len().saturating_sub(most));
        if self.left_out.is_some() {
            let rank = |row: &ReviewRow| (row.mover.is_none(), Reverse(row.since));
            self.reviews.sort_by_key(rank);
            self.reviews.truncate(most);
        }
    }

    /// Makes the overview, with what `settled gc` would remove where the config lets it remove anything.
    pub fn of(
        status: &WorkspaceStatus,
        removable: Option<Removable>,
        listed: ListedReviews,
    ) -> Self {
        let (state, folded) = (status.index.state(), &status.folded);
        let count = |(agent, count): &(AgentName, usize)| Count {
            agent: agent.to_string(),
            count: *count,
        };
        let dead = |agent: &AgentName| {
            status
                .dead
                .iter()
                .filter(|open| open.agent() == agent)
                .count()
        };
        let dead = status.agents.iter().map(|agent| Count {
            agent: agent.to_string(),
            count: dead(agent),
        });
        let row = |(key, review)| ReviewRow::of(state, key, review);
        let reviews: Vec<ReviewRow> = match listed {
            ListedReviews::Current => state.current_reviews().map(row).collect(),
            ListedReviews::All => state.reviews().map(row).collect(),
        };
        Self {
            serving: status.serving,
            accepted: state.accepted(),
            refused: status.index.refused(),
            waiting: status.unjudged.count(),
            waiting_of: status.unjudged.counts.iter().map(count).collect(),
            dead_letters: dead.filter(|dead| dead.count > 0).collect(),
            oldest_wait: reviews
                .iter()
                .filter_map(|row| {
                    let (review, mover) = (row.review.clone(), row.mover.clone()?);
                    Some(Wait {
                        review,
                        mover,
                        since: row.since,
                    })
                })
                .min_by_key(|wait| wait.since),
            ledger: Ledger {
                records: folded.verified.records,
                segments: folded.verified.segments,
                bytes: folded.verified.bytes,
                snapshot: folded.snapshot,
                removable,
            },
            reviews,
            left_out: None,
            phases: state.phases(),
            pairs: state
                .pairs()
                .map(|(id, pair)| PairRow::of(id, pair))
                .collect(),
            alerts: status.alerts.clone(),
            hosts: hosts::rows(&status.index.fleet, status.host.as_ref(), &status.heard),
        }
    }
}

#[cfg(test)]
mod tests {
    use review::{PairMember, PairSetup, PairStatus, SignalWords};

    use super::*;

    #[test]
    fn a_pair_shows_whose_turn_it_is_and_the_whole_seconds_that_are_left() {
        let member = |agent: &str| PairMember {
            agent: agent.parse().expect("a name"),
            command: "true".to_owned(),
            output: "text".to_owned(),
        };
        let setup = PairSetup {
            author: member("claude"),
            reviewer: Some(member("codex")),
            workdir: ".".to_owned(),
            task: "a parser".to_owned(),
            pr: None,
            iterations: 4,
            run_seconds: 60,
            seconds: 90,
            turns: None,
            words: SignalWords::default(),
        };
        let status = PairStatus {
            ms_left: 89_999,
            ..PairStatus::new(&setup)
        };
        let pair = OpenPair {
            setup,
            opened_at: DateTime::UNIX_EPOCH,
            status,
            asked_for: std::collections::BTreeSet::new(),
        };
        let row = PairRow::of(&PairId("pair-1".parse().expect("an id")), &pair);
        let shown = serde_json::to_value(row).expect("plain values");
        let expected = serde_json::json!({
            "pair": "pair-1", "author": "claude", "reviewer": "codex", "state": "init",
            "iteration": 0, "iterations": 4, "seconds_left": 89,
        });
        assert_eq!(shown, expected);
    }
}
