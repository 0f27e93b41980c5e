//! Sends a message and finds the daemon's decision about it. A message that was sent before under the same id is not
//! written again; its own outcome is found.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use message_schema::Code;

use super::lookout::{Lookout, MessageFate};
use super::message::CheckedMessage;
use super::post::{PostError, PostedMessage, Posting, SentBefore};
use super::sent_before;
use crate::answers;
use crate::mailboxes::AgentMailboxes;
use crate::shown;

/// The time to wait for the notice of a refusal, to archive it.
const NOTICE_PATIENCE: Duration = Duration::from_millis(500);

/// The outcome of sending a message.
#[derive(Debug)]
pub struct SendOutcome {
    /// The daemon's decision, if the sender waited for it.
    pub fate: MessageFate,
    /// True if the message was sent before under this id, or by another process at the same time.
    pub again: bool,
    /// The message that was written now.
    pub written: Option<CheckedMessage>,
}

impl Posting<'_> {
    /// Writes the message and waits at most `patience` for the daemon's decision; none does not wait.
    pub fn send(&self, patience: Option<Duration>) -> Result<SendOutcome, PostError> {
        // Opened before looking for a message of this id, so that the wait also sees what is judged in between.
        let lookout = Lookout::new(self.root, self.agent, self.id).map_err(PostError::Mailboxes)?;
        let wait = patience.map(|patience| (&lookout, patience));
        match self.write()? {
            PostedMessage::Written(path, checked) => {
                let outcome = self.outcome(checked.text(), path, wait)?;
                Ok(SendOutcome {
                    written: Some(checked),
                    ..outcome
                })
            }
            PostedMessage::SentBefore(before) => self.again(before, wait),
        }
    }

    /// The outcome of the message that was sent before under this id.
    pub fn again(
        &self,
        before: SentBefore,
        wait: Option<(&Lookout, Duration)>,
    ) -> Result<SendOutcome, PostError> {
        let SentBefore { text, known } = before;
        let outcome = if !sent_before::same(&text, &known.text) {
            SendOutcome::of(MessageFate::IdUsed(known.path))
        } else if known.accepted {
            self.accepted(known.path)
        } else {
            self.outcome(&known.text, known.path, wait)?
        };
        Ok(SendOutcome {
            again: true,
            ..outcome
        })
    }

    fn outcome(
        &self,
        text: &str,
        path: PathBuf,
        wait: Option<(&Lookout, Duration)>,
    ) -> Result<SendOutcome, PostError> {
        let Some((lookout, patience)) = wait else {
            return Ok(SendOutcome::of(MessageFate::Waiting(path)));
        };
        let fate = lookout.wait(text, patience).map_err(PostError::Mailboxes)?;
        Ok(match fate {
            MessageFate::Accepted(path) => self.accepted(path),
            MessageFate::Refused(path, report) => {
                // If two identical messages were sent at the same time, the other one was accepted.
                if report.refused == Code::IdCollision
                    && let Ok(Some(known)) = sent_before::find(self.root, self.agent, self.id)
                    && known.accepted
                    && sent_before::same(text, &known.text)
                {
                    return Ok(SendOutcome {
                        again: true,
                        ..self.accepted(known.path)
                    });
                }
                self.put_notice_away();
                SendOutcome::of(MessageFate::Refused(path, report))
            }
            fate @ (MessageFate::Waiting(_) | MessageFate::IdUsed(_)) => SendOutcome::of(fate),
        })
    }

    fn accepted(&self, path: PathBuf) -> SendOutcome {
        shown::forget(self.root, self.agent, self.draft);
        SendOutcome::of(MessageFate::Accepted(path))
    }

    /// Archives the daemon's notice of a refusal, because the sender reads the report now. The notice arrives after the
    /// message is in `dead_letter/`, so this may take a moment.
    fn put_notice_away(&self) {
        let mailboxes = AgentMailboxes::new(self.root, self.agent);
        let start = Instant::now();
        while start.elapsed() < NOTICE_PATIENCE {
            match answers::refusal_notice(&mailboxes, self.id.as_str()) {
                Ok(Some(notice)) => {
                    // If another worker took the notice, that one deals with it.
                    let _ = mailboxes.put_away(&notice);
                    return;
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(10)),
                Err(_) => return,
            }
        }
    }
}

impl SendOutcome {
    fn of(fate: MessageFate) -> Self {
        Self {
            fate,
            again: false,
            written: None,
        }
    }
}
