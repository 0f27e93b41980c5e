//! The invariants of a step: the changes from the state before to the state after that its cause allows.

use std::collections::BTreeSet;

use message_schema::id::{AgentName, CommitSha};
use review::{
    Act, Approval, Deadline, EscalationReason, Event, FIX_REVIEWS_MAX, GENERATIONS_MAX,
    HandoffMode, Happened, Heads, Invocation, Origin, PersonsDecision, Phase, Policy, PullAction,
    Rank, Review, ReviewKey, SUPERSESSIONS, Task, TaskFinding, ThreadState, messages_max,
};

use super::{Broken, Invariant, blockers, holds, is_advised, response};
use crate::bounds::Bounds;
use crate::inputs::Input;
use crate::state::{Node, TrackedReview};

/// The cause of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moved<'a> {
    /// A message was accepted into this review.
    Accepted(&'a Input, &'a ReviewKey),
    /// A message was refused, at a cost to this review, if any.
    Refused(Option<&'a ReviewKey>),
    /// An event happened.
    Happened(&'a Happened),
    /// An event was declined.
    Declined,
}

/// Checks the invariants of every step.
pub(crate) fn step(
    bounds: &Bounds,
    before: &Node,
    moved: Moved<'_>,
    after: &Node,
) -> Result<(), Broken> {
    for (key, now) in &after.reviews {
        let was = before.reviews.get(key);
        match moved {
            Moved::Accepted(input, of) if of == key => {
                accepted(bounds, before, input, key, was, now, after)?;
            }
            Moved::Refused(Some(of)) if of == key => cost(key, was, now)?,
            Moved::Accepted(..) | Moved::Refused(_) | Moved::Declined => unchanged(key, was, now)?,
            Moved::Happened(happened) => happen(&happened.event, key, was, now)?,
        }
        if let Some(was) = was {
            counters(&was.review, &now.review)?;
        }
        bounded(key, now, bounds)?;
    }
    holds(
        before
            .reviews
            .keys()
            .all(|key| after.reviews.contains_key(key)),
        Invariant::CountersStay,
        || "a review is forgotten".to_owned(),
    )?;
    holds(
        after.generations() <= GENERATIONS_MAX.into(),
        Invariant::RankFalls,
        || format!("{} generations", after.generations()),
    )?;
    claimed_once(after)?;
    if let Moved::Happened(happened) = moved {
        let tasks = happened.handoff.iter().flat_map(|handoff| &handoff.tasks);
        tasks
            .clone()
            .try_for_each(|task| handed_off(bounds, before, &happened.event, task))?;
    }
    Ok(())
}

fn accepted(
    bounds: &Bounds,
    before: &Node,
    input: &Input,
    key: &ReviewKey,
    was: Option<&TrackedReview>,
    now: &TrackedReview,
    after: &Node,
) -> Result<(), Broken> {
    let kind = input.valid.envelope().kind;
    falls(was.map(|was| &was.review), &now.review)?;
    let (answered, reviewing) = match was {
        Some(was) => (
            was.answered == was.review.round,
            matches!(was.review.phase, Phase::Reviewing(_)),
        ),
        None => (false, false),
    };
    if kind.is_terminal_response() {
        holds(reviewing && !answered, Invariant::OneResponse, || {
            format!("round {} again", now.review.round)
        })?;
        let is_open = matches!(now.review.phase, Phase::Reviewing(_));
        holds(!is_open, Invariant::OneResponse, || {
            "the request is open after its response".to_owned()
        })?;
        let was = was.expect("a response has a request");
        let is_current = input.outbox == *was.review.reviewer(key);
        holds(is_current, Invariant::CurrentReviewer, || {
            format!("{key}: {} answered", input.outbox)
        })?;
        response::judge(bounds, input, key, &was.review, &now.review)?;
        let asks = now.review.threads.iter().any(|(id, thread)| {
            thread.state != ThreadState::Resolved && was.review.threads.get(id) != Some(thread)
        });
        let goes_on = matches!(now.review.phase, Phase::Fixing { .. });
        let advised = is_advised(&bounds.policy, before, key, &was.review);
        holds(!goes_on || asks || advised, Invariant::RoundsAsk, || {
            format!("{key}: round {}", now.review.round)
        })?;
        if let (Phase::Reviewing(open), Phase::Approved(approval)) =
            (&was.review.phase, &now.review.phase)
        {
            holds(
                is_of_the_round(open, approval),
                Invariant::RightCommit,
                || format!("{approval:?} of {open:?}"),
            )?;
        }
    }
    if let Phase::Approved(approval) = &now.review.phase {
        holds(
            !is_a_persons(&bounds.policy, &now.review),
            Invariant::PersonsPaths,
            || format!("approved {:?}", now.review.reading.change.files),
        )?;
        let advised = is_advised(&bounds.policy, before, key, &now.review);
        let blocked = blockers(&now.review).next();
        let why = || format!("approved over {blocked:?}");
        holds(
            blocked.is_none() || (advised && !approval.by_rule),
            Invariant::NoBlockedApproval,
            why,
        )?;
    }
    if let Some(was) = was
        && let (Some((due, which)), Some((later, whose))) =
            (was.review.deadline(), now.review.deadline())
    {
        let is_same_wait = which == whose && was.review.round == now.review.round;
        holds(
            !is_same_wait || later <= due,
            Invariant::DeadlinesStand,
            || format!("from {due} to {later}"),
        )?;
    }
    let of_pull = after.reviews.iter().filter(|(of, _)| of.pr == key.pr);
    let reviews: u32 = of_pull.map(|(_, tracked)| tracked.review.asked).sum();
    let is_fix = now.review.fixes.is_some();
    holds(
        !is_fix || reviews <= FIX_REVIEWS_MAX,
        Invariant::RankFalls,
        || format!("{reviews} reviews of a fix"),
    )
}

/// True if the change touches files that only a person approves, or does not name its files.
fn is_a_persons(policy: &Policy, review: &Review) -> bool {
    let paths = &policy.gate.human_paths;
    let mut files = review.reading.change.files.iter();
    !paths.is_empty() && (files.len() == 0 || files.any(|file| paths.admits(file.as_str())))
}

fn is_of_the_round(open: &Invocation, approval: &Approval) -> bool {
    let Some(head) = &open.head else { return true };
    let mut heads = open.newer_heads.iter().chain([head]);
    approval
        .commit
        .as_ref()
        .is_some_and(|commit| heads.any(|head| head.same_commit(commit)))
}

/// Checks the limits of one generation.
fn bounded(key: &ReviewKey, now: &TrackedReview, bounds: &Bounds) -> Result<(), Broken> {
    let Review {
        rounds, granted, ..
    } = now.review;
    let replaced = u32::from(SUPERSESSIONS);
    let of_rounds = messages_max(rounds) + (3 + replaced) * u32::from(granted);
    let unused = if bounds.supersedes {
        0
    } else {
        replaced * u32::from(rounds.get() + granted)
    };
    let most = of_rounds - unused;
    holds(now.accepted <= most, Invariant::FewMessages, || {
        format!("{key}: {} messages, {most} at most", now.accepted)
    })?;
    let round = now.review.round_of_generation();
    holds(
        round <= u32::from(rounds.get() + granted),
        Invariant::RankFalls,
        || format!("{key}: round {round} of {rounds}"),
    )?;
    holds(rounds <= bounds.policy.rounds, Invariant::RankFalls, || {
        format!("{key}: {rounds} rounds")
    })
}

fn falls(was: Option<&Review>, now: &Review) -> Result<(), Broken> {
    let (from, to) = (was.map_or(Rank::UNOPENED, Review::rank), now.rank());
    holds(to < from, Invariant::RankFalls, || {
        format!("from {from:?} to {to:?}")
    })
}

fn unchanged(
    key: &ReviewKey,
    was: Option<&TrackedReview>,
    now: &TrackedReview,
) -> Result<(), Broken> {
    holds(was == Some(now), Invariant::RefusalsAreInert, || {
        format!("{key} changed: {now:?}")
    })
}

/// Checks that a refusal costs only the reviewer's budgets.
fn cost(key: &ReviewKey, was: Option<&TrackedReview>, now: &TrackedReview) -> Result<(), Broken> {
    let Some(was) = was else {
        return Err(Broken::new(
            Invariant::RefusalsAreInert,
            format!("{key} was opened by a refused message"),
        ));
    };
    falls(Some(&was.review), &now.review)?;
    let (before, after) = (was.review.deadline(), now.review.deadline());
    let is_inert = was.review.threads == now.review.threads && (after.is_none() || after == before);
    holds(is_inert, Invariant::RefusalsAreInert, || {
        format!("{key}: {:?} to {:?}", was.review, now.review)
    })
}

fn happen(
    event: &Event,
    key: &ReviewKey,
    was: Option<&TrackedReview>,
    now: &TrackedReview,
) -> Result<(), Broken> {
    let Some(was) = was else {
        return Err(Broken::new(
            Invariant::RankFalls,
            format!("{key} was opened by an event"),
        ));
    };
    let is_same = was.review == now.review;
    match event {
        Event::Deadline { review, .. } if review == key => {
            falls(Some(&was.review), &now.review)?;
            holds(now.review.phase.is_final(), Invariant::DaemonGoesOn, || {
                format!("{:?}", now.review.phase)
            })?;
            let is_approved = matches!(now.review.phase, Phase::Approved(_));
            holds(!is_approved, Invariant::KnownEnds, || {
                "silence approved".to_owned()
            })
        }
        Event::Deadline { .. } => unchanged(key, Some(was), now),
        Event::Spent(report) if report.review != *key => unchanged(key, Some(was), now),
        // Spending has no rank: it grows, and a review over its budget is escalated.
        Event::Spent(_) => {
            let is_used_up = matches!(
                now.review.phase,
                Phase::Escalated(EscalationReason::SpendExceeded)
            );
            let is_fit =
                was.review.phase == now.review.phase || is_used_up && !was.review.phase.is_final();
            let grows = now.review.spent.tokens > was.review.spent.tokens;
            holds(is_fit && grows, Invariant::RankFalls, || {
                format!("from {:?} to {:?}", was.review, now.review)
            })
        }
        // The event concerns one reviewer's review; another's stays unchanged.
        Event::Taken(which)
        | Event::Turns { which, .. }
        | Event::Started(which)
        | Event::Failed { which, .. }
            if which.reviewer.as_ref() != Some(was.review.reviewer(key)) =>
        {
            unchanged(key, Some(was), now)
        }
        Event::Taken(_) if is_same => Ok(()),
        // Observations leave the phase and every counter unchanged.
        Event::Observed { .. } | Event::Ran { .. } => {
            let is_moved = was.review.phase != now.review.phase;
            holds(!is_moved, Invariant::RankFalls, || {
                format!("{event:?} moved")
            })
        }
        Event::Taken(_)
        | Event::Turns { .. }
        | Event::Started(_)
        | Event::Failed { .. }
        | Event::Pair(_)
        | Event::LedgerAccepted(_)
        | Event::SentDiffers(_)
        | Event::Host(_) => {
            falls(Some(&was.review), &now.review)?;
            reassigned(key, &was.review, &now.review)?;
            let (before, after) = (was.review.deadline(), now.review.deadline());
            let is_renewed = matches!(
                (before, after),
                (Some((due, Deadline::Runtime)), Some((later, _))) if later > due
            );
            holds(!is_renewed, Invariant::DeadlinesStand, || {
                format!("from {before:?} to {after:?}")
            })
        }
        Event::Pull(pull) if pull.pr != key.pr => unchanged(key, Some(was), now),
        Event::Pull(pull) => pulled(pull.action, &was.review, &now.review),
        Event::Person(PersonsDecision {
            act: Act::Approve { head },
            ..
        }) => {
            if is_same {
                Ok(())
            } else {
                approved_by_person(head.as_ref(), &was.review, &now.review)
            }
        }
        // Any other decision of a person starts a new count.
        Event::Person(_) => Ok(()),
    }
}

/// The reviewer changes to one of those left, who were not asked in this round.
fn reassigned(key: &ReviewKey, was: &Review, now: &Review) -> Result<(), Broken> {
    let left = |review: &Review| {
        let open = review.phase.invocation();
        open.and_then(|open| open.next_reviewers.clone())
            .unwrap_or_default()
    };
    let (before, after) = (left(was), left(now));
    let is_moved = was.reviewer(key) != now.reviewer(key);
    let is_fit = !is_moved
        || (before.contains(now.reviewer(key))
            && !after.contains(now.reviewer(key))
            && after.iter().all(|name| before.contains(name))
            && was.deadline() == now.deadline()
            && was.threads == now.threads);
    holds(is_fit, Invariant::CurrentReviewer, || {
        format!("from {before:?} to {}, {after:?}", now.reviewer(key))
    })
}

/// A person's approval restores no budget, passes no blocker, and is for the commit it names, else for the round's.
fn approved_by_person(head: Option<&CommitSha>, was: &Review, now: &Review) -> Result<(), Broken> {
    let (from, to) = (was.rank(), now.rank());
    let falls = to < from || (was.phase.is_final() && to == from);
    holds(falls, Invariant::RankFalls, || {
        format!("from {from:?} to {to:?}")
    })?;
    let Phase::Approved(approval) = &now.phase else {
        let why = format!("a person approved, and it is {:?}", now.phase);
        return Err(Broken::new(Invariant::KnownEnds, why));
    };
    let blocked = blockers(was).next();
    holds(blocked.is_none(), Invariant::NoBlockedApproval, || {
        format!("a person approved over {blocked:?}")
    })?;
    let is_right = match (head, was.phase.invocation()) {
        (Some(_), _) => approval.commit.as_ref() == head,
        (None, Some(open)) => is_of_the_round(open, approval),
        (None, None) => approval.commit.is_some(),
    };
    holds(
        is_right && approval.by_person.is_some(),
        Invariant::RightCommit,
        || format!("{approval:?} of {:?}", was.phase),
    )
}

/// An event of the pull request closes an open review, says whether an approval is stale, or tells an open round of a
/// newer head.
fn pulled(action: PullAction, was: &Review, now: &Review) -> Result<(), Broken> {
    let closes = matches!(action, PullAction::Closed | PullAction::Merged);
    if !was.phase.is_final() && closes {
        falls(Some(was), now)?;
        return holds(
            matches!(now.phase, Phase::Closed(_)),
            Invariant::KnownEnds,
            || format!("{:?}", now.phase),
        );
    }
    holds(
        untold(&was.phase) == untold(&now.phase) && was.rank() == now.rank(),
        Invariant::RankFalls,
        || format!("{:?} after {action:?}", now.phase),
    )
}

/// The phase without what events say of the head.
fn untold(phase: &Phase) -> Phase {
    let mut phase = phase.clone();
    match &mut phase {
        Phase::Reviewing(open) => open.newer_heads = Heads::default(),
        Phase::Addressed { report, .. } => report.newer_heads = Heads::default(),
        Phase::Approved(approval) => approval.stale = false,
        Phase::Awaiting { .. } | Phase::Fixing { .. } | Phase::Escalated(_) | Phase::Closed(_) => {}
    }
    phase
}

/// Checks that the counters of threads never go back.
fn counters(was: &Review, now: &Review) -> Result<(), Broken> {
    for (id, thread) in &was.threads {
        let Some(after) = now.threads.get(id) else {
            return Err(Broken::new(
                Invariant::CountersStay,
                format!("{id} is forgotten"),
            ));
        };
        let stays = after.dialogue.replies >= thread.dialogue.replies
            && after.was_reopened() >= thread.was_reopened()
            && after.was_resolved_by_person() >= thread.was_resolved_by_person()
            && after.blocking >= thread.blocking
            && after.severity <= thread.severity
            && (thread.task().is_none() || after.task() == thread.task());
        holds(stays, Invariant::CountersStay, || {
            format!("{id}: {thread:?} to {after:?}")
        })?;
    }
    let is_counted = now.generation >= was.generation && now.round >= was.round;
    holds(is_counted, Invariant::CountersStay, || {
        format!("round {} after {}", now.round, was.round)
    })
}

/// Checks that a task has only findings of a merged pull request that were never handed off before.
fn handed_off(bounds: &Bounds, before: &Node, event: &Event, task: &Task) -> Result<(), Broken> {
    let is_merged = matches!(event, Event::Pull(pull) if pull.action == PullAction::Merged);
    holds(is_merged, Invariant::HandedOffOnce, || {
        format!("handed off by {event:?}")
    })?;
    let bots = &bounds.policy.handoff.bots;
    let is_bots = bounds
        .pull_author
        .is_some_and(|author| bots.contains(author));
    for finding in &task.findings {
        let name = (finding.review.pr.clone(), finding.id.clone());
        let of = before.dispatched.get(&name).copied().unwrap_or_default();
        holds(of == 0, Invariant::HandedOffOnce, || {
            format!("{} for the second time", finding.id)
        })?;
        let thread = before
            .reviews
            .get(&finding.review)
            .and_then(|of| of.review.threads.get(&finding.id));
        let may_go = thread.is_some_and(|thread| {
            let by_itself = !is_bots && bounds.policy.handoff.mode != HandoffMode::Off;
            thread.state != ThreadState::Resolved
                && thread.origin != Origin::VerifyRun
                && (by_itself || thread.is_queued())
        });
        holds(may_go, Invariant::HandedOffOnce, || format!("{thread:?}"))?;
        let is_queued = thread.is_some_and(review::Thread::is_queued);
        let goes_on = fixes_something(before, &finding.review)
            || has_something_to_fix(before, &finding.review.author);
        holds(is_queued || !goes_on, Invariant::HandoffsEnd, || {
            format!("{} of {} goes by itself", finding.id, finding.review)
        })?;
    }
    Ok(())
}

/// True if the review's pull request claims a task.
fn fixes_something(node: &Node, key: &ReviewKey) -> bool {
    let mut reviews = node.reviews.iter();
    reviews.any(|(of, tracked)| of.pr == key.pr && tracked.review.fixes.is_some())
}

/// True if the agent has a task that no merged pull request claims.
fn has_something_to_fix(node: &Node, agent: &AgentName) -> bool {
    let is_fixed = |task: &Task| {
        let claims = |(key, tracked): (&ReviewKey, &TrackedReview)| {
            let pull = node.pulls.get(&key.pr);
            tracked.review.fixes.as_ref() == Some(&task.id)
                && pull.is_some_and(|pull| pull.action == PullAction::Merged)
        };
        let is_resolved = |finding: &TaskFinding| {
            let thread = node
                .reviews
                .get(&finding.review)
                .and_then(|of| of.review.threads.get(&finding.id));
            thread.is_some_and(|thread| thread.state == ThreadState::Resolved)
        };
        node.reviews.iter().any(claims) || task.findings.iter().all(is_resolved)
    };
    node.tasks
        .iter()
        .any(|task| task.target == *agent && !is_fixed(task))
}

fn claimed_once(node: &Node) -> Result<(), Broken> {
    for task in &node.tasks {
        let claims = |(_, tracked): &(&ReviewKey, &TrackedReview)| {
            tracked.review.fixes.as_ref() == Some(&task.id)
        };
        let prs = node.reviews.iter().filter(claims).map(|(key, _)| &key.pr);
        let prs: BTreeSet<_> = prs.collect();
        holds(prs.len() <= 1, Invariant::ClaimedOnce, || {
            format!("{}: {prs:?}", task.id)
        })?;
    }
    Ok(())
}
