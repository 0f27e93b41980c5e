//! Settles a run that ended. First the mail it wrote is judged; then its answer becomes a message and is judged; if its
//! request is still open after that, the run failed. Nothing it says or omits approves anything by itself.

use std::io;

use chrono::{DateTime, TimeDelta, Utc};
use mailbox::mailboxes::file_name;
use message_schema::id::MessageId;
use message_schema::spend::Spend;
use review::{Event, FailureCause, ReviewKey, RunFailure};
use runner::folder::{ExitReason, Launch, RunEnd};
use runner::stream::cause::{self, Cause, ProgramFailure, Retry, WAIT_S_MAX};
use runner::stream::{AgentOutput, Unreadable};
use spool::{FileName, SpoolError};
use workspace::clock::Moment;

use super::answer::{self, AgentAnswer};
use super::live::Live;
use super::report::{record_spend, record_turns};
use super::{MAIL_MS, Run, is_open, unavailable};
use crate::mailroom::Mailroom;

/// An ended run that is not settled yet.
#[derive(Debug)]
pub(super) struct Settling {
    pub(super) run: Run,
    end: Option<RunEnd>,
    counted: u16,
    /// Its spend as reported so far; its end may report more.
    spend: Spend,
    /// True if only the spend is left to record, since another run answers for the request.
    pub(super) is_paid_only: bool,
    since: u64,
    is_posted: bool,
}

/// The state of a settlement.
pub(super) enum Settlement {
    /// The run waits until the daemon has judged its agent's mail.
    Wait,
    /// The run is settled, and the daemon recorded this many events.
    Done(usize),
}

impl Settling {
    pub(super) fn new(live: &Live, now: Moment) -> Self {
        Self::of(live.run.clone(), live.folder.end(), live.counted, now).having_used(live.spend)
    }

    /// A run with its end and the number of turns counted so far.
    pub(super) fn of(run: Run, end: Option<RunEnd>, counted: u16, now: Moment) -> Self {
        let spend = end
            .as_ref()
            .map_or_else(Spend::default, |end| end.said.spend);
        Self {
            run,
            end,
            counted,
            spend,
            is_paid_only: false,
            since: now.mono,
            is_posted: false,
        }
    }

    /// A run of an earlier daemon that may lack only its spend.
    pub(super) fn paid_only(run: Run, spend: Spend, now: Moment) -> Self {
        Self {
            spend,
            is_paid_only: true,
            ..Self::of(run, None, 0, now)
        }
    }

    /// Adds the spend that the run's output reports.
    pub(super) fn having_used(self, spend: Spend) -> Self {
        Self {
            spend: self.spend.most(spend),
            ..self
        }
    }

    /// A run that could not even be prepared.
    pub(super) fn not_started(
        key: &ReviewKey,
        mailroom: &Mailroom,
        error: &io::Error,
        now: Moment,
    ) -> Option<Self> {
        let review = mailroom.review(key)?;
        let open = review.phase.invocation()?;
        let end = RunEnd {
            how: ExitReason::Unprepared(error.to_string()),
            said: AgentOutput::default(),
        };
        let run = Run {
            schema_version: 1,
            id: String::new(),
            review: key.clone(),
            reassigned_to: review.reassigned_to.clone(),
            request: open.request.clone(),
            start: open.starts,
            launch: Launch {
                workdir: mailroom.root().to_owned(),
                ..Launch::default()
            },
        };
        Some(Self::of(run, Some(end), 0, now))
    }

