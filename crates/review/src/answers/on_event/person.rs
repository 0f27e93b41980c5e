//! A person's decisions about a review. Each starts a new count; the steps between two decisions are bounded.

use std::collections::BTreeMap;

use message_schema::Code;
use message_schema::id::{CommitSha, FindingId};
use review_words::deadline::patience;
use review_words::event::{Act, PersonsDecision};
use review_words::key::ReviewKey;
use review_words::phase::{Approval, EscalationReason, Phase};
use review_words::record::{Generation, ReviewStep, Says};
use review_words::thread::{HandoffState, Hold, Thread, ThreadState};

use super::context::{Consequences, Declined, EventContext};
use crate::parts::review::Review;

pub(super) fn on_event(
    context: &mut EventContext<'_>,
    decision: &PersonsDecision,
) -> Result<Consequences, Declined> {
    let (key, review) = context.find(&decision.which)?;
    let step = match &decision.act {
        Act::Reopen => reopen(context, key, review)?,
        Act::Cancel => cancel(key, review)?,
        Act::Approve { head } => approve(context, key, review, head.as_ref(), &decision.by)?,
        Act::Grant { rounds } => grant(context, key, review, *rounds)?,
        act @ (Act::Resolve(_)
        | Act::WontFix(_)
        | Act::Queue(_)
        | Act::Drop(_)
        | Act::Hold(_)
        | Act::Release(_)) => {
            let (id, thread) = thread_after(review, act)?;
            with_thread(key, review, id, thread)
        }
    };
    let ends = step.phase.is_final() && !review.phase.is_final();
    let after = review.after(&step, context.now);
    let name = key.clone();
    let told = match (&step.phase, after.mover_of(key)) {
        (_, Some(mover)) => Some((mover, Says::Decided { review: name })),
        (Phase::Approved(_), None) if ends || !matches!(review.phase, Phase::Approved(_)) => {
            Some((&key.author, Says::Decided { review: name }))
        }
        (Phase::Escalated(reason), None) if ends => {
            let (review, reason) = (name, reason.clone());
            Some((&key.author, Says::Escalated { review, reason }))
        }
        (_, None) => None,
    };
    let messages = told.map(|(to, says)| context.message(to, says));
    Ok(Consequences {
        steps: vec![step],
        messages: messages.into_iter().collect(),
        ..Consequences::default()
    })
}

/// Reopens a review: the author owes the request of the next generation, and threads with a person are open again.
fn reopen(
    context: &EventContext<'_>,
    key: &ReviewKey,
    review: &Review,
) -> Result<ReviewStep, Declined> {
    if !review.phase.is_final() {
        let why = format!(
            "the review {key} is {}; only a finished review can be reopened",
            review.phase.word()
        );
        return Err(Declined::new(Code::DecisionInvalid, why));
    }
    if let Some(fault) = context.state.no_generation(key) {
        return Err(Declined::new(fault.code, fault.message));
    }
    check_given_back(context, key)?;
    Ok(ReviewStep {
        opens: Some(Generation {
            number: review.generation + 1,
            rounds: context.policy.rounds,
        }),
        threads: released(review),
        given_back: true,
        ..ReviewStep::to(
            key,
            review.round + 1,
            Phase::Awaiting {
                due: context.now + patience(review.priority),
            },
        )
    })
}

/// Cancels the open request. Messages in an outbox by then were judged before; later ones find the invocation closed.
fn cancel(key: &ReviewKey, review: &Review) -> Result<ReviewStep, Declined> {
    if review.phase.invocation().is_none() {
        let why = format!(
            "the review {key} is {}: no reviewer is working",
            review.phase.word()
        );
        return Err(Declined::new(Code::DecisionInvalid, why));
    }
    Ok(ReviewStep::to(
        key,
        review.round,
        Phase::Escalated(EscalationReason::Cancelled),
    ))
}

