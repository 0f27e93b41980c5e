//! What a run came to: a word, by its last line, by the message its agent wrote or by structured output; or a crash. No
//! word approves a review by itself: an approval is sent as a message for it, and the gate judges that.

use daemon::invocation::answer;
use mailbox::compose::ask;
use message_schema::envelope::{MessageType, ReviewKind};
use message_schema::id::MessageId;
use review::Signal;
use runner::folder::{ExitReason, RunEnd};
use spool::{Since, Tail};
use workspace::clock;

use super::mail::{self, Sent};
use super::turn::{Given, run_name};
use super::{Driver, PairError, Role, places};

/// What is known of a run that is over.
pub(super) struct FinishedRun {
    pub(super) end: Option<RunEnd>,
    /// Whether it was ended because no turn is left.
    pub(super) no_turns: bool,
    /// The messages of its agent that were accepted meanwhile.
    pub(super) messages: Vec<Sent>,
}

/// What it came to.
pub(super) enum Word {
    Signal(Signal),
    Crashed(String),
}

pub(super) fn read(
    driver: &Driver<'_>,
    role: Role,
    given: &Given,
    ran: &FinishedRun,
) -> Result<Word, PairError> {
    let written = ran
        .messages
        .iter()
        .find_map(|sent| by_message(driver, role, sent));
    let said = match ended_well(ran) {
        Ok(said) => said,
        // What it wrote counts, whatever became of it afterwards.
        Err(why) => return Ok(written.map_or(Word::Crashed(why), Word::Signal)),
    };
    note(driver, role, "")?;
    let words = &driver.setup.words;
    let signal = match role {
        Role::Author => Signal::read(&said.text, words),
        Role::Reviewer => match answer::read(said, words) {
            answer::AgentAnswer::GivenUp => Signal::Fail,
            answer::AgentAnswer::Response(verdict, sheet) if written.is_none() => {
                return respond(driver, given, (verdict, &sheet)).map(Word::Signal);
            }
            answer::AgentAnswer::Response(..) | answer::AgentAnswer::Nothing(_) => Signal::None,
        },
    };
    Ok(Word::Signal(match (signal, written) {
        (Signal::None, Some(written)) => written,
        (signal, _) => signal,
    }))
}

/// Says to one side what became of its last answer, in the place of what was said of an earlier one.
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
        ExitReason::NotStarted(why) => Err(format!("it cannot be started: {why}")),
    }
}

/// What a message says in place of a last line: an author that asks for a review is ready, a reviewer that approves
/// passes. What a reviewer has to say of the work of others says nothing of this one.
fn by_message(driver: &Driver<'_>, role: Role, sent: &Sent) -> Option<Signal> {
    let is_theirs = sent
        .review
        .as_ref()
        .is_some_and(|key| key.author == driver.setup.author.agent);
    if role == Role::Reviewer && !is_theirs {
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

/// Sends the answer of a reviewer of whom something is asked. Where nothing is, its `PASS` is all there is to say. What
/// its brief did not show it has not read: a request that came in later takes no answer of this run.
fn respond(
    driver: &Driver<'_>,
    given: &Given,
    (verdict, sheet): (
        mailbox::compose::omissions::ResponseKind,
        &mailbox::compose::response_file::ResponseFile,
    ),
) -> Result<Signal, PairError> {
    use mailbox::compose::omissions::ResponseKind;
    let me = &driver.member(Role::Reviewer).agent;
    let ours = |ask: &ask::Ask| ask.author == driver.setup.author.agent;
    let asks = ask::open(&driver.root, me, clock::now());
    let failed = |what: &str, why: String| PairError::Io {
        what: what.to_owned(),
        source: std::io::Error::other(why),
    };
    let asks = asks.map_err(|error| failed("what is asked of the reviewer", error.to_string()))?;
    let signal = match verdict {
        ResponseKind::Lgtm => Signal::Pass,
        ResponseKind::Feedback => Signal::None,
    };
    let write = |text: &str| note(driver, Role::Reviewer, text);
    let asks: Vec<_> = asks.into_iter().filter(ours).collect();
    let shown = |ask: &&ask::Ask| {
        given
            .asked
            .as_ref()
            .is_some_and(|it| *it == (ask.key(), ask.request.clone()))
    };
    let Some(ask) = asks.iter().find(shown) else {
        if asks.is_empty() {
            return Ok(signal);
        }
        write("Your last answer was not sent: what is asked now was not in your brief.\n")?;
        return Ok(Signal::None);
    };
    let mut tail = Tail::open(&driver.root, Since::End)?;
    let id = MessageId::new(format!("run-{}", run_name(driver, given.start)))
        .expect("letters, digits and dashes");
    let request = (&ask.key(), &ask.request);
    let posted = answer::post(&driver.root, request, &id, (verdict, sheet), clock::now());
    if let Err(why) = posted {
        write(&format!("Your last answer was not sent: {why}.\n"))?;
        return Ok(Signal::None);
    }
    mail::judged(&driver.root, me)?;
    let accepted = mail::accepted(&mut tail, me)?;
    if accepted.iter().all(|sent| sent.id != id) {
        write("Your last answer was refused; the message from `settled` says why.\n")?;
        return Ok(Signal::None);
    }
    Ok(signal)
}
