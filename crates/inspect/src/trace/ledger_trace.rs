//! The ledger's evidence about one id: the records that judged it, the record of its take, and the messages that
//! answered it.

use std::collections::BTreeMap;
use std::path::Path;

use message_schema::envelope::{MessageType, ReviewKind};
use message_schema::id::{AgentName, MessageId};
use review::{
    Accepted, DaemonMessage, Event, EventRecord, Happened, Judgement, Notice, Record, ReviewKey,
    Says,
};
use spool::{Content, Delivery, Digest, Entry, SpoolError};
use workspace::index;

/// The ledger's evidence about one message of one sender.
#[derive(Debug)]
pub(super) struct LedgerTrace {
    /// The agent whose outbox held it, or `settled`.
    pub(super) from: String,
    /// Every record that judged a file under this id, in order; for the daemon's own message, the record that wrote it.
    pub(super) records: Vec<(Entry, Record)>,
    /// The number and time of the record that took the request.
    pub(super) taken: Option<(u64, String)>,
    /// The answers, by sender.
    pub(super) answers: BTreeMap<AgentName, TracedAnswer>,
}

/// A message that answers another one.
#[derive(Clone, Debug)]
pub(super) struct TracedAnswer {
    pub(super) how: AnswerLink,
    pub(super) id: MessageId,
    pub(super) seq: u64,
    pub(super) at: String,
}

/// Why a message counts as an answer, the surest reason first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AnswerLink {
    Parent,
    NextOfReview,
    Conversation,
}

impl AnswerLink {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Parent => "names it as its parent",
            Self::NextOfReview => "is the review's next response",
            Self::Conversation => "is of the same conversation",
        }
    }
}

/// Reads the whole ledger for one id.
pub(super) fn read(
    root: &Path,
    id: &MessageId,
    from: Option<&AgentName>,
) -> Result<Vec<LedgerTrace>, SpoolError> {
    let mut told: BTreeMap<String, LedgerTrace> = BTreeMap::new();
    let is_wanted = |sender: &str| from.is_none_or(|from| from.as_str() == sender);
    spool::read_ledger(root, &mut |entry| {
        let is_judged = entry.id.as_deref() == Some(id.as_str());
        if !is_judged && told.is_empty() && !entry.decision.get().contains(id.as_str()) {
            return Ok(());
        }
        let (record, _) = index::decision(entry)?;
        told.values_mut()
            .for_each(|told| told.note(entry, &record, id));
        let sender = match &entry.original {
            Some(original) if is_judged => Some(original.outbox.as_str()),
            Some(_) | None if writes(&record, id) => Some(message_schema::envelope::DAEMON),
            Some(_) | None => None,
        };
        if let Some(sender) = sender.filter(|sender| is_wanted(sender)) {
            let new = || LedgerTrace {
                from: sender.to_owned(),
                records: Vec::new(),
                taken: None,
                answers: BTreeMap::new(),
            };
            told.entry(sender.to_owned())
                .or_insert_with(new)
                .records
                .push((entry.clone(), record));
        }
        Ok(())
    })?;
    Ok(told.into_values().collect())
}

impl LedgerTrace {
    /// The record that accepted it, if one did.
    pub(super) fn accepted(&self) -> Option<&Accepted> {
        self.records
            .iter()
            .find_map(|(_, record)| record.accepted())
    }

    fn note(&mut self, entry: &Entry, record: &Record, id: &MessageId) {
        match record {
            Record::Judged(Judgement::Accepted(answer)) => {
                let Some(how) = self.how(entry, answer, id) else {
                    return;
                };
                let new = TracedAnswer {
                    how,
                    id: answer.id.clone(),
                    seq: entry.seq,
                    at: entry.at.clone(),
                };
                self.answer(answer.from.clone(), new);
            }
            Record::Event(EventRecord::Happened(happened)) => self.note_event(entry, happened),
            Record::Judged(Judgement::Duplicate(_) | Judgement::Refused(_))
            | Record::Event(EventRecord::Declined(_)) => {}
        }
    }

    fn answer(&mut self, by: AgentName, new: TracedAnswer) {
        if self
            .answers
            .get(&by)
            .is_none_or(|before| new.how < before.how)
        {
            self.answers.insert(by, new);
        }
    }

