//! The whole mailroom in one value: the answer of `settled status`, who must move, and everything besides reviews.

use chrono::{DateTime, Utc};
use inspect::log::LogLine;
use inspect::status::fix::{FixCommands, Spell};
use inspect::status::overview::{ListedReviews, Status};
use inspect::status::problems::Problem;
use serde::Serialize;

use crate::agents::AgentRow;
use crate::follow::Follower;
use crate::history::History;
use crate::needs::{Need, NeedKind, ToldCommands};
use crate::tasks::{QueuedFinding, TaskRow};

/// The whole mailroom. Fields are added, never changed.
#[derive(Debug, Serialize)]
pub struct Overview {
    /// The name of the workspace's directory.
    pub mailroom: String,
    /// The answer of `settled status --json`, without the files that `settled gc` would remove.
    pub status: Status,
    /// The newest decisions, oldest first.
    pub decisions: Vec<LogLine>,
    /// The ledger's end.
    pub head: LedgerHead,
    /// The needs, ordered by role and by the time that is left.
    pub needs: Vec<Need>,
    /// The answer of `settled problems`, with the dead letters and their fix.
    pub problems: Vec<Problem>,
    /// The tasks that merges handed off.
    pub tasks: Vec<TaskRow>,
    /// The findings that wait for a person, and those that a person has queued.
    pub queue: Vec<QueuedFinding>,
    /// The agents.
    pub agents: Vec<AgentRow>,
    /// The outcomes of reviews over time.
    pub history: History,
}

/// The ledger's end and its chain. Fields are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LedgerHead {
    /// The number of the last record.
    pub seq: u64,
    /// The digest of its line. A copy of it proves later that no record up to this one was changed.
    pub digest: String,
    /// True if each record names the digest of the one before; a ledger in which one does not cannot be read at all.
    pub is_chained: bool,
    /// The time of the last record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

impl Overview {
    /// Returns the need of this review, if it waits for anything. The phase alone does not tell the mover: if mail
    /// waits and no daemon serves, the operator has to move.
    pub fn need_of(&self, review: &str) -> Option<&Need> {
        self.needs.iter().find(|need| {
            matches!(need.kind, NeedKind::Missing(_)) && need.review.as_deref() == Some(review)
        })
    }

    pub(crate) fn of(follower: &Follower, now: DateTime<Utc>, spell: &Spell<'_>) -> Self {
        let (workspace, past) = (follower.status(), follower.past());
        let status = Status::of(workspace, None, ListedReviews::Current);
        let problems = workspace.problems(follower.policy(), now, spell);
        let state = workspace.index.state();
        // Rows are in the order of the keys.
        let rows = state.current_reviews().zip(&status.reviews);
        let mut told = ToldCommands::default();
        let mut needs: Vec<Need> = rows
            .filter_map(|((key, review), row)| {
                let why = workspace.why(key, review, follower.policy(), now, spell);
                if why.missing.is_some() {
                    told.note(&why);
                }
                Need::of_review(key, review, row, why)
            })
            .collect();
        let others: Vec<Need> = problems
            .iter()
            .filter_map(|problem| Need::of_problem(problem, &told, |name| follower.key_of(name)))
            .collect();
        needs.extend(others);
        Need::sort(&mut needs);
        let verified = &workspace.folded.verified;
        Self {
            mailroom: name(follower),
            decisions: past.decisions.iter().cloned().collect(),
            head: LedgerHead {
                seq: verified.records,
                digest: verified.last.to_string(),
                is_chained: true,
                at: past.decisions.back().map(|line| line.at.clone()),
            },
            needs,
            tasks: TaskRow::all(state),
            queue: QueuedFinding::all(workspace, &FixCommands(spell)),
            agents: follower.agents().to_vec(),
            history: past.tally.history(state),
            status,
            problems,
        }
    }
}

fn name(follower: &Follower) -> String {
    let root = follower.root();
    let whole = root.canonicalize();
    let root = whole.as_deref().unwrap_or(root);
    root.file_name().map_or_else(
        || "/".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}
