//! The run of a pair of commands, an author and perhaps a reviewer: each end of a command leads to the next state.
//! Every run ends, because iterations and restarts are counted. The caller starts the commands and reads their output.

use serde::{Deserialize, Serialize};

use crate::state::{InvalidTransition, RunState};

/// The most iterations of a pair by default.
pub const ITERATIONS: u8 = 20;

/// The words that count as signals.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SignalWords {
    /// The author is ready for review.
    pub done: String,
    /// The reviewer approves.
    pub pass: String,
    /// Either gives up.
    pub fail: String,
}

impl Default for SignalWords {
    fn default() -> Self {
        let [done, pass, fail] = ["DONE", "PASS", "FAIL"].map(str::to_owned);
        Self { done, pass, fail }
    }
}

impl SignalWords {
    /// True if the three words differ in more than case, and none is empty: otherwise one would be a near miss of another.
    pub fn are_distinct(&self) -> bool {
        let words = [&self.done, &self.pass, &self.fail];
        let [done, pass, fail] = words.map(|word| word.to_lowercase());
        !words.iter().any(|word| word.is_empty()) && done != pass && pass != fail && fail != done
    }
}

/// The signal a command gives at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// Ready for review; without a reviewer, complete.
    Done,
    /// Approved by the reviewer; the gate still decides.
    Pass,
    /// Gave up.
    Fail,
    /// Almost one of the words that count in this turn, and therefore no signal; the driver tells the command, once a
    /// turn.
    NearMiss,
    /// Approved, but some threads are unanswered, so the driver could not send the approval; it tells the command, once
    /// a turn.
    Unsent,
    /// No signal.
    None,
}

impl Signal {
    /// Reads the signal of the command that has the turn, and detects a near miss of a word that counts in that turn.
    pub fn of_turn(run: RunState, output: &str, words: &SignalWords) -> Self {
        let ready = match run {
            RunState::Working => &words.done,
            RunState::Reviewing => &words.pass,
            RunState::Init | RunState::Complete | RunState::Failed => {
                return Self::read(output, words);
            }
        };
        let signal = Self::read(output, words);
        if signal == Self::None && is_near(output, [ready, &words.fail]) {
            Self::NearMiss
        } else {
            signal
        }
    }

    /// Reads the signal of an output: its last non-blank line must be exactly one of the words, apart from spaces, tabs and
    /// line ends around it. Prose is never searched.
    pub fn read(output: &str, words: &SignalWords) -> Self {
        let mut lines = output.lines().map(str::trim_ascii);
        let last = lines.rfind(|line| !line.is_empty());
        match last {
            Some(line) if line == words.done => Self::Done,
            Some(line) if line == words.pass => Self::Pass,
            Some(line) if line == words.fail => Self::Fail,
            Some(_) | None => Self::None,
        }
    }

    /// Returns the word on the screen and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::NearMiss => "near_miss",
            Self::Unsent => "unsent",
            Self::None => "none",
        }
    }
}

/// True if the last line is one of the words apart from case and surrounding punctuation: `PASS.`, `**Pass**`.
fn is_near(output: &str, words: [&String; 2]) -> bool {
    let bare = |text: &str| {
        let trimmed = text.trim_matches(|sign: char| !sign.is_alphanumeric());
        trimmed.to_lowercase()
    };
    let last = output.lines().rfind(|line| !line.trim().is_empty());
    last.map(bare)
        .is_some_and(|last| !last.is_empty() && words.into_iter().any(|word| bare(word) == last))
}

/// An event that moves a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairEvent {
    /// The commands can run.
    Started,
    /// The commands cannot run.
    StartFailed,
    /// The command that has the turn ended with readable output.
    Ended(Signal),
    /// The command crashed, or the driver could not read its output.
    Crashed,
    /// A person interrupted the pair.
    Interrupted,
    /// A person lets the pair continue from where it was interrupted.
    Resumed,
    /// A person drops it after an interruption.
    Dropped,
}

/// A pair in its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pair {
    run: RunState,
    /// The author runs begun: 0 to the limit.
    iteration: u8,
    limit: u8,
    has_reviewer: bool,
    /// True if the command that has the turn has used the one restart of this turn.
    restarted: bool,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    failure: Option<PairFailure>,
    /// The state in which it was interrupted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    stood: Option<RunState>,
}

