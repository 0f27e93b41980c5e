//! Which message answers which, by the agent's own mailboxes alone: whether a message is the verdict its reader waits
//! for, and which messages one of the reader's own settles.

use std::io;

use message_schema::envelope::{DAEMON, MessageType, ReviewKind};
use message_schema::id::{AgentName, PrNumber};
use message_schema::{Report, parse};

use crate::mailboxes::{AgentMailboxes, MailboxEntry, MailboxPlace};

/// Whether this is the verdict its reader waits for: feedback, an lgtm or a notice of the daemon on a review. Not one that
/// the reader has answered since, nor the refusal of its own message while another agent has to move.
pub fn is_verdict(letter: &MailboxEntry, me: &AgentName, bag: &AgentMailboxes) -> io::Result<bool> {
    let is_one = match letter.kind.as_deref().and_then(MessageType::from_word) {
        Some(MessageType::Review(ReviewKind::Feedback | ReviewKind::Lgtm)) => true,
        Some(
            MessageType::Review(ReviewKind::Request | ReviewKind::Addressed) | MessageType::Text(_),
        )
        | None => {
            letter.from.as_deref() == Some(DAEMON)
                && letter.pr.is_some()
                && !leaves_waiting(letter, me)
        }
    };
    Ok(is_one && !is_answered(letter, bag)?)
}

/// Whether this is a refusal that says that another agent has to move: then the verdict is still to come.
fn leaves_waiting(letter: &MailboxEntry, me: &AgentName) -> bool {
    let Ok(message) = parse(letter.text.as_bytes()) else {
        return false;
    };
    let body = message.root().field_text("body").unwrap_or_default();
    let Ok(report) = Report::from_yaml(body.as_bytes()) else {
        return false;
    };
    let movers = report
        .legal_next
        .iter()
        .filter_map(|next| AgentName::new(next.split_once(": ")?.0).ok());
    let movers: Vec<AgentName> = movers.collect();
    !movers.is_empty() && !movers.contains(me)
}

/// Whether its reader has sent a request or what it addressed on that pull request since: what it said is dealt with,
/// though nobody put it away.
fn is_answered(letter: &MailboxEntry, bag: &AgentMailboxes) -> io::Result<bool> {
    let number = |letter: &MailboxEntry| letter.pr.as_deref().and_then(|pr| PrNumber::new(pr).ok());
    let (Some(pr), Some(arrived)) = (number(letter), letter.arrived) else {
        return Ok(false);
    };
    for place in [MailboxPlace::Outbox, MailboxPlace::Sent] {
        let is_answer = |sent: &MailboxEntry| {
            let kind = sent.kind.as_deref().and_then(ReviewKind::from_word);
            [Some(ReviewKind::Request), Some(ReviewKind::Addressed)].contains(&kind)
                && number(sent).is_some_and(|about| about.same_pr(&pr))
        };
        if bag.since(place, arrived)?.iter().any(is_answer) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The letters in the inbox or in hand that a message of that type answers: the one it names, and of its review what asked
/// for it.
pub fn answered(
    bag: &AgentMailboxes,
    kind: MessageType,
    pr: Option<&PrNumber>,
    parent: Option<&str>,
) -> io::Result<Vec<MailboxEntry>> {
    let asked = match kind {
        MessageType::Review(ReviewKind::Feedback | ReviewKind::Lgtm) => Some(ReviewKind::Request),
        MessageType::Review(ReviewKind::Addressed) => Some(ReviewKind::Feedback),
        MessageType::Review(ReviewKind::Request) | MessageType::Text(_) => None,
    };
    let is_about = |letter: &MailboxEntry| {
        let number = letter.pr.as_deref().and_then(|pr| PrNumber::new(pr).ok());
        number
            .zip(pr)
            .is_some_and(|(number, pr)| number.same_pr(pr))
    };
    let is_answered = |letter: &MailboxEntry| {
        let is_parent = parent.is_some() && letter.id.as_deref() == parent;
        let is_asked =
            asked.is_some() && letter.kind.as_deref().and_then(ReviewKind::from_word) == asked;
        is_parent || (is_asked && is_about(letter))
    };
    let mut letters = bag.letters(MailboxPlace::Taken)?;
    letters.extend(bag.letters(MailboxPlace::Inbox)?);
    letters.retain(is_answered);
    Ok(letters)
}
