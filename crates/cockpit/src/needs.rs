//! Lists who must move and what is missing: one row for each review that waits, and one for each problem that no
//! review's row covers, in the order in which people should look.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use inspect::status::fix::{Actor, FixCommand};
use inspect::status::problems::{Problem, ProblemKind};
use inspect::status::row::ReviewRow;
use inspect::status::why::{Missing, Why};
use message_schema::id::AgentName;
use review::{Review, ReviewKey, Side};
use serde::Serialize;

use crate::urgency::Urgency;

/// Something that waits for somebody. Fields are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Need {
    /// The role of the party that moves next.
    pub part: WhoseMove,
    /// The mover.
    pub mover: Actor,
    /// The review, as people write it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<String>,
    /// The kind of thing that is missing, or of the problem.
    pub kind: NeedKind,
    /// The missing thing, in a sentence.
    pub missing: String,
    /// The start of the wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<DateTime<Utc>>,
    /// The time at which the daemon ends the wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at: Option<DateTime<Utc>>,
    /// The length of the wait from its start, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_s: Option<u64>,
    /// The one command that brings it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<FixCommand>,
}

/// The role of the party that moves next, in the order in which people should look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WhoseMove {
    /// The person who runs the daemon; nothing moves before.
    Operator,
    /// The person who decides.
    Person,
    /// A review's author.
    Author,
    /// A review's reviewer.
    Reviewer,
    /// The sender of a refused message that belongs to no known review.
    Sender,
}

/// The kind of missing thing in a review, or the kind of problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum NeedKind {
    /// As `settled why` says.
    Missing(Missing),
    /// As `settled problems` says.
    Problem(ProblemKind),
}

impl WhoseMove {
    /// Returns the word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Person => "person",
            Self::Author => "author",
            Self::Reviewer => "reviewer",
            Self::Sender => "sender",
        }
    }

    /// Names who has to move, with the role: `claude (author)`, or `person` alone.
    pub fn of_mover(self, mover: &Actor) -> String {
        match self {
            Self::Operator | Self::Person => self.word().to_owned(),
            Self::Author | Self::Reviewer | Self::Sender => format!("{mover} ({})", self.word()),
        }
    }

    pub(crate) fn of(actor: &Actor, agents: Option<(&AgentName, &AgentName)>, side: Side) -> Self {
        let actor = match actor {
            Actor::Operator => return Self::Operator,
            Actor::Person => return Self::Person,
            Actor::Agent(agent) => agent,
        };
        match agents {
            // If an agent reviews its own work, the phase decides which role it has.
            Some((author, reviewer)) if author == actor && reviewer == actor => match side {
                Side::Reviewer => Self::Reviewer,
                Side::Author | Side::Person | Side::Nobody => Self::Author,
            },
            Some((author, _)) if author == actor => Self::Author,
            Some((_, reviewer)) if reviewer == actor => Self::Reviewer,
            Some(_) | None => Self::Sender,
        }
    }
}

/// The commands that reviews' rows already show, each with its reviews.
#[derive(Debug, Default)]
pub(crate) struct ToldCommands(BTreeMap<String, BTreeSet<String>>);

impl ToldCommands {
    /// Notes every command that brings what a review waits for.
    pub(crate) fn note(&mut self, why: &Why) {
        for fix in &why.fixes {
            let reviews = self.0.entry(fix.run.clone()).or_default();
            reviews.insert(why.review.clone());
        }
    }

    fn has(&self, problem: &Problem) -> bool {
        self.0.get(&problem.fix.run).is_some_and(|reviews| {
            // An unreadable refused message names no review, so any review that shows the command will do.
            let review = problem.review.as_ref();
            review.is_none_or(|review| reviews.contains(review))
        })
    }
}

impl Need {
    /// Returns the urgency of the wait; `None` if it has no end.
    pub fn urgency(&self, now: DateTime<Utc>) -> Option<Urgency> {
        Some(Urgency::of(self.due_at?, self.wait_s, now))
    }

