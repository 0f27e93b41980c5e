//! Reads the result of a run: a signal, from its last line, its agent's message or structured output; or a crash. No
//! signal approves a review by itself: the driver sends an approval as a message, and the gate judges it.

use daemon::invocation::answer::{self, NotPosted};
use mailbox::compose::ask::Ask;
use mailbox::compose::omissions::ResponseKind;
use mailbox::compose::response_file::ResponseFile;
use message_schema::envelope::{MessageType, ReviewKind};
use message_schema::id::MessageId;
use review::{ReviewKey, Signal, SignalWords};
use runner::folder::{ExitReason, RunEnd};
use spool::{Since, Tail};
use workspace::clock;
use workspace::index::LedgerIndex;

use super::mail::{self, Sent};
use super::turn::{Prepared, run_name};
use super::{Driver, PairError, Role, places};

/// A run that has ended, with the messages it sent.
pub(super) struct FinishedRun {
    pub(super) end: Option<RunEnd>,
    /// True if the driver ended it because no turns are left.
    pub(super) no_turns: bool,
    /// The agent's messages that the daemon accepted during the run.
    pub(super) messages: Vec<Sent>,
}

/// The result of a run.
pub(super) enum Word {
    Signal(Signal),
    Crashed(String),
}

pub(super) fn read(
    driver: &Driver<'_>,
    role: Role,
    prepared: &Prepared,
    ran: &FinishedRun,
) -> Result<Word, PairError> {
    let written = written(driver, role, ran)?;
    let said = match ended_well(ran) {
        Ok(said) => said,
        // Messages count, whatever happened to the command afterwards.
        Err(why) => return Ok(written.map_or(Word::Crashed(why), Word::Signal)),
    };
    note(driver, role, "")?;
    let words = &driver.setup.words;
    let of_turn = Signal::of_turn(driver.status.pair.run(), &said.text, words);
    let signal = match role {
        Role::Author => of_turn,
        Role::Reviewer => match answer::read(said, words) {
            answer::AgentAnswer::GivenUp => Signal::Fail,
            answer::AgentAnswer::Response(verdict, sheet) if written.is_none() => {
                return respond(driver, prepared, (verdict, &sheet)).map(Word::Signal);
            }
            answer::AgentAnswer::Nothing(_) if of_turn == Signal::NearMiss => of_turn,
            answer::AgentAnswer::Response(..) | answer::AgentAnswer::Nothing(_) => Signal::None,
        },
    };
    match (signal, written) {
        (Signal::None | Signal::NearMiss, Some(written)) => Ok(Word::Signal(written)),
        (Signal::NearMiss, None) => {
            note(driver, role, &near_miss(role, words))?;
            Ok(Word::Signal(signal))
        }
        (_, _) => Ok(Word::Signal(signal)),
    }
}

/// The signal of the agent's messages, which replaces that of its last line.
fn written(
    driver: &Driver<'_>,
    role: Role,
    ran: &FinishedRun,
) -> Result<Option<Signal>, PairError> {
    if ran.messages.is_empty() {
        return Ok(None);
    }
    let (index, _) = LedgerIndex::read(&driver.root)?;
    let pair = index.state().pair(&driver.id);
    let is_own = |key: &ReviewKey| pair.is_some_and(|pair| pair.is_own(key));
    let mut messages = ran.messages.iter();
    Ok(messages.find_map(|sent| by_message(role, sent, is_own)))
}

/// The note about a last line that is nearly a signal. It does not quote the line, because an agent wrote it.
fn near_miss(role: Role, words: &SignalWords) -> String {
    let SignalWords { done, pass, fail } = words;
    let ready = match role {
        Role::Author => done,
        Role::Reviewer => pass,
    };
    format!(
        "Your last line was nearly `{ready}` or `{fail}`. Only a line that is exactly one of them counts, so you run again.\n"
    )
}

