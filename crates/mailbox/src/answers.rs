//! Matches answers to messages, using only the agent's own mailboxes: decides if a message is the awaited verdict, and
//! finds the messages that an answer deals with.

use std::io;

use message_schema::envelope::{DAEMON, MessageType, ReviewKind, TextKind};
use message_schema::id::{AgentName, PrNumber};
use message_schema::{Report, parse};

use crate::mailboxes::{AgentMailboxes, MailboxEntry, MailboxPlace};
use crate::my_reviews::{Move, MyReview};

/// True if this is the verdict its reader waits for: feedback, an lgtm or a notice of the daemon about a review. False
/// for a message that the reader has answered, and for the refusal of its own message while another agent has to move.
pub fn is_verdict(
    message: &MailboxEntry,
    me: &AgentName,
    mailboxes: &AgentMailboxes,
) -> io::Result<bool> {
    let is_one = match message.kind.as_deref().and_then(MessageType::from_word) {
        Some(MessageType::Review(ReviewKind::Feedback | ReviewKind::Lgtm)) => true,
        Some(
            MessageType::Review(ReviewKind::Request | ReviewKind::Addressed) | MessageType::Text(_),
        )
        | None => {
            message.from.as_deref() == Some(DAEMON)
                && message.pr.is_some()
                && !leaves_waiting(message, me)
        }
    };
    Ok(is_one && !is_answered(message, mailboxes)?)
}

/// True if this is a refusal after which another agent has to move, so that the verdict is still to come.
fn leaves_waiting(message: &MailboxEntry, me: &AgentName) -> bool {
    let Some(report) = report_in(message) else {
        return false;
    };
    let movers = report
        .legal_next
        .iter()
        .filter_map(|next| AgentName::new(next.split_once(": ")?.0).ok());
    let movers: Vec<AgentName> = movers.collect();
    !movers.is_empty() && !movers.contains(me)
}

/// The report in a refusal notice of the daemon.
fn report_in(message: &MailboxEntry) -> Option<Report> {
    let parsed = parse(message.text.as_bytes()).ok()?;
    let body = parsed.root().field_text("body")?;
    Report::from_yaml(body.as_bytes()).ok()
}

/// True if this is the daemon's notice about this refusal.
pub fn tells_of(message: &MailboxEntry, refusal: &Report) -> bool {
    let is_same = |report: Report| {
        (report.file, report.digest) == (refusal.file.clone(), refusal.digest.clone())
    };
    message.from.as_deref() == Some(DAEMON) && report_in(message).is_some_and(is_same)
}

