//! Judges a recorded decision again, by the rules of this program: the records of a verdict file, and another host's
//! records before they are mirrored.
//!
//! Some inputs are not in the record: a refused message's text, and the ids of the daemon's notices. It takes ids as
//! recorded. Of a refusal it judges only the cost: whether its code may be free, and what it does to the review.

use message_schema::id::{AgentName, MessageId};
use message_schema::{Code, Message};
use review::{
    Accepted, Costs, Duplicate, EventRecord, Happened, Judgement, Notice, Record, RefusalCost,
    RefusedMessage, ReportedEvent,
};
use spool::{Digest, Entry, OutboxFile, PacketRead};

use crate::judge::{self, Judge, ReadMessage, Stop, Submission};

/// The message of a recorded file. Parsing it is much of the work and needs no state, so another thread can do it.
#[derive(Debug)]
pub struct RecordedMessage {
    found: OutboxFile,
    read: Result<(Message, Digest), Stop>,
}

impl RecordedMessage {
    /// Parses the message of this entry, if the entry has its text.
    pub fn of(entry: &Entry) -> Option<Self> {
        let found = OutboxFile::recorded(entry)?;
        let read = judge::parse(&found);
        Some(Self { found, read })
    }
}

/// Why a recorded decision does not follow from the records before it.
#[derive(Debug)]
pub enum Differs {
    /// An accepted message without its text.
    NoText,
    /// The rules decide otherwise.
    Decides(Box<Record>),
    /// Its sender is not the owner of the outbox it was in.
    OtherSender,
    /// The message was not accepted before.
    NotRepeated,
    /// A refusal without the cost that every refusal with its code has.
    Free(Code),
    /// It makes other files, or puts the original away elsewhere.
    Files(String),
}

/// Checks that the rules decide as recorded. `judge` has the state after all records before this one, and the time of
/// this one; `recorded` is the message of the entry, and is returned if it was accepted.
pub fn follows(
    judge: Judge<'_>,
    entry: &Entry,
    then: &Record,
    recorded: Option<RecordedMessage>,
) -> Result<Option<(OutboxFile, Message)>, Differs> {
    let mut read = None;
    let now = match then {
        Record::Judged(Judgement::Accepted(accepted)) => {
            let recorded = recorded.ok_or(Differs::NoText)?;
            let (now, message) = judged(judge, recorded, accepted)?;
            read = message;
            now.into()
        }
        Record::Judged(Judgement::Refused(refused)) => {
            from_outbox(entry, &refused.from)?;
            refusal(judge, refused)?.into()
        }
        Record::Judged(Judgement::Duplicate(duplicate)) => {
            from_outbox(entry, &duplicate.from)?;
            return repeated(judge, entry, duplicate).map(|()| None);
        }
        Record::Event(record) => event(judge, then, record).into(),
    };
    // Most records are equal, and comparing them directly is much faster.
    if *then == now || comparable(then) == comparable(&now) {
        Ok(read)
    } else {
        Err(Differs::Decides(Box::new(now)))
    }
}

fn from_outbox(entry: &Entry, from: &AgentName) -> Result<(), Differs> {
    let outbox = entry.original.as_ref().map(|original| &*original.outbox);
    // A verdict file omits the originals of refused messages.
    if outbox.is_none_or(|outbox| outbox == from.as_str()) {
        Ok(())
    } else {
        Err(Differs::OtherSender)
    }
}

/// Judges a recorded message, and returns it if it can be parsed.
fn judged(
    judge: Judge<'_>,
    RecordedMessage { found, read }: RecordedMessage,
    accepted: &Accepted,
) -> Result<(Judgement, Option<(OutboxFile, Message)>), Differs> {
    let outbox = AgentName::new(found.agent.as_str()).map_err(|_| Differs::OtherSender)?;
    let refused = |message: Option<&Message>, stop: Stop| {
        let refused = judge.refuse(&outbox, message, *stop.rejection, &mut unknown_id);
        Judgement::Refused(refused.record)
    };
    let (message, digest) = match read {
        Ok(read) => read,
        Err(stop) => return Ok((refused(None, stop), None)),
    };
    let submission = Submission {
        found: &found,
        outbox: &outbox,
        user: None,
    };
    let read = ReadMessage::new(submission, message, digest);
    let packet = read.packet.as_ref().map(|_| {
        let packet = accepted.packet.as_ref();
        packet.map_or(PacketRead::Missing, |text| {
            PacketRead::Bytes(text.clone().into_bytes())
        })
    });
    let judgement = match judge.message(&read, packet.as_ref()) {
        Ok(decided) => decided.decision.into_judgement(),
        Err(stop) => refused(Some(&read.message), stop),
    };
    let message = read.message;
    Ok((judgement, Some((found, message))))
}

