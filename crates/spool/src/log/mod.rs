//! The end of a ledger that several hosts share: the contract of a log, with nothing of a network in it.
//!
//! A batch counts from the moment at which the log says [`Appended::Committed`]; each host's own ledger is a mirror of
//! the log. A workspace with one host has no log: its ledger's sync is the commit point. [`Local`] is the log that a
//! ledger on this disk is, for tests, and to put a mirror back into a log that lost its end.

mod keys;
mod local;
mod signatures;
mod signed;

use crate::Digest;

pub use crate::host::{HostName, NotAHostName};
pub use crate::ledger::{Batch, Head, NotABatch};
pub use keys::HostKeys;
pub use local::Local;
pub(crate) use signatures::Signatures;
pub use signed::Signed;

/// The outcome of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    /// The log holds the batch, durably, right behind the end it names.
    Committed,
    /// The log ends elsewhere, and nothing of this batch is in it. Fold what is new and judge again.
    Moved(Head),
    /// Nobody knows: a time-out or a lost connection. The only legal next append is the same batch, byte for byte.
    Unknown(String),
}

/// The reason a log could not answer. No error leaves a part of a batch in the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The log cannot be reached now.
    #[error("the ledger cannot be reached: {why}")]
    Unreachable {
        /// The error of the connection.
        why: String,
    },
    /// The batch is larger than the log takes.
    #[error("a batch of {bytes} bytes is too large for the log, which takes {bytes_max}")]
    TooLarge {
        /// The batch's size in bytes.
        bytes: usize,
        /// The largest batch that the log takes, in bytes.
        bytes_max: usize,
    },
    /// The log does not let this host in.
    #[error("the log refuses this host: {why}")]
    Denied {
        /// The log's answer.
        why: String,
    },
    /// The log ends before a record that it once acknowledged.
    #[error("the log ends with record {}, and this host has record {} from it", log.seq, ours.seq)]
    RolledBack {
        /// The log's end.
        log: Head,
        /// The end of this host's mirror.
        ours: Head,
    },
    /// The log has another record than it once acknowledged.
    #[error("record {at} of the log is {theirs}, and this host has {ours} from it")]
    Forked {
        /// The record's number.
        at: u64,
        /// The digest of this host's line.
        ours: Digest,
        /// The digest of the log's line.
        theirs: Digest,
    },
    /// A newer program wrote to the log.
    #[error("{0}")]
    TooNew(NotABatch),
    /// The log does not continue what this host has: a gap, an unreadable batch, a broken chain.
    #[error("the log is damaged: {what}")]
    Broken {
        /// The record that was found, and the expected one.
        what: String,
    },
}

impl LogError {
    /// Says whether the same call may succeed later without anybody doing something about it.
    pub fn is_retryable(&self) -> bool {
        match self {
            LogError::Unreachable { .. } => true,
            LogError::TooLarge { .. }
            | LogError::Denied { .. }
            | LogError::RolledBack { .. }
            | LogError::Forked { .. }
            | LogError::TooNew(_)
            | LogError::Broken { .. } => false,
        }
    }
}

impl From<NotABatch> for LogError {
    fn from(error: NotABatch) -> LogError {
        match error {
            NotABatch::TooNew { .. } => LogError::TooNew(error),
            NotABatch::Empty
            | NotABatch::Unfinished
            | NotABatch::Unreadable { .. }
            | NotABatch::Unchained { .. } => LogError::Broken {
                what: error.to_string(),
            },
        }
    }
}

/// A function that wakes the daemon's loop when there may be something to follow. A log calls it from any thread, at
/// any time, also for nothing.
pub type Ring = Box<dyn Fn() + Send + Sync>;

/// A heartbeat of another host, as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The heartbeat as it was sent. Its reader checks the content and the signature.
    pub bytes: Vec<u8>,
    /// The time since it arrived, in milliseconds.
    pub waited_ms: u64,
}

/// The order of a shared ledger. Every call returns within about a second, whatever the network does: the daemon is one
/// thread and delivers mail meanwhile. What takes longer a backend does on a thread of its own.
pub trait Log: Send {
    /// The end, as the replica has it that decides about appends.
    fn head(&mut self) -> Result<Head, LogError>;

    /// Appends the batch if the log still ends where the batch begins. Idempotent: if the very batch is already there,
    /// behind that end, it is [`Appended::Committed`], whatever follows it.
    fn append(&mut self, batch: &Signed) -> Result<Appended, LogError>;

    /// Gives the batches behind `from`, in order and without gaps, as many as have arrived; none if there is nothing
    /// new. Where `from` is inside of a batch, the first one given is that batch, whole. Fails where `from` is not in
    /// the log. Never waits for more to come.
    fn follow(&mut self, from: Head) -> Result<Vec<Signed>, LogError>;

    /// Takes what to call when a batch has arrived. For a log that never calls it, the daemon looks every
    /// [`Log::poll_ms`].
    fn ring(&mut self, ring: Ring);

    /// The pause between two looks when nothing rings, in milliseconds.
    fn poll_ms(&self) -> u64;

    /// Sends a heartbeat to the hosts that listen now. Nobody keeps it and nobody acknowledges it. A log that has no
    /// way for this does nothing.
    fn send_heartbeat(&mut self, _bytes: Vec<u8>) {}

    /// Gives the heartbeats that arrived since the last call, this host's own perhaps among them.
    fn heartbeats(&mut self) -> Vec<Heartbeat> {
        Vec::new()
    }
}
