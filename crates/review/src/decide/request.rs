//! `review_request`: opens a review, its next round, or its next generation.

use message_schema::Code;
use message_schema::body::ReviewRequest;
use message_schema::limit::Rounds;

use super::{Answer, Case, belongs};
use crate::key::ReviewKey;
use crate::phase::{Addressed, Approval, EscalationReason, Invocation, Phase};
use crate::record::{Generation, Step};
use crate::refusal::{Fault, Refusal, in_review};
use crate::state::{ATTEMPTS, GENERATIONS_MAX, Review, SUPERSESSIONS};

pub(super) fn decide(case: &Case<'_>, body: &ReviewRequest) -> Result<Answer, Refusal> {
    belongs::check_opener(case, &body.pr, body.repo.as_ref())?;
    let key = belongs::key_of_request(case, body)?;
    match case.state.review(&key) {
        None => open_generation(case, body, &key, None),
        Some(review) if review.phase.is_final() => reopen(case, body, &key, review),
        Some(review) => next_round(case, body, &key, review),
    }
}

/// The first request of a generation fixes its rounds.
fn open_generation(
    case: &Case<'_>,
    body: &ReviewRequest,
    key: &ReviewKey,
    before: Option<&Review>,
) -> Result<Answer, Refusal> {
    check_generations_left(case, key, before)?;
    let round = before.map_or(1, |review| review.round + 1);
    check_round(body, key, round, before)?;
    let allowed = case.policy.rounds;
    let (rounds, warnings) = match body.max_rounds {
        Some(asked) if asked > allowed => (allowed, vec![clamped(asked, allowed)]),
        Some(asked) => (asked, Vec::new()),
        None => (allowed, Vec::new()),
    };
    let number = before.map_or(1, |review| review.generation + 1);
    let mut step = open_round(case, body, key, round, None);
    step.opens = Some(Generation { number, rounds });
    Ok(Answer { step, warnings })
}

/// After approval a new head opens the next generation; after an escalation only a person can.
fn reopen(
    case: &Case<'_>,
    body: &ReviewRequest,
    key: &ReviewKey,
    review: &Review,
) -> Result<Answer, Refusal> {
    check_generations_left(case, key, Some(review))?;
    let fault = match &review.phase {
        Phase::Approved(approval) if has_new_head(body, approval) => {
            return open_generation(case, body, key, Some(review));
        }
        Phase::Approved(approval) => already_approved(body, approval),
        Phase::Escalated(EscalationReason::MaxRoundsExceeded) => round_limit_exceeded(review),
        Phase::Escalated(reason) => Fault::new(
            Code::ReviewClosed,
            format!("the review is with a person ({}); only a person can reopen it", reason),
        ),
        Phase::Reviewing(_) | Phase::Fixing | Phase::Addressed { .. } => {
            unreachable!("only final phases are reopened")
        }
    };
    Err(in_review(vec![fault], key, review.legal_next(key), false))
}

fn next_round(
    case: &Case<'_>,
    body: &ReviewRequest,
    key: &ReviewKey,
    review: &Review,
) -> Result<Answer, Refusal> {
    let refuse = |fault| Err(in_review(vec![fault], key, review.legal_next(key), false));
    let addressed = match &review.phase {
        Phase::Reviewing(open) => {
            if body.supersedes_message_id.is_some() {
                check_round(body, key, review.round, Some(review))?;
            }
            return supersede(case, body, key, review, open).or_else(|fault| refuse(*fault));
        }
        Phase::Fixing if review.open_blockers() > 0 => return refuse(addressed_required(review)),
        Phase::Fixing => None,
        Phase::Addressed { report } => Some(report.clone()),
        Phase::Approved(_) | Phase::Escalated(_) => unreachable!("final phases are handled before"),
    };
    if review.is_last(review.round) {
        return refuse(round_limit_exceeded(review));
    }
    let round = review.round + 1;
    check_round(body, key, round, Some(review))?;
    Ok(Answer { step: open_round(case, body, key, round, addressed), warnings: Vec::new() })
}

/// Replaces the open request. What the reviewer has used of its means stays used, so that a
/// replacement buys nobody a fresh start.
fn supersede(
    case: &Case<'_>,
    body: &ReviewRequest,
    key: &ReviewKey,
    review: &Review,
    open: &Invocation,
) -> Result<Answer, Box<Fault>> {
    let names_open = match &body.supersedes_message_id {
        None => return Err(Box::new(already_open(open, key))),
        Some(named) => *named == open.request,
    };
    if !names_open {
        return Err(Box::new(supersedes_unknown(body, open)));
    }
    if open.supersessions_left == 0 {
        return Err(Box::new(replaced_too_often(open)));
    }
    let mut step = open_round(case, body, key, review.round, open.addressed.clone());
    if let Phase::Reviewing(new) = &mut step.phase {
        new.attempts_left = open.attempts_left;
        new.supersessions_left = open.supersessions_left - 1;
        (new.turns, new.runtime_s) = (open.turns, open.runtime_s);
    }
    Ok(Answer { step, warnings: Vec::new() })
}