/// The reason a pair failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairFailure {
    /// A command could not be started.
    NotStarted,
    /// A command gave up.
    GaveUp,
    /// A command crashed twice in one turn.
    Crashed,
    /// The iterations are used up.
    IterationLimit,
    /// A person interrupted it.
    Interrupted,
    /// Its seconds or its turns are used up.
    BudgetSpent,
    /// A review between the two is escalated to a person.
    WithAPerson,
    /// Its review waits on threads that the author does not answer.
    Unanswered,
}

impl PairFailure {
    /// Returns the word on the screen and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotStarted => "not_started",
            Self::GaveUp => "gave_up",
            Self::Crashed => "crashed",
            Self::IterationLimit => "iteration_limit",
            Self::Interrupted => "interrupted",
            Self::BudgetSpent => "budget_spent",
            Self::WithAPerson => "with_a_person",
            Self::Unanswered => "unanswered",
        }
    }
}

impl Pair {
    /// Returns a pair that has not started; `limit` is at least 1.
    pub fn new(has_reviewer: bool, limit: u8) -> Self {
        Self {
            run: RunState::Init,
            iteration: 0,
            limit,
            has_reviewer,
            restarted: false,
            failure: None,
            stood: None,
        }
    }

    /// Returns the state of the run.
    pub fn run(&self) -> RunState {
        self.run
    }

    /// Returns the running iteration, from 1; 0 before the start.
    pub fn iteration(&self) -> u8 {
        self.iteration
    }

    /// Returns the reason it failed, if it did.
    pub fn failure(&self) -> Option<PairFailure> {
        self.failure
    }

    /// True if the next run is another try in the same turn.
    pub fn is_restarted(&self) -> bool {
        self.restarted
    }

    /// True if a person can resume it: it was interrupted, and nothing else ended it.
    pub fn can_resume(&self) -> bool {
        self.stood.is_some()
    }

    /// Returns the pair after an event, or an error if the event cannot follow the pair's state.
    pub fn after(self, event: PairEvent) -> Result<Self, InvalidTransition> {
        match (self.run, event) {
            (RunState::Init, PairEvent::Started) => self.iterate(),
            (RunState::Init, PairEvent::StartFailed) => self.fail(PairFailure::NotStarted),
            (from, PairEvent::Interrupted) => {
                let failed = self.fail(PairFailure::Interrupted)?;
                Ok(Self {
                    stood: Some(from),
                    restarted: self.restarted,
                    ..failed
                })
            }
            (from, PairEvent::Resumed) => self.resume(from),
            // It has failed already, and keeps its reason.
            (_, PairEvent::Dropped) if self.can_resume() => Ok(Self {
                stood: None,
                ..self
            }),
            (from, PairEvent::Dropped) => Err(InvalidTransition {
                from,
                to: RunState::Failed,
            }),
            (
                RunState::Working | RunState::Reviewing,
                PairEvent::Ended(Signal::NearMiss | Signal::Unsent),
            ) if !self.restarted => Ok(Self {
                restarted: true,
                ..self
            }),
            (RunState::Working, PairEvent::Ended(signal)) => self.author_ended(signal),
            (RunState::Reviewing, PairEvent::Ended(signal)) => self.reviewer_ended(signal),
            (RunState::Working | RunState::Reviewing, PairEvent::Crashed) if !self.restarted => {
                Ok(Self {
                    restarted: true,
                    ..self
                })
            }
            (RunState::Working | RunState::Reviewing, PairEvent::Crashed) => {
                self.fail(PairFailure::Crashed)
            }
            (
                RunState::Working | RunState::Reviewing | RunState::Complete | RunState::Failed,
                PairEvent::Started,
            ) => Err(InvalidTransition {
                from: self.run,
                to: RunState::Working,
            }),
            (
                RunState::Working | RunState::Reviewing | RunState::Complete | RunState::Failed,
                PairEvent::StartFailed,
            )
            | (RunState::Init | RunState::Complete | RunState::Failed, PairEvent::Crashed) => {
                Err(InvalidTransition {
                    from: self.run,
                    to: RunState::Failed,
                })
            }
            (RunState::Init | RunState::Complete | RunState::Failed, PairEvent::Ended(_)) => {
                Err(InvalidTransition {
                    from: self.run,
                    to: RunState::Reviewing,
                })
            }
        }
    }

