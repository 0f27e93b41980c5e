//! Handoff: which findings become tasks for fixing agents once a pull request is merged (seed 003).

use std::collections::BTreeMap;
use std::fmt;

use message_schema::id::{AgentName, FindingId, PrNumber, Repo, RepoPath};
use serde::{Deserialize, Serialize};

use crate::event::{PullAction, PullEvent};
use crate::key::ReviewKey;
use crate::policy::{HandoffMode, Policy};
use crate::state::Review;
use crate::thread::{Fate, Thread, ThreadState};

/// The name of a dispatched task, unique in the ledger: `handoff-pr86-1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(String);

impl TaskId {
    /// Names the `number`th task of the ledger.
    pub fn new(pr: &PrNumber, number: u64) -> Self {
        Self(format!("handoff-pr{}-{number}", pr.to_canonical()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Findings of one file for one target: one packet, one message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Task {
    /// Its name.
    pub id: TaskId,
    /// The agent it goes to.
    pub target: AgentName,
    /// The repository of the merged pull request.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub repo: Option<Repo>,
    /// The merged pull request.
    pub pr: PrNumber,
    /// The file all its findings are in; `None` for a finding without a file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<RepoPath>,
    /// What is to be fixed.
    pub findings: Vec<TaskFinding>,
}

/// A finding as it was handed off.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskFinding {
    /// The review it was raised in.
    pub review: ReviewKey,
    /// Its thread there.
    pub id: FindingId,
    /// The thread as it stood.
    pub thread: Thread,
}

/// Why a finding was not handed off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoHandoff {
    /// The pull request was closed without being merged.
    NotMerged,
    /// It was found in a verify run of a fixing agent.
    VerifyRun,
    /// It was handed off before; that happens once.
    AlreadyHandedOff,
    /// A bot opened the pull request.
    BotAuthor,
    /// Its severity is below the threshold.
    BelowThreshold,
    /// Its category is not listed.
    CategoryExcluded,
    /// Handoff is off.
    ModeOff,
    /// No agent is named for it, or none that exists.
    NoTarget,
}

impl NoHandoff {
    /// The word on the screen and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotMerged => "not_merged",
            Self::VerifyRun => "verify_run",
            Self::AlreadyHandedOff => "already_handed_off",
            Self::BotAuthor => "bot_author",
            Self::BelowThreshold => "below_threshold",
            Self::CategoryExcluded => "category_excluded",
            Self::ModeOff => "mode_off",
            Self::NoTarget => "no_target",
        }
    }
}

/// A finding that was looked at and stays where it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Left {
    /// Its review.
    pub review: ReviewKey,
    /// Its thread.
    pub id: FindingId,
    /// Why.
    pub why: NoHandoff,
}

/// What a pull request event hands off.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Handoff {
    /// The tasks dispatched.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tasks: Vec<Task>,
    /// The findings that stay, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub left: Vec<Left>,
    /// How many findings a person had queued and whose pull request did not land.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub dropped: usize,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// What an event hands off, and what becomes of the threads by it.
#[derive(Default)]
pub(crate) struct Judged<'a> {
    pub(crate) handoff: Handoff,
    /// The threads that change: those handed off, and those whose queueing is dropped.
    pub(crate) threads: BTreeMap<&'a ReviewKey, BTreeMap<FindingId, Thread>>,
}

/// Judges every finding of the pull request's reviews that is open, held or deferred; the first
/// reason that matches wins (seed 003). `author` is who opened the pull request; `tasks` is how
/// many tasks the ledger holds.
pub(crate) fn judge<'a>(
    event: &PullEvent,
    author: Option<&str>,
    reviews: &[(&'a ReviewKey, &'a Review)],
    policy: &Policy,
    tasks: usize,
) -> Judged<'a> {
    let unsettled = reviews.iter().flat_map(|(key, review)| {
        let threads = review
            .threads
            .iter()
            .filter(|(_, thread)| thread.state != ThreadState::Resolved);
        threads.map(|(id, thread)| (*key, id, thread))
    });
    let mut judged = Judged::default();
    match event.action {
        PullAction::Opened | PullAction::Synchronize | PullAction::Reopened => {}
        PullAction::Closed => unsettled.for_each(|finding| judged.drop(finding)),
        PullAction::Merged => {
            let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
            for (alone, finding) in unsettled.enumerate() {
                match target(finding.2, author, policy) {
                    Ok(target) => {
                        let file = finding.2.file.as_ref();
                        // A finding without a file goes alone.
                        let alone = if file.is_some() { 0 } else { alone };
                        groups
                            .entry((target, file, alone))
                            .or_default()
                            .push(finding);
                    }
                    Err(why) => judged.leave(finding, why),
                }
            }
            for (number, ((target, file, _), findings)) in (tasks as u64 + 1..).zip(groups) {
                judged.dispatch(
                    event,
                    TaskId::new(&event.pr, number),
                    target,
                    file,
                    &findings,
                );
            }
        }
    }
    judged
}

/// Whom a finding goes to, or why it stays.
fn target<'p>(
    thread: &Thread,
    author: Option<&str>,
    policy: &'p Policy,
) -> Result<&'p AgentName, NoHandoff> {
    let (fate, handoff) = (&thread.fate, &policy.handoff);
    if fate.verify_run {
        return Err(NoHandoff::VerifyRun);
    }
    if fate.task.is_some() {
        return Err(NoHandoff::AlreadyHandedOff);
    }
    if !fate.queued {
        if author.is_some_and(|author| handoff.bots.contains(author)) {
            return Err(NoHandoff::BotAuthor);
        }
        let is_listed = |category: &String| handoff.categories.contains(category);
        match handoff.mode {
            HandoffMode::Full => {}
            HandoffMode::Threshold if thread.severity > handoff.threshold => {
                return Err(NoHandoff::BelowThreshold);
            }
            HandoffMode::Threshold if handoff.categories.is_empty() => {}
            HandoffMode::Threshold if fate.category.as_ref().is_some_and(is_listed) => {}
            HandoffMode::Threshold => return Err(NoHandoff::CategoryExcluded),
            HandoffMode::Off => return Err(NoHandoff::ModeOff),
        }
    }
    let route = fate
        .category
        .as_ref()
        .and_then(|category| handoff.routes.get(category));
    let named = fate
        .target
        .as_deref()
        .or(route.or(handoff.target.as_ref()).map(AgentName::as_str));
    let known = policy
        .agents
        .keys()
        .find(|agent| named == Some(agent.as_str()));
    known.ok_or(NoHandoff::NoTarget)
}

impl<'a> Judged<'a> {
    fn dispatch(
        &mut self,
        event: &PullEvent,
        id: TaskId,
        target: &AgentName,
        file: Option<&RepoPath>,
        findings: &[(&'a ReviewKey, &'a FindingId, &'a Thread)],
    ) {
        for (key, finding, thread) in findings {
            let fate = Fate {
                task: Some(id.clone()),
                queued: false,
                ..thread.fate.clone()
            };
            self.change(
                key,
                finding,
                Thread {
                    fate,
                    ..(*thread).clone()
                },
            );
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
        if thread.fate.queued {
            self.handoff.dropped += 1;
            let fate = Fate {
                queued: false,
                ..thread.fate.clone()
            };
            self.change(
                key,
                id,
                Thread {
                    fate,
                    ..thread.clone()
                },
            );
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
