//! Failures of the disk, worded so that the operator knows which path is affected and what to do.
//!
//! Nothing here is a sender's fault: refusals are made elsewhere.

use std::io;
use std::path::{Path, PathBuf};

use crate::{Digest, Entry};

/// An error of the caller's visitor of ledger entries.
pub type VisitError = Box<dyn std::error::Error + Send + Sync>;

/// The reason the spool could not do what the caller asked.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// A file call failed. It decided nothing and may be retried.
    #[error("cannot {operation} {}", disk::path_text::shown(.path))]
    Io {
        /// The failed call, as a verb.
        operation: &'static str,
        /// The path it was called on.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A write or sync failed, and what the disk holds is unknown: the process must end and recover.
    #[error("cannot {operation} {}, and the state of the disk is unknown", disk::path_text::shown(.path))]
    Fatal {
        /// The failed call, as a verb.
        operation: &'static str,
        /// The path it was called on.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process holds the lock of this workspace.
    #[error("{} is held by {}", disk::path_text::shown(.lock), .pid.map_or("another process".to_owned(), |pid| format!("process {pid}")))]
    Locked {
        /// The lock file.
        lock: PathBuf,
        /// The process named in it, if it could be read.
        pid: Option<u32>,
    },
    /// The ledger is damaged where it had been durable; nothing was changed.
    #[error("the ledger is damaged at {}:{line}: {what}", disk::path_text::shown(.segment))]
    Damaged {
        /// The segment's path.
        segment: PathBuf,
        /// The line in it, from 1.
        line: u64,
        /// The damage found there, and what was expected.
        what: String,
    },
    /// An intact snapshot proves that the ledger held other records; nothing was changed.
    #[error("the ledger is not the one that {} was made from: {what}", disk::path_text::shown(.snapshot))]
    Contradicted {
        /// The snapshot's path.
        snapshot: PathBuf,
        /// The record found in the ledger, and the expected one.
        what: String,
    },
    /// The ledger does not end with the head that a person accepts; nothing was changed.
    #[error("the ledger ends with {found}, not with {accepted}")]
    OtherHead {
        /// The digest of the accepted head.
        accepted: Digest,
        /// The digest of the last record.
        found: Digest,
    },
    /// A person accepts a ledger that no snapshot contradicts; nothing was changed.
    #[error("no snapshot contradicts the ledger, so there is nothing to accept")]
    NotContradicted,
    /// A record was written by a newer version of this program; nothing was changed.
    #[error("{}:{line} has format version {version}, this program reads up to {}", disk::path_text::shown(.segment), crate::FORMAT_VERSION)]
    TooNew {
        /// The segment's path.
        segment: PathBuf,
        /// The line in it, from 1.
        line: u64,
        /// The version found there.
        version: u32,
    },
    /// The caller decided for an older ledger than the current one; nothing was written.
    #[error("the batch was decided for sequence {expected}, but the next one is {next}")]
    Sequence {
        /// The number that the caller expected.
        expected: u64,
        /// The number that the next record would get.
        next: u64,
    },
    /// A draft cannot be carried out; nothing was written.
    #[error("cannot carry out draft {index} of the batch: {what}")]
    Unfit {
        /// The draft's place in the batch, from 0.
        index: usize,
        /// The reason it cannot be carried out.
        what: String,
    },
    /// There was no room for the batch; the ledger is as it was before and the batch may be tried again.
    #[error("no room for the batch in {}", disk::path_text::shown(.path))]
    Full {
        /// The segment's path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Somebody else moved, removed or changed what only the daemon may write; nothing was written there.
    #[error("{} {what}", disk::path_text::shown(.path))]
    Replaced {
        /// The path that leads elsewhere now.
        path: PathBuf,
        /// The difference between what is there and what the daemon expected.
        what: String,
    },
    /// An earlier write or sync failed, so what the disk holds is unknown: restart and recover.
    #[error("the spool stopped after an earlier failure: {why}")]
    Stopped {
        /// The failure that stopped it.
        why: String,
    },
    /// The ledger that several hosts share does not take the batch now. None of its records count, and the daemon judges
    /// its messages again.
    #[error("the shared ledger did not take the batch: {why}")]
    NotTaken {
        /// The log's answer.
        why: String,
    },
    /// The caller wanted the start to end. The next start does what is left.
    #[error("the start was interrupted")]
    Interrupted,
    /// The caller's visitor refused a record of the ledger.
    #[error("record {seq} of the ledger was not understood")]
    Visit {
        /// The record's sequence number.
        seq: u64,
        /// The visitor's reason.
        source: VisitError,
    },
}

impl SpoolError {
    /// Returns whether the same call may succeed later in this process.
    pub fn is_retryable(&self) -> bool {
        match self {
            SpoolError::Io { .. } | SpoolError::Full { .. } | SpoolError::NotTaken { .. } => true,
            SpoolError::Fatal { .. }
            | SpoolError::Locked { .. }
            | SpoolError::Damaged { .. }
            | SpoolError::Contradicted { .. }
            | SpoolError::OtherHead { .. }
            | SpoolError::NotContradicted
            | SpoolError::TooNew { .. }
            | SpoolError::Sequence { .. }
            | SpoolError::Unfit { .. }
            | SpoolError::Replaced { .. }
            | SpoolError::Stopped { .. }
            | SpoolError::Interrupted
            | SpoolError::Visit { .. } => false,
        }
    }

    /// Returns the error and its causes in one line.
    pub(crate) fn chain(&self) -> String {
        chain(self)
    }

    /// Returns a function for `map_err` that adds the number of the record.
    pub(crate) fn visit(entry: &Entry) -> impl FnOnce(VisitError) -> SpoolError {
        let seq = entry.seq;
        move |source| SpoolError::Visit { seq, source }
    }

    /// Returns a function for `map_err` that adds the fatal operation and its path.
    pub(crate) fn fatal(
        operation: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(io::Error) -> SpoolError {
        move |source| SpoolError::Fatal {
            operation,
            path: path.as_ref().to_owned(),
            source,
        }
    }

    /// Returns a function for `map_err` that adds the operation and its path.
    pub(crate) fn io(
        operation: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(io::Error) -> SpoolError {
        move |source| SpoolError::Io {
            operation,
            path: path.as_ref().to_owned(),
            source,
        }
    }
}

/// Returns an error and its causes in one line, without the causes that the error already repeats.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let why = cause.to_string();
        if !text.contains(&why) {
            text = format!("{text}: {why}");
        }
        source = cause.source();
    }
    text
}