    pub(super) fn go_on(
        &mut self,
        mailroom: &mut Mailroom,
        now: Moment,
    ) -> Result<Settlement, SpoolError> {
        if self.is_paid_only {
            return Ok(Settlement::Done(self.pay(mailroom, now)?));
        }
        if !is_open(mailroom, &self.run) {
            tracing::info!(review = %self.run.review, run = self.run.id, "a command ended, and its request is over");
            return Ok(Settlement::Done(self.pay(mailroom, now)?));
        }
        if mailroom.has_mail(self.run.agent()) && now.mono < self.since + MAIL_MS {
            return Ok(Settlement::Wait);
        }
        if self.is_posted {
            return self.fail(
                mailroom,
                FailureCause::Unreadable,
                "its answer was refused",
                now,
            );
        }
        match self.word(mailroom) {
            AgentAnswer::Response(verdict, sheet) => {
                let id = MessageId::new(format!("run-{}", self.run.id))
                    .expect("letters, digits and a dash");
                let agent = self.run.agent();
                // An answer to a request that was replaced is dropped: its author has not seen the new request.
                let ask = mailroom.ask(&self.run.review, now);
                let ask = ask.filter(|it| {
                    it.brief.request == self.run.request && it.brief.reviewer == *agent
                });
                let Some(ask) = ask else {
                    let why = "no request waits for it now";
                    return self.fail(mailroom, FailureCause::Unreadable, why, now);
                };
                let answered = (verdict, &*sheet);
                let folder = runner::folder::named(mailroom.root(), &self.run.id);
                let reviewed = folder.reviewed();
                let root = mailroom.root();
                match answer::post(root, &ask, &id, answered, reviewed.as_ref(), now.utc) {
                    Ok(()) => {
                        let file = FileName::new(file_name(&id)).expect("the name of a message");
                        mailroom.hint(agent.as_str(), &file);
                        (self.is_posted, self.since) = (true, now.mono);
                        Ok(Settlement::Wait)
                    }
                    Err(why) => {
                        self.fail(mailroom, FailureCause::Unreadable, &why.to_string(), now)
                    }
                }
            }
            AgentAnswer::GivenUp => self.fail(mailroom, FailureCause::GaveUp, "it gave up", now),
            AgentAnswer::Nothing(why) => self.fail(mailroom, self.kind(), &why, now),
        }
    }

    /// Records the spend after the answer: the money is spent either way, and the answer it paid for counts.
    fn pay(&self, mailroom: &mut Mailroom, now: Moment) -> Result<usize, SpoolError> {
        let report = self.run.report(self.spend);
        record_spend(mailroom, &report, now).map(usize::from)
    }

    /// Reads the answer of a command, if the command exited with code 0.
    fn word(&self, mailroom: &Mailroom) -> AgentAnswer {
        let Some(RunEnd { how, said }) = &self.end else {
            return AgentAnswer::Nothing("it was cut off".to_owned());
        };
        let how = match how {
            ExitReason::Code(0) => {
                return answer::read(said, &mailroom.config().runner.words());
            }
            ExitReason::Code(code) => format!("it ended with code {code}"),
            ExitReason::Signal(signal) => format!("it was ended by signal {signal}"),
            ExitReason::Ended => "it was ended".to_owned(),
            ExitReason::NotStarted(why) => format!("it cannot be started: {why}"),
            ExitReason::Unprepared(why) => format!("it cannot be prepared: {why}"),
        };
        AgentAnswer::Nothing(how)
    }

    /// Classifies the failure by how the command ended alone.
    fn kind(&self) -> FailureCause {
        match self.end.as_ref().map(|end| &end.how) {
            Some(ExitReason::Code(0)) => FailureCause::Unreadable,
            Some(ExitReason::NotStarted(_)) => FailureCause::Missing,
            Some(
                ExitReason::Code(_)
                | ExitReason::Signal(_)
                | ExitReason::Ended
                | ExitReason::Unprepared(_),
            )
            | None => FailureCause::Crashed,
        }
    }

    /// The failure with its cause: what the program reports in its output, or else its last line on standard error. The
    /// rest is in the run's folder, which the failure names.
    fn failure(
        &self,
        mailroom: &Mailroom,
        cause: FailureCause,
        why: &str,
        now: Moment,
    ) -> RunFailure {
        let plain = |why: String| RunFailure {
            cause,
            why,
            retry_after: None,
            run: (!self.run.id.is_empty()).then(|| self.run.id.clone()),
        };
        if self.run.id.is_empty() || cause == FailureCause::GaveUp {
            return plain(why.to_owned());
        }
        let said = self.end.as_ref().map(|end| &end.said);
        let unreadable = said.and_then(|said| said.unreadable.as_ref());
        let has_ended_badly = |end: &RunEnd| end.how != ExitReason::Code(0);
        let failed = self.end.as_ref().is_some_and(has_ended_badly);
        let by_last_line = || {
            let folder = runner::folder::named(mailroom.root(), &self.run.id);
            let ProgramFailure { why, cause } = cause::last_words(why, &folder.last_error_line());
            (why, cause)
        };
        let (why, named) = match unreadable {
            Some(Unreadable::Reported(report)) if failed => {
                (format!("{why}, {}", report.why), report.cause)
            }
            Some(Unreadable::Reported(report)) => (why.to_owned(), report.cause),
            Some(
                Unreadable::NoEnd
                | Unreadable::Wordless
                | Unreadable::TooLong
                | Unreadable::NotUtf8
                | Unreadable::CutOff,
            ) => by_last_line(),
            None if failed => by_last_line(),
            None => (why.to_owned(), None),
        };
        let mut failure = plain(why);
        match named {
            Some(Cause::NotLoggedIn) => failure.cause = FailureCause::NotLoggedIn,
            Some(Cause::Quota { retry }) => {
                failure.cause = FailureCause::Quota;
                failure.retry_after = retry.and_then(|retry| instant(retry, now));
            }
            None => {}
        }
        failure
    }

