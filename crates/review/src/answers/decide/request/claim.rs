//! The task that a request names in `handoff_ref`: its pull request claims the task, once, and carries its findings.

use message_schema::id::FindingId;
use review_words::alert::{Alert, NoClaim};
use review_words::refusal::Refusal;
use review_words::task::Task;
use review_words::thread::Origin;

use super::Request;
use crate::answers::decide::context::Ruling;
use crate::parts::next::no_review_left;
use crate::parts::review::{FIX_REVIEWS_MAX, Review};

/// Claims the task that the request names, or returns the reason it does not.
pub(super) fn decide(
    request: &Request<'_>,
    before: Option<&Review>,
    ruling: &mut Ruling,
) -> Result<(), Refusal> {
    let Some(named) = &request.body.handoff_ref else {
        return Ok(());
    };
    let task = match claimable(request, named, before) {
        Ok(task) => task,
        Err(why) => {
            ruling.alerts.push(Alert::HandoffRefIgnored { why });
            return Ok(());
        }
    };
    if before.is_some_and(|review| review.fixes.as_ref() == Some(&task.id)) {
        return Ok(());
    }
    // A pull request that was closed and claims its task again already has the threads.
    let again = before.is_some_and(|review| has_carried(review, task));
    // After a claim, findings are judged leniently, also those that the review raised before it. So only its first
    // request may claim, or the request that replaces it.
    let is_first = before.is_none_or(|of| of.asked == 1 && !request.opens_round(before));
    if !(again || is_first) {
        ruling.alerts.push(Alert::HandoffRefIgnored {
            why: NoClaim::NotFirst,
        });
        return Ok(());
    }
    if request.reviews_with_this(before) > FIX_REVIEWS_MAX {
        let fault = no_review_left(request.key).field("body.handoff_ref");
        return Err(request.refuse(fault, before));
    }
    ruling.step.fixes = Some(task.id.clone());
    if !again {
        carry_over(task, ruling);
    }
    Ok(())
}

fn has_carried(review: &Review, task: &Task) -> bool {
    let mut threads = review.threads.values();
    threads.any(|thread| thread.origin == Origin::CarriedOver && thread.task() == Some(&task.id))
}

/// Returns the task that the request may claim, or the reason it claims none.
fn claimable<'a>(
    request: &Request<'a>,
    named: &str,
    before: Option<&Review>,
) -> Result<&'a Task, NoClaim> {
    let (key, state) = (request.key, request.context.state);
    let task = state
        .tasks()
        .find(|task| task.id.is_named_by(named) && task.target == key.author)
        .ok_or_else(|| NoClaim::NoTask {
            named: named.to_owned(),
            author: key.author.clone(),
        })?;
    if let Some(claim) = state.claimed_elsewhere(&task.id, key) {
        return Err(NoClaim::Elsewhere {
            pr: claim.pr.clone(),
            task: task.id.clone(),
        });
    }
    match before.and_then(|review| review.fixes.as_ref()) {
        Some(claimed) if *claimed != task.id => Err(NoClaim::Another {
            task: claimed.clone(),
        }),
        Some(_) | None => Ok(task),
    }
}

/// Opens the threads of the task. Those below P1 that do not block are deferred at once: only the purpose of the task
/// may hold up the pull request.
fn carry_over(task: &Task, ruling: &mut Ruling) {
    for finding in &task.findings {
        // Two reviewers may have used the same id for two findings.
        let ids = (2..).map(|n| FindingId::new(format!("{}-{n}", finding.review.reviewer)));
        let id = std::iter::once(finding.id.clone())
            .chain(ids.filter_map(Result::ok))
            .find(|id| !ruling.step.threads.contains_key(id));
        let carried = id.map(|id| (id, finding.thread.carried_over(&task.id)));
        ruling.step.threads.extend(carried);
    }
}
