//! The mail that waits for an agent, one message per line.

use std::fmt::Write as _;

use mailbox::mailboxes::{MailboxEntry, MailboxPlace};
use message_schema::line::escaped;
use screen::{Screen, cut};
use serde::Serialize;

/// The indentation of a message's description on its own line.
const INDENT: usize = 5;

/// The messages that wait for an agent. Fields are added, never changed.
#[derive(Debug, Serialize)]
pub struct Waiting {
    /// The agent.
    pub agent: String,
    /// The number of messages in the inbox.
    pub waiting: usize,
    /// The number of messages that the agent has taken and works on.
    pub taken: usize,
    /// The messages: taken ones first, then by priority, then the oldest.
    pub messages: Vec<MailboxEntry>,
}

impl Waiting {
    /// Returns the message to begin with.
    pub fn first(&self) -> Option<&MailboxEntry> {
        self.messages.first()
    }

    /// Formats the waiting messages for people.
    pub fn text(&self, screen: Screen) -> String {
        let Self {
            agent,
            waiting,
            taken,
            messages,
        } = self;
        let mut text = match (waiting, taken) {
            (0, 0) => format!("nothing waits for {agent}\n"),
            (_, 0) => format!("{waiting} waiting for {agent}\n"),
            (_, _) => format!("{waiting} waiting for {agent}, {taken} taken\n"),
        };
        messages
            .iter()
            .for_each(|message| text += &line(message, screen));
        let left = waiting + taken - messages.len();
        if left > 0 {
            let _ = writeln!(text, "  and {left} more: --limit {}", waiting + taken);
        }
        text
    }
}

/// Formats a message on one line, or on two if it is too long. The name is kept whole so that it can be copied; the
/// description is cut.
pub fn line(message: &MailboxEntry, screen: Screen) -> String {
    let field = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let mark = match message.place {
        MailboxPlace::Taken => "*",
        MailboxPlace::Inbox
        | MailboxPlace::Archive
        | MailboxPlace::Outbox
        | MailboxPlace::Sent
        | MailboxPlace::DeadLetter => " ",
    };
    let (what, said) = match &message.unreadable {
        Some(why) => (format!("{}:", message.name()), format!("no message: {why}")),
        None => {
            let pr = message
                .pr
                .as_ref()
                .map_or_else(String::new, |pr| format!("#{pr} "));
            let MailboxEntry {
                kind,
                from,
                priority,
                subject,
                ..
            } = message;
            let (kind, from, priority) = (field(kind), field(from), field(priority));
            (
                format!("{priority} {kind:<16}  {} ", message.name()),
                format!("{pr}from {from}: {}", field(subject)),
            )
        }
    };
    let (what, said) = (escaped(&what), escaped(&said));
    let line = format!("{mark} {what} {said}");
    if screen.has_room_for(&line) {
        return line + "\n";
    }
    let said = cut(&said, screen.width.saturating_sub(INDENT));
    format!("{mark} {}\n{:INDENT$}{said}\n", what.trim_end(), "")
}