    /// Counts turns and spend, then records the failure. The rules start the command again or ask a person.
    fn fail(
        &self,
        mailroom: &mut Mailroom,
        cause: FailureCause,
        why: &str,
        now: Moment,
    ) -> Result<Settlement, SpoolError> {
        let mut recorded = 0;
        let mut failure = self.failure(mailroom, cause, why, now);
        let turns = self
            .end
            .as_ref()
            .map_or(0, |end| end.said.turns)
            .saturating_sub(self.counted);
        if turns > 0 {
            recorded += usize::from(record_turns(mailroom, &self.run, turns, now)?);
        }
        recorded += self.pay(mailroom, now)?;
        // The last turn or the last of the money may have ended the review already.
        if !is_open(mailroom, &self.run) {
            return Ok(Settlement::Done(recorded));
        }
        let is_ended = self
            .end
            .as_ref()
            .is_some_and(|end| end.how == ExitReason::Ended);
        if let Some(used_up) = mailroom
            .used_up(self.run.agent(), &[], now)
            .filter(|_| is_ended)
        {
            failure = unavailable(&used_up, failure.run);
        }
        let why = failure.sentence();
        let event = Event::Failed {
            which: self.run.which(),
            failure,
        };
        recorded += usize::from(mailroom.record_run(&event, now)?);
        let (review, run) = (&self.run.review, &self.run.id);
        let asked = mailroom
            .review(review)
            .filter(|known| known.phase.invocation().is_some())
            .map(|known| known.reviewer(review));
        match asked {
            Some(_) if is_open(mailroom, &self.run) => {
                tracing::warn!(%review, run, why, "a command failed; starting it again");
            }
            Some(next) => {
                tracing::warn!(%review, run, why, %next, "a command failed; asking the next reviewer");
            }
            None => tracing::warn!(%review, run, why, "a command failed; a person decides"),
        }
        // Zero events would put off the next start until the next message.
        Ok(Settlement::Done(recorded.max(1)))
    }
}

/// The instant, rounded up to a second, at which a quota can be used again; none if it is implausibly far away.
fn instant(retry: Retry, now: Moment) -> Option<DateTime<Utc>> {
    match retry {
        Retry::AfterS(seconds) => {
            let wait = TimeDelta::try_seconds(i64::try_from(seconds).ok()?)?;
            let at = now.utc.checked_add_signed(wait)?;
            DateTime::from_timestamp(at.timestamp() + 1, 0)
        }
        Retry::At(seconds) => {
            let at = DateTime::from_timestamp(i64::try_from(seconds).ok()?, 0)?;
            let wait = at.signed_duration_since(now.utc).num_seconds();
            (wait <= WAIT_S_MAX.cast_signed()).then_some(at)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_further_away_than_is_believed_is_none() {
        let now = Moment {
            mono: 0,
            utc: DateTime::UNIX_EPOCH,
        };
        let at = |seconds| instant(Retry::At(seconds), now).map(|at| at.timestamp());
        assert_eq!(at(WAIT_S_MAX), Some(WAIT_S_MAX.cast_signed()));
        assert_eq!(at(WAIT_S_MAX + 1), None);
        // Milliseconds in place of seconds.
        assert_eq!(at(1_771_030_800_000), None);
        assert_eq!(at(u64::MAX), None);
    }
}
