//! Posts a message: fills in the draft, plans a place for its packet, checks it, writes it, and plans again if another
//! packet took the place. Every command that writes as an agent uses it, and so do the daemon's agents.

use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use message_schema::id::{AgentName, MessageId};
use validate_message::Violations;

use super::draft::{DraftError, MessageDraft};
use super::message::CheckedMessage;
use super::outbox::{self, WriteError};
use super::sent_before::{self, SentMessage};

/// The number of times a place for a packet is planned before posting fails.
const PLANS_MAX: usize = 100;

/// A message to post.
#[derive(Clone, Copy, Debug)]
pub struct Posting<'a> {
    /// The workspace.
    pub root: &'a Path,
    /// The agent that posts it.
    pub agent: &'a AgentName,
    /// The draft to send.
    pub draft: &'a MessageDraft,
    /// Its id.
    pub id: &'a MessageId,
    /// The time of writing.
    pub at: DateTime<Utc>,
    /// True if the sender chose the id and may have used it before. A new random id needs no search.
    pub is_id_given: bool,
}

/// A checked message, or the one sent before under its id.
#[derive(Debug)]
pub enum Composed {
    /// It is valid.
    Ready(CheckedMessage),
    /// Its id was used before.
    SentBefore(SentBefore),
}

/// A message that is in the outbox.
#[derive(Debug)]
pub enum PostedMessage {
    /// It was written now, to this file.
    Written(PathBuf, CheckedMessage),
    /// Its id was used before; nothing was written.
    SentBefore(SentBefore),
}

/// The text of a message, and the message sent before under the same id.
#[derive(Debug)]
pub struct SentBefore {
    /// The text to be written.
    pub text: String,
    /// The message sent before.
    pub known: SentMessage,
}

/// The reason a message was not posted. The outbox then has no part of it.
#[derive(Debug, thiserror::Error)]
pub enum PostError {
    /// The draft cannot become a message.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// The validator refuses it.
    #[error("the message is not correct")]
    Invalid(Violations),
    /// The agent's mailboxes cannot be read.
    #[error("the mailboxes cannot be read: {0}")]
    Mailboxes(io::Error),
    /// Others took every place planned for the packet.
    #[error("every name for the packet is taken")]
    NoPlace,
    /// Another message took the name and has disappeared since.
    #[error("{} disappeared meanwhile; run the command again", .0.display())]
    Gone(PathBuf),
    /// The disk failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl Posting<'_> {
    /// Composes the message without writing anything.
    pub fn compose(&self) -> Result<Composed, PostError> {
        let Self {
            root, agent, id, ..
        } = *self;
        let (message, packet) = self.draft.to_message(root, agent, id, self.at)?;
        if self.is_id_given
            && let Some(known) = sent_before::find(root, agent, id).map_err(PostError::Mailboxes)?
        {
            let text = message.text();
            return Ok(Composed::SentBefore(SentBefore { text, known }));
        }
        message
            .check(packet)
            .map(Composed::Ready)
            .map_err(PostError::Invalid)
    }

    /// Composes the message and writes it into the outbox, its packet first.
    pub fn write(&self) -> Result<PostedMessage, PostError> {
        for _ in 0..PLANS_MAX {
            let checked = match self.compose()? {
                Composed::Ready(checked) => checked,
                Composed::SentBefore(before) => return Ok(PostedMessage::SentBefore(before)),
            };
            match outbox::write(self.root, self.agent, &checked) {
                Ok(path) => return Ok(PostedMessage::Written(path, checked)),
                // Another packet took the place after it was planned.
                Err(WriteError::PacketTaken(_)) => {}
                Err(WriteError::Taken(path)) => return self.taken(path, &checked),
                Err(WriteError::Io { path, source }) => {
                    return Err(PostError::Io { path, source });
                }
            }
        }
        Err(PostError::NoPlace)
    }

    /// Finds the message that another process wrote under this id after our search.
    fn taken(&self, path: PathBuf, checked: &CheckedMessage) -> Result<PostedMessage, PostError> {
        let known =
            sent_before::find(self.root, self.agent, self.id).map_err(PostError::Mailboxes)?;
        let known = known.ok_or(PostError::Gone(path))?;
        let text = checked.text().to_owned();
        Ok(PostedMessage::SentBefore(SentBefore { text, known }))
    }
}
