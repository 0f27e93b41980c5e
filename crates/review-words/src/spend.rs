//! The tokens and money that a run of a reviewer's command used, as the ledger keeps them.

use message_schema::id::AgentName;
use message_schema::spend::Spend;
use serde::{Deserialize, Serialize};

use crate::key::ReviewKey;

/// The spend of one run so far. A later report of the same run counts only the increase.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunSpend {
    /// The review it was started for.
    pub review: ReviewKey,
    /// The agent whose command it is.
    pub agent: AgentName,
    /// The name of the run's folder in `.settled/runs`.
    pub run: String,
    /// All that the run has used.
    #[serde(flatten)]
    pub spend: Spend,
}
