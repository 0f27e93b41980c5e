//! The missing step of a review that has ended, by an approval for no current head, by an escalation, or with its pull
//! request; and whether the limits let an agent go on.

use message_schema::Code;
use message_schema::id::MessageId;
use review::{
    Act, Approval, CloseReason, DeclinedEvent, EscalationReason, Event, EventRecord,
    PersonsDecision, Policy, ReportedEvent, Which, on_event,
};

use super::{Diagnosis, Look, Missing};
use crate::status::fix::{of_pr, of_repo};

impl Look<'_> {
    pub(super) fn approved(&self, approval: &Approval) -> Diagnosis {
        if approval.stale || approval.commit.is_none() {
            return self.unbound(approval);
        }
        if self.status.index.state().is_pull_over(self.key) {
            return self.nothing();
        }
        let commit = approval
            .commit
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let check = format!("gate check {} --head {commit}", of_pr(self.key));
        let check = self
            .commands
            .operator(&check, "checks that the approval covers that commit");
        if approval.merge_ready {
            let merged = self.commands.operator(
                &format!("pr merged {}{}", self.key.pr, of_repo(self.key)),
                "reports the merge, once it is done",
            );
            return Diagnosis {
                kind: Missing::Nothing,
                missing: None,
                fixes: vec![check, merged],
            };
        }
        let missing = format!(
            "a person must decide: {} approved {}, but not for merging (merge_ready: false)",
            self.reviewer(),
            short(&commit)
        );
        let reopen = (
            Act::Reopen,
            self.named("review reopen"),
            "lets the agents continue, in a new generation",
        );
        Diagnosis {
            kind: Missing::MergeReady,
            ..self.given_back(missing, vec![reopen])
        }
    }

    /// Diagnoses an approval that does not hold for the pull request's head.
    fn unbound(&self, approval: &Approval) -> Diagnosis {
        let pull = self
            .status
            .index
            .state()
            .pull(self.key.repo.as_ref(), &self.key.pr);
        let head = pull.and_then(|pull| pull.head).map(|head| head.to_string());
        let approved = match &approval.commit {
            Some(commit) => format!("the approval is for {}", short(&commit.to_string())),
            None => "the approval names no commit".to_owned(),
        };
        let asked_for = match (&approval.commit, &head) {
            (Some(_), Some(head)) => format!("a review of {}", short(head)),
            (Some(_), None) => "a review of the new head".to_owned(),
            (None, _) => "a review that names its commit".to_owned(),
        };
        let missing = format!("{} must request {asked_for}: {approved}", self.key.author);
        if self.status.index.state().is_pull_over(self.key) {
            return self.nothing();
        }
        if let Some(over) = self.nobody_asks(Some(&approved)) {
            return over;
        }
        let (request, what) = self.request("BRANCH");
        let request = format!(
            "{request} --declared-head {}",
            head.as_deref().unwrap_or("SHA")
        );
        self.author(Missing::Head, missing, &[(request, what)])
    }

    pub(super) fn escalated(&self, why: &EscalationReason) -> Diagnosis {
        let missing = format!("a person must decide: {}", self.what_happened(why));
        let reopen = (
            Act::Reopen,
            self.named("review reopen"),
            "a new generation: the author asks again",
        );
        let grant = (
            Act::Grant { rounds: 1 },
            self.named("review grant") + " --rounds 1",
            "one more round: the author continues to fix",
        );
        let ways = match why {
            EscalationReason::MaxRoundsExceeded => vec![grant, reopen],
            EscalationReason::ReviewerBudgetExceeded
            | EscalationReason::ReviewerTimeout
            | EscalationReason::AuthorTimeout
            | EscalationReason::ProtocolViolation
            | EscalationReason::BlockerHeld
            | EscalationReason::InvocationFailed
            | EscalationReason::NoReviewer
            | EscalationReason::SpendExceeded
            | EscalationReason::Cancelled
            | EscalationReason::Reviewer(_) => vec![reopen],
        };
        let mut answer = self.given_back(missing, ways);
        if let Some((id, _)) = self.review.held_blockers().next() {
            answer.fixes.push(self.commands.person(
                &format!("{} {id}", self.named("thread resolve")),
                "marks a held thread as resolved",
            ));
        }
        answer
    }

    /// Diagnoses a wait for a person: to give the review back to the agents in one of these ways, if the rules accept
    /// one, or else to end it with its pull request.
    fn given_back(&self, missing: String, ways: Vec<(Act, String, &str)>) -> Diagnosis {
        let mut barred = None;
        let mut fixes = Vec::new();
        for (act, words, what) in ways {
            match self.declined(act) {
                None => fixes.push((words, what)),
                Some(declined) => barred = barred.or(Some(declined)),
            }
        }
        let Some(declined) = barred.filter(|_| fixes.is_empty()) else {
            return self.decision(missing, fixes);
        };
        let state = self.status.index.state();
        let given_back = state.given_back_too_often(self.key, self.now);
        let further = match (declined.code, given_back) {
            (Code::ReopenLimitExceeded, Some((_, at))) => {
                format!(", and can be again at {}", at.format("%Y-%m-%dT%H:%M:%SZ"))
            }
            (_, _) => ", so no agent can continue".to_owned(),
        };
        self.decision(format!("{missing}; {}{further}", declined.why), self.ends())
    }

    /// The reason why the rules would decline a person's decision now. The policy only sets how many rounds the
    /// decision opens, so the default policy will do.
    fn declined(&self, act: Act) -> Option<DeclinedEvent> {
        let event = Event::Person(PersonsDecision {
            which: Which::of(self.key),
            by: String::new(),
            reason: String::new(),
            act,
        });
        let told = ReportedEvent {
            order: None,
            event: &event,
        };
        let state = self.status.index.state();
        let ids = &mut || MessageId::new("settled-why").expect("an id");
        match on_event(state, &Policy::default(), told, self.now, ids) {
            EventRecord::Happened(_) => None,
            EventRecord::Declined(declined) => Some(declined),
        }
    }

    /// The diagnosis if the rules would refuse any further request by the author. `why` is the purpose of that request.
    pub(super) fn nobody_asks(&self, why: Option<&str>) -> Option<Diagnosis> {
        let state = self.status.index.state();
        let fault = state.no_request(self.key, self.review)?;
        let why = why.map_or_else(String::new, |why| format!("{why}; "));
        let missing = format!(
            "a person must decide: {why}{}, so no agent can continue",
            fault.message
        );
        Some(self.decision(missing, self.ends()))
    }

    /// True if a person gave the number to another author, so that no agent continues this review.
    pub(super) fn is_given_up(&self) -> bool {
        let state = self.status.index.state();
        let counted = state.counted_reviews(self.key.repo.as_ref(), &self.key.pr);
        !counted.is_empty() && counted.iter().all(|(key, _)| *key != self.key)
    }

    pub(super) fn nothing(&self) -> Diagnosis {
        Diagnosis {
            kind: Missing::Nothing,
            missing: None,
            fixes: Vec::new(),
        }
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
            .status
            .index
            .state()
            .pull(self.key.repo.as_ref(), &self.key.pr);
        let is_open = pull.as_ref().is_some_and(review::Pull::is_open);
        match why {
            CloseReason::Merged | CloseReason::NotMerged if is_open => {
                let missing = format!(
                    "{} must request a review: the pull request is open again",
                    self.key.author
                );
                self.nobody_asks(Some("the pull request is open again"))
                    .unwrap_or_else(|| {
                        self.author(Missing::Request, missing, &[self.request("BRANCH")])
                    })
            }
            CloseReason::Merged | CloseReason::NotMerged => self.nothing(),
            CloseReason::Commented if self.declined(Act::Reopen).is_some() => self.nothing(),
            CloseReason::Commented => {
                let reopen = self
                    .commands
                    .person(&self.named("review reopen"), "lets the agents continue");
                Diagnosis {
                    fixes: vec![reopen],
                    ..self.nothing()
                }
            }
        }
    }

    /// `word 86`, and the reviewer and the repository where a second review, of any repository, has that number: a
    /// person's command without them would match both and be declined.
    pub(super) fn named(&self, word: &str) -> String {
        format!("{word} {}", self.status.name_of(self.key))
    }
}

