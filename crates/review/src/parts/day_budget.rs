//! The spend of the agents' commands on a day, and the check whether a budget is used up.

use chrono::{DateTime, Utc};
use message_schema::id::AgentName;
use message_schema::spend::Spend;
use pair_machine::PairReport;
use policy::Policy;
use review_words::spend::{DayBudget, RunSpend, UsedUp};

use crate::parts::open_pair::OpenPair;
use crate::parts::spending::{DAY_S, day};
use crate::parts::state::State;

impl State {
    /// Returns the spend of an agent's commands on the day of `now`.
    pub fn spent_by(&self, agent: &AgentName, now: DateTime<Utc>) -> Spend {
        let mut agents = self.spending.of_day(now);
        agents
            .find(|(name, _)| *name == agent)
            .map_or_else(Spend::default, |(_, spend)| spend)
    }

    /// Returns the spend of all agents' commands on the day of `now`.
    fn spent_today(&self, now: DateTime<Utc>) -> Spend {
        let agents = self.spending.of_day(now);
        agents.fold(Spend::default(), |sum, (_, spend)| sum.plus(spend))
    }

    /// Returns the spend of the run that this report ends, and the agent of the run; `None` if the report ends no run,
    /// or the run spent nothing.
    pub(crate) fn spent_in_pair(&self, report: &PairReport) -> Option<(AgentName, Spend)> {
        let spend = report.what.run()?.spend;
        let OpenPair { setup, status, .. } = self.pair(&report.pair)?;
        let member = setup.member(status.pair.run())?;
        (!spend.is_nothing()).then(|| (member.agent.clone(), spend))
    }

    /// Returns the part of a report's spend that the ledger does not have yet.
    pub fn unrecorded(&self, report: &RunSpend) -> Spend {
        self.spending.more(report)
    }

    /// Returns the budget of the day that keeps the agent's command from starting, if one does. Runs in progress count
    /// with the spend that the ledger does not have yet.
    pub fn used_up(
        &self,
        policy: &Policy,
        agent: &AgentName,
        going_on: &[RunSpend],
        now: DateTime<Utc>,
    ) -> Option<UsedUp> {
        let budget = &policy.budget;
        let more = |is_meant: &dyn Fn(&RunSpend) -> bool| {
            let meant = going_on.iter().filter(|report| is_meant(report));
            meant.fold(Spend::default(), |sum, report| {
                sum.plus(self.unrecorded(report))
            })
        };
        let of_agent = self
            .spent_by(agent, now)
            .plus(more(&|report| report.agent == *agent));
        let of_all = self.spent_today(now).plus(more(&|_| true));
        // If both are used up, report the one that bars all other agents too.
        let sums = [
            (DayBudget::PerDay, budget.per_day, of_all),
            (DayBudget::PerAgent, budget.per_agent, of_agent),
        ];
        let (budget, _, spend) = sums
            .into_iter()
            .find(|(_, limit, spend)| limit.is_reached(*spend))?;
        let until = self.spending.day.max(day(now)) + 1;
        Some(UsedUp {
            budget,
            spend,
            until: DateTime::from_timestamp(until * DAY_S, 0).unwrap_or(now),
        })
    }

    /// Returns the budgets of the day that keep commands from starting: that of all agents, or else those of single
    /// agents.
    pub fn used_up_today(
        &self,
        policy: &Policy,
        now: DateTime<Utc>,
    ) -> Vec<(Option<&AgentName>, UsedUp)> {
        let agents = self.spending.of_day(now);
        let mut used_up = Vec::new();
        for (agent, _) in agents {
            match self.used_up(policy, agent, &[], now) {
                Some(all) if all.budget == DayBudget::PerDay => return vec![(None, all)],
                Some(own) => used_up.push((Some(agent), own)),
                None => {}
            }
        }
        used_up
    }
}

#[cfg(test)]
mod tests {
    use message_schema::id::PrNumber;
    use policy::{SpendBudget, SpendLimit};

    use super::*;
    use crate::parts::spending::RUNS_MAX;
    use review_words::key::ReviewKey;

    fn agent(name: &str) -> AgentName {
        AgentName::new(name).expect("a name")
    }

