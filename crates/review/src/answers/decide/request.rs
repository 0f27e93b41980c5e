//! `review_request`: opens a review, its next round, or its next generation.

mod claim;

use message_schema::Code;
use message_schema::body::{ReviewRequest, RunTrigger};
use message_schema::id::{AgentName, CommitSha};
use policy::RuntimeClock;
use review_words::alert::Alert;
use review_words::deadline::patience;
use review_words::key::ReviewKey;
use review_words::phase::{
    ATTEMPTS, Addressed, Approval, CloseReason, EscalationReason, Heads, Invocation, Phase,
    SUPERSESSIONS,
};
use review_words::pulls::Pull;
use review_words::reading::{Change, ReadingState, ReadingStep};
use review_words::record::{Generation, ReviewStep};
use review_words::refusal::{Costs, Fault, Refusal, in_review};

use super::context::{MessageContext, Ruling};
use super::{limits, lookup};
use crate::parts::evidence::{self, Between};
use crate::parts::next::left_to_a_person;
use crate::parts::review::{FIX_REVIEWS_MAX, Review};

pub(super) fn decide(
    context: &MessageContext<'_>,
    body: &ReviewRequest,
) -> Result<Ruling, Refusal> {
    lookup::check_opener(context, &body.pr, body.repo.as_ref())?;
    let key = lookup::key_of_request(context, body)?;
    let request = Request {
        context,
        body,
        key: &key,
    };
    let before = context.state.review(&key);
    request.check_recipient(before)?;
    let mut ruling = match before {
        None => request.open_generation(None),
        Some(review) if review.phase.is_final() => request.reopen(review),
        Some(review) => request.next_round(review),
    }?;
    request.address(before, &mut ruling.step);
    claim::decide(&request, before, &mut ruling)?;
    request.mark_last_review(before, &mut ruling.step);
    let was_open = before.is_some_and(|review| !review.phase.is_final());
    if !was_open && let Some(fault) = limits::opening_fault(context, &key) {
        return Err(request.refuse(fault, before));
    }
    if let Some(named) = &body.supersedes_message_id
        && request.opens_round(before)
    {
        ruling.alerts.push(Alert::NothingSuperseded {
            named: named.clone(),
            round: ruling.step.round,
        });
    }
    if body.run_trigger == Some(RunTrigger::Verify) && !request.is_verify_run() {
        ruling.alerts.push(Alert::RunTriggerIgnored {
            author: key.author.clone(),
        });
    }
    let change = match ruling.step.reading.as_deref() {
        Some(ReadingStep::Asked(change)) => change.clone(),
        Some(ReadingStep::Observed(_) | ReadingStep::Ran(_)) | None => Change::default(),
    };
    ruling.alerts.extend(evidence::barred(
        context.policy,
        Between {
            author: &key.author,
            reviewer: context.recipient(),
        },
        &change,
    ));
    // The brief shows the alerts to the reviewer.
    if let Phase::Reviewing(open) = &mut ruling.step.phase {
        open.alerts.clone_from(&ruling.alerts);
    }
    Ok(ruling)
}

/// The commit that the author last reported, and the phase, which has the heads from later events.
#[derive(Clone, Copy, Default)]
struct Reported<'a> {
    commit: Option<&'a CommitSha>,
    phase: Option<&'a Phase>,
}

impl<'a> Reported<'a> {
    fn in_review(review: &'a Review) -> Self {
        Self {
            commit: review.commit.as_ref(),
            phase: Some(&review.phase),
        }
    }

    fn newer_heads(self) -> Heads {
        self.phase
            .and_then(Phase::newer_heads)
            .cloned()
            .unwrap_or_default()
    }
}

/// A request and the review it is about.
struct Request<'a> {
    context: &'a MessageContext<'a>,
    body: &'a ReviewRequest,
    key: &'a ReviewKey,
}

