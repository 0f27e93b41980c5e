//! A batch that is being judged, and its limits.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use review::Record;
use spool::EntryDraft;

/// Decisions that are committed together; drafts and records are in the same order.
#[derive(Debug, Default)]
pub(crate) struct OpenBatch {
    pub(crate) drafts: Vec<EntryDraft>,
    pub(crate) records: Vec<Record>,
    /// The numbers of the records whose file may still have a writer.
    pub(crate) growing: BTreeSet<u64>,
    /// The number of files that the batch makes or puts away.
    pub(crate) files: usize,
    /// True if a writer waits only for this commit.
    pub(crate) is_awaited: bool,
    /// The outboxes whose files are in the batch, and whether all of them were accepted and none was large.
    pub(crate) outboxes: BTreeMap<String, bool>,
}

impl OpenBatch {
    pub(crate) fn add(&mut self, draft: EntryDraft, record: Record) {
        self.files += draft.deliveries.len() + usize::from(draft.original.is_some());
        self.drafts.push(draft);
        self.records.push(record);
    }

    /// The number of the batch's next record, if its first has number `first`.
    pub(crate) fn next_seq(&self, first: u64) -> u64 {
        first + self.drafts.len() as u64
    }
}

/// The limits of a batch besides its messages; an agent that writes meanwhile waits for the rest of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchLimits {
    /// The most time spent judging a batch.
    pub(crate) time: Duration,
    /// The most files that a batch makes. A refusal takes no time to judge, but makes three.
    pub(crate) files: usize,
    /// The bytes of messages and packets that fill a batch, because large files take long to write. A message is large
    /// if it has half of them, with its packet.
    pub(crate) bytes: usize,
    /// The time that a pass keeps short.
    pub(crate) goal: Goal,
}

/// The time that a pass keeps short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// The time for all messages, for `serve --once`: a batch is delivered while the next one is judged.
    Throughput,
    /// The time for each message: a batch is delivered as soon as it is committed, and an outbox that kept the daemon
    /// busy rests before its next turn.
    Latency,
}

impl Default for BatchLimits {
    fn default() -> Self {
        Self {
            time: Duration::MAX,
            files: usize::MAX,
            bytes: 4 * 1024 * 1024,
            goal: Goal::Throughput,
        }
    }
}
