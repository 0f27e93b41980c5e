//! A pull request moved: open reviews end with it, approvals do not outlive their commit, and what
//! is merged is handed off.

use std::collections::{BTreeMap, BTreeSet};

use message_schema::Code;
use message_schema::id::{CommitSha, Repo};

use super::context::{Consequences, Declined, EventContext};
use crate::parts::handoff;
use crate::parts::review::Review;
use crate::words::event::{PullAction, PullEvent};
use crate::words::key::ReviewKey;
use crate::words::phase::{Addressed, Approval, CloseReason, Invocation, Phase};
use crate::words::record::{ReviewStep, Says};

pub(super) fn on_event(
    context: &mut EventContext<'_>,
    event: &PullEvent,
) -> Result<Consequences, Declined> {
    let state = context.state;
    let reviews: Vec<(&ReviewKey, &Review)> = state.of_pr(event.repo.as_ref(), &event.pr).collect();
    // What is merged is handed off, and that cannot be taken back: no repository is guessed.
    let repos: BTreeSet<&Repo> = reviews
        .iter()
        .filter_map(|(key, _)| key.repo.as_ref())
        .collect();
    if event.repo.is_none() && repos.len() > 1 {
        let names: Vec<&str> = repos.into_iter().map(Repo::as_str).collect();
        let why = format!(
            "pull request {} of which repository: {}?",
            event.pr,
            names.join(", ")
        );
        return Err(Declined::new(Code::ReviewAmbiguous, why));
    }
    let mut steps: BTreeMap<&ReviewKey, ReviewStep> = BTreeMap::new();
    let mut letters = Vec::new();
    for (key, review) in &reviews {
        let Some(phase) = phase_after(review, event) else {
            continue;
        };
        if let (Phase::Closed(reason), Some(mover)) = (&phase, review.phase.mover_of(key)) {
            let says = Says::Closed {
                review: (*key).clone(),
                reason: *reason,
            };
            letters.push(context.message(mover, says));
        }
        steps.insert(key, ReviewStep::to(key, review.round, phase));
    }

    let author = event.author.as_deref().or_else(|| {
        let pull = state.pull(event.repo.as_ref(), &event.pr)?;
        pull.author.as_deref()
    });
    let plan = handoff::plan(event, author, &reviews, context.policy, state.tasks.len());
    for (key, threads) in plan.threads {
        let review = reviews
            .iter()
            .find(|(known, _)| *known == key)
            .map(|(_, review)| *review);
        let Some(review) = review else { continue };
        let step = steps
            .entry(key)
            .or_insert_with(|| ReviewStep::to(key, review.round, review.phase.clone()));
        step.threads = threads;
    }
    for task in &plan.handoff.tasks {
        letters.push(context.message(
            &task.target,
            Says::Handoff {
                task: task.id.clone(),
            },
        ));
    }
    Ok(Consequences {
        steps: steps.into_values().collect(),
        letters,
        handoff: Some(plan.handoff),
        pair: None,
    })
}

/// The phase the event leads a review to, if to another one.
fn phase_after(review: &Review, event: &PullEvent) -> Option<Phase> {
    match &review.phase {
        Phase::Approved(approval) => {
            let outlived = event
                .head
                .as_ref()
                .is_some_and(|head| approval.is_outlived_by(head));
            (outlived && !approval.stale).then(|| {
                Phase::Approved(Approval {
                    stale: true,
                    ..approval.clone()
                })
            })
        }
        Phase::Escalated(_) | Phase::Closed(_) => None,
        Phase::Awaiting { .. }
        | Phase::Reviewing(_)
        | Phase::Fixing { .. }
        | Phase::Addressed { .. } => match event.action {
            PullAction::Opened | PullAction::Synchronize | PullAction::Reopened => {
                told_of(review, event.head.as_ref()?)
            }
            PullAction::Closed => Some(Phase::Closed(CloseReason::NotMerged)),
            PullAction::Merged => Some(Phase::Closed(CloseReason::Merged)),
        },
    }
}

/// The phase of an open round, or of a report, that a newer head was told of; nothing if it is known there.
fn told_of(review: &Review, head: &CommitSha) -> Option<Phase> {
    match &review.phase {
        Phase::Reviewing(open) if !open.admits(head) => Some(Phase::Reviewing(Invocation {
            newer_heads: open.newer_heads.with(head),
            ..open.clone()
        })),
        Phase::Addressed { report, due } => {
            let is_known = report.newer_heads.contains(head)
                || review
                    .commit
                    .as_ref()
                    .is_some_and(|commit| commit.same_commit(head));
            let report = Addressed {
                newer_heads: report.newer_heads.with(head),
                ..report.clone()
            };
            (!is_known).then_some(Phase::Addressed { report, due: *due })
        }
        Phase::Reviewing(_)
        | Phase::Awaiting { .. }
        | Phase::Fixing { .. }
        | Phase::Approved(_)
        | Phase::Escalated(_)
        | Phase::Closed(_) => None,
    }
}
