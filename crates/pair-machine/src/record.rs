//! Pairs of commands in the ledger: the setup of each, the reports about it, and its remaining budget. `on_event::pair`
//! decides the effect of each report; `machine` has the states of a pair.

use std::fmt;

use chrono::{DateTime, Utc};
use message_schema::id::{AgentName, MessageId, PrNumber};
use message_schema::spend::Spend;
use serde::{Deserialize, Serialize};

use crate::machine::{Pair, Signal, SignalWords};
use crate::state::RunState;

/// The longest task of a pair, in bytes.
pub const TASK_MAX: usize = 16 * 1024;

/// The most characters of a command's output that a record keeps. It keeps the end, where the signal is.
pub const TRANSCRIPT_MAX: usize = 4_000;

/// The name of a pair, unique in the ledger.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PairId(pub MessageId);

impl PairId {
    /// Returns the name as text.
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
    /// The agent it runs as.
    pub agent: AgentName,
    /// The command line for a shell.
    pub command: String,
    /// The form of its output, named as its runner names it.
    pub output: String,
}

/// The setup of a pair; it never changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PairSetup {
    /// The side that works.
    pub author: PairMember,
    /// The side that reviews, if there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reviewer: Option<PairMember>,
    /// The directory in which the commands run.
    pub workdir: String,
    /// The task, at most [`TASK_MAX`] bytes.
    pub task: String,
    /// The only pull request that the pair answers for; without one, it answers for every review that its author
    /// requests while it runs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pr: Option<PrNumber>,
    /// The most times the author may run: 1 to 255.
    pub iterations: u8,
    /// The seconds that one run may take: at least 1.
    pub run_seconds: u32,
    /// The seconds that all runs together may take: at least 1.
    pub seconds: u32,
    /// The turns that all runs together may take, if limited: at least 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turns: Option<u32>,
    /// The words that count as signals.
    pub words: SignalWords,
}

impl PairSetup {
    /// Returns the side whose command runs in that state.
    pub fn member(&self, run: RunState) -> Option<&PairMember> {
        match run {
            RunState::Working => Some(&self.author),
            RunState::Reviewing => self.reviewer.as_ref(),
            RunState::Init | RunState::Complete | RunState::Failed => None,
        }
    }

    /// Returns the author, and the reviewer if there is one.
    pub fn members(&self) -> impl Iterator<Item = &PairMember> {
        std::iter::once(&self.author).chain(&self.reviewer)
    }
}

/// The output and the usage of one run of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Transcript {
    /// The number of the run within the pair, from 1.
    pub start: u16,
    /// The time it took, in milliseconds.
    pub ms: u64,
    /// The turns it took, as far as the keeper can count them.
    #[serde(skip_serializing_if = "is_none", default)]
    pub turns: u32,
    /// The spend that its program reports. A run ends only once, so nothing counts twice.
    #[serde(skip_serializing_if = "Spend::is_nothing", default)]
    pub spend: Spend,
    /// The end of its output, at most [`TRANSCRIPT_MAX`] characters.
    pub said: String,
    /// The length of its whole output, in characters.
    pub length: u64,
    /// The messages of its agent that the daemon accepted meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub messages: Vec<MessageId>,
}

fn is_none(number: &u32) -> bool {
    *number == 0
}

/// A report about a pair by its driver.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PairReport {
    /// The pair.
    pub pair: PairId,
    /// The step it took.
    pub what: PairStep,
}

/// A step of a pair that its driver reports.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairStep {
    /// It was set up.
    Opened(Box<PairSetup>),
    /// Its commands can run: the author's turn.
    Started,
    /// Its commands cannot run.
    NotStarted {
        /// The reason, on one line.
        why: String,
    },
    /// A command is about to run; the number counts the pair's runs from 1.
    Began(u16),
    /// The command ended with readable output.
    Ended {
        /// The signal of its last line, or of the message it wrote.
        signal: Signal,
        /// The run that ended.
        run: Transcript,
    },
    /// The command crashed, ran out of time, or its output could not be read.
    Crashed {
        /// The reason, on one line.
        why: String,
        /// The run that crashed.
        run: Transcript,
    },
    /// A person stopped it, or its driver ended.
    Interrupted {
        /// The cause, on one line.
        why: String,
        /// The interrupted run; `None` if no command ran.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        run: Option<Transcript>,
    },
    /// A person lets it continue from where it was interrupted.
    Resumed,
    /// A person drops it after an interruption; it does not continue.
    Dropped,
}

impl PairStep {
    /// Returns the run that the step ends, if it ends one.
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

    /// Returns the word on the screen and in JSON.
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

/// The state of a pair, and its remaining budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PairStatus {
    /// The pair in its run.
    pub pair: Pair,
    /// The number of runs begun.
    pub starts: u16,
    /// The start of the run in progress; `None` if no command runs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub began_at: Option<DateTime<Utc>>,
    /// The start of the author's last turn; `None` before the first.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub worked_at: Option<DateTime<Utc>>,
    /// The milliseconds left to all runs.
    pub ms_left: u64,
    /// The turns left to all runs, if limited.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turns_left: Option<u32>,
}

impl PairStatus {
    /// Returns the state of a pair with this setup, before its first run.
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

    /// Returns the same pair after it has spent the time and turns of a run.
    pub fn without(self, run: &Transcript) -> Self {
        Self {
            began_at: None,
            ms_left: self.ms_left.saturating_sub(run.ms),
            turns_left: self.turns_left.map(|left| left.saturating_sub(run.turns)),
            ..self
        }
    }