/// Approves in a reviewer's place. The threads still decide: a blocker has to be resolved first, and other open threads
/// are deferred. The rules about who may approve and what was read do not bind a person.
fn approve(
    context: &EventContext<'_>,
    key: &ReviewKey,
    review: &Review,
    head: Option<&CommitSha>,
    by: &str,
) -> Result<ReviewStep, Declined> {
    let declined = |why: String| Err(Declined::new(Code::DecisionInvalid, why));
    match &review.phase {
        Phase::Reviewing(_)
        | Phase::Fixing { .. }
        | Phase::Addressed { .. }
        | Phase::Escalated(_) => {}
        Phase::Awaiting { .. } | Phase::Approved(_) | Phase::Closed(_) => {
            let phase = review.phase.word();
            return declined(format!(
                "the review {key} is {phase}: nothing waits for approval"
            ));
        }
    }
    let mut threads = review.threads.iter();
    if let Some((id, thread)) = threads.find(|(_, thread)| thread.blocks_approval()) {
        let state = thread.state.word();
        return declined(format!(
            "`{id}` blocks and is {state}; first resolve it or mark it as wont-fix"
        ));
    }
    let open = review
        .phase
        .invocation()
        .and_then(|open| open.head.as_ref());
    let known = open
        .or(review.commit.as_ref())
        .or(review.reading.change.head.as_ref());
    let Some(commit) = head.or(known) else {
        return declined(format!(
            "the head of {key} is not known; name the commit with --head"
        ));
    };
    let approval = Approval {
        stale: context
            .state
            .pull(key.repo.as_ref(), &key.pr)
            .and_then(|pull| pull.head)
            .is_some_and(|head| !head.same_commit(commit)),
        by_person: Some(by.to_owned()),
        ..Approval::of(Some(commit.clone()), context.now)
    };
    let left = review.open_threads();
    Ok(ReviewStep {
        threads: left
            .map(|(id, thread)| (id.clone(), thread.moved_to(ThreadState::Deferred)))
            .collect(),
        ..ReviewStep::to(key, review.round, Phase::Approved(approval))
    })
}

/// Grants one more round. A review that ended because its rounds were over continues with the author and with its held
/// threads open: with a blocker left to a person, the round could end in no approval.
fn grant(
    context: &EventContext<'_>,
    key: &ReviewKey,
    review: &Review,
    rounds: u8,
) -> Result<ReviewStep, Declined> {
    if rounds != 1 {
        return Err(Declined::new(
            Code::DecisionInvalid,
            format!("{rounds} rounds were granted, expected 1"),
        ));
    }
    let (phase, threads) = match &review.phase {
        Phase::Escalated(EscalationReason::MaxRoundsExceeded) => (
            Phase::Fixing {
                due: context.now + patience(review.priority),
            },
            released(review),
        ),
        Phase::Escalated(_) | Phase::Approved(_) | Phase::Closed(_) => {
            let why =
                format!("{key} did not end for lack of rounds; `settled review reopen` reopens it");
            return Err(Declined::new(Code::DecisionInvalid, why));
        }
        open @ (Phase::Awaiting { .. }
        | Phase::Reviewing(_)
        | Phase::Fixing { .. }
        | Phase::Addressed { .. }) => (open.clone(), BTreeMap::new()),
    };
    if let Some(fault) = context.state.reviews_used_up(key) {
        return Err(Declined::new(fault.code, fault.message));
    }
    check_given_back(context, key)?;
    Ok(ReviewStep {
        granted: rounds,
        given_back: true,
        threads,
        ..ReviewStep::to(key, review.round, phase)
    })
}

/// Returns the threads with a person, open again with their counters.
fn released(review: &Review) -> BTreeMap<FindingId, Thread> {
    let held = review.threads.iter().filter(|(_, thread)| thread.is_held());
    held.map(|(id, thread)| (id.clone(), thread.moved_to(ThreadState::Open)))
        .collect()
}

/// Declines if people have given the pull request back too often.
fn check_given_back(context: &EventContext<'_>, key: &ReviewKey) -> Result<(), Declined> {
    let Some((times, _)) = context.state.given_back_too_often(key, context.now) else {
        return Ok(());
    };
    let why = format!(
        "pull request {} was given back to the agents {times} times within 24 hours",
        key.pr
    );
    Err(Declined::new(Code::ReopenLimitExceeded, why))
}

