//! Everything in a review that runs out, and how much of it is left.

use chrono::{DateTime, Utc};
use inspect::status::row::ReviewRow;
use review::{ATTEMPTS, GENERATIONS_MAX, Policy, Review, SUPERSESSIONS};
use serde::Serialize;

/// Micro-dollars in a cent.
const CENT: u64 = 10_000;

/// Something that runs out. Fields are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Supply {
    /// `rounds`, `turns`, `attempts`, `replacements`, `generations`, `tokens`, `cents` (of a US dollar), or the running
    /// deadline: `pick_up`, `runtime`, `author`.
    pub of: &'static str,
    /// The count left; a deadline has `ends_at` instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<u64>,
    /// The whole supply: a count, or the seconds of a deadline.
    pub whole: u64,
    /// The time of a deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<DateTime<Utc>>,
}

impl Supply {
    /// Returns what is left at this time: a count, or the seconds to the deadline.
    pub fn left_at(&self, now: DateTime<Utc>) -> u64 {
        let seconds = || {
            let left = self.ends_at.map_or(0, |end| (end - now).num_seconds());
            u64::try_from(left).unwrap_or(0)
        };
        self.left.unwrap_or_else(seconds)
    }

    pub(crate) fn all(review: &Review, row: &ReviewRow, policy: &Policy) -> Vec<Self> {
        let count = |of, left: u64, whole: u64| Self {
            of,
            left: Some(left),
            whole,
            ends_at: None,
        };
        let mut budgets = Vec::new();
        if let (Some(of), Some(ends_at), Some(whole)) = (row.waits_for, row.due_at, row.wait_s) {
            budgets.push(Self {
                of,
                left: None,
                whole,
                ends_at: Some(ends_at),
            });
        }
        if let Some(open) = review.phase.invocation() {
            budgets.extend([
                count("turns", open.turns_left().into(), open.turns.get().into()),
                count("attempts", open.attempts_left.into(), ATTEMPTS.into()),
                count(
                    "replacements",
                    open.supersessions_left.into(),
                    SUPERSESSIONS.into(),
                ),
            ]);
        }
        let (limit, spent) = (policy.budget.per_review, review.spent);
        if let Some(tokens) = limit.tokens {
            budgets.push(count("tokens", tokens.saturating_sub(spent.tokens), tokens));
        }
        if let Some(money) = limit.micro_usd {
            let left = money.saturating_sub(spent.micro_usd);
            budgets.push(count("cents", left / CENT, money / CENT));
        }
        let rounds = u64::from(row.rounds);
        budgets.push(count(
            "rounds",
            rounds.saturating_sub(row.round_of_generation.into()),
            rounds,
        ));
        budgets.push(count(
            "generations",
            GENERATIONS_MAX.saturating_sub(review.generation).into(),
            GENERATIONS_MAX.into(),
        ));
        budgets
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn what_is_left_is_a_count_or_the_seconds_to_a_deadline() {
        let now = DateTime::UNIX_EPOCH;
        let supply = |left, end_s: Option<i64>| Supply {
            of: "turns",
            left,
            whole: 600,
            ends_at: end_s.map(|end_s| now + TimeDelta::seconds(end_s)),
        };
        assert_eq!(supply(Some(7), None).left_at(now), 7);
        assert_eq!(supply(None, Some(90)).left_at(now), 90);
        assert_eq!(supply(None, Some(-1)).left_at(now), 0);
    }
}
