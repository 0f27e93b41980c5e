//! The sides of a pair, and the news of a running pair.

use std::time::Duration;

use review::{PairId, PairSetup, PairStatus, PairStep, RunState};

/// The side whose command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The author's.
    Author,
    /// The reviewer's.
    Reviewer,
}

impl Role {
    /// The side that has the turn in this state, if any.
    pub fn of(run: RunState) -> Option<Self> {
        match run {
            RunState::Working => Some(Self::Author),
            RunState::Reviewing => Some(Self::Reviewer),
            RunState::Init | RunState::Complete | RunState::Failed => None,
        }
    }

    /// The side's word on the screen, in JSON and in file names.
    pub fn word(self) -> &'static str {
        match self {
            Self::Author => "author",
            Self::Reviewer => "reviewer",
        }
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Self::Author => Self::Reviewer,
            Self::Reviewer => Self::Author,
        }
    }
}

/// News about a running pair.
pub enum Progress<'a> {
    /// The ledger has a step.
    Told(RecordedStep<'a>),
    /// A command is running; with the time and turns it has used.
    Works(Role, Duration, u32),
}

/// A step in the ledger, with the pair's states before and after it.
#[derive(Clone, Copy)]
pub struct RecordedStep<'a> {
    /// The pair.
    pub pair: &'a PairId,
    /// The pair's setup.
    pub setup: &'a PairSetup,
    /// The step.
    pub step: &'a PairStep,
    /// Its state before the step.
    pub was: PairStatus,
    /// Its state after the step.
    pub status: &'a PairStatus,
}
