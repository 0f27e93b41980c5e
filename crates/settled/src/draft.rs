//! From a decision to what the ledger keeps of it: every file it makes, with its name and text.

use chrono::SecondsFormat;
use message_schema::Message;
use message_schema::envelope::{MessageType, Timestamp};
use message_schema::id::AgentName;
use review::{AttemptSpent, Decision, EscalationReason, Notice, Record, Refused, State};
use spool::{Away, Body, Content, Delivery, Draft, Found, Mailbox, Original};

use crate::clock::{self, Moment};
use crate::letters::{self, Letter};
use crate::names::{NameBook, Shelf};
use crate::rejection::{About, Rejection};

/// The file under judgement and the place its record will take.
#[derive(Debug)]
pub(crate) struct Slip<'a> {
    /// The file.
    pub(crate) found: &'a Found,
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
    pub(crate) fn decided(&self, decision: Decision, names: &mut NameBook) -> (Draft, Record) {
        let to = match &decision {
            Decision::Accept(accepted) => accepted.to.clone(),
            Decision::Duplicate(_) => Vec::new(),
        };
        let deliveries = to.iter().map(|to| {
            let mailbox = Mailbox::Inbox(to.to_string());
            let file = names.choose(Shelf::Mailbox(&mailbox), &self.found.file, self.seq);
            Delivery { mailbox, file, content: Content::Original }
        });
        let deliveries: Vec<Delivery> = deliveries.collect();
        let sent = names.choose(Shelf::Sent(self.outbox.as_str()), &self.found.file, self.seq);
        let record = decision.into_record();
        let text = match &record {
            Record::Accepted(_) => self.text(),
            Record::Duplicate { .. } | Record::Refused { .. } => None,
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
    ) -> (Draft, Record) {
        let ids = [clock::new_message_id(), clock::new_message_id()];
        let refused = Refused {
            outbox: self.outbox,
            code: rejection.code,
            costs: rejection.review.as_ref().filter(|_| rejection.costs_attempt),
            to_daemon: self.message.is_some_and(is_to_daemon),
            is_review: self.message.and_then(Message::kind).is_some_and(MessageType::is_review),
            parent: self.message.and_then(|message| message.root().field_text("parent_message_id")),
            notice: &ids[0],
            announcement: &ids[1],
        };
        let record = review::refuse(state, &refused, self.moment.utc);
        let Record::Refused { attempt, notice, .. } = &record else {
            unreachable!("refusing makes a record of a refusal")
        };

        if attempt.as_ref().is_some_and(|spent| spent.left == 0) {
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
            attempts_left: attempt.as_ref().map(|spent| spent.left.into()),
        });
        let mut deliveries = vec![Delivery {
            mailbox: dead_letter,
            file: report_file,
            content: Content::Text(report.to_yaml()),
        }];
        if let Notice::Sent { id, summed_up } = notice {
            let letter = self.letter(id, self.outbox);
            let text = letters::notice(&letter, &report, self.message, *summed_up);
            deliveries.push(self.posted(self.outbox, "notice", text, names));
        }
        if let Some(AttemptSpent { review, announced: Some(id), .. }) = attempt {
            let reason = EscalationReason::ProtocolViolation;
            let text = letters::escalated(&self.letter(id, &review.author), review, &reason.to_string());
            deliveries.push(self.posted(&review.author, "escalated", text, names));
        }
        deliveries.extend(self.withdrawn(names));
        let original = self.original(Away::DeadLetter(kept), None);
        (self.draft(&record, original, deliveries), record)
    }

    /// Takes back the copies that the sender of a refused message put into mailboxes itself, as
    /// `oacp send` does. A name the ledger gave out there is a delivery of its own and stays.
    fn withdrawn(&self, names: &NameBook) -> Vec<Delivery> {
        let (Some(message), Some(digest)) = (self.message, self.digest()) else { return Vec::new() };
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

    fn draft(&self, record: &Record, original: Original, deliveries: Vec<Delivery>) -> Draft {
        let (kind, review) = match record {
            Record::Accepted(accepted) => ("accepted", accepted.step.as_ref().map(|step| &step.review)),
            Record::Duplicate { .. } => ("duplicate", None),
            Record::Refused { attempt, .. } => ("refused", attempt.as_ref().map(|spent| &spent.review)),
        };
        Draft {
            at: self.moment.utc.to_rfc3339_opts(SecondsFormat::Millis, true),
            kind: kind.to_owned(),
            review: review.map(ToString::to_string),
            id: self.message.and_then(Message::id).map(String::from),
            original: Some(original),
            deliveries,
            decision: serde_json::value::to_raw_value(record)
                .expect("records have text keys and plain values"),
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

    fn letter<'a>(&self, id: &'a message_schema::id::MessageId, to: &'a AgentName) -> Letter<'a> {
        Letter { id, to, at: Timestamp::from_utc(self.moment.utc) }
    }

    fn posted(&self, to: &AgentName, what: &str, text: String, names: &mut NameBook) -> Delivery {
        let stamp = self.moment.utc.format("%Y%m%d%H%M%S");
        let name = format!("{stamp}_settled_{what}_{}.yaml", self.seq);
        let wanted = spool::FileName::new(name).expect("digits, letters and underscores are a file name");
        let mailbox = Mailbox::Inbox(to.to_string());
        let file = names.choose(Shelf::Mailbox(&mailbox), &wanted, self.seq);
        Delivery { mailbox, file, content: Content::Text(text) }
    }
}

/// Every recipient the message names, as far as that can be read.
pub(crate) fn named_recipients(message: &Message) -> impl Iterator<Item = &str> {
    let to = message.root().field("to").map(|field| &field.value);
    to.into_iter()
        .flat_map(|to| to.text().into_iter().chain(to.items().iter().filter_map(|item| item.text())))
}

fn is_to_daemon(message: &Message) -> bool {
    named_recipients(message).any(|to| to == message_schema::envelope::DAEMON)
}
