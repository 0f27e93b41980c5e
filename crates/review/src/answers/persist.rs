//! The state as lines of JSON, and back: what a snapshot keeps, so that a start need not add up every
//! record. What can be worked out from the rest (which reviews are open, which deadline is next) is
//! not written, and a key is written once: later lines name a review by its number.
//!
//! Every part of the state is taken apart by name here, so that a new one does not compile until it is
//! kept as well. Where the lines lie, and whether they can be trusted, is the caller's business.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use message_schema::id::{AgentName, ConversationId, MessageId, PrNumber};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::parts::admission::{AcceptedMessage, Admission, Notices};
use crate::parts::open_pair::OpenPair;
use crate::parts::pulls::PullsOfNumber;
use crate::parts::rate::FileRate;
use crate::parts::spending::Spending;
use crate::parts::state::State;
use crate::words::key::ReviewKey;
use crate::words::record::ContentDigest;
use crate::words::task::Task;
use pair_machine::PairId;

/// How many ids stand in one line.
const IDS_PER_LINE: usize = 256;

/// An accepted message: its id, its digest, and the number of its review.
type MessageRow<'a> = (Cow<'a, MessageId>, ContentDigest, Option<usize>);

/// One line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StateLine<'a> {
    /// A review; they are numbered from 0 in the order of their lines.
    Review(Cow<'a, ReviewKey>, Box<RawValue>),
    /// Accepted messages of one sender.
    Messages(Cow<'a, AgentName>, Vec<MessageRow<'a>>),
    /// How many messages were accepted.
    Accepted(u64),
    /// When one agent wrote to another, of the kinds that are limited.
    Pair(
        Cow<'a, AgentName>,
        Cow<'a, AgentName>,
        Cow<'a, VecDeque<DateTime<Utc>>>,
    ),
    /// What an agent was told of refusals.
    Notices(Cow<'a, AgentName>, Cow<'a, Notices>),
    /// What came out of every outbox within the last hour.
    #[serde(rename = "volume")]
    Rate(Cow<'a, FileRate>),
    /// What the commands of agents used.
    Spending(Cow<'a, Spending>),
    /// Ids of the daemon's own messages.
    DaemonIds(Vec<Cow<'a, MessageId>>),
    /// The reviews a conversation was about, by number.
    Conversation(Cow<'a, ConversationId>, Vec<usize>),
    /// What is known of the pull requests of a number.
    Pull(Cow<'a, PrNumber>, Cow<'a, PullsOfNumber>),
    /// A task that was handed off.
    Task(Cow<'a, Task>),
    /// Ids under which events were asked for.
    Orders(Vec<Cow<'a, MessageId>>),
    /// A pair of commands that goes on or may go on.
    PairOfCommands(Cow<'a, PairId>, Box<Cow<'a, OpenPair>>),
}

/// A line that is no part of a state.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// It cannot be read.
    #[error("the line is no part of a state")]
    Unreadable(#[from] serde_json::Error),
    /// It names a review that no line before it holds.
    #[error("the line speaks of review number {0}, which no line before it holds")]
    UnknownReview(usize),
}

impl State {
    /// Gives the state line by line, without newlines, to `line`, and stops at its first error. The same
    /// state gives the same lines.
    pub fn write_lines<E>(&self, line: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let Self {
            admission,
            reviews,
            conversations,
            pulls,
            tasks,
            orders,
            pairs,
            spending,
        } = self;
        let mut numbers = BTreeMap::new();
        for (number, (key, json)) in reviews.iter_json().enumerate() {
            numbers.insert(key, number);
            let json = RawValue::from_string(json).expect("a review as JSON");
            write(&StateLine::Review(Cow::Borrowed(key), json), line)?;
        }
        admission.write_lines(&numbers, line)?;
        for (id, keys) in conversations {
            let keys = keys.iter().map(|key| numbers[&**key]).collect();
            write(&StateLine::Conversation(Cow::Borrowed(id), keys), line)?;
        }
        for (pr, pull) in &pulls.0 {
            write(
                &StateLine::Pull(Cow::Borrowed(pr), Cow::Borrowed(pull)),
                line,
            )?;
        }
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
        let orders: Vec<Cow<'_, MessageId>> = orders.iter().map(Cow::Borrowed).collect();
        orders
            .chunks(IDS_PER_LINE)
            .try_for_each(|ids| write(&StateLine::Orders(ids.to_vec()), line))
    }
}

impl Admission {
    fn write_lines<E>(
        &self,
        numbers: &BTreeMap<&ReviewKey, usize>,
        line: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self {
            known,
            accepted,
            pairs,
            notices,
            rate,
            daemon_ids,
        } = self;
        write(&StateLine::Accepted(*accepted), line)?;
        for (sender, messages) in known {
            let number = |key: &Option<Arc<ReviewKey>>| key.as_deref().map(|key| numbers[key]);
            let messages: Vec<MessageRow<'_>> = messages
                .iter()
                .map(|(id, AcceptedMessage { digest, review })| {
                    (Cow::Borrowed(id), *digest, number(review))
                })
                .collect();
            for messages in messages.chunks(IDS_PER_LINE) {
                write(
                    &StateLine::Messages(Cow::Borrowed(sender), messages.to_vec()),
                    line,
                )?;
            }
        }
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
        write(&StateLine::Rate(Cow::Borrowed(rate)), line)?;
        let ids: Vec<Cow<'_, MessageId>> = daemon_ids.iter().map(Cow::Borrowed).collect();
        ids.chunks(IDS_PER_LINE)
            .try_for_each(|ids| write(&StateLine::DaemonIds(ids.to_vec()), line))
    }
}

fn write<E>(
    content: &StateLine<'_>,
    line: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    line(&serde_json::to_vec(content).expect("text keys and plain values are JSON"))
}

/// A state that is being put together again from its lines, in their order.
#[derive(Debug, Default)]
pub struct Restore {
    state: State,
    keys: Vec<Arc<ReviewKey>>,
}

impl Restore {
    /// Starts from this empty state.
    pub fn new(empty: State) -> Self {
        Self {
            state: empty,
            keys: Vec::new(),
        }
    }

    /// Adds one line. After an error the state is of no use.
    pub fn take(&mut self, line: &[u8]) -> Result<(), RestoreError> {
        let State {
            admission,
            reviews,
            conversations,
            pulls,
            tasks,
            orders,
            pairs,
            spending,
        } = &mut self.state;
        let key = |number: usize| {
            self.keys
                .get(number)
                .cloned()
                .ok_or(RestoreError::UnknownReview(number))
        };
        let own = |ids: Vec<Cow<'static, MessageId>>| ids.into_iter().map(Cow::into_owned);
        match serde_json::from_slice(line)? {
            StateLine::Review(key, json) => {
                let review = serde_json::from_str(json.get())?;
                self.keys.push(reviews.open_new(&key, review));
            }
            StateLine::Messages(sender, messages) => {
                let known = admission.known.entry(sender.into_owned()).or_default();
                for (id, digest, review) in messages {
                    let review = review.map(key).transpose()?;
                    known.insert(id.into_owned(), AcceptedMessage { digest, review });
                }
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
            StateLine::DaemonIds(ids) => admission.daemon_ids.extend(own(ids)),
            StateLine::Conversation(id, numbers) => {
                let keys = numbers.into_iter().map(key).collect::<Result<_, _>>()?;
                conversations.insert(id.into_owned(), keys);
            }
            StateLine::Pull(pr, pull) => {
                pulls.0.insert(pr.into_owned(), pull.into_owned());
            }
            StateLine::Task(task) => {
                let task = task.into_owned();
                tasks.insert(task.id.clone(), task);
            }
            StateLine::Orders(ids) => orders.extend(own(ids)),
            StateLine::PairOfCommands(id, pair) => {
                pairs.insert(id.into_owned(), pair.into_owned());
            }
        }
        Ok(())
    }

    /// The state, once it has had all its lines.
    pub fn into_state(self) -> State {
        self.state
    }
}