impl Request<'_> {
    fn refuse(&self, fault: Fault, review: Option<&Review>) -> Refusal {
        let state = self.context.state;
        let legal = review.map_or_else(Vec::new, |review| state.legal_next(self.key, review));
        in_review(vec![fault], self.key, legal, Costs::Nothing)
    }

    /// Checks that a replacement of an open request goes to the current reviewer, who has to answer it.
    fn check_recipient(&self, before: Option<&Review>) -> Result<(), Refusal> {
        let at_work = before
            .filter(|review| review.phase.invocation().is_some())
            .map(|review| review.reviewer(self.key));
        if at_work.is_some_and(|reviewer| reviewer != self.context.recipient()) {
            return Err(lookup::wrong_direction(self.context, self.key));
        }
        Ok(())
    }

    /// Makes the recipient of a new round its reviewer.
    fn address(&self, before: Option<&Review>, step: &mut ReviewStep) {
        let recipient = self.context.recipient();
        let is_other = before.is_some_and(|review| review.reviewer(self.key) != recipient);
        step.reassigned_to = is_other.then(|| recipient.clone());
    }

    /// Returns the reviewers to ask if the recipient's command fails for good. A pair runs its reviewer itself, so it
    /// has none.
    fn next_reviewers(&self) -> Option<Vec<AgentName>> {
        let Self { context, key, .. } = self;
        let mut pairs = context.state.pairs.values();
        if pairs.any(|pair| pair.is_theirs(key)) {
            return None;
        }
        context
            .policy
            .reviewers_after(context.recipient(), &key.author)
    }

    /// True if it asks for another review; false if it replaces the open request.
    fn opens_round(&self, before: Option<&Review>) -> bool {
        before.is_none_or(|review| review.phase.invocation().is_none())
    }

    /// Counts the reviews of its pull request including this one, over all its reviewers.
    fn reviews_with_this(&self, before: Option<&Review>) -> u32 {
        let used = self
            .context
            .state
            .reviews_used(self.key.repo.as_ref(), &self.key.pr);
        used + u32::from(self.opens_round(before))
    }

    /// Marks the last review that a fix pull request may have, so that its reviewer knows, even if other reviews of it are
    /// requested meanwhile.
    fn mark_last_review(&self, before: Option<&Review>, step: &mut ReviewStep) {
        let (key, state) = (self.key, self.context.state);
        let is_fix = step.fixes.is_some() || state.is_fix(key.repo.as_ref(), &key.pr);
        let is_last = is_fix && self.reviews_with_this(before) >= FIX_REVIEWS_MAX;
        if let Phase::Reviewing(open) = &mut step.phase {
            open.last_review |= is_last && (self.opens_round(before) || step.fixes.is_some());
        }
    }

    /// Opens a generation; its first request fixes its rounds.
    fn open_generation(&self, before: Option<&Review>) -> Result<Ruling, Refusal> {
        self.check_generations_left(before)?;
        self.check_can_be_approved(before)?;
        let round = before.map_or(1, |review| review.round + 1);
        self.check_round(round, before)?;
        let number = before.map_or(1, |review| review.generation + 1);
        Ok(self.first_of_generation(number, round, Reported::default()))
    }

    fn first_of_generation(&self, number: u8, round: u32, reported: Reported<'_>) -> Ruling {
        let allowed = self.context.policy.rounds;
        let (rounds, alerts) = match self.body.max_rounds {
            Some(asked) if asked > allowed => {
                (allowed, vec![Alert::RoundsLimited { asked, allowed }])
            }
            Some(asked) => (asked, Vec::new()),
            None => (allowed, Vec::new()),
        };
        let step = ReviewStep {
            opens: Some(Generation { number, rounds }),
            ..self.open_round(round, reported, None)
        };
        Ruling { step, alerts }
    }

    /// Opens the next generation: after an approval for a new head, and after a close once the pull request is open
    /// again. After an escalation only a person can.
    fn reopen(&self, review: &Review) -> Result<Ruling, Refusal> {
        self.check_generations_left(Some(review))?;
        let pull = self
            .context
            .state
            .pull(self.key.repo.as_ref(), &self.key.pr);
        let fault = match &review.phase {
            Phase::Approved(approval) if approval.stale || has_new_head(self.body, approval) => {
                return self.open_generation(Some(review));
            }
            Phase::Approved(approval) => already_approved(self.body, approval),
            Phase::Closed(CloseReason::Merged | CloseReason::NotMerged)
                if pull.as_ref().is_some_and(Pull::is_open) =>
            {
                return self.open_generation(Some(review));
            }
            Phase::Escalated(EscalationReason::MaxRoundsExceeded) => round_limit_exceeded(review),
            Phase::Escalated(reason) => Fault::new(
                Code::ReviewClosed,
                format!("the review is with a person ({reason}); only a person can reopen it"),
            ),
            Phase::Closed(CloseReason::Commented) => Fault::new(
                Code::ReviewClosed,
                "the review ended with comments; only a person can reopen it",
            ),
            Phase::Closed(CloseReason::Merged | CloseReason::NotMerged) => {
                Fault::new(Code::ReviewClosed, "the review ended with its pull request")
            }
            Phase::Awaiting { .. }
            | Phase::Reviewing(_)
            | Phase::Fixing { .. }
            | Phase::Addressed { .. } => {
                unreachable!("only final phases are reopened")
            }
        };
        Err(self.refuse(fault, Some(review)))
    }

    fn next_round(&self, review: &Review) -> Result<Ruling, Refusal> {
        let addressed = match &review.phase {
            Phase::Awaiting { .. } => {
                self.check_round(review.round, Some(review))?;
                self.check_reviews_left(Some(review))?;
                let reported = Reported::in_review(review);
                return Ok(self.first_of_generation(review.generation, review.round, reported));
            }
            Phase::Reviewing(open) => {
                if self.body.supersedes_message_id.is_some() {
                    self.check_round(review.round, Some(review))?;
                }
                return self
                    .supersede(review, open)
                    .map_err(|fault| self.refuse(*fault, Some(review)));
            }
            Phase::Fixing { .. } if review.open_blockers() > 0 => {
                return Err(self.refuse(addressed_required(review), Some(review)));
            }
            Phase::Fixing { .. } => None,
            Phase::Addressed { report, .. } => Some(report.clone()),
            Phase::Approved(_) | Phase::Escalated(_) | Phase::Closed(_) => {
                unreachable!("final phases are handled before")
            }
        };
        if review.is_last(review.round) {
            return Err(self.refuse(round_limit_exceeded(review), Some(review)));
        }
        let round = review.round + 1;
        self.check_round(round, Some(review))?;
        self.check_reviews_left(Some(review))?;
        Ok(Ruling {
            step: self.open_round(round, Reported::in_review(review), addressed),
            alerts: Vec::new(),
        })
    }

    /// Replaces the open request. The reviewer's used budget stays used, so that a replacement gives no agent a fresh
    /// start.
    fn supersede(&self, review: &Review, open: &Invocation) -> Result<Ruling, Box<Fault>> {
        let names_open = match &self.body.supersedes_message_id {
            None => return Err(Box::new(already_open(open, review.reviewer(self.key)))),
            Some(named) => *named == open.request,
        };
        if !names_open {
            return Err(Box::new(supersedes_unknown(self.body, open)));
        }
        if open.supersessions_left == 0 {
            return Err(Box::new(replaced_too_often(open)));
        }
        let asked = self.invocation(Reported::in_review(review), open.addressed.clone());
        let new = Invocation {
            attempts_left: open.attempts_left,
            supersessions_left: open.supersessions_left - 1,
            turns: open.turns,
            turns_taken: open.turns_taken,
            runtime_s: open.runtime_s,
            pick_up_by: open.pick_up_by,
            taken_at: open.taken_at,
            starts: open.starts,
            failed_start: open.failed_start,
            next_reviewers: open.next_reviewers.clone(),
            // A verify run that has begun goes on.
            verify_run: open.verify_run || asked.verify_run,
            last_review: open.last_review,
            ..asked
        };
        Ok(Ruling {
            step: self.asking(ReviewStep::to(
                self.key,
                review.round,
                Phase::Reviewing(new),
            )),
            alerts: Vec::new(),
        })
    }

    fn open_round(
        &self,
        round: u32,
        reported: Reported<'_>,
        addressed: Option<Addressed>,
    ) -> ReviewStep {
        let open = self.invocation(reported, addressed);
        self.asking(ReviewStep::to(self.key, round, Phase::Reviewing(open)))
    }

    /// Adds the change that the reviewer must read, as the request names it, to a step.
    fn asking(&self, step: ReviewStep) -> ReviewStep {
        let change = Change {
            base: self.body.base_sha.clone(),
            head: step.phase.invocation().and_then(|open| open.head.clone()),
            digest: self.body.diff_digest.clone(),
            files: self.context.posted.valid.changed_files(),
        };
        let known = self.context.state.review(self.key);
        let is_said = change.head.is_some() || change.digest.is_some() || !change.files.is_empty();
        let is_news =
            is_said || known.is_some_and(|review| review.reading != ReadingState::default());
        ReviewStep {
            reading: is_news.then(|| Box::new(ReadingStep::Asked(change))),
            ..step
        }
    }

    fn invocation(&self, reported: Reported<'_>, addressed: Option<Addressed>) -> Invocation {
        let Self { context, body, .. } = self;
        let envelope = context.envelope();
        let (head, newer_heads) = match &body.declared_head {
            Some(declared) => (Some(declared.clone()), Heads::default()),
            None => (reported.commit.cloned(), reported.newer_heads()),
        };
        Invocation {
            request: envelope.id.clone(),
            priority: envelope.priority,
            turns: body.max_turns_reviewer.unwrap_or_default(),
            turns_taken: 0,
            runtime_s: body.max_runtime_s_reviewer.unwrap_or_default(),
            pick_up_by: context.now + patience(envelope.priority),
            taken_at: match context.policy.runtime_clock {
                RuntimeClock::Take => None,
                RuntimeClock::Delivery => Some(context.now),
            },
            attempts_left: ATTEMPTS,
            supersessions_left: SUPERSESSIONS,
            starts: 0,
            failed_start: 0,
            next_reviewers: self.next_reviewers(),
            head,
            newer_heads,
            alerts: Vec::new(),
            validation_commands: body.validation_commands.clone(),
            addressed,
            verify_run: self.is_verify_run(),
            last_review: false,
        }
    }

    fn is_verify_run(&self) -> bool {
        self.body.run_trigger == Some(RunTrigger::Verify)
            && self
                .context
                .policy
                .handoff
                .verify_agents
                .contains(&self.key.author)
    }

    /// Refuses the request if there is a fault that bars every request.
    fn check(&self, fault: Option<Fault>, before: Option<&Review>) -> Result<(), Refusal> {
        fault.map_or(Ok(()), |fault| Err(self.refuse(fault, before)))
    }

    /// Refuses a generation that cannot end in approval: the pull request is closed or merged, or a person holds all
    /// blockers.
    fn check_can_be_approved(&self, before: Option<&Review>) -> Result<(), Refusal> {
        let fault = self.context.state.pull_over(self.key);
        self.check(fault.or_else(|| before.and_then(left_to_a_person)), before)
    }

    fn check_generations_left(&self, before: Option<&Review>) -> Result<(), Refusal> {
        self.check(self.context.state.no_generation(self.key), before)
    }

    fn check_reviews_left(&self, before: Option<&Review>) -> Result<(), Refusal> {
        self.check(self.context.state.reviews_used_up(self.key), before)
    }

    fn check_round(&self, round: u32, review: Option<&Review>) -> Result<(), Refusal> {
        match self.body.round {
            Some(said) if said != round => {
                let fault = Fault::new(
                    Code::RoundMismatch,
                    format!("the request says round {said}, but it would open round {round}"),
                )
                .field("body.round")
                .found(said)
                .expected(round.to_string())
                .fix(format!("write `round: {round}`, or leave the field out"));
                Err(self.refuse(fault, review))
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn has_new_head(body: &ReviewRequest, approval: &Approval) -> bool {
    match (&body.declared_head, &approval.commit) {
        (Some(head), Some(approved)) => !head.same_commit(approved),
        (Some(_), None) => true,
        (None, _) => false,
    }
}

fn already_approved(body: &ReviewRequest, approval: &Approval) -> Fault {
    let commit = approval
        .commit
        .as_ref()
        .map_or_else(|| "no commit".to_owned(), ToString::to_string);
    let fault = Fault::new(
        Code::AlreadyApproved,
        format!("the review is approved for {commit}"),
    )
    .field("body.declared_head")
    .expected("a declared_head other than the approved commit")
    .fix("do nothing; after new commits, name the new head in declared_head");
    match &body.declared_head {
        Some(head) => fault.found(head),
        None => fault,
    }
}

fn round_limit_exceeded(review: &Review) -> Fault {
    Fault::new(
        Code::RoundLimitExceeded,
        format!(
            "round {} was the last of {} in this generation",
            review.round, review.rounds
        ),
    )
    .found(format!("a request for round {}", review.round + 1))
    .expected(format!("at most {} rounds", review.rounds))
    .fix("a person decides; agents cannot open another round")
}

fn addressed_required(review: &Review) -> Fault {
    Fault::new(
        Code::AddressedRequired,
        format!(
            "{} blocking findings of round {} are open; review_addressed comes before the next request",
            review.open_blockers(),
            review.round
        ),
    )
    .expected(format!("review_addressed with round: {}", review.round))
    .fix(format!("send review_addressed with `round: {}` and the commit that fixes them", review.round))
}

fn already_open(invocation: &Invocation, reviewer: &AgentName) -> Fault {
    Fault::new(
        Code::RequestAlreadyOpen,
        format!(
            "the request `{}` is open and waits for `{reviewer}`",
            invocation.request
        ),
    )
    .fix(format!(
        "wait for the response of `{reviewer}`, or replace it with `supersedes_message_id: {}`",
        invocation.request
    ))
}

fn supersedes_unknown(body: &ReviewRequest, open: &Invocation) -> Fault {
    let named = body
        .supersedes_message_id
        .as_ref()
        .map_or_else(String::new, ToString::to_string);
    Fault::new(
        Code::SupersedesUnknown,
        format!("`{named}` is not the open request"),
    )
    .field("body.supersedes_message_id")
    .found(named)
    .expected(open.request.as_str())
    .fix(format!("write `supersedes_message_id: {}`", open.request))
}

fn replaced_too_often(open: &Invocation) -> Fault {
    Fault::new(
        Code::RequestAlreadyOpen,
        format!(
            "the request of this round was replaced {SUPERSESSIONS} times; `{}` is the open request",
            open.request
        ),
    )
    .field("body.supersedes_message_id")
    .expected(format!("at most {SUPERSESSIONS} replacements in a round"))
    .fix("wait for the response")
}
