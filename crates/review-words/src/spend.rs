//! What a run of a reviewer's command used, as the ledger keeps it.

use message_schema::id::AgentName;
use message_schema::spend::Spend;
use serde::{Deserialize, Serialize};

use crate::key::ReviewKey;

/// What one run has used so far. Reported again it counts only what it is more, so that no report counts twice.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunSpend {
    /// The review it was started for.
    pub review: ReviewKey,
    /// Whose command it is.
    pub agent: AgentName,
    /// The name of the run's folder in `.settled/runs`.
    pub run: String,
    /// All that it used.
    #[serde(flatten)]
    pub spend: Spend,
}