fn repeated(judge: Judge<'_>, entry: &Entry, then: &Duplicate) -> Result<(), Differs> {
    let digest = entry.original.as_ref().and_then(|original| original.digest);
    let digest = digest.ok_or(Differs::NoText)?;
    let content = review::ContentDigest(digest.bytes());
    let now = review::repeated(judge.state, &then.from, &then.id, content);
    now.map(drop).ok_or(Differs::NotRepeated)
}

fn event(judge: Judge<'_>, then: &Record, record: &EventRecord) -> EventRecord {
    let mut messages = then.messages().iter().map(|message| message.id.clone());
    let mut next = || messages.next().unwrap_or_else(unknown_id);
    let reported = ReportedEvent {
        order: record.order(),
        event: record.event(),
    };
    judge.event(reported, &mut next)
}

/// Returns the refusal with the recorded cost, if the rules know one.
fn refusal(judge: Judge<'_>, then: &RefusedMessage) -> Result<Judgement, Differs> {
    let RefusedMessage {
        from, code, cost, ..
    } = then;
    let Some(cost) = cost.as_deref() else {
        if review::always_costs(*code) {
            return Err(Differs::Free(*code));
        }
        let refused = judge.refuse_checked(from, *code, None, &mut unknown_id);
        return Ok(Judgement::Refused(refused));
    };
    let RefusalCost { step, messages, .. } = cost;
    let announced = messages.first().map(|message| &message.id);
    let of = |costs| {
        let mut ids = [None, announced].into_iter();
        let mut next = || ids.next().flatten().cloned().unwrap_or_else(unknown_id);
        judge.refuse_checked(from, *code, Some((&step.review, costs)), &mut next)
    };
    let [attempt, invocation] = [Costs::Attempt, Costs::Invocation].map(of);
    let is_invocation = without_notice(&invocation) == without_notice(then);
    let refused = if is_invocation { invocation } else { attempt };
    Ok(Judgement::Refused(refused))
}

/// Returns the id of every message that the record does not identify; nothing compares it.
fn unknown_id() -> MessageId {
    MessageId::new("settled-0").expect("letters and digits are an id")
}

/// Returns the record without what cannot follow from the ledger: alerts and warnings, which move nothing; whether a
/// sender got a notice; and the number that a new task got in the whole ledger.
fn comparable(record: &Record) -> String {
    let json = |record: &Record| {
        serde_json::to_string(record).expect("records have text keys and plain values")
    };
    match record {
        Record::Judged(Judgement::Accepted(accepted)) => {
            let bare = Accepted {
                alerts: Vec::new(),
                warnings: Vec::new(),
                ..(**accepted).clone()
            };
            json(&Judgement::Accepted(Box::new(bare)).into())
        }
        Record::Judged(Judgement::Refused(refused)) => {
            json(&Judgement::Refused(without_notice(refused)).into())
        }
        Record::Event(EventRecord::Happened(happened)) => {
            let tasks = happened
                .handoff
                .iter()
                .flat_map(|handoff| &handoff.tasks)
                .enumerate();
            // The hosts compare `home_away` themselves.
            let bare = EventRecord::Happened(Box::new(Happened {
                home_away: false,
                ..(**happened).clone()
            }));
            tasks.fold(json(&bare.into()), |text, (n, task)| {
                text.replace(&format!("\"{}\"", task.id), &format!("\"task {n}\""))
            })
        }
        Record::Judged(Judgement::Duplicate(_)) | Record::Event(EventRecord::Declined(_)) => {
            json(record)
        }
    }
}

fn without_notice(refused: &RefusedMessage) -> RefusedMessage {
    RefusedMessage {
        notice: Notice::Never,
        ..refused.clone()
    }
}
