//! Follows the open requests that no reviewer has taken yet, and where each was delivered: a reviewer takes a request
//! by moving it out of its inbox. Folded from the ledger, like the state.

use std::collections::BTreeMap;

use message_schema::envelope::{MessageType, ReviewKind};
use review::{Happened, Phase, Record, ReviewKey};
use serde::{Deserialize, Serialize};
use spool::{Entry, FileName, Mailbox};

/// The untaken requests by review: the open one and those it replaced in the same round, because a reviewer that takes
/// a replaced request has started too.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct UntakenRequests(BTreeMap<ReviewKey, Vec<Delivered>>);

/// The delivery of a request.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivered {
    /// The reviewer's inbox.
    pub mailbox: Mailbox,
    /// The file name in the record.
    pub file: FileName,
    /// The record's number.
    pub seq: u64,
}

impl UntakenRequests {
    /// Applies what an entry does to open requests.
    pub fn note(&mut self, entry: &Entry, record: &Record) {
        for step in record.steps() {
            match &step.phase {
                Phase::Reviewing(open) if open.taken_at.is_none() => {
                    // The previous reviewer can take nothing any more.
                    if step.reassigned_to.is_some() {
                        self.0.remove(&step.review);
                    }
                    // Only a request delivers a file; after a refused response the old one stays.
                    if let Some(delivered) = request(entry, record) {
                        self.0
                            .entry(step.review.clone())
                            .or_default()
                            .push(delivered);
                    }
                }
                Phase::Reviewing(_)
                | Phase::Awaiting { .. }
                | Phase::Fixing { .. }
                | Phase::Addressed { .. }
                | Phase::Approved(_)
                | Phase::Escalated(_)
                | Phase::Closed(_) => {
                    self.0.remove(&step.review);
                }
            }
        }
    }

    /// Restores a review's requests from a snapshot.
    pub fn restore(&mut self, review: ReviewKey, delivered: Vec<Delivered>) {
        self.0.insert(review, delivered);
    }

    /// The untaken requests of each review.
    pub fn iter(&self) -> impl Iterator<Item = (&ReviewKey, &[Delivered])> {
        self.0
            .iter()
            .map(|(key, delivered)| (key, delivered.as_slice()))
    }
}

fn request(entry: &Entry, record: &Record) -> Option<Delivered> {
    let is_request = record
        .accepted()
        .is_some_and(|accepted| accepted.kind == MessageType::Review(ReviewKind::Request));
    let handed_on = record.happened().and_then(Happened::reassigned_to);
    let inbox = entry
        .deliveries
        .iter()
        .rfind(|delivery| match &delivery.mailbox {
            // The request is the last file of its record in the new reviewer's inbox.
            Mailbox::Inbox(to) => is_request || handed_on.is_some_and(|name| name.as_str() == to),
            Mailbox::DeadLetter(_) | Mailbox::Packets(_) | Mailbox::PullRequest(_) => false,
        })?;
    Some(Delivered {
        mailbox: inbox.mailbox.clone(),
        file: inbox.file.clone(),
        seq: entry.seq,
    })
}