    fn report(name: &str, run: &str, tokens: u64) -> RunSpend {
        let pr = PrNumber::new("86").expect("a number");
        RunSpend {
            review: ReviewKey::new(None, &pr, agent("claude"), agent(name)),
            agent: agent(name),
            run: run.to_owned(),
            spend: Spend::tokens(tokens),
        }
    }

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).expect("an instant")
    }

    #[test]
    fn a_day_is_the_days_of_the_records_and_ends_at_midnight() {
        let mut state = State::default();
        let limit = SpendLimit {
            tokens: Some(100),
            micro_usd: None,
        };
        let policy = Policy {
            budget: SpendBudget {
                per_agent: limit,
                ..SpendBudget::default()
            },
            ..Policy::default()
        };
        state
            .spending
            .note(&report("codex", "1", 60), at(DAY_S - 1));
        state.spending.note(&report("codex", "2", 60), at(DAY_S));
        let codex = agent("codex");
        assert_eq!(
            state.used_up(&policy, &codex, &[], at(DAY_S)),
            None,
            "60 a day"
        );
        state
            .spending
            .note(&report("codex", "2", 100), at(DAY_S + 1));
        let used_up = state.used_up(&policy, &codex, &[], at(DAY_S + 1));
        let used_up = used_up.expect("100 on one day");
        assert_eq!(
            (used_up.spend, used_up.until),
            (Spend::tokens(100), at(2 * DAY_S))
        );
        assert_eq!(
            state.used_up(&policy, &agent("gemini"), &[], at(DAY_S + 1)),
            None
        );
        assert_eq!(state.used_up(&policy, &codex, &[], at(2 * DAY_S)), None);
        // Setting a clock back does not refund anything.
        assert!(state.used_up(&policy, &codex, &[], at(5)).is_some());
    }

    #[test]
    fn what_is_used_up_today_is_the_budget_of_all_or_those_of_single_agents() {
        let mut state = State::default();
        for (name, tokens) in [("claude", 10), ("codex", 60), ("gemini", 70)] {
            state.spending.note(&report(name, name, tokens), at(5));
        }
        let tokens = |tokens| SpendLimit {
            tokens,
            micro_usd: None,
        };
        let (all, own) = (DayBudget::PerDay, DayBudget::PerAgent);
        for (per_day, per_agent, expected) in [
            (None, None, vec![]),
            (Some(141), Some(71), vec![]),
            (Some(140), None, vec![(None, all, 140)]),
            (Some(140), Some(10), vec![(None, all, 140)]),
            (
                None,
                Some(60),
                vec![(Some("codex"), own, 60), (Some("gemini"), own, 70)],
            ),
        ] {
            let mut policy = Policy::default();
            policy.budget.per_day = tokens(per_day);
            policy.budget.per_agent = tokens(per_agent);
            let found = state.used_up_today(&policy, at(6));
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(name, budget, spent)| {
                    let (spend, until) = (Spend::tokens(spent), at(DAY_S));
                    let used_up = UsedUp {
                        budget,
                        spend,
                        until,
                    };
                    (name.map(agent), used_up)
                })
                .collect();
            let found: Vec<_> = found
                .into_iter()
                .map(|(name, it)| (name.cloned(), it))
                .collect();
            assert_eq!(found, expected, "{per_day:?} {per_agent:?}");
        }
        let mut policy = Policy::default();
        policy.budget.per_day = tokens(Some(150));
        let codex = agent("codex");
        // Of a running command, only the spend that is not recorded yet counts, for its agent and for all.
        let on = [report("codex", "codex", 69), report("gemini", "new", 1)];
        assert_eq!(state.used_up(&policy, &codex, &on[..1], at(6)), None);
        assert!(state.used_up(&policy, &codex, &on, at(6)).is_some());
        policy.budget.per_day = tokens(None);
        policy.budget.per_agent = tokens(Some(70));
        assert_eq!(state.used_up(&policy, &codex, &on, at(6)), None);
        let more = [report("codex", "codex", 70), report("gemini", "new", 1)];
        let used_up = state
            .used_up(&policy, &codex, &more, at(6))
            .expect("70 of 70");
        assert_eq!((used_up.budget, used_up.spend), (own, Spend::tokens(70)));
    }

    #[test]
    fn a_run_that_is_reported_twice_counts_once() {
        let mut state = State::default();
        for tokens in [10, 10, 25, 20] {
            state.spending.note(&report("codex", "1", tokens), at(5));
        }
        assert_eq!(state.spent_today(at(5)), Spend::tokens(25));
        for run in 0..2 * RUNS_MAX {
            state
                .spending
                .note(&report("codex", &format!("2{run:05}"), 1), at(5));
        }
        assert_eq!(state.spending.runs.len(), RUNS_MAX);
    }
}
