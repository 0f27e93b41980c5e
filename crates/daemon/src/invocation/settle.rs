//! Settles a run that ended: first the mail it wrote is judged, then its answer becomes a message and is judged, and if
//! its request is still open, the run failed. Nothing it says or omits approves anything by itself.

use std::io;

use message_schema::id::MessageId;
use review::{Event, ReviewKey, Which};
use runner::folder::{ExitReason, Launch, RunEnd};
use runner::stream::{AgentOutput, OutputFormat};
use spool::SpoolError;
use workspace::clock::Moment;

use super::answer::{self, AgentAnswer};
use super::live::Live;
use super::{MAIL_MS, Run, is_open, tell_turns};
use crate::mailroom::Mailroom;

/// An ended run that is not settled yet.
#[derive(Debug)]
pub(super) struct Settling {
    pub(super) run: Run,
    end: Option<RunEnd>,
    counted: u16,
    since: u64,
    is_posted: bool,
}

/// The state of a settlement.
pub(super) enum Settlement {
    /// It waits for mail to be judged.
    Wait,
    /// It is settled, with so many events.
    Done(usize),
}

impl Settling {
    pub(super) fn new(live: &Live, now: Moment) -> Self {
        Self::of(live.run.clone(), live.folder.end(), live.counted, now)
    }

    /// A run with its end and the turns counted so far.
    pub(super) fn of(run: Run, end: Option<RunEnd>, counted: u16, now: Moment) -> Self {
        Self {
            run,
            end,
            counted,
            since: now.mono,
            is_posted: false,
        }
    }

    /// A run that could not even be prepared.
    pub(super) fn not_started(
        key: &ReviewKey,
        mailroom: &Mailroom,
        error: &io::Error,
        now: Moment,
    ) -> Option<Self> {
        let open = mailroom.review(key)?.phase.invocation()?;
        let said = AgentOutput {
            text: String::new(),
            unreadable: None,
            turns: 0,
        };
        let end = RunEnd {
            how: ExitReason::NotStarted(error.to_string()),
            said,
        };
        let run = Run {
            schema_version: 1,
            id: String::new(),
            review: key.clone(),
            request: open.request.clone(),
            start: open.starts,
            launch: Launch {
                command: Vec::new(),
                workdir: mailroom.root().to_owned(),
                reads_prompt: false,
                output: OutputFormat::Text,
                seconds_max: 0,
            },
        };
        Some(Self::of(run, Some(end), 0, now))
    }

    pub(super) fn go_on(
        &mut self,
        mailroom: &mut Mailroom,
        now: Moment,
    ) -> Result<Settlement, SpoolError> {
        if !is_open(mailroom, &self.run) {
            tracing::info!(review = %self.run.review, run = self.run.id, "a command ended, and its request is over");
            return Ok(Settlement::Done(0));
        }
        if mailroom.has_mail(&self.run.review.reviewer) && now.mono < self.since + MAIL_MS {
            return Ok(Settlement::Wait);
        }
        if self.is_posted {
            return self
                .fail(mailroom, "its answer was refused", now)
                .map(Settlement::Done);
        }
        match self.word(mailroom) {
            AgentAnswer::Response(verdict, sheet) => {
                let id = MessageId::new(format!("run-{}", self.run.id))
                    .expect("letters, digits and a dash");
                let request = (&self.run.review, &self.run.request);
                match answer::post(mailroom.root(), request, &id, (verdict, &sheet), now.utc) {
                    Ok(()) => {
                        mailroom.sweep()?;
                        (self.is_posted, self.since) = (true, now.mono);
                        Ok(Settlement::Wait)
                    }
                    Err(why) => self
                        .fail(mailroom, &why.to_string(), now)
                        .map(Settlement::Done),
                }
            }
            AgentAnswer::GivenUp => self
                .escalate(mailroom, "it gave up", now)
                .map(Settlement::Done),
            AgentAnswer::Nothing(why) => self.fail(mailroom, &why, now).map(Settlement::Done),
        }
    }

    /// Only a command that ended by itself and well is asked what it said.
    fn word(&self, mailroom: &Mailroom) -> AgentAnswer {
        match &self.end {
            None => AgentAnswer::Nothing("it was cut off".to_owned()),
            Some(RunEnd {
                how: ExitReason::Code(0),
                said,
            }) => answer::read(said, &mailroom.config().runner.words()),
            Some(RunEnd {
                how: ExitReason::Code(code),
                ..
            }) => AgentAnswer::Nothing(format!("it ended with code {code}")),
            Some(RunEnd {
                how: ExitReason::Signal(signal),
                ..
            }) => AgentAnswer::Nothing(format!("it was ended by signal {signal}")),
            Some(RunEnd {
                how: ExitReason::Ended,
                ..
            }) => AgentAnswer::Nothing("it was ended".to_owned()),
            Some(RunEnd {
                how: ExitReason::NotStarted(why),
                ..
            }) => AgentAnswer::Nothing(format!("it cannot be started: {why}")),
        }
    }

    /// Counts what it used, and leaves it to be started once more or hands the review to a person.
    fn fail(&self, mailroom: &mut Mailroom, why: &str, now: Moment) -> Result<usize, SpoolError> {
        let mut told = 0;
        let turns = self
            .end
            .as_ref()
            .map_or(0, |end| end.said.turns)
            .saturating_sub(self.counted);
        if turns > 0 {
            told += usize::from(tell_turns(mailroom, &self.run.review, turns, now)?);
        }
        let open = mailroom
            .review(&self.run.review)
            .and_then(|review| review.phase.invocation());
        match open.map(review::Invocation::starts_left) {
            None => Ok(told),
            Some(0) => Ok(told + self.escalate(mailroom, why, now)?),
            Some(_) => {
                tracing::warn!(review = %self.run.review, run = self.run.id, why, "a command failed; starting it once more");
                // Without a look at what waits it would only be started with the next message.
                Ok(told.max(1))
            }
        }
    }

    fn escalate(
        &self,
        mailroom: &mut Mailroom,
        why: &str,
        now: Moment,
    ) -> Result<usize, SpoolError> {
        tracing::warn!(review = %self.run.review, run = self.run.id, why, "a command failed; a person decides");
        let event = Event::Failed {
            which: Which::of(&self.run.review),
            why: why.to_owned(),
        };
        mailroom.record_run(&event, now).map(usize::from)
    }
}
