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

/// A finding that is open, held or deferred.
#[derive(Clone, Copy)]
struct Unsettled<'a> {
    key: &'a ReviewKey,
    id: &'a FindingId,
    thread: &'a Thread,
}

/// The findings that one task takes together.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Group<'a> {
    /// A finding without a file goes alone; the number tells it from others.
    Alone(usize),
    /// The findings in one file.
    OfFile(&'a RepoPath),
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
        threads.map(|(id, thread)| Unsettled { key, id, thread })
    });
    let mut plan = HandoffPlan::default();
    match event.action {
        PullAction::Opened | PullAction::Synchronize | PullAction::Reopened => {}
        PullAction::Closed => unsettled.for_each(|finding| plan.close(finding)),
        PullAction::Merged => {
            let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
            for (number, finding) in unsettled.enumerate() {
                match target(finding.thread, opener, policy) {
                    Ok(target) => {
                        let file = finding.thread.file.as_ref();
                        let group = file.map_or(Group::Alone(number), Group::OfFile);
                        groups.entry((target, group)).or_default().push(finding);
                    }
                    Err(why) => plan.leave(finding, why),
                }
            }
            for (number, ((target, group), findings)) in (tasks as u64 + 1..).zip(groups) {
                let id = TaskId::new(&event.pr, number);
                plan.dispatch(event, id, target, &group, &findings);
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
        group: &Group<'_>,
        findings: &[Unsettled<'a>],
    ) {
        for finding in findings {
            self.change(*finding, HandoffState::HandedOff(id.clone()));
        }
        let file = match group {
            Group::Alone(_) => None,
            Group::OfFile(file) => Some((*file).clone()),
        };
        let findings = findings.iter().map(|finding| TaskFinding {
            review: finding.key.clone(),
            id: finding.id.clone(),
            thread: finding.thread.clone(),
        });
        self.handoff.tasks.push(Task {
            target: target.clone(),
            repo: event.repo.clone(),
            pr: event.pr.clone(),
            file,
            findings: findings.collect(),
            id,
        });
    }

    /// Drops the queueing of a finding whose pull request was closed.
    fn close(&mut self, finding: Unsettled<'a>) {
        if finding.thread.is_queued() {
            self.handoff.dropped += 1;
            self.change(finding, HandoffState::ByPolicy);
        }
        self.leave(finding, NoHandoff::NotMerged);
    }

    fn leave(&mut self, finding: Unsettled<'a>, why: NoHandoff) {
        if why.is_left_to_person() {
            self.change(finding, HandoffState::LeftToPerson);
        }
        self.handoff.left.push(Left {
            review: finding.key.clone(),
            id: finding.id.clone(),
            why,
        });
    }

    fn change(&mut self, finding: Unsettled<'a>, handoff: HandoffState) {
        let thread = finding.thread.with_handoff(handoff);
        self.threads
            .entry(finding.key)
            .or_default()
            .insert(finding.id.clone(), thread);
    }
}