    /// The need of a review, if it waits for anything.
    pub(crate) fn of_review(
        key: &ReviewKey,
        review: &Review,
        row: &ReviewRow,
        why: Why,
    ) -> Option<Self> {
        let missing = why.missing?;
        let mover = why.actor?;
        Some(Self {
            part: WhoseMove::of(
                &mover,
                Some((&key.author, review.reviewer(key))),
                review.mover(),
            ),
            mover,
            review: Some(why.review),
            kind: NeedKind::Missing(why.kind),
            missing,
            since: Some(row.since),
            due_at: row.due_at,
            wait_s: row.wait_s,
            fix: why.fixes.into_iter().next(),
        })
    }

    /// The need of a problem, unless a review's row already shows its command.
    pub(crate) fn of_problem<'k>(
        problem: &Problem,
        told: &ToldCommands,
        key_of: impl Fn(&str) -> Option<&'k ReviewKey>,
    ) -> Option<Self> {
        if told.has(problem) || problem.kind == ProblemKind::ReviewEscalated {
            return None;
        }
        let key = problem.review.as_deref().and_then(key_of);
        Some(Self {
            part: WhoseMove::of(
                &problem.fix.actor,
                key.map(|key| (&key.author, &key.reviewer)),
                Side::Nobody,
            ),
            mover: problem.fix.actor.clone(),
            review: problem.review.clone(),
            kind: NeedKind::Problem(problem.kind),
            missing: problem.what.clone(),
            since: problem.since,
            due_at: None,
            wait_s: None,
            fix: Some(problem.fix.clone()),
        })
    }

    /// Sorts by role, then by the time left; without a deadline, the oldest first.
    pub(crate) fn sort(needs: &mut [Self]) {
        needs.sort_by(|a, b| {
            let key = |need: &Self| {
                (
                    need.part,
                    need.due_at.is_none(),
                    need.due_at,
                    need.since.is_none(),
                    need.since,
                )
            };
            key(a).cmp(&key(b))
        });
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use serde_json::json;

    use super::*;

    #[test]
    fn whoever_moves_has_the_role_that_the_review_gives_it() {
        let name = |name: &str| AgentName::new(name).expect("a name");
        let (claude, codex) = (name("claude"), name("codex"));
        let of = |mover: &str, agents, side| {
            let mover = match mover {
                "operator" => Actor::Operator,
                "person" => Actor::Person,
                agent => Actor::Agent(name(agent)),
            };
            let part = WhoseMove::of(&mover, agents, side);
            assert_eq!(json!(part), part.word());
            part.of_mover(&mover)
        };
        let two = Some((&claude, &codex));
        for side in [Side::Author, Side::Reviewer, Side::Person, Side::Nobody] {
            assert_eq!(of("operator", two, side), "operator");
            assert_eq!(of("person", two, side), "person");
            assert_eq!(of("claude", two, side), "claude (author)");
            assert_eq!(of("codex", two, side), "codex (reviewer)");
            assert_eq!(of("gemini", two, side), "gemini (sender)");
            assert_eq!(of("claude", None, side), "claude (sender)");
        }
        // An agent that reviews its own work.
        let alone = Some((&claude, &claude));
        for (side, expected) in [
            (Side::Author, "claude (author)"),
            (Side::Reviewer, "claude (reviewer)"),
            (Side::Nobody, "claude (author)"),
        ] {
            assert_eq!(of("claude", alone, side), expected);
        }
    }

    #[test]
    fn a_need_without_an_end_is_never_urgent() {
        let now = DateTime::UNIX_EPOCH;
        let urgency = |due_s: Option<i64>| {
            let need = Need {
                part: WhoseMove::Person,
                mover: Actor::Person,
                review: None,
                kind: NeedKind::Problem(ProblemKind::ReviewEscalated),
                missing: String::new(),
                since: Some(now),
                due_at: due_s.map(|due_s| now + TimeDelta::seconds(due_s)),
                wait_s: Some(86_400),
                fix: None,
            };
            need.urgency(now)
        };
        assert_eq!(urgency(None), None);
        assert_eq!(urgency(Some(80_000)), Some(Urgency::Calm));
        assert_eq!(urgency(Some(7_000)), Some(Urgency::Soon));
        assert_eq!(urgency(Some(0)), Some(Urgency::Over));
    }
}
