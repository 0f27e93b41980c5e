//! The contract of a log, the end of a ledger that several hosts share. Knows nothing of a network.
//!
//! A batch counts from the moment the log returns [`Appended::Committed`]; each host's own ledger is a mirror of the
//! log. A workspace with one host has no log: its ledger's sync is the commit point. [`Local`] makes a log of a ledger
//! on this disk, for tests and to put a mirror back into a log that lost its end.

mod local;
mod signatures;
mod signed;

use crate::Digest;

pub use ledger_records::{Batch, Head, HostName, NotABatch, NotAHostName};
pub use local::Local;
pub(crate) use signatures::Signatures;
pub use signed::Signed;

/// The outcome of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    /// The log holds the batch durably, directly after the end it names.
    Committed,
    /// The log ends elsewhere and holds nothing of this batch. Fold the new records and judge again.
    Moved(Head),
    /// The outcome is unknown: a time-out or a lost connection. The only legal next append is the same batch, byte for
    /// byte.
    Unknown(String),
}

/// Why a log could not answer. No error leaves a part of a batch in the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The log cannot be reached now.
    #[error("cannot reach the ledger: {why}")]
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
    /// The log holds a record other than the one it once acknowledged.
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
    /// The log does not continue this host's ledger: a gap, an unreadable batch or a broken chain.
    #[error("the log is damaged: {what}")]
    Broken {
        /// The record that was found, and the expected one.
        what: String,
    },
}

impl LogError {
    /// Returns whether the same call may succeed later without help.
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

/// A function that wakes the daemon's loop when there may be new batches. A log may call it from any thread at any
/// time, also without a reason.
pub type OnChange = Box<dyn Fn() + Send + Sync>;

/// A heartbeat of another host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The heartbeat as it was sent. Its reader checks the content and the signature.
    pub bytes: Vec<u8>,
    /// The time since it arrived, in milliseconds.
    pub waited_ms: u64,
}

/// The order of a shared ledger. Every call returns within about a second, even without a network: the daemon has one
/// thread and delivers mail meanwhile. A backend does longer work on a thread of its own.
pub trait Log: Send {
    /// Returns the end, as known to the replica that decides about appends.
    fn head(&mut self) -> Result<Head, LogError>;

    /// Appends the batch if the log still ends where the batch begins. Idempotent: if this very batch already follows
    /// that end, returns [`Appended::Committed`], whatever comes after it.
    fn append(&mut self, batch: &Signed) -> Result<Appended, LogError>;

    /// Returns the batches after `from` that have arrived, in order and without gaps; none if there is nothing new. If
    /// `from` is inside a batch, starts with that whole batch. Fails if `from` is not in the log. Never waits for more.
    fn follow(&mut self, from: Head) -> Result<Vec<Signed>, LogError>;

    /// Sets the function to call when a batch has arrived. If the log never calls it, the daemon looks every
    /// [`Log::poll_ms`].
    fn on_change(&mut self, on_change: OnChange);

    /// Returns the pause between two looks when no change wakes it, in milliseconds.
    fn poll_ms(&self) -> u64;

    /// Returns the lead of the log's own clock over this host's, in milliseconds, if it has a clock that told lately.
    fn clock_ahead_ms(&self) -> Option<i64> {
        None
    }

    /// Sends a heartbeat to the hosts that listen now. They neither store nor acknowledge it. Does nothing in a log that
    /// has no way for this.
    fn send_heartbeat(&mut self, _bytes: Vec<u8>) {}

    /// Returns the heartbeats that arrived since the last call; this host's own may be among them.
    fn heartbeats(&mut self) -> Vec<Heartbeat> {
        Vec::new()
    }
}

/// Signs for this host and checks what others signed. The program that serves a shared workspace defines the scheme and
/// the form of its keys; here they are opaque.
pub trait HostKeys: Send {
    /// Signs these bytes with this host's key.
    fn sign(&self, bytes: &[u8]) -> Vec<u8>;
    /// Returns whether the owner of this public key signed these bytes.
    fn is_signed(&self, key: &str, bytes: &[u8], signature: &[u8]) -> bool;
}
