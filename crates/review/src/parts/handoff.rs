//! Handoff: the choice of findings that become tasks for fixing agents once a pull request is merged
//! (`docs/protocol.md`, section 6).

use std::collections::BTreeMap;

use message_schema::id::{AgentName, FindingId, RepoPath};
use policy::{HandoffMode, Policy};
use review_words::event::{PullAction, PullEvent};
use review_words::key::{ReviewKey, TaskId};
use review_words::task::{Handoff, Left, NoHandoff, Task, TaskFinding};
use review_words::thread::{HandoffState, Origin, Thread, ThreadState};

use crate::parts::review::Review;

/// The author of a pull request and that agent's tasks.
pub(crate) struct Opener<'a> {
    /// The author's name at the forge, else the author of its review.
    pub(crate) name: Option<&'a str>,
    /// True if the pull request claims a task.
    pub(crate) claims_task: bool,
    /// True if its author has a task of its own to finish.
    pub(crate) holds_task: bool,
}

/// The handoff of an event, and the threads it changes.
#[derive(Default)]
pub(crate) struct HandoffPlan<'a> {
    pub(crate) handoff: Handoff,
    /// The threads that change: those handed off, and those whose queueing is dropped.
    pub(crate) threads: BTreeMap<&'a ReviewKey, BTreeMap<FindingId, Thread>>,
}

/// Judges every finding of the pull request's reviews that is open, held or deferred. The first reason that matches
/// wins, so that every replay records the same one. `tasks` is the number of tasks in the ledger.
pub(crate) fn plan<'a>(
    event: &PullEvent,
    opener: &Opener<'_>,
    reviews: &[(&'a ReviewKey, &'a Review)],
    policy: &Policy,
    tasks: usize,
) -> HandoffPlan<'a> {
    let unsettled = reviews.iter().flat_map(|(key, review)| {
        let threads = review
            .threads
            .iter()
            .filter(|(_, thread)| thread.state != ThreadState::Resolved);
        threads.map(|(id, thread)| (*key, id, thread))
    });
    let mut plan = HandoffPlan::default();
    match event.action {
        PullAction::Opened | PullAction::Synchronize | PullAction::Reopened => {}
        PullAction::Closed => unsettled.for_each(|finding| plan.drop(finding)),
        PullAction::Merged => {
            let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
            for (alone, finding) in unsettled.enumerate() {
                match target(finding.2, opener, policy) {
                    Ok(target) => {
                        let file = finding.2.file.as_ref();
                        // A finding without a file goes alone.
                        let alone = if file.is_some() { 0 } else { alone };
                        groups
                            .entry((target, file, alone))
                            .or_default()
                            .push(finding);
                    }
                    Err(why) => {
                        if why.is_left_to_person() {
                            let left = finding.2.with_handoff(HandoffState::LeftToPerson);
                            plan.change(finding.0, finding.1, left);
                        }
                        plan.leave(finding, why);
                    }
                }
            }
            for (number, ((target, file, _), findings)) in (tasks as u64 + 1..).zip(groups) {
                plan.dispatch(
                    event,
                    TaskId::new(&event.pr, number),
                    target,
                    file,
                    &findings,
                );
            }
        }
    }
    plan
}

/// Returns the agent that gets a finding, or the reason the finding stays.
fn target<'p>(
    thread: &Thread,
    opener: &Opener<'_>,
    policy: &'p Policy,
) -> Result<&'p AgentName, NoHandoff> {
    let (routing, handoff) = (&thread.routing, &policy.handoff);
    if thread.origin == Origin::VerifyRun {
        return Err(NoHandoff::VerifyRun);
    }
    if thread.task().is_some() {
        return Err(NoHandoff::AlreadyHandedOff);
    }
    if !thread.is_queued() {
        if opener.claims_task {
            return Err(NoHandoff::ClaimsTask);
        }
        if opener.name.is_some_and(|name| handoff.bots.contains(name)) {
            return Err(NoHandoff::BotAuthor);
        }
        let is_listed = |category: &String| handoff.categories.contains(category);
        match handoff.mode {
            HandoffMode::Full => {}
            HandoffMode::Threshold if thread.severity > handoff.threshold => {
                return Err(NoHandoff::BelowThreshold);
            }
            HandoffMode::Threshold if handoff.categories.is_empty() => {}
            HandoffMode::Threshold if routing.category.as_ref().is_some_and(is_listed) => {}
            HandoffMode::Threshold => return Err(NoHandoff::CategoryExcluded),
            HandoffMode::Off => return Err(NoHandoff::ModeOff),
        }
        // Once escalated it stays with a person, whatever its author has finished since.
        if opener.holds_task || thread.is_left_to_person() {
            return Err(NoHandoff::HoldsTask);
        }
    }
    let route = routing
        .category
        .as_ref()
        .and_then(|category| handoff.routes.get(category));
    let named = routing
        .target
        .as_deref()
        .or(route.or(handoff.target.as_ref()).map(AgentName::as_str));
    let known = policy
        .agents
        .keys()
        .find(|agent| named == Some(agent.as_str()));
    known.ok_or(NoHandoff::NoTarget)
}

impl<'a> HandoffPlan<'a> {
    fn dispatch(
        &mut self,
        event: &PullEvent,
        id: TaskId,
        target: &AgentName,
        file: Option<&RepoPath>,
        findings: &[(&'a ReviewKey, &'a FindingId, &'a Thread)],
    ) {
        for (key, finding, thread) in findings {
            let handed_off = thread.with_handoff(HandoffState::HandedOff(id.clone()));
            self.change(key, finding, handed_off);
        }
        let findings = findings.iter().map(|(key, finding, thread)| TaskFinding {
            review: (*key).clone(),
            id: (*finding).clone(),
            thread: (*thread).clone(),
        });
        self.handoff.tasks.push(Task {
            target: target.clone(),
            repo: event.repo.clone(),
            pr: event.pr.clone(),
            file: file.cloned(),
            findings: findings.collect(),
            id,
        });
    }

    fn drop(&mut self, (key, id, thread): (&'a ReviewKey, &'a FindingId, &'a Thread)) {
        if thread.is_queued() {
            self.handoff.dropped += 1;
            self.change(key, id, thread.with_handoff(HandoffState::ByPolicy));
        }
        self.leave((key, id, thread), NoHandoff::NotMerged);
    }

    fn leave(&mut self, (key, id, _): (&'a ReviewKey, &'a FindingId, &'a Thread), why: NoHandoff) {
        self.handoff.left.push(Left {
            review: key.clone(),
            id: id.clone(),
            why,
        });
    }

    fn change(&mut self, key: &'a ReviewKey, id: &FindingId, thread: Thread) {
        self.threads
            .entry(key)
            .or_default()
            .insert(id.clone(), thread);
    }
}
