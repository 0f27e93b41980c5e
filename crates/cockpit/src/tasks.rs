//! The findings that merges handed off to agents, and those that wait for a person.

use inspect::status::WorkspaceStatus;
use inspect::status::fix::{FixCommand, FixCommands};
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
    pub(crate) fn all(status: &WorkspaceStatus, commands: &FixCommands<'_>) -> Vec<Self> {
        let state = status.index.state();
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
            let words = || format!("threads {}", status.name_of(key));
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn key(pr: &str) -> Value {
        json!({"pr": pr, "author": "claude", "reviewer": "codex"})
    }

    const TASKS: [&str; 2] = ["handoff-pr1-1", "handoff-pr1-2"];

    fn task(id: &str) -> Task {
        let thread = |title: Option<&str>| {
            json!({
                "severity": "P1", "blocking": true, "opened_in": 1, "state": "open", "title": title,
                "dialogue": {"stance": "seeks_change", "round_count": 0, "replies": 0},
            })
        };
        let task = json!({
            "id": id, "target": "claude", "pr": "1", "file": "src/parse.rs", "findings": [
                {"review": key("1"), "id": "F-1", "thread": thread(Some("it loops"))},
                {"review": key("1"), "id": "F-2", "thread": thread(None)},
            ],
        });
        serde_json::from_value(task).expect("a task")
    }

    #[test]
    fn a_task_is_listed_with_its_findings_and_the_review_that_claims_it() {
        let review = |fixes: Option<&str>| -> Review {
            let review = json!({
                "generation": 1, "rounds": 2, "granted": 0, "first_round": 1, "round": 1, "asked": 1,
                "since": "2026-02-13T10:00:00Z", "priority": "P1",
                "phase": {"fixing": {"due": "2026-02-14T10:00:00Z"}}, "fixes": fixes,
            });
            serde_json::from_value(review).expect("a review")
        };
        let keys = ["2", "3"].map(|pr| serde_json::from_value(key(pr)).expect("a key"));
        let reviews = [review(None), review(Some(TASKS[1]))];
        let tasks = TASKS.map(task);
        let state = State::of(keys.iter().zip(&reviews), [], &tasks);
        let rows = serde_json::to_value(TaskRow::all(&state)).expect("plain values are JSON");
        let findings = ["F-1: it loops", "F-2"];
        let row = |task: &str| {
            json!({
                "task": task, "target": "claude", "pr": "1", "file": "src/parse.rs",
                "findings": findings,
            })
        };
        let mut expected = TASKS.map(row);
        expected[1]["claimed_by"] = "#3 claude -> codex".into();
        assert_eq!(rows, json!(expected));
    }
}
