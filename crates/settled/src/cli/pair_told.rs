//! What is shown of a pair while it goes on: lines for people, and for programs one document a line.

use std::io::{Write as _, stdout};
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use message_schema::id::MessageId;
use message_schema::line::escaped;
use review::{PairFailure, PairId, PairSetup, PairStanding, PairStep, Run, Signal, Transcript};
use serde::Serialize;

use super::answer::{Answer, print};
use super::failure::Failure;
use super::screen::span;
use crate::exit::Exit;
use ::pair::{Progress, Role, Told};

/// How often the line of a command at work is drawn anew.
const FRAME: Duration = Duration::from_secs(1);

/// One thing that happened to a pair. Fields are added, never changed.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    /// `opened`, `started`, `began`, `ended`, `crashed`, `interrupted`, `resumed`, `dropped`, `not_started`, or at the end `over`.
    step: &'static str,
    /// The pair's name.
    pair: String,
    /// `init`, `working`, `reviewing`, `complete` or `failed`: where the pair stands then.
    state: &'static str,
    iteration: u8,
    /// The how manieth run of a command it is, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<u16>,
    /// `done`, `pass`, `fail` or `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// Why the pair failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<Used>,
    seconds_left: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    turns_left: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    setup: Option<PairSetup>,
}

/// What a run used and said.
#[derive(Debug, Serialize)]
struct Used {
    ms: u64,
    turns: u32,
    /// The end of what was said.
    said: String,
    /// How many characters were said in all.
    length: u64,
    /// The messages that were accepted of its agent meanwhile.
    messages: Vec<String>,
}

impl Line {
    pub(super) fn of(told: Told<'_>) -> Self {
        let Told {
            pair,
            step,
            standing,
            ..
        } = told;
        let (signal, why, run) = match step {
            PairStep::Ended { signal, run } => (Some(signal.word()), None, Some(run)),
            PairStep::Crashed { why, run } => (None, Some(why), Some(run)),
            PairStep::Interrupted { why, run } => (None, Some(why), run.as_ref()),
            PairStep::NotStarted { why } => (None, Some(why), None),
            PairStep::Opened(_)
            | PairStep::Started
            | PairStep::Began(_)
            | PairStep::Resumed
            | PairStep::Dropped => (None, None, None),
        };
        let begun = if let PairStep::Began(start) = step {
            Some(*start)
        } else {
            None
        };
        let setup = if let PairStep::Opened(setup) = step {
            Some((**setup).clone())
        } else {
            None
        };
        let bare = Self::bare(pair, step.word(), standing);
        let run_number = run.map(|run| run.start).or(begun);
        Self {
            signal,
            why: why.cloned(),
            run: run_number,
            used: run.map(Used::of),
            setup,
            ..bare
        }
    }

    pub(super) fn bare(id: &PairId, step: &'static str, standing: &PairStanding) -> Self {
        let pair = standing.pair;
        Self {
            step,
            pair: id.to_string(),
            state: pair.run().word(),
            iteration: pair.iteration(),
            run: None,
            signal: None,
            why: None,
            failure: pair.failure().map(PairFailure::word),
            used: None,
            seconds_left: standing.ms_left / 1_000,
            turns_left: standing.turns_left,
            setup: None,
        }
    }
}

impl Used {
    fn of(run: &Transcript) -> Self {
        let messages = run.messages.iter().map(ToString::to_string).collect();
        Self {
            ms: run.ms,
            turns: run.turns,
            said: run.said.clone(),
            length: run.length,
            messages,
        }
    }
}

/// Tells what becomes of a pair while it goes on.
pub(super) struct Teller {
    as_json: bool,
    drawn: Option<Instant>,
    failed: Option<Failure>,
}

impl Teller {
    pub(super) fn new(as_json: bool) -> Self {
        Self {
            as_json,
            drawn: None,
            failed: None,
        }
    }

