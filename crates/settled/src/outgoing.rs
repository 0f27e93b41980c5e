//! What the daemon itself sends: from the letters of a record to the files it makes.

use message_schema::envelope::Timestamp;
use message_schema::id::AgentName;
use review::Says;
use spool::{Content, Delivery, Mailbox};

use crate::clock::Moment;
use crate::letters::{self, Letter};
use crate::names::{NameBook, Shelf};

/// The record whose letters are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    /// The number it will get.
    pub(crate) seq: u64,
    /// When it was decided.
    pub(crate) moment: Moment,
}

impl Outgoing {
    /// The files a letter of the rules makes.
    pub(crate) fn letter(&self, letter: &review::Letter, names: &mut NameBook) -> Vec<Delivery> {
        let head = self.head(&letter.id, &letter.to);
        let (what, text) = match &letter.says {
            Says::Escalated { review, reason } => {
                ("escalated", letters::escalated(&head, review, &reason.to_string()))
            }
            Says::BudgetSpent { review, .. } => {
                ("escalated", letters::escalated(&head, review, "reviewer_budget_exceeded"))
            }
            Says::Closed { review, reason } => ("closed", letters::escalated(&head, review, reason.word())),
            Says::Decided { review } => ("decided", letters::escalated(&head, review, "decided")),
            Says::Handoff { .. } => return Vec::new(),
        };
        vec![self.posted(&letter.to, what, text, names)]
    }

    pub(crate) fn head<'a>(&self, id: &'a message_schema::id::MessageId, to: &'a AgentName) -> Letter<'a> {
        Letter { id, to, at: Timestamp::from_utc(self.moment.utc) }
    }

    /// A file of the daemon's own in an agent's inbox.
    pub(crate) fn posted(&self, to: &AgentName, what: &str, text: String, names: &mut NameBook) -> Delivery {
        let stamp = self.moment.utc.format("%Y%m%d%H%M%S");
        let name = format!("{stamp}_settled_{what}_{}.yaml", self.seq);
        let wanted = spool::FileName::new(name).expect("digits, letters and underscores are a file name");
        let mailbox = Mailbox::Inbox(to.to_string());
        let file = names.choose(Shelf::Mailbox(&mailbox), &wanted, self.seq);
        Delivery { mailbox, file, content: Content::Text(text) }
    }
}