impl Review {
    /// True if a person may decide this about one of its threads now.
    pub fn allows(&self, act: &Act) -> bool {
        thread_after(self, act).is_ok()
    }
}

/// Returns the thread that a decision changes, as it is afterwards.
fn thread_after<'a>(review: &Review, act: &'a Act) -> Result<(&'a FindingId, Thread), Declined> {
    let (id, after) = match act {
        Act::Resolve(id) | Act::WontFix(id) => (id, unsettled(review, id)?.resolved_by_person()),
        Act::Queue(id) => (id, queued(id, unsettled(review, id)?)?),
        Act::Drop(id) => (id, dropped(review, id)?),
        Act::Hold(id) => {
            let thread = in_state(review, id, "open", Thread::is_open)?;
            (id, thread.moved_to(ThreadState::Held(Hold::Person)))
        }
        Act::Release(id) => {
            let thread = in_state(review, id, "held", Thread::is_held)?;
            (id, thread.moved_to(ThreadState::Open))
        }
        Act::Reopen | Act::Cancel | Act::Approve { .. } | Act::Grant { .. } => {
            let why = "it is about the whole review";
            return Err(Declined::new(Code::DecisionInvalid, why));
        }
    };
    Ok((id, after))
}

/// Returns the step that changes one thread. If no blocker is left open but a person holds one, no agent can bring
/// approval nearer, so the review is escalated.
fn with_thread(key: &ReviewKey, review: &Review, id: &FindingId, thread: Thread) -> ReviewStep {
    let threads = BTreeMap::from([(id.clone(), thread)]);
    let (open, held) = review.blockers_after(&threads);
    let phase = if held && !open && !review.phase.is_final() {
        Phase::Escalated(EscalationReason::BlockerHeld)
    } else {
        review.phase.clone()
    };
    ReviewStep {
        threads,
        ..ReviewStep::to(key, review.round, phase)
    }
}

fn queued(id: &FindingId, thread: &Thread) -> Result<Thread, Declined> {
    match &thread.handoff {
        HandoffState::HandedOff(task) => Err(Declined::new(
            Code::DecisionInvalid,
            format!("`{id}` was handed off before, as {task}"),
        )),
        HandoffState::ByPolicy | HandoffState::Queued | HandoffState::LeftToPerson => {
            Ok(thread.with_handoff(HandoffState::Queued))
        }
    }
}

/// Takes a finding out of the queue in any state: a finding that a person queued and then resolved is still queued.
fn dropped(review: &Review, id: &FindingId) -> Result<Thread, Declined> {
    let thread = known(review, id)?;
    match &thread.handoff {
        HandoffState::Queued => Ok(thread.with_handoff(HandoffState::ByPolicy)),
        HandoffState::HandedOff(task) => {
            let why = format!("`{id}` was handed off as {task}, which nobody can undo");
            Err(Declined::new(Code::DecisionInvalid, why))
        }
        HandoffState::ByPolicy | HandoffState::LeftToPerson => Err(Declined::new(
            Code::DecisionInvalid,
            format!("`{id}` is not queued"),
        )),
    }
}

fn unsettled<'a>(review: &'a Review, id: &FindingId) -> Result<&'a Thread, Declined> {
    in_state(review, id, "open, held or deferred", |thread| {
        thread.state != ThreadState::Resolved
    })
}

fn known<'a>(review: &'a Review, id: &FindingId) -> Result<&'a Thread, Declined> {
    review.threads.get(id).ok_or_else(|| {
        Declined::new(
            Code::ThreadUnknown,
            format!("`{id}` is not a thread of this review"),
        )
    })
}

fn in_state<'a>(
    review: &'a Review,
    id: &FindingId,
    expected: &str,
    is_so: impl Fn(&Thread) -> bool,
) -> Result<&'a Thread, Declined> {
    let thread = known(review, id)?;
    if is_so(thread) {
        return Ok(thread);
    }
    let why = format!(
        "thread `{id}` is {}, expected one that is {expected}",
        thread.state.word()
    );
    Err(Declined::new(Code::ThreadNotOpen, why))
}
