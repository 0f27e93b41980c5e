//! What a review lacks that has ended: in an approval that holds for no head, with a person, or with its pull
//! request; and whether the limits let anybody go on.

use chrono::{DateTime, TimeDelta, Utc};
use review::{
    Approval, CloseReason, EscalationReason, GENERATIONS_MAX, GIVEN_BACK_PER_DAY, Review, ReviewKey,
};

use super::{Diagnosis, Look, Missing};
use crate::status::fix::{named, of_pr, of_repo};

impl Look<'_> {
    pub(super) fn approved(&self, approval: &Approval) -> Diagnosis {
        if approval.stale || approval.commit.is_none() {
            return self.unbound(approval);
        }
        let commit = approval
            .commit
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let check = format!("gate check {} --head {commit}", of_pr(self.key));
        let check = self
            .commands
            .operator(&check, "whether the approval holds for that commit");
        if approval.merge_ready {
            return Diagnosis {
                kind: Missing::Nothing,
                missing: None,
                fixes: vec![check],
            };
        }
        let missing = format!(
            "leave to merge: {} approved {commit} with merge_ready: false",
            self.key.reviewer
        );
        let reopen = self.commands.person(
            &self.named("reopen"),
            "has the agents go on, in a new generation",
        );
        Diagnosis {
            kind: Missing::MergeReady,
            missing: Some(missing),
            fixes: vec![reopen],
        }
    }

    /// An approval that holds for no head the pull request has.
    fn unbound(&self, approval: &Approval) -> Diagnosis {
        let pull = self
            .standing
            .index
            .state()
            .pull(self.key.repo.as_ref(), &self.key.pr);
        let head = pull
            .and_then(|pull| pull.head.as_ref())
            .map(ToString::to_string);
        let missing = match (&approval.commit, &head) {
            (Some(commit), Some(head)) => {
                format!("a review of {head}: the approval is of {commit} and is stale")
            }
            (Some(commit), None) => {
                format!("a review of the new head: the approval is of {commit} and is stale")
            }
            (None, _) => {
                "a commit: the approval is bound to none, so no gate check passes".to_owned()
            }
        };
        if let Some(barred) = self.generations_are_used() {
            return self.decision(format!("{missing}; {barred}"), self.ends());
        }
        let (request, what) = self.request("BRANCH");
        let request = format!(
            "{request} --declared-head {}",
            head.as_deref().unwrap_or("SHA")
        );
        self.author(Missing::Head, missing, &[(request, what)])
    }

    pub(super) fn escalated(&self, why: &EscalationReason) -> Diagnosis {
        let missing = format!("a person's decision: {}", what_happened(why, self.key));
        if let Some(barred) = self.generations_are_used() {
            return self.decision(format!("{missing}; {barred}"), self.ends());
        }
        if let Some(from) = self.given_back_again_at() {
            let from = from.format("%Y-%m-%dT%H:%M:%SZ");
            let why = format!(
                "it was given back {GIVEN_BACK_PER_DAY} times within 24 hours, and can be again at {from}"
            );
            return self.decision(format!("{missing}; {why}"), self.ends());
        }
        let reopen = (
            self.named("reopen"),
            "a new generation: the author asks again",
        );
        let grant = (
            self.named("grant") + " --rounds 1",
            "one more round: the author goes on fixing",
        );
        let mut fixes = match why {
            EscalationReason::MaxRoundsExceeded => vec![grant, reopen],
            EscalationReason::ReviewerBudgetExceeded
            | EscalationReason::ReviewerTimeout
            | EscalationReason::AuthorTimeout
            | EscalationReason::ProtocolViolation
            | EscalationReason::BlockerHeld
            | EscalationReason::InvocationFailed
            | EscalationReason::Cancelled
            | EscalationReason::Reviewer(_) => vec![reopen],
        };
        let held = self
            .review
            .threads
            .iter()
            .find(|(_, thread)| thread.blocking && thread.is_held());
        if let Some((id, _)) = held {
            fixes.push((
                format!("{} {id}", self.named("resolve")),
                "declares a held thread done with, if it is",
            ));
        }
        self.decision(missing, fixes)
    }

    fn decision(&self, missing: String, fixes: Vec<(String, &str)>) -> Diagnosis {
        let fixes = fixes
            .into_iter()
            .map(|(words, what)| self.commands.person(&words, what))
            .collect();
        Diagnosis {
            kind: Missing::Decision,
            missing: Some(missing),
            fixes,
        }
    }

    fn ends(&self) -> Vec<(String, &'static str)> {
        vec![(
            format!("pr closed {}{}", self.key.pr, of_repo(self.key)),
            "ends the review with its pull request",
        )]
    }

    pub(super) fn closed(&self, why: CloseReason) -> Diagnosis {
        let pull = self
            .standing
            .index
            .state()
            .pull(self.key.repo.as_ref(), &self.key.pr);
        let is_open = pull.is_some_and(review::Pull::is_open);
        match why {
            CloseReason::Merged | CloseReason::NotMerged if is_open => {
                let missing = format!(
                    "a review_request of {}: the pull request is open again",
                    self.key.author
                );
                self.author(Missing::Request, missing, &[self.request("BRANCH")])
            }
            CloseReason::Merged | CloseReason::NotMerged => Diagnosis {
                kind: Missing::Nothing,
                missing: None,
                fixes: Vec::new(),
            },
            CloseReason::Commented => {
                let reopen = self.commands.person(
                    &self.named("reopen"),
                    "has the agents go on, if that is wanted",
                );
                Diagnosis {
                    kind: Missing::Nothing,
                    missing: None,
                    fixes: vec![reopen],
                }
            }
        }
    }

    /// `word 86`, and the reviewer where the pull request has several.
    fn named(&self, word: &str) -> String {
        format!("{word} {}", named(self.key, self.same_pr().count() == 1))
    }

    fn same_pr(&self) -> impl Iterator<Item = &Review> {
        let is_same = |key: &ReviewKey| {
            key.pr == self.key.pr
                && (key.repo.is_none() || self.key.repo.is_none() || key.repo == self.key.repo)
        };
        self.standing
            .index
            .state()
            .reviews()
            .filter(move |(key, _)| is_same(key))
            .map(|(_, review)| review)
    }

    fn generations_are_used(&self) -> Option<String> {
        let used = self
            .same_pr()
            .map(|review| review.generation)
            .fold(0, u8::saturating_add);
        (used >= GENERATIONS_MAX)
            .then(|| format!("its {GENERATIONS_MAX} generations are used, so no agent can go on"))
    }

    /// When people may give the pull request back again, if they may not now.
    fn given_back_again_at(&self) -> Option<DateTime<Utc>> {
        let day = TimeDelta::hours(24);
        let mut times: Vec<_> = self
            .same_pr()
            .flat_map(|review| &review.given_back)
            .filter(|at| **at > self.now - day)
            .collect();
        times.sort_unstable();
        let first = times.len().checked_sub(GIVEN_BACK_PER_DAY)?;
        Some(*times[first] + day)
    }
}

fn what_happened(why: &EscalationReason, key: &ReviewKey) -> String {
    let ReviewKey {
        author, reviewer, ..
    } = key;
    match why {
        EscalationReason::MaxRoundsExceeded => "the last round ended without approval".to_owned(),
        EscalationReason::ReviewerBudgetExceeded => {
            format!("the turns or seconds of {reviewer} are spent")
        }
        EscalationReason::ReviewerTimeout => format!("{reviewer} did not take the request in time"),
        EscalationReason::AuthorTimeout => format!("{author} did not move in time"),
        EscalationReason::ProtocolViolation => {
            format!("three answers of {reviewer} were refused in one round")
        }
        EscalationReason::BlockerHeld => "all that blocks was handed to a person".to_owned(),
        EscalationReason::InvocationFailed => {
            format!("the command of {reviewer} ended without a response")
        }
        EscalationReason::Cancelled => format!("a person called {reviewer} off"),
        EscalationReason::Reviewer(text) => format!("{reviewer} says: {text}"),
    }
}