/// The abbreviated commit, as `git log --abbrev=12` writes it; the command beside it has all of it.
fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

impl Look<'_> {
    fn what_happened(&self, why: &EscalationReason) -> String {
        let (author, reviewer) = (&self.key.author, self.reviewer());
        match why {
            EscalationReason::MaxRoundsExceeded => {
                "the last round ended without approval".to_owned()
            }
            EscalationReason::ReviewerBudgetExceeded => {
                format!("the turns or seconds of {reviewer} are spent")
            }
            EscalationReason::ReviewerTimeout => {
                format!("{reviewer} did not take the request in time")
            }
            EscalationReason::AuthorTimeout => format!("{author} did not move in time"),
            EscalationReason::ProtocolViolation => {
                format!("three answers of {reviewer} were refused in one round")
            }
            EscalationReason::BlockerHeld => "a person holds every blocking thread".to_owned(),
            EscalationReason::InvocationFailed => self.last_failure(),
            EscalationReason::NoReviewer => {
                format!("nobody is left to ask; {}", self.last_failure())
            }
            EscalationReason::SpendExceeded => {
                format!("the budget of the review is used up: {}", self.review.spent)
            }
            EscalationReason::Cancelled => format!("a person cancelled the request to {reviewer}"),
            EscalationReason::Reviewer(text) => format!("{reviewer} says: {text}"),
        }
    }

    fn last_failure(&self) -> String {
        let reviewer = self.reviewer();
        self.review.failed.as_ref().map_or_else(
            || format!("the command of {reviewer} ended without a response"),
            |failed| {
                let why = failed.failure.sentence();
                format!("the command of {} failed: {why}", failed.reviewer)
            },
        )
    }
}
