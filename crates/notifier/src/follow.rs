//! Makes notices of the records after a cursor, and of a daemon that is gone.

use std::path::{Path, PathBuf};

use review::{Hold, Phase, Record, Side, State, ThreadState};
use spool::{Entry, Since, SpoolError, Tail};
use workspace::index;

use crate::notice::Notice;

/// Follows the ledger from outside. The state distinguishes a change from what was true before.
#[derive(Debug)]
pub(crate) struct Follower {
    root: PathBuf,
    state: State,
    tail: Tail,
}

impl Follower {
    /// Begins before the first record, since the notifier saves no state.
    pub(crate) fn open(root: &Path) -> Result<Self, SpoolError> {
        Ok(Self {
            root: root.to_owned(),
            state: State::default(),
            tail: Tail::open(root, Since::Beginning)?,
        })
    }

    /// Returns the number of the last record read.
    pub(crate) fn seq(&self) -> u64 {
        self.tail.seq()
    }

    /// Returns the notices of all new records, oldest first.
    pub(crate) fn read(&mut self) -> Result<Vec<Notice>, SpoolError> {
        let Self { root, state, tail } = self;
        let mut notices = Vec::new();
        tail.read(&mut |entry| {
            let (record, at) = index::decision(entry)?;
            notices.extend(notices_of(root, state, entry, &record, at));
            review::apply(state, &record, at);
            Ok(())
        })?;
        Ok(notices)
    }
}

fn notices_of(
    root: &Path,
    before: &State,
    entry: &Entry,
    record: &Record,
    at: chrono::DateTime<chrono::Utc>,
) -> Vec<Notice> {
    let mut notices = Vec::new();
    for step in record.steps() {
        let key = &step.review;
        let was = before.review(key);
        if let Phase::Escalated(reason) = &step.phase {
            if was.is_none_or(|review| review.mover() != Side::Person) {
                notices.push(Notice::escalated(root, entry, at, key, &reason.to_string()));
            }
            // A person who opens the escalated review sees its threads too.
            continue;
        }
        for (id, thread) in &step.threads {
            let was = was.and_then(|review| review.threads.get(id));
            let was_held = was.is_some_and(|thread| by_agent(thread.state));
            if by_agent(thread.state) && !was_held {
                let word = thread.state.word();
                notices.push(Notice::held(root, entry, at, key, id.as_str(), word));
            }
        }
    }
    notices
}

/// True if an agent escalated the thread. People know about a thread that a person took.
fn by_agent(state: ThreadState) -> bool {
    match state {
        ThreadState::Held(Hold::Veto | Hold::Escalate) => true,
        ThreadState::Held(Hold::Person)
        | ThreadState::Open
        | ThreadState::Resolved
        | ThreadState::Deferred => false,
    }
}
