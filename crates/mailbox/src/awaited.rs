//! Whether a letter is the verdict its reader waits for: one that it has not answered since, and no refusal of something
//! it sent while the other agent has to move. Found in the agent's own mailboxes alone.

use std::io;

use message_schema::envelope::{DAEMON, MessageType};
use message_schema::id::{AgentName, PrNumber};
use message_schema::{Report, parse};

use crate::mailbag::{Letter, Mailbag, Place};

/// Whether this is feedback, an lgtm or word of the daemon on a review, and still to be acted upon.
pub fn is_verdict(letter: &Letter, me: &AgentName, bag: &Mailbag) -> io::Result<bool> {
    let is_one = match letter.kind.as_deref().and_then(MessageType::from_word) {
        Some(MessageType::ReviewFeedback | MessageType::ReviewLgtm) => true,
        Some(
            MessageType::ReviewRequest
            | MessageType::ReviewAddressed
            | MessageType::Notification
            | MessageType::Question
            | MessageType::TaskRequest
            | MessageType::FollowUp
            | MessageType::Handoff
            | MessageType::HandoffComplete
            | MessageType::BrainstormRequest
            | MessageType::BrainstormFollowup,
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
fn leaves_waiting(letter: &Letter, me: &AgentName) -> bool {
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
fn is_answered(letter: &Letter, bag: &Mailbag) -> io::Result<bool> {
    let number = |letter: &Letter| letter.pr.as_deref().and_then(|pr| PrNumber::new(pr).ok());
    let (Some(pr), Some(arrived)) = (number(letter), letter.arrived) else {
        return Ok(false);
    };
    for place in [Place::Outbox, Place::Sent] {
        let is_answer = |sent: &Letter| {
            let kind = sent.kind.as_deref().and_then(MessageType::from_word);
            [
                Some(MessageType::ReviewRequest),
                Some(MessageType::ReviewAddressed),
            ]
            .contains(&kind)
                && number(sent).is_some_and(|about| about.same_pr(&pr))
        };
        if bag.since(place, arrived)?.iter().any(is_answer) {
            return Ok(true);
        }
    }
    Ok(false)
}
