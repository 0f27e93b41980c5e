//! The messages of a walk: each distinct text is read and checked once, like a file from an
//! outbox, and posted in every state it fits. It leaves to `moves` which are posted where.

mod write;

use std::sync::{Arc, OnceLock};

use chrono::{DateTime, TimeDelta, Utc};
use message_schema::id::AgentName;
use review::ContentDigest;
use validate_message::Valid;

use crate::bounds::Bounds;
use crate::describe::Say;

/// The author.
pub(crate) const AUTHOR: &str = "claude";
/// The reviewer.
pub(crate) const REVIEWER: &str = "codex";
/// Whoever else has a mailbox; in one walk a second reviewer.
pub(crate) const THIRD: &str = "gemini";
/// The pull request.
pub(crate) const PR: &str = "86";

/// The instant a walk begins.
pub(crate) fn start() -> DateTime<Utc> {
    DateTime::from_timestamp(1_770_976_800, 0).expect("an instant within the calendar")
}

/// A message of a kind comes at one minute of the walk, whatever came before: so the same state
/// comes again, and an answer that renewed a deadline would be seen, since it comes later.
pub(crate) fn minute(number: i64) -> DateTime<Utc> {
    start() + TimeDelta::minutes(number)
}

/// An agent's name.
pub(crate) fn agent(name: &str) -> AgentName {
    AgentName::new(name).expect("an agent name")
}

/// A message that can be posted.
#[derive(Debug)]
pub(crate) struct Input {
    /// What it is, in a few words.
    pub(crate) label: String,
    /// Whose outbox it lies in.
    pub(crate) outbox: AgentName,
    /// The digest of its text.
    pub(crate) digest: ContentDigest,
    /// The checked message.
    pub(crate) valid: Valid,
    /// When it is posted.
    pub(crate) at: DateTime<Utc>,
    /// What its packet says of each thread; empty when it has none.
    pub(crate) says: Vec<Say>,
    /// Whether it may leave threads without an action: its reviewer's budget is spent.
    pub(crate) carries: bool,
}

/// The messages of one round of one reviewer.
#[derive(Debug)]
pub(crate) struct Hand {
    /// Responses to the open request, one for each combination of what is said of the threads:
    /// feedback, then lgtm.
    pub(crate) full: Vec<Arc<Input>>,
    /// Every other message: the author's, and responses that are odd in another way.
    pub(crate) rest: Vec<Arc<Input>>,
}

/// All messages of a walk.
#[derive(Debug)]
pub(crate) struct Inputs {
    /// By reviewer, by round.
    hands: Vec<(AgentName, Vec<OnceLock<Hand>>)>,
}

impl Inputs {
    /// Inputs in which nothing is written yet.
    pub(crate) fn new(bounds: &Bounds) -> Self {
        let rounds = || (0..=bounds.rounds_max()).map(|_| OnceLock::new()).collect();
        Self {
            hands: bounds
                .reviewers
                .iter()
                .map(|name| (agent(name), rounds()))
                .collect(),
        }
    }

    /// The messages between the author and this reviewer while its round is `round`.
    pub(crate) fn hand(&self, bounds: &Bounds, reviewer: &AgentName, round: u32) -> &Hand {
        let of_reviewer = self.hands.iter().find(|(name, _)| name == reviewer);
        let (name, rounds) = of_reviewer.expect("only the walk's reviewers have reviews");
        let place = usize::try_from(round).expect("a round is a small number");
        rounds[place].get_or_init(|| write::deal(bounds, name.as_str(), round))
    }
}