    /// Only a reviewer can approve: an author's `PASS` means only the end of its work.
    fn author_ended(self, signal: Signal) -> Result<Self, InvalidTransition> {
        match signal {
            Signal::Fail => self.fail(PairFailure::GaveUp),
            Signal::Done if !self.has_reviewer => self.go(RunState::Complete),
            Signal::Done | Signal::Pass | Signal::NearMiss | Signal::Unsent | Signal::None
                if self.has_reviewer =>
            {
                self.go(RunState::Reviewing)
            }
            Signal::Done | Signal::Pass | Signal::NearMiss | Signal::Unsent | Signal::None => {
                self.iterate()
            }
        }
    }

    fn reviewer_ended(self, signal: Signal) -> Result<Self, InvalidTransition> {
        match signal {
            Signal::Pass => self.go(RunState::Complete),
            Signal::Fail => self.fail(PairFailure::GaveUp),
            Signal::Unsent => self.fail(PairFailure::Unanswered),
            Signal::Done | Signal::NearMiss | Signal::None => self.iterate(),
        }
    }

    /// Begins the author's next turn, if one is left.
    fn iterate(self) -> Result<Self, InvalidTransition> {
        if self.iteration >= self.limit {
            return self.fail(PairFailure::IterationLimit);
        }
        Self {
            iteration: self.iteration + 1,
            ..self
        }
        .go(RunState::Working)
    }

    /// Resumes an interrupted pair as a new run, like a reopened review: it passes init and working within one record,
    /// and has only the remaining budget.
    fn resume(self, from: RunState) -> Result<Self, InvalidTransition> {
        let stood = self.stood.ok_or(InvalidTransition {
            from,
            to: RunState::Working,
        })?;
        Ok(Self {
            run: stood,
            failure: None,
            stood: None,
            ..self
        })
    }

    /// Fails the pair for a reason outside of it; a pair that is over stays unchanged.
    pub fn failed(self, failure: PairFailure) -> Self {
        self.fail(failure).unwrap_or(self)
    }

    fn fail(self, failure: PairFailure) -> Result<Self, InvalidTransition> {
        if self.run.is_terminal() {
            return Err(InvalidTransition {
                from: self.run,
                to: RunState::Failed,
            });
        }
        Self {
            failure: Some(failure),
            ..self
        }
        .go(RunState::Failed)
    }

