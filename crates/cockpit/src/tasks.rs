//! The findings that merges handed off to agents, and those that wait for a person.

use inspect::status::WorkspaceStatus;
use inspect::status::fix::{FixCommand, FixCommands, named};
use review::{Review, ReviewKey, State, Task, Thread};
use serde::Serialize;

/// A task that was handed off. Fields are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskRow {
    /// Its name.
    pub task: String,
    /// The agent it went to.
    pub target: String,
    /// The merged pull request.
    pub pr: String,
    /// The file that has all its findings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The findings, with their titles.
    pub findings: Vec<String>,
    /// The review of the pull request that claims it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<String>,
}

/// A finding that waits for a person, or that a person queued for the merge. Fields are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QueuedFinding {
    /// The review.
    pub review: String,
    /// The finding's id.
    pub id: String,
    /// Its severity.
    pub severity: &'static str,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `held`: only a person may decide it; `left`: the merge left it to a person; `queued`: to be handed off at the
    /// merge.
    pub state: &'static str,
    /// The command that shows it, with everything a person may do about it.
    pub fix: FixCommand,
}

impl TaskRow {
    pub(crate) fn all(state: &State) -> Vec<Self> {
        let claims: Vec<(&ReviewKey, &Review)> = state
            .current_reviews()
            .filter(|(_, review)| review.fixes.is_some())
            .collect();
        let row = |task: &Task| {
            let claim = claims
                .iter()
                .find(|(_, review)| review.fixes.as_ref() == Some(&task.id));
            let finding = |finding: &review::TaskFinding| match &finding.thread.title {
                Some(title) => format!("{}: {title}", finding.id),
                None => finding.id.to_string(),
            };
            Self {
                task: task.id.to_string(),
                target: task.target.to_string(),
                pr: task.pr.to_string(),
                file: task.file.as_ref().map(ToString::to_string),
                findings: task.findings.iter().map(finding).collect(),
                claimed_by: claim.map(|(key, _)| key.to_string()),
            }
        };
        state.tasks().map(row).collect()
    }
}

impl QueuedFinding {
    pub(crate) fn all(standing: &WorkspaceStatus, commands: &FixCommands<'_>) -> Vec<Self> {
        let state = standing.index.state();
        let mut queue = Vec::new();
        for (key, review) in state.current_reviews() {
            if review.threads.is_empty() {
                continue;
            }
            let left: Vec<_> = state.left_to_person(key, review).collect();
            let word = |id, thread: &Thread| {
                if left.contains(&id) {
                    Some("left")
                } else if thread.is_held() {
                    Some("held")
                } else {
                    thread.is_queued().then_some("queued")
                }
            };
            let words = || format!("threads {}", named(key, standing.is_alone(key)));
            queue.extend(review.threads.iter().filter_map(|(id, thread)| {
                Some(Self {
                    review: key.to_string(),
                    id: id.to_string(),
                    severity: thread.severity.as_str(),
                    title: thread.title.clone(),
                    state: word(id, thread)?,
                    fix: commands.person(&words(), "shows it with what a person may do"),
                })
            }));
        }
        queue
    }
}
