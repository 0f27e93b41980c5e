//! Drafts the ledger entry of a judgement: the record with the name and the text of every file it makes.

use chrono::{DateTime, SecondsFormat, Utc};
use message_schema::Message;
use message_schema::envelope::Timestamp;
use message_schema::id::{AgentName, MessageId};
use review::{Accepted, Decision, EventRecord, Notice, Record, RefusalCost, RefusedMessage, State};
use serde_json::value::RawValue;
use spool::{
    Away, Body, Content, Delivery, Digest, EntryDraft, FileName, Mailbox, Original, OutboxFile,
};

use crate::alerts_file;
use crate::judge::{Refused, Submission, named_recipients};
use crate::notice_files::{NoticeFiles, Occasion};
use crate::notices;
use crate::rejection::RefusedFile;
use crate::used_names::{NameScope, UsedNames};

/// The parts of a ledger entry besides its record.
#[derive(Debug)]
pub(crate) struct EntryFiles {
    /// The id of the message, or of the order.
    id: Option<String>,
    /// The file that was judged.
    original: Option<Original>,
    /// The files that the entry makes.
    pub(crate) deliveries: Vec<Delivery>,
}

impl EntryFiles {
    /// Returns only the judged file.
    pub(crate) fn of_original(id: &MessageId, original: Original) -> Self {
        Self {
            id: Some(id.to_string()),
            original: Some(original),
            deliveries: Vec::new(),
        }
    }

    /// Returns the entry of these files and their record.
    pub(crate) fn entry(self, record: &Record, now: DateTime<Utc>) -> EntryDraft {
        let decision = serde_json::value::to_raw_value(record);
        self.entry_with(
            decision.expect("records have text keys and plain values"),
            record,
            now,
        )
    }

    /// Makes the entry of a record that exists as text already.
    pub(crate) fn entry_with(
        self,
        decision: Box<RawValue>,
        record: &Record,
        now: DateTime<Utc>,
    ) -> EntryDraft {
        let step = record.steps().first();
        EntryDraft {
            at: now.to_rfc3339_opts(SecondsFormat::Millis, true),
            kind: record.word().to_owned(),
            rules: review::RULES,
            review: step.map(|step| step.review.to_string()),
            id: self.id,
            original: self.original,
            deliveries: self.deliveries,
            decision,
        }
    }
}

/// A request as it was judged: the file's name and its exact text.
#[derive(Clone, Debug)]
pub struct RequestFile {
    /// The name it had in its outbox.
    pub file: FileName,
    /// The text.
    pub text: String,
}

/// Drafts the files of one judgement from the values they depend on.
#[derive(Debug)]
pub(crate) struct Drafting<'a> {
    /// The number of its record.
    pub(crate) seq: u64,
    /// The time of the decision.
    pub(crate) now: DateTime<Utc>,
    /// The state on which it was decided: the record is not applied yet.
    pub(crate) state: &'a State,
    /// The agents that have a mailbox.
    pub(crate) agents: &'a [AgentName],
    /// The names the ledger has used.
    pub(crate) names: &'a mut UsedNames,
    /// True if packets are delivered too: other hosts have no other copy.
    pub(crate) shares_packets: bool,
}

impl<'a> Drafting<'a> {
    /// Drafts a message that was not refused: one delivery to each recipient, and the original into `sent/`.
    pub(crate) fn decided(
        &mut self,
        submission: Submission<'_>,
        message: &Message,
        decision: &Decision,
    ) -> EntryFiles {
        let Submission { found, outbox, .. } = submission;
        let (to, text) = match decision {
            Decision::Accept(accepted) => (accepted.to.as_slice(), text(found)),
            Decision::Duplicate(_) => (&[][..], None),
        };
        let to_inboxes = to.iter().map(|to| {
            let mailbox = Mailbox::Inbox(to.to_string());
            let file = self.choose(NameScope::Mailbox(&mailbox), &found.file);
            Delivery {
                mailbox,
                file,
                content: Content::Original,
            }
        });
        let mut deliveries: Vec<Delivery> = to_inboxes.collect();
        if let Decision::Accept(accepted) = decision {
            deliveries.extend(alerts_file::of(accepted, self.seq, self.names));
            if self.shares_packets {
                deliveries.extend(packet(message, accepted));
            }
        }
        let sent = self.choose(NameScope::Sent(outbox.as_str()), &found.file);
        EntryFiles {
            id: message.id().map(String::from),
            original: Some(original(submission, Away::Sent(sent), text)),
            deliveries,
        }
    }

