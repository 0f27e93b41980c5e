//! Waits for mail: decides if the awaited message has arrived, can never arrive, or may still arrive.

use std::io;
use std::path::{Path, PathBuf};

use message_schema::id::{AgentName, PrNumber};
use workspace::index::LedgerIndex;

use crate::mailboxes::{AgentMailboxes, MailboxEntry, MailboxPlace};
use crate::my_reviews::{self, Move, MyReview};
use crate::{answers, in_transit};

/// The awaited mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited<'a> {
    /// Any message.
    Any,
    /// The reply to the agent's own message with this id.
    Reply(&'a str),
    /// Feedback, an lgtm or a notice about a review that the agent has not answered yet.
    Verdict,
}

/// An agent's wait.
#[derive(Clone, Copy, Debug)]
pub struct MailWait<'a> {
    /// The workspace.
    pub root: &'a Path,
    /// The agent.
    pub agent: &'a AgentName,
    /// Its mailboxes.
    pub mailboxes: &'a AgentMailboxes,
    /// The mail that ends the wait.
    pub what: Awaited<'a>,
    /// The pull request that the mail must be about.
    pub pr: Option<&'a PrNumber>,
}

/// The end of a wait.
#[derive(Debug)]
pub enum WaitEnd {
    /// The awaited mail that arrived.
    Messages(Vec<MailboxEntry>),
    /// No message will arrive, because the agent itself has to move, or no agent has to.
    OwnMove(Vec<MyReview>),
    /// The daemon refused the message, so no answer will come; the path of the report.
    Refused(PathBuf),
}

/// A mailbox could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", directory.display())]
pub struct UnreadMailbox {
    /// The mailbox.
    pub directory: PathBuf,
    /// The error of the operating system.
    pub source: io::Error,
}

impl MailWait<'_> {
    /// Returns the end of the wait, if it has come.
    pub fn check(&self) -> Result<Option<WaitEnd>, UnreadMailbox> {
        if let Awaited::Reply(id) = self.what
            && let Some(report) = self.refused(id)?
        {
            return Ok(Some(WaitEnd::Refused(report)));
        }
        let messages = self.messages()?;
        if !messages.is_empty() {
            return Ok(Some(WaitEnd::Messages(messages)));
        }
        let own = self.own_moves()?;
        if own.is_empty() {
            return Ok(None);
        }
        // The ledger was read after the inbox, so mail that it knows may have arrived in between.
        let messages = self.messages()?;
        Ok(Some(if messages.is_empty() {
            WaitEnd::OwnMove(own)
        } else {
            WaitEnd::Messages(messages)
        }))
    }

    /// The messages in the inbox that end the wait.
    fn messages(&self) -> Result<Vec<MailboxEntry>, UnreadMailbox> {
        let (me, mailboxes) = (self.agent, self.mailboxes);
        let is_about = |message: &MailboxEntry| self.pr.is_none_or(|pr| message.is_about(pr));
        let is_it = |message: &MailboxEntry| match self.what {
            Awaited::Any => Ok(true),
            Awaited::Reply(id) => Ok(message.parent_message_id.as_deref() == Some(id)),
            Awaited::Verdict => answers::is_verdict(message, me, mailboxes)
                .map_err(|error| self.unread(MailboxPlace::Sent, error)),
        };
        let mut messages = Vec::new();
        for message in self.all(MailboxPlace::Inbox)?.into_iter().filter(is_about) {
            if is_it(&message)? {
                messages.push(message);
            }
        }
        if self.what == Awaited::Any && !messages.is_empty() {
            // Mail that the agent has answered but not archived is not news.
            if let Ok((index, _)) = LedgerIndex::read(self.root) {
                let reviews = my_reviews::of(index.state(), me);
                messages.retain(|message| !answers::is_dealt_with(message, &reviews, mailboxes));
            }
        }
        Ok(messages)
    }

    /// The agent's reviews, if it waits for a verdict and none of them owes it one. A verdict that is in the ledger but
    /// not in the inbox yet is still owed.
    fn own_moves(&self) -> Result<Vec<MyReview>, UnreadMailbox> {
        if self.what != Awaited::Verdict {
            return Ok(Vec::new());
        }
        // A message in the outbox may move the review when it is judged.
        let outbox = self.mailboxes.names(MailboxPlace::Outbox);
        let outbox = outbox.map_err(|error| self.unread(MailboxPlace::Outbox, error))?;
        if !outbox.is_empty() {
            return Ok(Vec::new());
        }
        let Ok((index, folded)) = LedgerIndex::read(self.root) else {
            return Ok(Vec::new());
        };
        let reviews = match self.pr {
            Some(pr) => my_reviews::of_pr(index.state(), pr, self.agent),
            None => my_reviews::of(index.state(), self.agent),
        };
        let is_awaited = |mine: &MyReview| match mine.whose {
            Move::Theirs | Move::Person => true,
            Move::Nobody => mine.role == "reviewer",
            Move::Yours => false,
        };
        if reviews.iter().any(is_awaited) || in_transit::has_any(self.root, self.agent, &folded) {
            return Ok(Vec::new());
        }
        Ok(reviews)
    }

    /// The report on the agent's own refused message, unless the message was sent again.
    fn refused(&self, id: &str) -> Result<Option<PathBuf>, UnreadMailbox> {
        let named = |place| {
            let messages = self.all(place)?.into_iter();
            let mut named = messages.filter(|message| message.id.as_deref() == Some(id));
            Ok::<_, UnreadMailbox>(named.next())
        };
        let Some(dead) = named(MailboxPlace::DeadLetter)? else {
            return Ok(None);
        };
        let is_sent_again =
            named(MailboxPlace::Outbox)?.is_some() || named(MailboxPlace::Sent)?.is_some();
        Ok(Some(dead.path.with_extension("report.yaml")).filter(|_| !is_sent_again))
    }

    fn all(&self, place: MailboxPlace) -> Result<Vec<MailboxEntry>, UnreadMailbox> {
        let messages = self.mailboxes.messages(place);
        messages.map_err(|error| self.unread(place, error))
    }

    fn unread(&self, place: MailboxPlace, source: io::Error) -> UnreadMailbox {
        UnreadMailbox {
            directory: self.mailboxes.directory(place),
            source,
        }
    }
}
