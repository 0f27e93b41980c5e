//! Which letters of an agent's own mailboxes are dealt with once a message of its own was accepted.

use std::io;

use message_schema::envelope::MessageType;
use message_schema::id::PrNumber;

use crate::mailbag::{Letter, Mailbag, Place};

/// The letters in the inbox or in hand that a message of that type answers: the one it names, and of its review what asked
/// for it.
pub fn answered(
    bag: &Mailbag,
    kind: MessageType,
    pr: Option<&PrNumber>,
    parent: Option<&str>,
) -> io::Result<Vec<Letter>> {
    let asked = match kind {
        MessageType::ReviewFeedback | MessageType::ReviewLgtm => Some(MessageType::ReviewRequest),
        MessageType::ReviewAddressed => Some(MessageType::ReviewFeedback),
        MessageType::ReviewRequest
        | MessageType::Notification
        | MessageType::Question
        | MessageType::TaskRequest
        | MessageType::FollowUp
        | MessageType::Handoff
        | MessageType::HandoffComplete
        | MessageType::BrainstormRequest
        | MessageType::BrainstormFollowup => None,
    };
    let is_about = |letter: &Letter| {
        let number = letter.pr.as_deref().and_then(|pr| PrNumber::new(pr).ok());
        number
            .zip(pr)
            .is_some_and(|(number, pr)| number.same_pr(pr))
    };
    let is_answered = |letter: &Letter| {
        let is_parent = parent.is_some() && letter.id.as_deref() == parent;
        let is_asked =
            asked.is_some() && letter.kind.as_deref().and_then(MessageType::from_word) == asked;
        is_parent || (is_asked && is_about(letter))
    };
    let mut letters = bag.letters(Place::Taken)?;
    letters.extend(bag.letters(Place::Inbox)?);
    letters.retain(is_answered);
    Ok(letters)
}