/// Tells one side what happened to its last answer, in place of the previous note.
fn note(driver: &Driver<'_>, role: Role, text: &str) -> Result<(), PairError> {
    let failed = |source| PairError::Io {
        what: "a note".to_owned(),
        source,
    };
    places::write(&driver.places.note(role), text).map_err(failed)
}

fn ended_well(ran: &FinishedRun) -> Result<&runner::stream::AgentOutput, String> {
    let end = ran.end.as_ref().ok_or("it was cut off")?;
    match &end.how {
        ExitReason::Code(0) => match &end.said.unreadable {
            Some(why) => Err(format!("its output cannot be read: {why}")),
            None => Ok(&end.said),
        },
        ExitReason::Code(code) => Err(format!("it ended with code {code}")),
        ExitReason::Signal(signal) => Err(format!("it was ended by signal {signal}")),
        ExitReason::Ended if ran.no_turns => Err("it used up its turns".to_owned()),
        ExitReason::Ended => Err("it used up its seconds".to_owned()),
        ExitReason::NotStarted(why) | ExitReason::Unprepared(why) => {
            Err(format!("it cannot be started: {why}"))
        }
    }
}

/// The signal of a message: an author that requests a review is ready, a reviewer that approves passes. A reviewer's
/// message about a review that is not the pair's gives none.
fn by_message(role: Role, sent: &Sent, is_own: impl Fn(&ReviewKey) -> bool) -> Option<Signal> {
    if role == Role::Reviewer && !sent.review.as_ref().is_some_and(is_own) {
        return None;
    }
    match (role, sent.kind) {
        (Role::Author, MessageType::Review(ReviewKind::Request | ReviewKind::Addressed)) => {
            Some(Signal::Done)
        }
        (Role::Reviewer, MessageType::Review(ReviewKind::Lgtm)) => Some(Signal::Pass),
        (Role::Reviewer, MessageType::Review(ReviewKind::Feedback)) => Some(Signal::None),
        (Role::Author | Role::Reviewer, _) => None,
    }
}

/// Sends the reviewer's answer to its open request. Without one, `PASS` is the whole answer. A request that was not in
/// the reviewer's brief gets no answer from this run, because the reviewer has not read it.
fn respond(
    driver: &Driver<'_>,
    prepared: &Prepared,
    (verdict, sheet): (ResponseKind, &ResponseFile),
) -> Result<Signal, PairError> {
    let me = &driver.member(Role::Reviewer).agent;
    let (asks, _) = driver.asks(Role::Reviewer)?;
    let signal = match verdict {
        ResponseKind::Lgtm => Signal::Pass,
        ResponseKind::Feedback => Signal::None,
    };
    let write = |text: &str| note(driver, Role::Reviewer, text);
    let shown = |ask: &&Ask| {
        prepared
            .asked
            .as_ref()
            .is_some_and(|it| *it == (ask.key(), ask.brief.request.clone()))
    };
    let Some(ask) = asks.iter().find(shown) else {
        if asks.is_empty() {
            return Ok(signal);
        }
        write("Your last answer was not sent: the open request was not in your brief.\n")?;
        return Ok(Signal::None);
    };
    let mut tail = Tail::open(&driver.root, Since::End)?;
    let id = MessageId::new(format!("run-{}", run_name(driver, prepared.start)))
        .expect("letters, digits and dashes");
    // The reviewer reads files that the author may not have committed.
    let posted = answer::post(&driver.root, ask, &id, (verdict, sheet), None, clock::now());
    if let Err(why) = posted {
        write(&format!("Your last answer was not sent: {why}.\n"))?;
        return Ok(match (why, verdict) {
            (NotPosted::Incomplete(_), ResponseKind::Lgtm) => Signal::Unsent,
            (NotPosted::Incomplete(_) | NotPosted::Other(_), _) => Signal::None,
        });
    }
    mail::judged(&driver.root, me)?;
    let accepted = mail::accepted(&mut tail, me)?;
    if accepted.iter().all(|sent| sent.id != id) {
        write("Your last answer was refused; the message from `settled` says why.\n")?;
        return Ok(Signal::None);
    }
    Ok(signal)
}