    /// Returns the link by which an accepted message answers this one, if it does.
    fn how(&self, entry: &Entry, answer: &Accepted, id: &MessageId) -> Option<AnswerLink> {
        let to_us = answer.to.iter().any(|to| to.as_str() == self.from);
        if to_us && parent(entry).as_deref() == Some(id.as_str()) {
            return Some(AnswerLink::Parent);
        }
        let own = self
            .accepted()
            .filter(|own| own.to.contains(&answer.from))?;
        let review = |accepted: &Accepted| accepted.step.as_ref().map(|step| step.review.clone());
        let is_next = follows(own.kind, answer.kind)
            && review(own) == review(answer)
            && review(own).is_some();
        if is_next
            && self
                .answers
                .values()
                .all(|answer| answer.how == AnswerLink::Conversation)
        {
            return Some(AnswerLink::NextOfReview);
        }
        (to_us && own.conversation.is_some() && own.conversation == answer.conversation)
            .then_some(AnswerLink::Conversation)
    }

    /// Notes that the request was taken, or that the daemon answered for its reviewer.
    fn note_event(&mut self, entry: &Entry, happened: &Happened) {
        let Some(own) = self
            .accepted()
            .filter(|own| own.kind == MessageType::Review(ReviewKind::Request))
        else {
            return;
        };
        let Some(review) = own.step.as_ref().map(|step| step.review.clone()) else {
            return;
        };
        let is_over = self
            .answers
            .values()
            .any(|answer| answer.how <= AnswerLink::NextOfReview);
        if is_over || !happened.steps.iter().any(|step| step.review == review) {
            return;
        }
        if is_take(&happened.event) && self.taken.is_none() {
            self.taken = Some((entry.seq, entry.at.clone()));
        }
        if let Some(message) = happened
            .messages
            .iter()
            .find(|message| is_in_place(message, &review))
        {
            let how = AnswerLink::NextOfReview;
            let answer = TracedAnswer {
                how,
                id: message.id.clone(),
                seq: entry.seq,
                at: entry.at.clone(),
            };
            self.answer(
                AgentName::new(message_schema::envelope::DAEMON).expect("it is a name"),
                answer,
            );
        }
    }
}

fn is_take(event: &Event) -> bool {
    match event {
        Event::Taken(_) | Event::Turns { .. } | Event::Started(_) => true,
        Event::Deadline { .. }
        | Event::Failed { .. }
        | Event::Spent(_)
        | Event::Observed { .. }
        | Event::Ran { .. }
        | Event::Pull(_)
        | Event::Person(_)
        | Event::Pair(_)
        | Event::LedgerAccepted(_)
        | Event::SentDiffers(_)
        | Event::Host(_) => false,
    }
}

fn is_in_place(message: &DaemonMessage, of: &ReviewKey) -> bool {
    match &message.says {
        Says::BudgetSpent { review, .. } => review == of,
        Says::Escalated { .. }
        | Says::Closed { .. }
        | Says::Reassigned { .. }
        | Says::Decided { .. }
        | Says::Handoff { .. }
        | Says::SentDiffers { .. } => false,
    }
}

/// True if a message of type `own` waits for one of type `answer`.
fn follows(own: MessageType, answer: MessageType) -> bool {
    let (Some(own), Some(answer)) = (own.review(), answer.review()) else {
        return false;
    };
    match own {
        ReviewKind::Request => matches!(answer, ReviewKind::Feedback | ReviewKind::Lgtm),
        ReviewKind::Feedback => matches!(answer, ReviewKind::Addressed | ReviewKind::Request),
        ReviewKind::Addressed | ReviewKind::Lgtm => false,
    }
}

/// The message that an accepted one names as its parent.
fn parent(entry: &Entry) -> Option<String> {
    let text = entry.original.as_ref()?.text.as_ref()?;
    if !text.contains("parent_message_id") {
        return None;
    }
    let message = message_schema::parse(text.as_bytes()).ok()?;
    message
        .root()
        .field_text("parent_message_id")
        .map(str::to_owned)
}

/// True if the record contains a message that the daemon wrote under this id.
fn writes(record: &Record, id: &MessageId) -> bool {
    let is_notice = record
        .refused()
        .is_some_and(|refused| match &refused.notice {
            Notice::Sent { id: own, .. } => own == id,
            Notice::Withheld | Notice::Never => false,
        });
    is_notice || record.messages().iter().any(|message| message.id == *id)
}

/// The digest of a delivery's content, if it is the message under this id.
pub(super) fn brings(entry: &Entry, delivery: &Delivery, id: &MessageId) -> Option<Digest> {
    match &delivery.content {
        Content::Original => entry.original.as_ref().and_then(|original| original.digest),
        // A daemon's message opens with its id, like every message we write.
        Content::Text(text) => {
            let message = message_schema::parse(text.as_bytes()).ok()?;
            (message.id()? == *id).then(|| Digest::of(text.as_bytes()))
        }
        Content::Withdrawn(_) => None,
    }
}
