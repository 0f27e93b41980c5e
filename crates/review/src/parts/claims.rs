//! The links from fix pull requests to their tasks, and the agents that have a task to finish. The first pull request
//! of a task's target that names the task claims it, until that pull request is closed without a merge. The task is
//! finished when that pull request is merged, or when a person has resolved all its findings.

use message_schema::id::{AgentName, FindingId};
use review_words::event::PullAction;
use review_words::key::{ReviewKey, TaskId};
use review_words::pulls::Pull;
use review_words::task::Task;
use review_words::thread::{Origin, ThreadState};

use crate::parts::review::Review;
use crate::parts::state::State;

impl State {
    /// Returns a review of the pull request that claims the task, if one does.
    pub fn claim(&self, task: &TaskId) -> Option<&ReviewKey> {
        self.reviews.claim(task)
    }

    /// Returns the review by which a pull request other than this one claims the task.
    pub(crate) fn claimed_elsewhere(&self, task: &TaskId, key: &ReviewKey) -> Option<&ReviewKey> {
        self.claim(task)
            .filter(|claim| claim.pr != key.pr || !claim.may_be_of(key.repo.as_ref()))
    }

    /// True if a task was handed off to the agent and is not finished.
    pub(crate) fn holds_task(&self, agent: &AgentName) -> bool {
        self.tasks
            .values()
            .any(|task| task.target == *agent && !self.is_finished(task))
    }

    /// Returns the findings of the review that wait for a person since its merge: those that the guard against chains
    /// of fixes kept, and those of its own task that a fix left undone.
    pub fn left_to_person<'r>(
        &self,
        key: &ReviewKey,
        review: &'r Review,
    ) -> impl Iterator<Item = &'r FindingId> {
        let is_merged_fix = review.fixes.is_some() && self.is_merged(key);
        review
            .threads
            .iter()
            .filter(move |(_, thread)| {
                let is_undone = is_merged_fix
                    && thread.origin == Origin::CarriedOver
                    && thread.state != ThreadState::Resolved;
                thread.is_left_to_person() || is_undone
            })
            .map(|(id, _)| id)
    }

    fn is_finished(&self, task: &Task) -> bool {
        let is_resolved = |review: &ReviewKey, id: &FindingId| {
            let thread = self.review(review).and_then(|of| of.threads.get(id));
            thread.is_some_and(|thread| thread.state == ThreadState::Resolved)
        };
        self.claim(&task.id).is_some_and(|key| self.is_merged(key))
            || task
                .findings
                .iter()
                .all(|finding| is_resolved(&finding.review, &finding.id))
    }

    fn is_merged(&self, key: &ReviewKey) -> bool {
        self.pull(key.repo.as_ref(), &key.pr)
            .is_some_and(|Pull { last, .. }| last == PullAction::Merged)
    }
}