    /// Drafts a refusal: the report beside the original in `dead_letter/`, the notice, and the cost to its review.
    pub(crate) fn refused(
        &mut self,
        submission: Submission<'_>,
        message: Option<&Message>,
        refused: &Refused,
    ) -> EntryFiles {
        let Submission { found, outbox, .. } = submission;
        let RefusedMessage { cost, notice, .. } = &refused.record;
        let dead_letter = Mailbox::DeadLetter(outbox.to_string());
        let kept = self.choose(NameScope::Mailbox(&dead_letter), &found.file);
        let report_file = self.choose(NameScope::Mailbox(&dead_letter), &kept.report());
        let report = refused.rejection.report(&RefusedFile {
            file: &found.file,
            digest: digest(found).map(|digest| digest.to_string()),
            message,
            outbox,
            received_at: Timestamp::from_utc(self.now),
            attempts_left: cost.as_ref().map(|cost| cost.attempts_left.into()),
        });
        let mut deliveries = vec![Delivery {
            mailbox: dead_letter,
            file: report_file,
            content: Content::Text(report.to_yaml()),
        }];
        let files = self.files();
        if let Notice::Sent { id, summed_up } = notice {
            let head = files.head(id, outbox);
            let text = notices::refusal(&head, &report, message, *summed_up);
            deliveries.push(files.posted(outbox, "notice", 0, text, self.names));
        }
        deliveries.extend(self.of_cost(cost.as_deref()));
        deliveries.extend(
            message
                .into_iter()
                .flat_map(|message| withdrawn(found, message, self.agents, self.names)),
        );
        EntryFiles {
            id: message.and_then(Message::id).map(String::from),
            original: Some(original(submission, Away::DeadLetter(kept), None)),
            deliveries,
        }
    }

    /// Drafts the files of an event: its notices with their packets, the file about a pull request event, and the
    /// request for a reviewer that replaces another.
    pub(crate) fn event(
        &mut self,
        record: &EventRecord,
        request: Option<RequestFile>,
    ) -> EntryFiles {
        let files = self.files();
        let deliveries = match record {
            EventRecord::Happened(happened) => {
                let mut deliveries = files.notices(Occasion::Happened(happened), self.names);
                deliveries.extend(files.pull_event(&happened.event, self.names));
                if let (Some(to), Some(request)) = (happened.reassigned_to(), request) {
                    let mailbox = Mailbox::Inbox(to.to_string());
                    let file = self.choose(NameScope::Mailbox(&mailbox), &request.file);
                    deliveries.push(Delivery {
                        mailbox,
                        file,
                        content: Content::Text(request.text),
                    });
                }
                deliveries
            }
            EventRecord::Declined(_) => Vec::new(),
        };
        EntryFiles {
            id: record.order().map(ToString::to_string),
            original: None,
            deliveries,
        }
    }

    fn of_cost(&mut self, cost: Option<&RefusalCost>) -> Vec<Delivery> {
        let files = self.files();
        cost.map_or_else(Vec::new, |cost| {
            files.notices(Occasion::Refused(cost), self.names)
        })
    }

    fn files(&self) -> NoticeFiles<'a> {
        NoticeFiles {
            seq: self.seq,
            now: self.now,
            state: self.state,
            agents: self.agents,
        }
    }

    fn choose(&mut self, folder: NameScope<'_>, wanted: &FileName) -> FileName {
        self.names.choose(folder, wanted, self.seq)
    }
}

/// Withdraws the copies that the sender of a refused message put into mailboxes itself, as `oacp send` does. If the
/// ledger gave out the name there, the file is a delivery and stays.
fn withdrawn(
    found: &OutboxFile,
    message: &Message,
    agents: &[AgentName],
    names: &UsedNames,
) -> Vec<Delivery> {
    let Some(digest) = digest(found) else {
        return Vec::new();
    };
    named_recipients(message)
        .filter_map(|to| AgentName::new(to).ok())
        .filter(|to| agents.contains(to))
        .map(|to| Mailbox::Inbox(to.to_string()))
        .filter(|mailbox| !names.has_used(NameScope::Mailbox(mailbox), &found.file))
        .map(|mailbox| Delivery {
            mailbox,
            file: found.file.clone(),
            content: Content::Withdrawn(digest),
        })
        .collect()
}

/// Returns the packet that was judged with a message, under the name that the message points to. Delivery makes nothing
/// if it exists already; other bytes of that name stay, and this packet gets the record's number.
fn packet(message: &Message, accepted: &Accepted) -> Option<Delivery> {
    let (text, path) = (accepted.packet.as_ref()?, message.packet_path()?);
    let (folder, file) = path.as_str().rsplit_once('/')?;
    Some(Delivery {
        mailbox: folder.parse().ok()?,
        file: file.parse().ok()?,
        content: Content::Text(text.clone()),
    })
}

fn original(submission: Submission<'_>, away: Away, text: Option<String>) -> Original {
    let Submission { found, outbox, .. } = submission;
    Original {
        outbox: outbox.to_string(),
        file: found.file.clone(),
        digest: digest(found),
        stamp: Some(found.stamp),
        away,
        text,
    }
}

fn digest(found: &OutboxFile) -> Option<Digest> {
    match &found.body {
        Body::Message { digest, .. } => Some(*digest),
        Body::Unfit(_) => None,
    }
}

/// Returns the exact text: only a message that was read as UTF-8 is ever accepted.
fn text(found: &OutboxFile) -> Option<String> {
    match &found.body {
        Body::Message { bytes, .. } => std::str::from_utf8(bytes).ok().map(str::to_owned),
        Body::Unfit(_) => None,
    }
}