    /// True if no time or no turn is left for another run.
    pub fn is_spent(&self) -> bool {
        self.ms_left == 0 || self.turns_left == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(agent: &str) -> PairMember {
        PairMember {
            agent: AgentName::new(agent).expect("a name"),
            command: format!("run {agent}"),
            output: "text".to_owned(),
        }
    }

    fn setup() -> PairSetup {
        PairSetup {
            author: member("claude"),
            reviewer: Some(member("codex")),
            workdir: "/repo".to_owned(),
            task: "fix it".to_owned(),
            pr: None,
            iterations: 3,
            run_seconds: 5,
            seconds: 10,
            turns: Some(8),
            words: SignalWords::default(),
        }
    }

    fn run(ms: u64, turns: u32) -> Transcript {
        Transcript {
            ms,
            turns,
            ..Transcript::default()
        }
    }

    #[test]
    fn each_run_uses_up_time_and_turns_until_one_of_them_is_gone() {
        let left = |status: PairStatus| (status.ms_left, status.turns_left);
        let fresh = PairStatus::new(&setup());
        assert_eq!(left(fresh), (10_000, Some(8)));
        let begun = PairStatus {
            began_at: Some(DateTime::UNIX_EPOCH),
            starts: 1,
            ..fresh
        };
        let after_one = begun.without(&run(4_000, 3));
        assert_eq!(left(after_one), (6_000, Some(5)));
        assert_eq!(
            (after_one.began_at, after_one.starts),
            (None, 1),
            "no command runs"
        );
        for (ms, turns, expected, is_spent) in [
            (5_999, 4, (1, Some(1)), false),
            (6_000, 0, (0, Some(5)), true),
            (0, 5, (6_000, Some(0)), true),
            (7_000, 6, (0, Some(0)), true),
        ] {
            let after = after_one.without(&run(ms, turns));
            assert_eq!(left(after), expected);
            assert_eq!(after.is_spent(), is_spent, "{after:?}");
        }
    }

    #[test]
    fn a_pair_is_named_by_the_message_that_opened_it() {
        let pair = PairId(MessageId::new("pair-1").expect("an id"));
        assert_eq!(
            (pair.as_str(), pair.to_string()),
            ("pair-1", "pair-1".to_owned())
        );
    }

    #[test]
    fn the_ledger_leaves_out_what_a_run_did_not_use() {
        let bare = Transcript {
            start: 1,
            ms: 2,
            said: "done".to_owned(),
            length: 4,
            ..Transcript::default()
        };
        let full = Transcript {
            turns: 3,
            spend: Spend {
                tokens: 5,
                micro_usd: 0,
            },
            messages: vec![MessageId::new("m-1").expect("an id")],
            ..bare.clone()
        };
        for (run, json) in [
            (bare, r#"{"start":1,"ms":2,"said":"done","length":4}"#),
            (
                full,
                r#"{"start":1,"ms":2,"turns":3,"spend":{"tokens":5},"said":"done","length":4,"messages":["m-1"]}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&run).expect("plain values"), json);
            assert_eq!(
                serde_json::from_str::<Transcript>(json).expect("a run"),
                run
            );
        }
    }

    #[test]
    fn a_pair_without_a_limit_on_turns_spends_none() {
        let setup = PairSetup {
            turns: None,
            ..setup()
        };
        let after = PairStatus::new(&setup).without(&run(1, 1_000));
        assert_eq!(after.turns_left, None);
        assert!(!after.is_spent());
    }

    #[test]
    fn a_command_runs_in_the_state_of_its_side() {
        let pair = setup();
        let name = |member: &PairMember| member.agent.to_string();
        let runs = |setup: &PairSetup| RunState::ALL.map(|state| setup.member(state).map(name));
        let [author, reviewer] = ["claude", "codex"].map(|name| Some(name.to_owned()));
        assert_eq!(
            RunState::ALL.map(RunState::word),
            ["init", "working", "reviewing", "complete", "failed"]
        );
        assert_eq!(runs(&pair), [None, author.clone(), reviewer, None, None]);
        assert_eq!(
            pair.members().map(name).collect::<Vec<_>>(),
            ["claude", "codex"]
        );
        let alone = PairSetup {
            reviewer: None,
            ..pair
        };
        assert_eq!(runs(&alone), [None, author, None, None, None]);
        assert_eq!(alone.members().map(name).collect::<Vec<_>>(), ["claude"]);
    }

    #[test]
    fn a_step_that_ends_a_run_has_it_and_no_other_step_does() {
        let run = run(1, 1);
        let why = || "it stopped".to_owned();
        let steps = [
            (PairStep::Opened(Box::new(setup())), "opened", false),
            (PairStep::Started, "started", false),
            (PairStep::NotStarted { why: why() }, "not_started", false),
            (PairStep::Began(1), "began", false),
            (
                PairStep::Ended {
                    signal: Signal::None,
                    run: run.clone(),
                },
                "ended",
                true,
            ),
            (
                PairStep::Crashed {
                    why: why(),
                    run: run.clone(),
                },
                "crashed",
                true,
            ),
            (
                PairStep::Interrupted {
                    why: why(),
                    run: Some(run.clone()),
                },
                "interrupted",
                true,
            ),
            (
                PairStep::Interrupted {
                    why: why(),
                    run: None,
                },
                "interrupted",
                false,
            ),
            (PairStep::Resumed, "resumed", false),
            (PairStep::Dropped, "dropped", false),
        ];
        for (step, word, has_run) in steps {
            assert_eq!(step.word(), word);
            assert_eq!(step.run(), has_run.then_some(&run), "{word}");
        }
    }
}
