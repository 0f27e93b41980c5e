//! The reasons for which the driver stops.

use std::io;

use daemon::serve::DaemonError;
use daemon::submit_order::SubmitError;
use message_schema::Code;
use message_schema::id::AgentName;
use review::PairId;
use spool::SpoolError;
use workspace::config::ConfigError;
use workspace::remote_agent::RemoteAgent;

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
    /// No pair is named, and none can be resumed.
    #[error("no pair is running or can be resumed")]
    NoneOpen,
    /// No pair is named, and several can be resumed.
    #[error("{count} pairs can be resumed: name one")]
    Several {
        /// The number of them.
        count: usize,
        /// The one that was opened last.
        newest: PairId,
    },
    /// The signal words cannot be told apart.
    #[error("{0}")]
    Words(&'static str),
    /// An agent is at home on another host, or on none.
    #[error("{0}, and a pair runs where both its agents are at home")]
    Away(RemoteAgent),
    /// Another process runs the agent.
    #[error("{agent} {why}")]
    Taken {
        /// The agent.
        agent: AgentName,
        /// The reason, after its name.
        why: &'static str,
    },
    /// The config cannot be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
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