fn open_round(
    case: &Case<'_>,
    body: &ReviewRequest,
    key: &ReviewKey,
    round: u32,
    addressed: Option<Addressed>,
) -> Step {
    let invocation = Invocation {
        request: case.envelope().id.clone(),
        priority: case.envelope().priority,
        turns: body.max_turns_reviewer.unwrap_or_default(),
        runtime_s: body.max_runtime_s_reviewer.unwrap_or_default(),
        attempts_left: ATTEMPTS,
        supersessions_left: SUPERSESSIONS,
        validation_commands: body.validation_commands.clone(),
        addressed,
    };
    Step {
        review: key.clone(),
        phase: Phase::Reviewing(invocation),
        opens: None,
        round,
        threads: std::collections::BTreeMap::new(),
        commit: None,
        declared_head: body.declared_head.clone(),
    }
}

fn check_generations_left(case: &Case<'_>, key: &ReviewKey, before: Option<&Review>) -> Result<(), Refusal> {
    if case.state.generations_used(key.repo.as_ref(), &key.pr) < GENERATIONS_MAX {
        return Ok(());
    }
    let fault = Fault::new(
        Code::IterationLimitExceeded,
        format!("pull request {} has used its {GENERATIONS_MAX} generations", key.pr),
    )
    .expected(format!("at most {GENERATIONS_MAX} generations over the life of a pull request"))
    .fix("a person decides what happens with this pull request");
    Err(in_review(vec![fault], key, before.map_or_else(Vec::new, |review| review.legal_next(key)), false))
}

fn check_round(
    body: &ReviewRequest,
    key: &ReviewKey,
    round: u32,
    review: Option<&Review>,
) -> Result<(), Refusal> {
    match body.round {
        Some(said) if said != round => {
            let fault = Fault::new(
                Code::RoundMismatch,
                format!("the request says round {said}, but it would open round {round}"),
            )
            .field("body.round")
            .found(said)
            .expected(round.to_string())
            .fix(format!("write `round: {round}`, or leave the field out"));
            let legal = review.map_or_else(Vec::new, |review| review.legal_next(key));
            Err(in_review(vec![fault], key, legal, false))
        }
        Some(_) | None => Ok(()),
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
    let commit = approval.commit.as_ref().map_or_else(|| "no commit".to_owned(), ToString::to_string);
    let fault = Fault::new(Code::AlreadyApproved, format!("the review is approved for {commit}"))
        .field("body.declared_head")
        .expected("a declared_head other than the approved commit")
        .fix("nothing is to be done; after new commits, name the new head in declared_head");
    match &body.declared_head {
        Some(head) => fault.found(head),
        None => fault,
    }
}

fn round_limit_exceeded(review: &Review) -> Fault {
    Fault::new(
        Code::RoundLimitExceeded,
        format!("round {} was the last of {} in this generation", review.round, review.rounds),
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

fn already_open(invocation: &Invocation, key: &ReviewKey) -> Fault {
    Fault::new(
        Code::RequestAlreadyOpen,
        format!("the request `{}` is open and waits for `{}`", invocation.request, key.reviewer),
    )
    .fix(format!(
        "wait for the response of `{}`, or replace it with `supersedes_message_id: {}`",
        key.reviewer, invocation.request
    ))
}

fn supersedes_unknown(body: &ReviewRequest, open: &Invocation) -> Fault {
    let named = body.supersedes_message_id.as_ref().map_or_else(String::new, ToString::to_string);
    Fault::new(Code::SupersedesUnknown, format!("`{named}` is not the open request"))
        .field("body.supersedes_message_id")
        .found(named)
        .expected(open.request.as_str())
        .fix(format!("write `supersedes_message_id: {}`", open.request))
}

fn replaced_too_often(open: &Invocation) -> Fault {
    Fault::new(
        Code::RequestAlreadyOpen,
        format!("the request of this round was replaced {SUPERSESSIONS} times; `{}` stands", open.request),
    )
    .field("body.supersedes_message_id")
    .expected(format!("at most {SUPERSESSIONS} replacements in a round"))
    .fix("wait for the response")
}

fn clamped(asked: Rounds, allowed: Rounds) -> String {
    format!("max_rounds: {asked} was asked for, this project allows {allowed}")
}
