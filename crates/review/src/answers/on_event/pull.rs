//! A pull request moved: open reviews end with it, approvals do not outlive their commit, and the remaining findings of
//! a merged one are handed off.

use std::collections::{BTreeMap, BTreeSet};

use message_schema::Code;
use message_schema::id::{AgentName, CommitSha, Repo};
use review_words::event::{PullAction, PullEvent};
use review_words::key::ReviewKey;
use review_words::phase::{Addressed, Approval, CloseReason, Invocation, Phase};
use review_words::pulls::Pull;
use review_words::record::{ReviewStep, Says};

use super::context::{Consequences, Declined, EventContext};
use crate::parts::handoff::{self, Opener};
use crate::parts::review::Review;
use crate::parts::state::State;

pub(super) fn on_event(
    context: &mut EventContext<'_>,
    event: &PullEvent,
) -> Result<Consequences, Declined> {
    let state = context.state;
    let reviews: Vec<(&ReviewKey, &Review)> = state.of_pr(event.repo.as_ref(), &event.pr).collect();
    // A handoff cannot be undone, so never guess the repository.
    let repos: BTreeSet<&Repo> = reviews
        .iter()
        .filter_map(|(key, _)| key.repo.as_ref())
        .collect();
    if event.repo.is_none() && repos.len() > 1 {
        let names: Vec<&str> = repos.into_iter().map(Repo::as_str).collect();
        let why = format!(
            "pull request {} exists in several repositories: {}; name one with --repo",
            event.pr,
            names.join(", ")
        );
        return Err(Declined::new(Code::ReviewAmbiguous, why));
    }
    let mut steps: BTreeMap<&ReviewKey, ReviewStep> = BTreeMap::new();
    let mut messages = Vec::new();
    for (key, review) in &reviews {
        let Some(phase) = phase_after(review, event) else {
            continue;
        };
        if let (Phase::Closed(reason), Some(mover)) = (&phase, review.mover_of(key)) {
            let says = Says::Closed {
                review: (*key).clone(),
                reason: *reason,
            };
            messages.push(context.message(mover, says));
        }
        steps.insert(key, ReviewStep::to(key, review.round, phase));
    }

    let known = state.pull(event.repo.as_ref(), &event.pr);
    let counted = state.counted_reviews(event.repo.as_ref(), &event.pr);
    let opener = opener(state, event, known.as_ref(), &counted);
    let mut plan = handoff::plan(event, &opener, &reviews, context.policy, state.tasks.len());
    // A merged fix keeps its task, whatever is reported about the pull request afterwards.
    let gives_up = event.action == PullAction::Closed
        && known.is_none_or(|pull| pull.last != PullAction::Merged);
    for (key, review) in &reviews {
        let gives_up_task = gives_up && review.fixes.is_some();
        let threads = plan.threads.remove(key).unwrap_or_default();
        if threads.is_empty() && !gives_up_task {
            continue;
        }
        let step = steps
            .entry(key)
            .or_insert_with(|| ReviewStep::to(key, review.round, review.phase.clone()));
        step.threads = threads;
        step.gives_up_task = gives_up_task;
    }
    for task in &plan.handoff.tasks {
        messages.push(context.message(
            &task.target,
            Says::Handoff {
                task: task.id.clone(),
            },
        ));
    }
    Ok(Consequences {
        steps: steps.into_values().collect(),
        messages,
        handoff: Some(plan.handoff),
        pair: None,
    })
}

/// Returns the author of the pull request, from this event, an earlier one, or else its review.
fn opener<'a>(
    state: &State,
    event: &'a PullEvent,
    known: Option<&'a Pull>,
    reviews: &[(&'a ReviewKey, &Review)],
) -> Opener<'a> {
    let author = reviews.first().map(|(key, _)| &key.author);
    let name = event
        .author
        .as_deref()
        .or(known.and_then(|pull| pull.author.as_deref()))
        .or(author.map(AgentName::as_str));
    Opener {
        name,
        claims_task: reviews.iter().any(|(_, review)| review.fixes.is_some()),
        holds_task: author.is_some_and(|author| state.holds_task(author)),
    }
}

/// Returns the phase that the event leads a review to, if it changes.
fn phase_after(review: &Review, event: &PullEvent) -> Option<Phase> {
    match &review.phase {
        Phase::Approved(approval) => {
            // Events have no order: the job of an older push may report its head last, and a later event of the
            // approved head shows that it did.
            let stale = approval.is_outlived_by(event.head.as_ref()?);
            (stale != approval.stale).then(|| {
                Phase::Approved(Approval {
                    stale,
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

/// Adds a newer head to an open round or a report; `None` if it is known there.
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
