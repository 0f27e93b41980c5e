//! What the commands of agents used: on the last day, by agent, and of each run, so that none is counted twice. What a
//! review used is in the review.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use message_schema::id::AgentName;
use message_schema::spend::Spend;
use serde::{Deserialize, Serialize};

use crate::words::spend::RunSpend;

/// Seconds in a day.
pub(crate) const DAY_S: i64 = 86_400;

/// The most runs that are remembered: more than there are folders of runs from which one could be reported again.
pub(crate) const RUNS_MAX: usize = 512;

/// What was used, by the times of the records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spending {
    /// The last day on which something was used, since 1970.
    pub(crate) day: i64,
    /// What each agent used on that day.
    agents: BTreeMap<AgentName, Spend>,
    /// What each run used, by its name, which begins with its time.
    pub(crate) runs: BTreeMap<String, Spend>,
}

impl Spending {
    /// What of this report is not counted yet.
    pub(crate) fn more(&self, report: &RunSpend) -> Spend {
        let known = self.runs.get(&report.run).copied().unwrap_or_default();
        report.spend.beyond(known)
    }

    /// Counts it on the day of its record. A clock that was set back counts on in the day it had reached.
    pub(crate) fn note(&mut self, report: &RunSpend, at: DateTime<Utc>) {
        self.add(&report.agent, self.more(report), at);
        let known = self.runs.entry(report.run.clone()).or_default();
        *known = known.most(report.spend);
        while self.runs.len() > RUNS_MAX {
            self.runs.pop_first();
        }
    }

    /// Counts what an agent used, which nobody reports again.
    pub(crate) fn add(&mut self, agent: &AgentName, spend: Spend, at: DateTime<Utc>) {
        if day(at) > self.day {
            self.day = day(at);
            self.agents.clear();
        }
        let sum = self.agents.entry(agent.clone()).or_default();
        *sum = sum.plus(spend);
    }

    /// What each agent used on the day of `now`.
    pub(crate) fn of_day(&self, now: DateTime<Utc>) -> impl Iterator<Item = (&AgentName, Spend)> {
        let is_today = self.day >= day(now);
        let agents = self.agents.iter().filter(move |_| is_today);
        agents.map(|(agent, spend)| (agent, *spend))
    }
}

/// The day of an instant, since 1970.
pub(crate) fn day(at: DateTime<Utc>) -> i64 {
    at.timestamp().div_euclid(DAY_S)
}
