//! What a run came to: a word, by its last line, by the message its agent wrote or by structured output; or a crash. No
//! word approves a review by itself: an approval is sent as a message for it, and the gate judges that.

use message_schema::envelope::MessageType;
use message_schema::id::MessageId;
use review::Signal;
use spool::{Since, Tail};

use super::turn::run_name;
use super::{Driver, PairError, Role, mail, places};
use crate::clock;
use crate::compose::ask;
use crate::runner::answer as runner;
use crate::runner::folder::{End, How};

/// What is known of a run that is over.
pub(super) struct Ran {
    pub(super) end: Option<End>,
    /// Whether it was ended because no turn is left.
    pub(super) no_turns: bool,
    /// The messages of its agent that were accepted meanwhile.
    pub(super) messages: Vec<(MessageId, MessageType)>,
}

/// What it came to.
pub(super) enum Word {
    Signal(Signal),
    Crashed(String),
}

pub(super) fn read(driver: &Driver<'_>, role: Role, start: u16, ran: &Ran) -> Result<Word, PairError> {
    let written = ran.messages.iter().find_map(|(_, kind)| by_message(role, *kind));
    let said = match ended_well(ran) {
        Ok(said) => said,
        // What it wrote counts, whatever became of it afterwards.
        Err(why) => return Ok(written.map_or(Word::Crashed(why), Word::Signal)),
    };
    let words = &driver.setup.words;
    let signal = match role {
        Role::Author => Signal::read(&said.text, words),
        Role::Reviewer => match runner::read(said, words) {
            runner::Word::GivenUp => Signal::Fail,
            runner::Word::Response(verdict, sheet) if written.is_none() => {
                return respond(driver, start, (verdict, &sheet)).map(Word::Signal);
            }
            runner::Word::Response(..) | runner::Word::Nothing(_) => Signal::None,
        },
    };
    Ok(Word::Signal(match (signal, written) {
        (Signal::None, Some(written)) => written,
        (signal, _) => signal,
    }))
}

fn ended_well(ran: &Ran) -> Result<&crate::runner::stream::Said, String> {
    let end = ran.end.as_ref().ok_or("it was cut off")?;
    match &end.how {
        How::Code(0) => match &end.said.unreadable {
            Some(why) => Err(format!("its output cannot be read: {why}")),
            None => Ok(&end.said),
        },
        How::Code(code) => Err(format!("it ended with code {code}")),
        How::Signal(signal) => Err(format!("it was ended by signal {signal}")),
        How::Ended if ran.no_turns => Err("it used up its turns".to_owned()),
        How::Ended => Err("it used up its seconds".to_owned()),
        How::NotStarted(why) => Err(format!("it cannot be started: {why}")),
    }
}

/// What a message says in place of a last line: an author that asks for a review is ready, a reviewer that approves
/// passes.
fn by_message(role: Role, kind: MessageType) -> Option<Signal> {
    match (role, kind) {
        (Role::Author, MessageType::ReviewRequest | MessageType::ReviewAddressed) => Some(Signal::Done),
        (Role::Reviewer, MessageType::ReviewLgtm) => Some(Signal::Pass),
        (Role::Reviewer, MessageType::ReviewFeedback) => Some(Signal::None),
        (Role::Author | Role::Reviewer, _) => None,
    }
}

/// Sends the answer of a reviewer of whom something is asked. Where nothing is, its `PASS` is all there is to say.
fn respond(
    driver: &Driver<'_>,
    start: u16,
    (verdict, sheet): (crate::compose::gaps::Verdict, &crate::compose::sheet::Sheet),
) -> Result<Signal, PairError> {
    use crate::compose::gaps::Verdict;
    let me = &driver.member(Role::Reviewer).agent;
    let ours = |ask: &ask::Ask| ask.author == driver.setup.author.agent;
    let asks = ask::open(&driver.root, me, clock::now());
    let failed =
        |what: &str, why: String| PairError::Io { what: what.to_owned(), source: std::io::Error::other(why) };
    let asks = asks.map_err(|error| failed("what is asked of the reviewer", error.to_string()))?;
    let Some(ask) = asks.into_iter().find(ours) else {
        return Ok(match verdict {
            Verdict::Lgtm => Signal::Pass,
            Verdict::Feedback => Signal::None,
        });
    };
    let mut tail = Tail::open(&driver.root, Since::End)?;
    let id = MessageId::new(format!("run-{}", run_name(driver, start))).expect("letters, digits and dashes");
    let posted = runner::post(&driver.root, &ask.key(), &id, (verdict, sheet), clock::now());
    let note = driver.places.note(Role::Reviewer);
    let write = |text: &str| places::write(&note, text).map_err(|error| failed("a note", error.to_string()));
    if let Err(why) = posted {
        write(&format!("Your last answer was not sent: {why}.\n"))?;
        return Ok(Signal::None);
    }
    mail::judged(&driver.root, me)?;
    let accepted = mail::accepted(&mut tail, me)?;
    if accepted.iter().all(|(accepted, _)| *accepted != id) {
        write("Your last answer was refused; the message from `settled` says why.\n")?;
        return Ok(Signal::None);
    }
    write("")?;
    Ok(match verdict {
        Verdict::Lgtm => Signal::Pass,
        Verdict::Feedback => Signal::None,
    })
}