    fn go(self, to: RunState) -> Result<Self, InvalidTransition> {
        Ok(Self {
            run: self.run.go(to)?,
            restarted: false,
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(pair: Pair, events: &[PairEvent]) -> Pair {
        events.iter().fold(pair, |pair, event| {
            pair.after(*event).expect("a legal event")
        })
    }

    const DONE: PairEvent = PairEvent::Ended(Signal::Done);
    const PASS: PairEvent = PairEvent::Ended(Signal::Pass);
    const MUTE: PairEvent = PairEvent::Ended(Signal::None);

    #[test]
    fn only_the_last_line_that_is_not_blank_is_a_signal() {
        let words = SignalWords::default();
        for (output, signal) in [
            ("all good\nPASS\n\n  \n", Signal::Pass),
            ("PASS\nbut one thing\n", Signal::None),
            ("I would say PASS", Signal::None),
            ("pass", Signal::None),
            ("PASS\u{a0}", Signal::None),
            ("\u{2003}PASS", Signal::None),
            ("PASS\n\u{a0}\n", Signal::None),
            ("\tPASS \n", Signal::Pass),
            ("DONE\r\n", Signal::Done),
            ("FAIL", Signal::Fail),
            ("", Signal::None),
        ] {
            assert_eq!(Signal::read(output, &words), signal, "{output:?}");
        }
        let words = SignalWords {
            pass: "APPROVED".to_owned(),
            ..words
        };
        assert_eq!(Signal::read("PASS", &words), Signal::None);
    }

    #[test]
    fn words_that_differ_in_case_alone_are_not_distinct() {
        let are_distinct = |[done, pass, fail]: [&str; 3]| {
            let [done, pass, fail] = [done, pass, fail].map(str::to_owned);
            SignalWords { done, pass, fail }.are_distinct()
        };
        assert!(are_distinct(["DONE", "PASS", "FAIL"]) && are_distinct(["+", "++", "-"]));
        for words in [
            ["DONE", "PASS", "PASS"],
            ["DONE", "PASS", "pass"],
            ["DONE", "", "FAIL"],
        ] {
            assert!(!are_distinct(words), "{words:?}");
        }
    }

    #[test]
    fn done_is_ready_for_review_and_without_a_reviewer_complete() {
        let started =
            |has_reviewer| play(Pair::new(has_reviewer, ITERATIONS), &[PairEvent::Started]);
        assert_eq!(play(started(true), &[DONE]).run(), RunState::Reviewing);
        assert_eq!(play(started(false), &[DONE]).run(), RunState::Complete);
        assert_eq!(play(started(true), &[DONE, PASS]).run(), RunState::Complete);
    }

    #[test]
    fn an_author_cannot_pass_its_own_work() {
        let pair = play(Pair::new(true, ITERATIONS), &[PairEvent::Started, PASS]);
        assert_eq!(pair.run(), RunState::Reviewing);
        let alone = play(Pair::new(false, 1), &[PairEvent::Started, PASS]);
        assert_eq!(
            (alone.run(), alone.failure()),
            (RunState::Failed, Some(PairFailure::IterationLimit))
        );
    }

    #[test]
    fn one_crash_is_restarted_and_the_second_fails() {
        let once = play(
            Pair::new(true, ITERATIONS),
            &[PairEvent::Started, PairEvent::Crashed],
        );
        assert_eq!(once.run(), RunState::Working);
        assert_eq!(
            play(once, &[PairEvent::Crashed]).failure(),
            Some(PairFailure::Crashed)
        );
        let other = play(once, &[DONE, PairEvent::Crashed]);
        assert_eq!(
            other.run(),
            RunState::Reviewing,
            "the reviewer's first crash is its own"
        );
    }

    #[test]
    fn a_pair_that_never_agrees_ends_at_the_limit() {
        let fresh = Pair::new(true, ITERATIONS);
        assert_eq!(fresh.iteration(), 0);
        let mut pair = play(fresh, &[PairEvent::Started]);
        let mut turns = 0;
        while !pair.run().is_terminal() {
            pair = play(pair, &[MUTE]);
            turns += 1;
        }
        assert_eq!(
            (turns, pair.iteration(), pair.failure()),
            (40, 20, Some(PairFailure::IterationLimit))
        );
    }

    #[test]
    fn nearly_a_word_of_the_turn_is_told_once_a_turn() {
        let words = SignalWords::default();
        let of = |run, output| Signal::of_turn(run, output, &words);
        for near in ["PASS.", "**Pass**", "so it is\n`pass`\n\n", "Fail!"] {
            assert_eq!(of(RunState::Reviewing, near), Signal::NearMiss, "{near}");
        }
        for none in ["I PASS", "PASSED", "DONE.", "PASS.\nand more", "", "..."] {
            assert_eq!(of(RunState::Reviewing, none), Signal::None, "{none}");
        }
        assert_eq!(of(RunState::Working, "done."), Signal::NearMiss);
        assert_eq!(of(RunState::Working, "PASS."), Signal::None);
        assert_eq!(of(RunState::Reviewing, " PASS \n"), Signal::Pass);

        let near = PairEvent::Ended(Signal::NearMiss);
        let told = play(Pair::new(true, 1), &[PairEvent::Started, near]);
        assert_eq!((told.run(), told.is_restarted()), (RunState::Working, true));
        let reviewing = play(told, &[near]);
        assert_eq!(
            (reviewing.run(), reviewing.is_restarted()),
            (RunState::Reviewing, false)
        );
        let over = play(reviewing, &[near, near]);
        assert_eq!(over.failure(), Some(PairFailure::IterationLimit));
        // A turn has one restart, for a near miss or for a crash.
        let crashed = play(told, &[PairEvent::Crashed]);
        assert_eq!(crashed.failure(), Some(PairFailure::Crashed));
    }

    #[test]
    fn an_approval_that_cannot_be_sent_twice_in_a_turn_ends_the_pair() {
        let unsent = PairEvent::Ended(Signal::Unsent);
        let told = play(
            Pair::new(true, ITERATIONS),
            &[PairEvent::Started, DONE, unsent],
        );
        assert_eq!(told.run(), RunState::Reviewing);
        let over = play(told, &[unsent]);
        assert_eq!(
            (over.failure(), over.iteration()),
            (Some(PairFailure::Unanswered), 1)
        );
        let sent = play(told, &[PairEvent::Ended(Signal::Pass)]);
        assert_eq!(sent.run(), RunState::Complete);
    }

    #[test]
    fn a_resumed_pair_goes_on_where_it_stood_and_has_failed_no_more() {
        let working = play(
            Pair::new(true, ITERATIONS),
            &[PairEvent::Started, DONE, MUTE],
        );
        let over = play(working, &[PairEvent::Interrupted]);
        let resumed = play(over, &[PairEvent::Resumed]);
        assert_eq!(
            (resumed.run(), resumed.iteration(), resumed.failure()),
            (working.run(), working.iteration(), None)
        );
        assert!(!resumed.can_resume(), "it goes on already");
    }

    #[test]
    fn an_interruption_keeps_the_turn_and_its_restart_until_it_is_resumed_or_dropped() {
        let crashed = [PairEvent::Started, PairEvent::Crashed];
        let restarted = play(Pair::new(true, ITERATIONS), &crashed);
        let over = play(restarted, &[PairEvent::Interrupted]);
        assert_eq!(
            (over.failure(), over.can_resume()),
            (Some(PairFailure::Interrupted), true)
        );
        assert_eq!(play(over, &[PairEvent::Resumed]), restarted);

        let dropped = play(over, &[PairEvent::Dropped]);
        assert_eq!(
            (dropped.run(), dropped.failure(), dropped.can_resume()),
            (RunState::Failed, Some(PairFailure::Interrupted), false)
        );
        // Nothing to drop: it was never interrupted, or is dropped already.
        for pair in [restarted, dropped] {
            let refused = InvalidTransition {
                from: pair.run(),
                to: RunState::Failed,
            };
            assert_eq!(pair.after(PairEvent::Dropped), Err(refused), "{pair:?}");
        }
        assert!(dropped.after(PairEvent::Resumed).is_err());
    }

    #[test]
    fn a_signal_and_a_failure_have_the_word_of_the_ledger() {
        fn of_ledger(value: impl Serialize) -> serde_json::Value {
            serde_json::to_value(value).expect("a word")
        }
        for (signal, word) in [
            (Signal::Done, "done"),
            (Signal::Pass, "pass"),
            (Signal::Fail, "fail"),
            (Signal::NearMiss, "near_miss"),
            (Signal::Unsent, "unsent"),
            (Signal::None, "none"),
        ] {
            assert_eq!((signal.word(), of_ledger(signal)), (word, word.into()));
        }
        for (failure, word) in [
            (PairFailure::NotStarted, "not_started"),
            (PairFailure::GaveUp, "gave_up"),
            (PairFailure::Crashed, "crashed"),
            (PairFailure::IterationLimit, "iteration_limit"),
            (PairFailure::Interrupted, "interrupted"),
            (PairFailure::BudgetSpent, "budget_spent"),
            (PairFailure::WithAPerson, "with_a_person"),
            (PairFailure::Unanswered, "unanswered"),
        ] {
            assert_eq!((failure.word(), of_ledger(failure)), (word, word.into()));
        }
    }

    #[test]
    fn nothing_moves_a_run_that_is_over() {
        let over = play(
            Pair::new(true, ITERATIONS),
            &[PairEvent::Started, PairEvent::Interrupted],
        );
        assert_eq!(over.failure(), Some(PairFailure::Interrupted));
        for event in [
            PairEvent::Started,
            PairEvent::Interrupted,
            PairEvent::Crashed,
            DONE,
        ] {
            assert!(over.after(event).is_err());
        }
    }
}
