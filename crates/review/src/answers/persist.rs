//! The state as lines of JSON, and back: the content of a snapshot, so that a start need not apply every record. The
//! lines leave out what follows from the rest (which deadline is next) and what is in rows.
//!
//! The code names every part of the state here, so that a new part does not compile until it is kept as well. The
//! caller decides where the lines and rows are, and whether they can be trusted.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use message_schema::id::AgentName;
use pair_machine::PairId;
use review_words::key::{ReviewKey, TaskId};
use review_words::rate::FileRate;
use review_words::table::StoredRows;
use review_words::task::Task;
use serde::{Deserialize, Serialize};

use crate::parts::admission::{Admission, Notices};
use crate::parts::open_pair::OpenPair;
use crate::parts::review::Review;
use crate::parts::spending::Spending;
use crate::parts::state::State;

/// One line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StateLine<'a> {
    /// A current review; those that become rows come last, in the order in which they will.
    Review(Cow<'a, ReviewKey>, Box<Cow<'a, Review>>),
    /// The number of reviews in rows, by phase.
    ReviewRows(Cow<'a, BTreeMap<String, u64>>),
    /// A review in a row that an agent can move, its reviewer and its deadline.
    RowDeadline(Cow<'a, ReviewKey>, Cow<'a, AgentName>, DateTime<Utc>),
    /// The claim of a review in a row.
    RowClaim(Cow<'a, TaskId>, Cow<'a, ReviewKey>),
    /// The number of accepted messages.
    Accepted(u64),
    /// The times of the limited kinds of messages from one agent to another.
    Pair(
        Cow<'a, AgentName>,
        Cow<'a, AgentName>,
        Cow<'a, VecDeque<DateTime<Utc>>>,
    ),
    /// The notices about refusals to one agent.
    Notices(Cow<'a, AgentName>, Cow<'a, Notices>),
    /// The files that came out of every outbox within the last hour.
    #[serde(rename = "volume")]
    Rate(Cow<'a, FileRate>),
    /// The spend of the agents' commands.
    Spending(Cow<'a, Spending>),
    /// A task that was handed off.
    Task(Cow<'a, Task>),
    /// A pair of commands that runs or can be resumed.
    PairOfCommands(Cow<'a, PairId>, Box<Cow<'a, OpenPair>>),
}

/// A line that does not belong to a state.
#[derive(Debug, thiserror::Error)]
#[error("the line does not belong to a state")]
pub struct RestoreError(#[from] serde_json::Error);

impl State {
    /// Passes the state to `line`, one line at a time without newlines, and stops at its first error. Equal states give
    /// equal lines.
    pub fn write_lines<E>(&self, line: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let Self {
            admission,
            reviews,
            conversations: _,
            pulls: _,
            tasks,
            orders: _,
            pairs,
            spending,
        } = self;
        for (key, review) in reviews.iter_restorable() {
            let review = Box::new(Cow::Borrowed(review));
            write(&StateLine::Review(Cow::Borrowed(key), review), line)?;
        }
        let counts = Cow::Borrowed(reviews.row_counts());
        write(&StateLine::ReviewRows(counts), line)?;
        for (at, key, reviewer) in reviews.row_deadlines() {
            let (key, reviewer) = (Cow::Borrowed(key), Cow::Borrowed(reviewer));
            write(&StateLine::RowDeadline(key, reviewer, at), line)?;
        }
        for (task, key) in reviews.row_claims() {
            write(
                &StateLine::RowClaim(Cow::Borrowed(task), Cow::Borrowed(key)),
                line,
            )?;
        }
        admission.write_lines(line)?;
        for task in tasks.values() {
            write(&StateLine::Task(Cow::Borrowed(task)), line)?;
        }
        for (id, pair) in pairs {
            write(
                &StateLine::PairOfCommands(Cow::Borrowed(id), Box::new(Cow::Borrowed(pair))),
                line,
            )?;
        }
        if *spending != Spending::default() {
            write(&StateLine::Spending(Cow::Borrowed(spending)), line)?;
        }
        Ok(())
    }
}

impl State {
    /// Returns the state restored from a snapshot of it.
    pub fn through_snapshot(&self) -> Result<Self, RestoreError> {
        let mut restore = Restore::default();
        self.write_lines(&mut |line| restore.take(line))?;
        let mut state = restore.into_state();
        state.rest_on(&(Arc::new(self.rows()) as Arc<dyn StoredRows>));
        Ok(state)
    }
}

impl Admission {
    fn write_lines<E>(&self, line: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let Self {
            known: _,
            accepted,
            pairs,
            notices,
            rate,
            daemon_ids: _,
        } = self;
        write(&StateLine::Accepted(*accepted), line)?;
        for ((from, to), times) in pairs {
            write(
                &StateLine::Pair(Cow::Borrowed(from), Cow::Borrowed(to), Cow::Borrowed(times)),
                line,
            )?;
        }
        for (agent, notices) in notices {
            write(
                &StateLine::Notices(Cow::Borrowed(agent), Cow::Borrowed(notices)),
                line,
            )?;
        }
        write(&StateLine::Rate(Cow::Borrowed(rate)), line)
    }
}

fn write<E>(
    content: &StateLine<'_>,
    line: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    line(&serde_json::to_vec(content).expect("text keys and plain values are JSON"))
}

/// A state being restored from its lines, in their order.
#[derive(Debug, Default)]
pub struct Restore {
    state: State,
}

impl Restore {
    /// Adds one line. After an error the state is unusable.
    pub fn take(&mut self, line: &[u8]) -> Result<(), RestoreError> {
        let State {
            admission,
            reviews,
            conversations: _,
            pulls: _,
            tasks,
            orders: _,
            pairs,
            spending,
        } = &mut self.state;
        match serde_json::from_slice(line)? {
            StateLine::Review(key, review) => {
                reviews.open_new(&key, review.into_owned());
            }
            StateLine::ReviewRows(counts) => reviews.restore_row_counts(counts.into_owned()),
            StateLine::RowDeadline(key, reviewer, at) => {
                reviews.restore_deadline(key.into_owned(), reviewer.into_owned(), at);
            }
            StateLine::RowClaim(task, key) => {
                reviews.restore_claim(task.into_owned(), key.into_owned());
            }
            StateLine::Accepted(count) => admission.accepted = count,
            StateLine::Pair(from, to, times) => {
                admission
                    .pairs
                    .insert((from.into_owned(), to.into_owned()), times.into_owned());
            }
            StateLine::Notices(agent, notices) => {
                admission
                    .notices
                    .insert(agent.into_owned(), notices.into_owned());
            }
            StateLine::Rate(rate) => admission.rate = rate.into_owned(),
            StateLine::Spending(known) => *spending = known.into_owned(),
            StateLine::Task(task) => {
                let task = task.into_owned();
                tasks.insert(task.id.clone(), task);
            }
            StateLine::PairOfCommands(id, pair) => {
                pairs.insert(id.into_owned(), pair.into_owned());
            }
        }
        Ok(())
    }

    /// Returns the state after its last line; the caller still has to hand in its rows.
    pub fn into_state(self) -> State {
        self.state
    }
}