    /// Whether everything could be told.
    pub(super) fn finish(self) -> Result<(), Failure> {
        // A reader that went away ends no pair: the ledger has it all.
        match self.failed {
            Some(failure) if !failure.is_broken_pipe => Err(failure),
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn tell(&mut self, progress: &Progress<'_>) {
        if self.failed.is_some() {
            return;
        }
        let told = match progress {
            Progress::Told(told) if self.as_json => print(&Answer::new(Line::of(*told)).line()),
            Progress::Works(..) if self.as_json => Ok(()),
            Progress::Told(told) => self.line(*told),
            Progress::Works(role, passed, turns) => self.frame(*role, *passed, *turns),
        };
        self.failed = told.err();
    }

    fn line(&mut self, told: Told<'_>) -> Result<(), Failure> {
        // The line of the command at work gives way.
        let clear = if self.drawn.take().is_some() {
            "\r\u{1b}[K"
        } else {
            ""
        };
        said(told).map_or(Ok(()), |text| print(&format!("{clear}{text}\n")))
    }

    fn frame(&mut self, role: Role, passed: Duration, turns: u32) -> Result<(), Failure> {
        if self.drawn.is_some_and(|drawn| drawn.elapsed() < FRAME) {
            return Ok(());
        }
        self.drawn = Some(Instant::now());
        let turns = if turns > 0 {
            format!(", {turns} turns")
        } else {
            String::new()
        };
        let passed = span(TimeDelta::from_std(passed).unwrap_or_default());
        let drawn = write!(
            stdout(),
            "\r\u{1b}[K       {} is at work, {passed}{turns}",
            role.word()
        )
        .and_then(|()| stdout().flush());
        drawn.map_err(|error| Failure::new(Exit::Failed, &error))
    }
}

/// A step in a line for people; nothing for one that the next says as well.
pub(super) fn said(told: Told<'_>) -> Option<String> {
    let Told {
        setup,
        step,
        was,
        standing,
        ..
    } = told;
    let name = |run: Run| {
        setup
            .member(run)
            .map_or("the pair", |member| member.agent.as_str())
    };
    let at = format!("{:>4}", was.pair.iteration());
    let was = was.pair.run();
    let took = |run: &Transcript| {
        let turns = if run.turns > 0 {
            format!(", {} turns", run.turns)
        } else {
            String::new()
        };
        let took = span(TimeDelta::milliseconds(
            i64::try_from(run.ms).unwrap_or(i64::MAX),
        ));
        format!("{took}{turns}")
    };
    Some(match step {
        PairStep::Opened(setup) => {
            let reviewer = setup.reviewer.as_ref().map_or_else(
                || "nobody reviews".to_owned(),
                |reviewer| format!("{} reviews", reviewer.agent),
            );
            let whole = span(TimeDelta::seconds(setup.seconds.into()));
            let author = &setup.author.agent;
            format!(
                "{author} works, {reviewer}: at most {} iterations and {whole} of running",
                setup.iterations
            )
        }
        PairStep::Started | PairStep::Began(_) => return None,
        PairStep::Resumed => {
            format!(
                "{at}  it goes on where it stood: {}",
                standing.pair.run().word()
            )
        }
        PairStep::Dropped => format!("{at}  a person let it rest"),
        PairStep::NotStarted { why } => format!("      it cannot be started: {}", escaped(why)),
        PairStep::Ended { signal, run } => {
            let signal = match signal {
                Signal::None => "no signal".to_owned(),
                Signal::Done | Signal::Pass | Signal::Fail => signal.word().to_owned(),
            };
            let sent = match run.messages.as_slice() {
                [] => String::new(),
                messages => {
                    let ids: Vec<&str> = messages.iter().map(MessageId::as_str).collect();
                    format!(", sent {}", ids.join(", "))
                }
            };
            format!("{at}  {}: {signal}{sent}, {}", name(was), took(run))
        }
        PairStep::Crashed { why, run } => {
            let then = if standing.pair.run().is_terminal() {
                ""
            } else {
                "; it is started once more"
            };
            format!("{at}  {}: {}, {}{then}", name(was), escaped(why), took(run))
        }
        PairStep::Interrupted { why, .. } => format!("{at}  {}", escaped(why)),
    })
}
