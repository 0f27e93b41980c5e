//! The rank of a review: every accepted message, every used attempt and every deadline lowers it, so a generation takes
//! a bounded number of messages.

use message_schema::limit::Rounds;
use review_words::phase::{Invocation, Phase, SUPERSESSIONS};

use crate::parts::review::{GENERATIONS_MAX, Review};

/// Everything a review has left, compared from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Generations that can still be opened.
    pub generations: u8,
    /// Rounds that can still be opened in this generation.
    pub rounds: u32,
    /// Steps left in the round: awaiting 4, reviewing 3, fixing 2, addressed 1, final 0.
    pub phase: u8,
    /// Reviewers that can still replace the current one in this round.
    pub reviewers: usize,
    /// Attempts left to the reviewer in the open invocation.
    pub attempts: u8,
    /// Times the author may still replace the open request.
    pub supersessions: u8,
    /// Turns left to the reviewer in this round.
    pub turns: u16,
    /// Twice the starts left to the reviewer's command in this round, plus 1 while the last start is not known to have
    /// failed.
    pub starts: u8,
    /// 1 until the reviewer takes the open request.
    pub untaken: u8,
}

impl Rank {
    /// Ranks above every review: a pull request without a request for review.
    pub const UNOPENED: Self = Self {
        generations: GENERATIONS_MAX,
        rounds: u32::MAX,
        phase: u8::MAX,
        reviewers: usize::MAX,
        attempts: u8::MAX,
        supersessions: u8::MAX,
        turns: u16::MAX,
        starts: u8::MAX,
        untaken: u8::MAX,
    };
}

impl Review {
    /// Returns everything this review has left.
    pub fn rank(&self) -> Rank {
        let phase = match &self.phase {
            Phase::Awaiting { .. } => 4,
            Phase::Reviewing(_) => 3,
            Phase::Fixing { .. } => 2,
            Phase::Addressed { .. } => 1,
            Phase::Approved(_) | Phase::Escalated(_) | Phase::Closed(_) => 0,
        };
        let open = self.phase.invocation();
        Rank {
            generations: GENERATIONS_MAX.saturating_sub(self.generation),
            rounds: self.last_round().saturating_sub(self.round),
            phase,
            reviewers: open.map_or(0, |open| open.next_reviewers.as_ref().map_or(0, Vec::len)),
            attempts: open.map_or(0, |open| open.attempts_left),
            supersessions: open.map_or(0, |open| open.supersessions_left),
            turns: open.map_or(0, Invocation::turns_left),
            starts: open.map_or(0, starts),
            untaken: open.map_or(0, |open| open.taken_at.is_none().into()),
        }
    }
}

/// Returns the rank of starts: a start lowers it by two and adds one for the run it begins; a failure of the run
/// removes that one.
fn starts(open: &Invocation) -> u8 {
    2 * open.starts_left() + u8::from(open.starts > open.failed_start)
}

/// Returns the most messages that a generation can accept: in each round a request, its two replacements and a
/// response, and an `addressed` between two rounds.
pub fn messages_max(rounds: Rounds) -> u32 {
    (3 + u32::from(SUPERSESSIONS)) * u32::from(rounds.get()) - 1
}
