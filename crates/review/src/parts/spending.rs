//! The spend of the agents' commands: on the last day, by agent, and of each run, so that none is counted twice. A
//! review keeps its own spend.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use message_schema::id::AgentName;
use message_schema::spend::Spend;
use serde::{Deserialize, Serialize};

use review_words::spend::RunSpend;

/// Seconds in a day.
pub(crate) const DAY_S: i64 = 86_400;

/// The most runs remembered: more than the run folders that the runner could report again.
pub(crate) const RUNS_MAX: usize = 512;

/// The spend, by the times of the records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spending {
    /// The last day with any spend, since 1970.
    pub(crate) day: i64,
    /// The spend of each agent on that day.
    agents: BTreeMap<AgentName, Spend>,
    /// The spend of each run, by its name, which begins with its time.
    pub(crate) runs: BTreeMap<String, Spend>,
}

impl Spending {
    /// Returns the part of this report that is not counted yet.
    pub(crate) fn more(&self, report: &RunSpend) -> Spend {
        let known = self.runs.get(&report.run).copied().unwrap_or_default();
        report.spend.beyond(known)
    }

    /// Counts a report on the day of its record. After a clock is set back, it keeps counting on the day it had
    /// reached.
    pub(crate) fn note(&mut self, report: &RunSpend, at: DateTime<Utc>) {
        self.add(&report.agent, self.more(report), at);
        let known = self.runs.entry(report.run.clone()).or_default();
        *known = known.most(report.spend);
        while self.runs.len() > RUNS_MAX {
            self.runs.pop_first();
        }
    }

    /// Counts spend that is reported only once.
    pub(crate) fn add(&mut self, agent: &AgentName, spend: Spend, at: DateTime<Utc>) {
        if day(at) > self.day {
            self.day = day(at);
            self.agents.clear();
        }
        let sum = self.agents.entry(agent.clone()).or_default();
        *sum = sum.plus(spend);
    }

    /// Returns the spend of each agent on the day of `now`.
    pub(crate) fn of_day(&self, now: DateTime<Utc>) -> impl Iterator<Item = (&AgentName, Spend)> {
        let is_today = self.day >= day(now);
        let agents = self.agents.iter().filter(move |_| is_today);
        agents.map(|(agent, spend)| (agent, *spend))
    }
}

/// Returns the day of an instant, since 1970.
pub(crate) fn day(at: DateTime<Utc>) -> i64 {
    at.timestamp().div_euclid(DAY_S)
}
