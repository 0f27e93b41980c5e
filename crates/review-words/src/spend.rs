//! The tokens and money that a run of a reviewer's command used, as the ledger keeps them, and the budgets of a day.

use std::fmt;

use chrono::{DateTime, Utc};
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

/// A budget of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DayBudget {
    /// The budget of all agents together.
    PerDay,
    /// The budget of one agent.
    PerAgent,
}

impl fmt::Display for DayBudget {
    /// The key in the config.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PerDay => "per_day",
            Self::PerAgent => "per_agent",
        })
    }
}

/// The reason an agent's command does not start before the next day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedUp {
    /// The budget that is used up.
    pub budget: DayBudget,
    /// The spend so far.
    pub spend: Spend,
    /// The start of the next day, in UTC.
    pub until: DateTime<Utc>,
}

impl fmt::Display for UsedUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { budget, spend, .. } = self;
        write!(f, "budget.{budget} is used up: {spend} today")
    }
}
