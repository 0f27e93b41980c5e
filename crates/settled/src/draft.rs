//! From a decision to what the ledger keeps of it: every file it makes, with its name and text.

use chrono::SecondsFormat;
use message_schema::Message;
use message_schema::envelope::{MessageType, Timestamp};
use message_schema::id::AgentName;
use review::{Decision, Notice, Record, Refused, State};
use spool::{Away, Body, Content, Delivery, EntryDraft, Mailbox, Original, OutboxFile};

use crate::clock::{self, Moment};
use crate::letters;
use crate::names::{NameBook, Shelf};
use crate::outgoing::{Occasion, Outgoing};
use crate::rejection::{About, Rejection};

/// The file under judgement and the place its record will take.
#[derive(Debug)]
pub(crate) struct Slip<'a> {
    /// The file.
    pub(crate) found: &'a OutboxFile,
    /// Whose outbox it lies in.
    pub(crate) outbox: &'a AgentName,
    /// The message, if it could be read.
    pub(crate) message: Option<&'a Message>,
    /// The agents that have a mailbox.
    pub(crate) agents: &'a [AgentName],
    /// The number its record will get.
    pub(crate) seq: u64,
    /// When it is judged.
    pub(crate) moment: Moment,
}

impl Slip<'_> {
    /// What the ledger keeps of a message that is not refused.
    pub(crate) fn decided(&self, decision: Decision, names: &mut NameBook) -> (EntryDraft, Record) {
        let to = match &decision {
            Decision::Accept(accepted) => accepted.to.clone(),
            Decision::Duplicate(_) => Vec::new(),
        };
        let deliveries = to.iter().map(|to| {
            let mailbox = Mailbox::Inbox(to.to_string());
            let file = names.choose(Shelf::Mailbox(&mailbox), &self.found.file, self.seq);
            Delivery {
                mailbox,
                file,
                content: Content::Original,
            }
        });
        let deliveries: Vec<Delivery> = deliveries.collect();
        let sent = names.choose(
            Shelf::Sent(self.outbox.as_str()),
            &self.found.file,
            self.seq,
        );
        let record = decision.into_record();
        let text = match &record {
            Record::Accepted(_) => self.text(),
            Record::Duplicate { .. }
            | Record::Refused { .. }
            | Record::Happened(_)
            | Record::Declined { .. } => None,
        };
        let original = self.original(Away::Sent(sent), text);
        (self.draft(&record, original, deliveries), record)
    }

    /// What the ledger keeps of a refusal: the report beside the original, and the letters.
    pub(crate) fn refused(
        &self,
        mut rejection: Rejection,
        state: &State,
        names: &mut NameBook,
    ) -> (EntryDraft, Record) {
        let ids = [clock::new_message_id(), clock::new_message_id()];
        let refused = Refused {
            outbox: self.outbox,
            code: rejection.code,
            costs: rejection.review.as_ref().map(|key| (key, rejection.costs)),
            to_daemon: self.message.is_some_and(is_to_daemon),
            is_review: self
                .message
                .and_then(Message::kind)
                .is_some_and(MessageType::is_review),
            parent: self
                .message
                .and_then(|message| message.root().optional_text("parent_message_id")),
            notice: &ids[0],
            announcement: &ids[1],
        };
        let record = review::refuse(state, &refused, self.moment.utc);
        let Record::Refused { cost, notice, .. } = &record else {
            unreachable!("refusing makes a record of a refusal")
        };

        if cost.as_ref().is_some_and(|cost| cost.attempts_left == 0) {
            rejection.is_final();
        }
        let dead_letter = Mailbox::DeadLetter(self.outbox.to_string());
        let kept = names.choose(Shelf::Mailbox(&dead_letter), &self.found.file, self.seq);
        let report_file = names.choose(Shelf::Mailbox(&dead_letter), &kept.report(), self.seq);
        let report = rejection.report(&About {
            file: &self.found.file,
            digest: self.digest().map(|digest| digest.to_string()),
            message: self.message,
            outbox: self.outbox,
            received_at: Timestamp::from_utc(self.moment.utc),
            attempts_left: cost.as_ref().map(|cost| cost.attempts_left.into()),
        });
        let mut deliveries = vec![Delivery {
            mailbox: dead_letter,
            file: report_file,
            content: Content::Text(report.to_yaml()),
        }];
        let outgoing = Outgoing {
            seq: self.seq,
            moment: self.moment,
            state,
            agents: self.agents,
        };
        if let Notice::Sent { id, summed_up } = notice {
            let letter = outgoing.head(id, self.outbox);
            let text = letters::notice(&letter, &report, self.message, *summed_up);
            deliveries.push(outgoing.posted(self.outbox, "notice", 0, text, names));
        }
        if let Some(cost) = cost {
            deliveries.extend(outgoing.letters(Occasion::Refused(cost), names));
        }
        deliveries.extend(self.withdrawn(names));
        let original = self.original(Away::DeadLetter(kept), None);
        (self.draft(&record, original, deliveries), record)
    }

    /// Takes back the copies that the sender of a refused message put into mailboxes itself, as
    /// `oacp send` does. A name the ledger gave out there is a delivery of its own and stays.
    fn withdrawn(&self, names: &NameBook) -> Vec<Delivery> {
        let (Some(message), Some(digest)) = (self.message, self.digest()) else {
            return Vec::new();
        };
        named_recipients(message)
            .filter_map(|to| AgentName::new(to).ok())
            .filter(|to| self.agents.contains(to))
            .map(|to| Mailbox::Inbox(to.to_string()))
            .filter(|mailbox| !names.has_used(Shelf::Mailbox(mailbox), &self.found.file))
            .map(|mailbox| Delivery {
                mailbox,
                file: self.found.file.clone(),
                content: Content::Withdrawn(digest),
            })
            .collect()
    }

    fn draft(&self, record: &Record, original: Original, deliveries: Vec<Delivery>) -> EntryDraft {
        let id = self.message.and_then(Message::id).map(String::from);
        EntryDraft {
            id,
            original: Some(original),
            ..draft(record, self.moment, deliveries)
        }
    }

    fn original(&self, away: Away, text: Option<String>) -> Original {
        Original {
            outbox: self.outbox.to_string(),
            file: self.found.file.clone(),
            digest: self.digest(),
            stamp: Some(self.found.stamp),
            away,
            text,
        }
    }

    fn digest(&self) -> Option<spool::Digest> {
        match &self.found.body {
            Body::Message { digest, .. } => Some(*digest),
            Body::Unfit(_) => None,
        }
    }

    /// The exact text; only a message that was read as UTF-8 is ever accepted.
    fn text(&self) -> Option<String> {
        match &self.found.body {
            Body::Message { bytes, .. } => std::str::from_utf8(bytes).ok().map(str::to_owned),
            Body::Unfit(_) => None,
        }
    }
}

