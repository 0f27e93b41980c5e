//! Pairs of commands as the ledger has them: how one was set up, what is reported of it, and what is left of its
//! means. Where each report leads is `on_event::pair`'s to say, and the states a pair goes through are `pair`'s.

use std::fmt;

use chrono::{DateTime, Utc};
use message_schema::id::{AgentName, MessageId, PrNumber};
use message_schema::spend::Spend;
use serde::{Deserialize, Serialize};

use crate::machine::{Pair, Signal, SignalWords};
use crate::state::RunState;

/// The longest task of a pair, in bytes.
pub const TASK_MAX: usize = 16 * 1024;

/// How much of what a command said a record keeps, in characters: the end, since what is said last counts.
pub const TRANSCRIPT_MAX: usize = 4_000;

/// The name of a pair, unique in the ledger.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PairId(pub MessageId);

impl PairId {
    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for PairId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One side of a pair.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PairMember {
    /// In whose name it runs.
    pub agent: AgentName,
    /// What is run, for a shell.
    pub command: String,
    /// The form of its output, in a word of its runner.
    pub output: String,
}

/// How a pair was set up; nothing of it changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PairSetup {
    /// Who works.
    pub author: PairMember,
    /// Who reviews, if anybody does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reviewer: Option<PairMember>,
    /// Where the commands are run.
    pub workdir: String,
    /// What is to be done, at most [`TASK_MAX`] bytes.
    pub task: String,
    /// The one pull request the pair answers for; none for every review that its author asks for while it goes on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pr: Option<PrNumber>,
    /// How often the author may be run: 1 to 255.
    pub iterations: u8,
    /// Seconds one run may take: 1 or above.
    pub run_seconds: u32,
    /// Seconds all runs together may take: 1 or above.
    pub seconds: u32,
    /// Turns all runs together may take, where that is limited: 1 or above.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turns: Option<u32>,
    /// The words that count as signals.
    pub words: SignalWords,
}

impl PairSetup {
    /// Whose command runs in that state.
    pub fn member(&self, run: RunState) -> Option<&PairMember> {
        match run {
            RunState::Working => Some(&self.author),
            RunState::Reviewing => self.reviewer.as_ref(),
            RunState::Init | RunState::Complete | RunState::Failed => None,
        }
    }

    /// The author, and the reviewer if there is one.
    pub fn members(&self) -> impl Iterator<Item = &PairMember> {
        std::iter::once(&self.author).chain(&self.reviewer)
    }
}

/// What was used and said in one run of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Transcript {
    /// Which run of the pair it was, from 1.
    pub start: u16,
    /// Milliseconds it took.
    pub ms: u64,
    /// Turns it took, as far as they can be seen.
    #[serde(skip_serializing_if = "is_none", default)]
    pub turns: u32,
    /// What its program reports that it used. A run has one end, so nothing counts twice.
    #[serde(skip_serializing_if = "Spend::is_nothing", default)]
    pub spend: Spend,
    /// The end of what it said, at most [`TRANSCRIPT_MAX`] characters.
    pub said: String,
    /// How many characters it said.
    pub length: u64,
    /// The messages of its agent that were accepted meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub messages: Vec<MessageId>,
}

fn is_none(number: &u32) -> bool {
    *number == 0
}

/// A report about a pair by its driver.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PairReport {
    /// Which pair.
    pub pair: PairId,
    /// What happened to it.
    pub what: PairStep,
}

/// What can happen to a pair.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairStep {
    /// It was set up.
    Opened(Box<PairSetup>),
    /// Its commands can be run: the author's turn.
    Started,
    /// They cannot.
    NotStarted {
        /// Why, on one line.
        why: String,
    },
    /// A command is about to be run, for the how manieth time in this pair, from 1.
    Began(u16),
    /// The command ended with readable output.
    Ended {
        /// What it said by its last line, or by the message it wrote.
        signal: Signal,
        /// What it used and said.
        run: Transcript,
    },
    /// It crashed, ran out of its time, or its output could not be read.
    Crashed {
        /// Why, on one line.
        why: String,
        /// What it used and said.
        run: Transcript,
    },
    /// A person ended it, or its driver was ended.
    Interrupted {
        /// How, on one line.
        why: String,
        /// What the command that ran used and said; none if none ran.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        run: Option<Transcript>,
    },
    /// A person lets it go on from where it was interrupted.
    Resumed,
    /// A person lets it rest: it was interrupted, and does not go on.
    Dropped,
}

impl PairStep {
    /// The run that it ends, if it ends one.
    pub fn run(&self) -> Option<&Transcript> {
        match self {
            Self::Ended { run, .. } | Self::Crashed { run, .. } => Some(run),
            Self::Interrupted { run, .. } => run.as_ref(),
            Self::Opened(_)
            | Self::Started
            | Self::NotStarted { .. }
            | Self::Began(_)
            | Self::Resumed
            | Self::Dropped => None,
        }
    }

    /// The word on the screen and in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Opened(_) => "opened",
            Self::Started => "started",
            Self::NotStarted { .. } => "not_started",
            Self::Began(_) => "began",
            Self::Ended { .. } => "ended",
            Self::Crashed { .. } => "crashed",
            Self::Interrupted { .. } => "interrupted",
            Self::Resumed => "resumed",
            Self::Dropped => "dropped",
        }
    }
}

/// Where a pair stands, and what is left of its means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PairStanding {
    /// The pair in its run.
    pub pair: Pair,
    /// How many runs of commands were begun.
    pub starts: u16,
    /// Since when the last of them runs; none if none does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub began_at: Option<DateTime<Utc>>,
    /// When the author's last turn began; none before the first.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub worked_at: Option<DateTime<Utc>>,
    /// Milliseconds left to all runs.
    pub ms_left: u64,
    /// Turns left to all runs, where they are limited.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turns_left: Option<u32>,
}

impl PairStanding {
    /// A pair that was set up like this.
    pub fn new(setup: &PairSetup) -> Self {
        Self {
            pair: Pair::new(setup.reviewer.is_some(), setup.iterations),
            starts: 0,
            began_at: None,
            worked_at: None,
            ms_left: u64::from(setup.seconds) * 1_000,
            turns_left: setup.turns,
        }
    }

    /// The same once a run has used this much.
    pub fn without(self, run: &Transcript) -> Self {
        Self {
            began_at: None,
            ms_left: self.ms_left.saturating_sub(run.ms),
            turns_left: self.turns_left.map(|left| left.saturating_sub(run.turns)),
            ..self
        }
    }

    /// Whether nothing is left for another run.
    pub fn is_spent(&self) -> bool {
        self.ms_left == 0 || self.turns_left == Some(0)
    }
}
