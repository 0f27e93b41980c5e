//! The reasons for which the driver stops.

use std::io;

use daemon::serve::DaemonError;
use daemon::submit_order::SubmitError;
use message_schema::Code;
use review::PairId;
use spool::SpoolError;

use crate::places::NoPlaces;

/// The reason the driver stopped. The ledger keeps what it has, and the pair can be resumed.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// The step is not in the ledger.
    #[error(transparent)]
    Tell(#[from] SubmitError),
    /// The rules refuse the step.
    #[error("{code}: {why}")]
    Declined {
        /// The code.
        code: Code,
        /// The reason, in a sentence.
        why: String,
    },
    /// No daemon serves, and this process cannot replace it.
    #[error(transparent)]
    Serve(DaemonError),
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] SpoolError),
    /// No such pair is running or can be resumed.
    #[error("no pair {0} is running or can be resumed")]
    Unknown(PairId),
    /// The pair's folder cannot be used.
    #[error("the pair {id}: {source}")]
    Places {
        /// The pair.
        id: PairId,
        /// The reason.
        source: NoPlaces,
    },
    /// The disk failed, or a process cannot be started.
    #[error("{what}: {source}")]
    Io {
        /// The attempted action.
        what: String,
        /// The cause.
        source: io::Error,
    },
}

impl PairError {
    /// True if another process drives the pair.
    pub fn is_busy(&self) -> bool {
        matches!(
            self,
            Self::Places {
                source: NoPlaces::Busy,
                ..
            }
        )
    }
}