/// True if the reader has since sent a request or a report of fixes for that pull request.
fn is_answered(message: &MailboxEntry, mailboxes: &AgentMailboxes) -> io::Result<bool> {
    let (Some(pr), Some(arrived)) = (&message.pr, message.arrived) else {
        return Ok(false);
    };
    for place in [MailboxPlace::Outbox, MailboxPlace::Sent] {
        let is_answer = |sent: &MailboxEntry| {
            let kind = sent.kind.as_deref().and_then(ReviewKind::from_word);
            [Some(ReviewKind::Request), Some(ReviewKind::Addressed)].contains(&kind)
                && sent.is_about(pr)
        };
        if mailboxes.since(place, arrived)?.iter().any(is_answer) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// True if the reader has dealt with a message that is still in its inbox: its answer was accepted, according to the
/// reviews and the agent's own `sent/`.
pub fn is_dealt_with(
    message: &MailboxEntry,
    reviews: &[MyReview],
    mailboxes: &AgentMailboxes,
) -> bool {
    let owes = |role: &str| {
        let is_own = |mine: &&MyReview| message.is_about(&mine.pr);
        let mut own = reviews.iter().filter(is_own);
        own.any(|mine| mine.role == role && mine.whose == Move::Yours)
    };
    match message.kind.as_deref().and_then(MessageType::from_word) {
        Some(MessageType::Review(ReviewKind::Request | ReviewKind::Addressed)) => !owes("reviewer"),
        Some(MessageType::Review(ReviewKind::Feedback)) => !owes("author"),
        Some(MessageType::Text(TextKind::Question | TextKind::TaskRequest)) => {
            let sent = message
                .arrived
                .map(|at| mailboxes.since(MailboxPlace::Sent, at));
            let mut sent = sent.and_then(Result::ok).into_iter().flatten();
            sent.any(|sent| {
                sent.parent_message_id.is_some() && sent.parent_message_id == message.id
            })
        }
        Some(MessageType::Review(ReviewKind::Lgtm) | MessageType::Text(_)) | None => false,
    }
}

/// Finds the daemon's notice in the inbox that this message was refused.
pub fn refusal_notice(mailboxes: &AgentMailboxes, id: &str) -> io::Result<Option<MailboxEntry>> {
    let messages = mailboxes.messages(MailboxPlace::Inbox)?;
    Ok(messages.into_iter().find(|message| {
        message.from.as_deref() == Some(DAEMON) && message.parent_message_id.as_deref() == Some(id)
    }))
}

/// The messages in the inbox or taken that a message of this type answers: its parent, and what asked for it in the
/// same review.
pub fn answered(
    mailboxes: &AgentMailboxes,
    kind: MessageType,
    pr: Option<&PrNumber>,
    parent: Option<&str>,
) -> io::Result<Vec<MailboxEntry>> {
    let asked = match kind {
        MessageType::Review(ReviewKind::Feedback | ReviewKind::Lgtm) => {
            &[ReviewKind::Request, ReviewKind::Addressed][..]
        }
        MessageType::Review(ReviewKind::Addressed) => &[ReviewKind::Feedback],
        MessageType::Review(ReviewKind::Request) | MessageType::Text(_) => &[],
    };
    let is_about = |message: &MailboxEntry| pr.is_some_and(|pr| message.is_about(pr));
    let is_answered = |message: &MailboxEntry| {
        let is_parent = parent.is_some() && message.id.as_deref() == parent;
        let kind = message.kind.as_deref().and_then(ReviewKind::from_word);
        let is_asked = kind.is_some_and(|kind| asked.contains(&kind));
        is_parent || (is_asked && is_about(message))
    };
    let mut messages = mailboxes.messages(MailboxPlace::Taken)?;
    messages.extend(mailboxes.messages(MailboxPlace::Inbox)?);
    messages.retain(is_answered);
    Ok(messages)
}

/// The command that waits for the answer to a message of ours, without the options for workspace and agent; none if the
/// message asks for nothing.
pub fn wait_for(kind: MessageType, pr: Option<&PrNumber>, id: &str) -> Option<String> {
    match kind {
        MessageType::Review(ReviewKind::Request) => {
            Some(format!("wait --for verdict --pr {}", pr?))
        }
        MessageType::Text(
            TextKind::Question | TextKind::TaskRequest | TextKind::BrainstormRequest,
        ) => {
            let sign = if id.starts_with('-') { '=' } else { ' ' };
            Some(format!("wait --for reply --id{sign}{id}"))
        }
        MessageType::Review(ReviewKind::Feedback | ReviewKind::Addressed | ReviewKind::Lgtm)
        | MessageType::Text(
            TextKind::Notification
            | TextKind::FollowUp
            | TextKind::Handoff
            | TextKind::HandoffComplete
            | TextKind::BrainstormFollowup,
        ) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_waits_for_what_a_message_asks_for() {
        let pr = PrNumber::new("86").expect("a number");
        let wait = |kind: &str, id| {
            let kind = MessageType::from_word(kind).expect("a type");
            wait_for(kind, Some(&pr), id)
        };
        let request = wait("review_request", "m-1");
        assert_eq!(request.as_deref(), Some("wait --for verdict --pr 86"));
        let question = wait("question", "m-1");
        assert_eq!(question.as_deref(), Some("wait --for reply --id m-1"));
        let hyphen = wait("task_request", "-m");
        assert_eq!(hyphen.as_deref(), Some("wait --for reply --id=-m"));
        assert_eq!(wait("review_lgtm", "m-1"), None);
        assert_eq!(wait("handoff", "m-1"), None);
    }
}