/// What the ledger keeps of an event, with every file it makes: letters with their packets, and the
/// snapshot of a pull request.
pub(crate) fn of_event(
    record: &Record,
    outgoing: &Outgoing<'_>,
    names: &mut NameBook,
) -> EntryDraft {
    let (deliveries, order) = match record {
        Record::Happened(happened) => {
            let mut deliveries = outgoing.letters(Occasion::Happened(happened), names);
            deliveries.extend(outgoing.snapshot(&happened.event, names));
            (deliveries, &happened.order)
        }
        Record::Declined { order, .. } => (Vec::new(), order),
        Record::Accepted(_) | Record::Duplicate { .. } | Record::Refused { .. } => {
            unreachable!("messages are drafted with their originals")
        }
    };
    EntryDraft {
        id: order.as_ref().map(ToString::to_string),
        ..draft(record, outgoing.moment, deliveries)
    }
}

fn draft(record: &Record, moment: Moment, deliveries: Vec<Delivery>) -> EntryDraft {
    let (kind, review) = match record {
        Record::Accepted(accepted) => ("accepted", accepted.step.as_ref().map(|step| &step.review)),
        Record::Duplicate { .. } => ("duplicate", None),
        Record::Refused { cost, .. } => ("refused", cost.as_ref().map(|cost| &cost.step.review)),
        Record::Happened(happened) => (
            happened.event.word(),
            happened.steps.first().map(|step| &step.review),
        ),
        Record::Declined { .. } => ("declined", None),
    };
    EntryDraft {
        at: moment.utc.to_rfc3339_opts(SecondsFormat::Millis, true),
        kind: kind.to_owned(),
        review: review.map(ToString::to_string),
        id: None,
        original: None,
        deliveries,
        decision: serde_json::value::to_raw_value(record)
            .expect("records have text keys and plain values"),
    }
}

/// Every recipient the message names, as far as that can be read.
pub(crate) fn named_recipients(message: &Message) -> impl Iterator<Item = &str> {
    let to = message.root().field("to").map(|field| &field.value);
    to.into_iter().flat_map(|to| {
        to.text()
            .into_iter()
            .chain(to.items().iter().filter_map(|item| item.text()))
    })
}

fn is_to_daemon(message: &Message) -> bool {
    named_recipients(message).any(|to| to == message_schema::envelope::DAEMON)
}
