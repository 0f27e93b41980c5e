//! The number that falls: every accepted message and every attempt spent lowers it, so a
//! generation takes a number of messages known in advance.

use message_schema::limit::Rounds;

use crate::phase::Phase;
use crate::state::{GENERATIONS_MAX, Review, SUPERSESSIONS};

/// What a review has left, compared from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Generations that can still be opened.
    pub generations: u8,
    /// Rounds that can still be opened in this generation.
    pub rounds: u32,
    /// Steps left in the round: reviewing 3, fixing 2, addressed 1, final 0.
    pub phase: u8,
    /// Attempts left to the reviewer in the open invocation.
    pub attempts: u8,
    /// How often the open request may still be replaced.
    pub supersessions: u8,
}

impl Rank {
    /// Above every review: the pull request nobody has asked a review for.
    pub const UNOPENED: Self = Self {
        generations: GENERATIONS_MAX,
        rounds: u32::MAX,
        phase: u8::MAX,
        attempts: u8::MAX,
        supersessions: u8::MAX,
    };
}

impl Review {
    /// What this review has left.
    pub fn rank(&self) -> Rank {
        let (phase, supersessions) = match &self.phase {
            Phase::Reviewing(invocation) => (3, invocation.supersessions_left),
            Phase::Fixing => (2, 0),
            Phase::Addressed { .. } => (1, 0),
            Phase::Approved(_) | Phase::Escalated(_) => (0, 0),
        };
        Rank {
            generations: GENERATIONS_MAX.saturating_sub(self.generation),
            rounds: self.last_round().saturating_sub(self.round),
            phase,
            attempts: self.attempts_left().unwrap_or(0),
            supersessions,
        }
    }
}

/// The most messages a generation can accept: in each round a request, its two replacements and a
/// response, and an `addressed` between two rounds.
pub fn messages_max(rounds: Rounds) -> u32 {
    (3 + u32::from(SUPERSESSIONS)) * u32::from(rounds.get()) - 1
}
