//! The reviews an agent has part in, seen from its side: what it owes, what it waits for, and until when.

use chrono::{DateTime, Utc};
use message_schema::id::AgentName;
use review::{Review, ReviewKey, Side, State};
use serde::Serialize;

/// Whose move it is, for one who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Move {
    /// The one who asks has to move.
    Yours,
    /// The other agent has.
    Theirs,
    /// A person has.
    Person,
    /// Nobody: it has ended.
    Nobody,
}

/// A review, for one of its two agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MyReview {
    /// As in `#86 claude -> codex`.
    pub review: String,
    /// The repository, where the requests name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// The pull request.
    pub pr: String,
    /// `author` or `reviewer`.
    pub role: &'static str,
    /// The agent on the other side.
    pub other: String,
    /// The phase.
    pub phase: &'static str,
    /// The round within the generation, from 1.
    pub round: u32,
    /// How many rounds the generation has.
    pub rounds: u8,
    /// Whose move it is.
    #[serde(rename = "move")]
    pub whose: Move,
    /// Since when.
    pub since: DateTime<Utc>,
    /// Which deadline runs: `pick_up`, `runtime` or `author`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<&'static str>,
    /// When the daemon ends the wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at: Option<DateTime<Utc>>,
    /// What the agent may send now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub legal_next: Vec<String>,
}

/// The reviews of an agent that have not ended, or wait for a person; its own moves first, the most pressing first.
pub fn of(state: &State, agent: &AgentName) -> Vec<MyReview> {
    let mut mine: Vec<MyReview> = state
        .reviews()
        .filter(|(key, _)| [&key.author, &key.reviewer].contains(&agent))
        .filter(|(_, review)| !review.phase.is_final() || review.mover() == Side::Person)
        .map(|(key, review)| one(state, key, review, agent))
        .collect();
    mine.sort_by(|a, b| {
        // Where no deadline runs nothing presses.
        let due = |mine: &MyReview| mine.due_at.unwrap_or(DateTime::<Utc>::MAX_UTC);
        (a.whose, due(a), &a.review).cmp(&(b.whose, due(b), &b.review))
    });
    mine
}

fn one(state: &State, key: &ReviewKey, review: &Review, agent: &AgentName) -> MyReview {
    let (role, other) = if *agent == key.author {
        ("author", &key.reviewer)
    } else {
        ("reviewer", &key.author)
    };
    let whose = match (review.mover(), review.phase.mover_of(key)) {
        (Side::Person, _) => Move::Person,
        (_, Some(mover)) if mover == agent => Move::Yours,
        (_, Some(_)) => Move::Theirs,
        (Side::Author | Side::Reviewer | Side::Nobody, None) => Move::Nobody,
    };
    let deadline = review.deadline();
    let own = format!("{agent}: ");
    MyReview {
        review: key.to_string(),
        repo: key.repo.as_ref().map(ToString::to_string),
        pr: key.pr.to_string(),
        role,
        other: other.to_string(),
        phase: review.phase.word(),
        round: review.round_of_generation(),
        rounds: review.rounds.get() + review.granted,
        whose,
        since: review.since,
        waits_for: deadline.map(|(_, which)| which.word()),
        due_at: deadline.map(|(at, _)| at),
        legal_next: state
            .legal_next(key, review)
            .iter()
            .filter_map(|said| said.strip_prefix(&own).map(str::to_owned))
            .collect(),
    }
}

impl MyReview {
    /// The command, without the options that say who asks, that helps the agent with its move; nothing if it is not
    /// its move.
    pub fn helps(&self) -> Option<(String, &'static str)> {
        if self.whose != Move::Yours {
            return None;
        }
        let pr = &self.pr;
        Some(match self.role {
            "reviewer" => (
                format!("brief {pr}"),
                "what this round asks; then feedback or lgtm",
            ),
            _ if self.phase == "fixing" => (
                format!("threads {pr}"),
                "what is to be fixed; then send review_addressed",
            ),
            _ => (format!("why {pr}"), "what to send, and until when"),
        })
    }
}
