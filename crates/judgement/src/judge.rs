//! Takes a message from the bytes of a file to its ledger record. The daemon, the simulation, the replay of a ledger
//! and the model checker all take this path; they differ in the source of the bytes and in their use of the record.
//!
//! ```text
//! read(submission) -> ReadMessage | Stop                     bytes -> message
//! judge.message(read, packet) -> Decided | Stop              message -> decision
//! judge.refuse(outbox, message, rejection, ids) -> Refused   what the refusal costs, and what its sender reads
//! judge.event(report, ids) -> EventRecord                    what happens besides messages; so does judge.due(ids)
//! ```

use chrono::{DateTime, Utc};
use message_schema::envelope::{DAEMON, MessageType};
use message_schema::id::{AgentName, MessageId, PacketPath};
use message_schema::{Code, Message};
use review::{
    ContentDigest, Costs, Decision, Duplicate, EventRecord, Policy, Posted, Refusal,
    RefusedMessage, ReportedEvent, ReviewKey, State,
};
use spool::{Body, Digest, OutboxFile, PacketRead};
use validate_message::{PacketInput, Violation};

use crate::rejection::Rejection;

/// A file from an outbox as the daemon found it.
#[derive(Clone, Copy, Debug)]
pub struct Submission<'a> {
    /// The file.
    pub found: &'a OutboxFile,
    /// The owner of its outbox.
    pub outbox: &'a AgentName,
    /// The user that must own it, if the config names one.
    pub user: Option<u32>,
}

/// A submission that is one readable message.
#[derive(Debug)]
pub struct ReadMessage<'a> {
    /// The file.
    pub submission: Submission<'a>,
    /// The message in it.
    pub message: Message,
    /// The packet that its judgement needs, if it names one.
    pub packet: Option<PacketPath>,
    pub(crate) digest: Digest,
}

impl<'a> ReadMessage<'a> {
    pub(crate) fn new(submission: Submission<'a>, message: Message, digest: Digest) -> Self {
        Self {
            submission,
            packet: message.packet_path(),
            message,
            digest,
        }
    }
}

/// Why a message goes no further.
#[derive(Debug)]
pub struct Stop {
    /// The refusal, should the message be refused.
    pub rejection: Box<Rejection>,
    /// The time that a writer gets who may still be at work.
    pub patience: Patience,
}

/// The time that a file gets before it is refused for its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// None: no change of the file would help.
    None,
    /// 0.5 s: by then a writer that appends in steps has finished, and a copy made as another user has its final owner.
    SecondLook,
    /// 5 s: the file is empty or truncated.
    CutOff,
    /// 5 s from the first look, with a look every 50 ms or sooner: its packet is missing or may still be written.
    Packet,
    /// 30 s from the first look, with a look every 50 ms or sooner: a writer has its packet open.
    OpenPacket,
}

/// A message that was not refused.
#[derive(Debug)]
pub struct Decided {
    /// The decision of the rules.
    pub decision: Decision,
    /// The validator's warnings, which refuse nothing.
    pub warnings: Vec<Violation>,
}

/// A message that was refused.
#[derive(Debug)]
pub struct Refused {
    /// Its ledger record.
    pub record: RefusedMessage,
    /// The reasons for its sender.
    pub rejection: Rejection,
}

/// Judges messages and events against a state and a policy.
#[derive(Clone, Copy, Debug)]
pub struct Judge<'a> {
    /// The state after all records so far.
    pub state: &'a State,
    /// The current policy.
    pub policy: &'a Policy,
    /// The time of the judgement.
    pub now: DateTime<Utc>,
}

/// Returns a fresh id for each message that the daemon writes.
pub type Ids<'a> = &'a mut dyn FnMut() -> MessageId;

/// Reads a submission.
pub fn read(submission: Submission<'_>) -> Result<ReadMessage<'_>, Stop> {
    let OutboxFile { file, owner, .. } = submission.found;
    if let Some(user) = submission.user.filter(|user| user != owner) {
        let rejection = Rejection::of_another(*owner, user, file);
        return Err(Stop::after(Patience::SecondLook, rejection));
    }
    let (message, digest) = parse(submission.found)?;
    Ok(ReadMessage::new(submission, message, digest))
}

/// Parses the message in a file; the caller checks who wrote it.
pub(crate) fn parse(found: &OutboxFile) -> Result<(Message, Digest), Stop> {
    let OutboxFile { file, body, .. } = found;
    let (bytes, digest) = match body {
        Body::Message { bytes, digest } => (bytes, digest),
        Body::Unfit(unfit) => {
            return Err(Stop::after(Patience::None, Rejection::unread(*unfit, file)));
        }
    };
    match message_schema::parse(bytes) {
        Ok(message) => Ok((message, *digest)),
        Err(malformed) => {
            let patience = if malformed.looks_cut_off() {
                Patience::CutOff
            } else {
                Patience::SecondLook
            };
            Err(Stop::after(patience, Rejection::malformed(malformed, file)))
        }
    }
}

impl Judge<'_> {
    /// True if the message repeats an accepted one. Then nothing else about it counts, neither its packet nor anything
    /// it would have to wait for.
    pub fn is_repeated(&self, read: &ReadMessage<'_>) -> bool {
        self.repeated(read).is_some()
    }

    /// Judges a message with the packet it names.
    pub fn message(
        &self,
        read: &ReadMessage<'_>,
        packet: Option<&PacketRead>,
    ) -> Result<Decided, Stop> {
        if let Some(duplicate) = self.repeated(read) {
            return Ok(Decided {
                decision: Decision::Duplicate(duplicate),
                warnings: Vec::new(),
            });
        }
        let Submission {
            found,
            outbox,
            user,
        } = read.submission;
        let message = &read.message;
        if let (Some(PacketRead::OfAnother(owner)), Some(user)) = (packet, user) {
            let rejection = Rejection::packet_of_another(*owner, user, message, &found.file);
            return Err(Stop::after(Patience::SecondLook, rejection));
        }
        let valid = validate_message::check(message, input(packet)).map_err(|violations| {
            let rejection = Rejection::violations(&violations, message, outbox, &found.file);
            Stop::after(patience_with(packet), rejection)
        })?;
        let posted = Posted {
            outbox,
            digest: read.content(),
            valid: &valid,
        };
        let decision = self.checked(posted).map_err(|refusal| {
            let rejection = Rejection::refusal(refusal, message, valid.packet(), &found.file);
            Stop::after(Patience::None, rejection)
        })?;
        Ok(Decided {
            decision,
            warnings: valid.warnings().to_vec(),
        })
    }

    /// Judges a message whose file and packet are known to be correct. The model walk enters here, because it sends the
    /// same few messages millions of times.
    pub fn checked(&self, posted: Posted<'_>) -> Result<Decision, Refusal> {
        review::decide(self.state, self.policy, posted, self.now)
    }

    /// Refuses a submission; `message` is the part of it that could be parsed.
    pub fn refuse(
        &self,
        outbox: &AgentName,
        message: Option<&Message>,
        mut rejection: Rejection,
        ids: Ids<'_>,
    ) -> Refused {
        let costs = rejection.review.as_ref().map(|key| (key, rejection.costs));
        let addressing = message.map_or(Addressing::UNREAD, Addressing::of);
        let record = self.refused(outbox, rejection.code, costs, addressing, ids);
        if record
            .cost
            .as_ref()
            .is_some_and(|cost| cost.attempts_left == 0)
        {
            rejection.make_final();
        }
        let review = rejection.review.as_ref();
        if let Some(review) = review.and_then(|key| self.state.review(key)) {
            rejection.count(review);
        }
        Refused { record, rejection }
    }

    /// Returns the ledger record for the refusal of a correct review message, for callers of [`Judge::checked`], which
    /// have no bytes. The first id is for the notice, the second for the notification to the author.
    pub fn refuse_checked(
        &self,
        outbox: &AgentName,
        code: Code,
        costs: Option<(&ReviewKey, Costs)>,
        ids: Ids<'_>,
    ) -> RefusedMessage {
        self.refused(outbox, code, costs, Addressing::UNREAD, ids)
    }

    fn refused(
        &self,
        outbox: &AgentName,
        code: Code,
        costs: Option<(&ReviewKey, Costs)>,
        addressing: Addressing<'_>,
        ids: Ids<'_>,
    ) -> RefusedMessage {
        let (notice, announcement) = (ids(), ids());
        let refused = review::Refused {
            outbox,
            code,
            costs,
            to_daemon: addressing.to_daemon,
            is_review: addressing.is_review,
            parent: addressing.parent,
            notice: &notice,
            announcement: &announcement,
        };
        review::refuse(self.state, &refused, self.now)
    }

    /// Judges an event: an order of a person, a take, a turn, a pull request, a pair.
    pub fn event(&self, reported: ReportedEvent<'_>, ids: Ids<'_>) -> EventRecord {
        review::on_event(self.state, self.policy, reported, self.now, ids)
    }

    /// Returns the record of the earliest deadline that has passed; `None` if none has.
    pub fn due(&self, ids: Ids<'_>) -> Option<EventRecord> {
        review::due(self.state, self.policy, self.now, ids)
    }

    fn repeated(&self, read: &ReadMessage<'_>) -> Option<Duplicate> {
        let id = read.message.id()?;
        review::repeated(self.state, read.submission.outbox, &id, read.content())
    }
}

impl ReadMessage<'_> {
    fn content(&self) -> ContentDigest {
        ContentDigest(self.digest.bytes())
    }
}

/// The parts of a refused message, as far as it could be read, that decide whether its sender gets a notice.
#[derive(Clone, Copy)]
struct Addressing<'a> {
    to_daemon: bool,
    is_review: bool,
    parent: Option<&'a str>,
}

impl<'a> Addressing<'a> {
    /// Nothing of the message could be read.
    const UNREAD: Self = Self {
        to_daemon: false,
        is_review: false,
        parent: None,
    };

    fn of(message: &'a Message) -> Self {
        Self {
            to_daemon: is_to_daemon(message),
            is_review: message.kind().is_some_and(MessageType::is_review),
            parent: message.root().optional_text("parent_message_id"),
        }
    }
}

impl Stop {
    fn after(patience: Patience, rejection: Rejection) -> Self {
        Self {
            rejection: Box::new(rejection),
            patience,
        }
    }
}

impl Patience {
    /// True if the message waits for its packet. No change of the message prolongs that: its sender could hold up what is
    /// behind it for as long as it likes.
    pub fn is_for_packet(self) -> bool {
        matches!(self, Self::Packet | Self::OpenPacket)
    }

    /// Returns how long the file gets, in milliseconds: since its last change, or since the first look if it waits for its
    /// packet.
    pub fn still_ms(self) -> u64 {
        match self {
            Self::None => 0,
            Self::SecondLook => 500,
            Self::CutOff | Self::Packet => 5_000,
            Self::OpenPacket => 30_000,
        }
    }

    /// Returns the pause before the next look at a file that has waited for `waited_ms`, in milliseconds: a packet arrives
    /// without a change of the file that waits for it, and nearly all arrive at once or not at all.
    pub fn retry_ms(self, waited_ms: u64) -> u64 {
        match self {
            Self::None | Self::SecondLook | Self::CutOff => self.still_ms(),
            Self::Packet | Self::OpenPacket => waited_ms.clamp(5, 50),
        }
    }
}

/// Returns every recipient that the message names, as far as it could be read.
pub fn named_recipients(message: &Message) -> impl Iterator<Item = &str> {
    let to = message.root().field("to").map(|field| &field.value);
    to.into_iter().flat_map(|to| {
        let listed = to.items().iter().filter_map(|item| item.text());
        to.text().into_iter().chain(listed)
    })
}

fn is_to_daemon(message: &Message) -> bool {
    named_recipients(message).any(|to| to == DAEMON)
}

fn patience_with(packet: Option<&PacketRead>) -> Patience {
    match packet {
        Some(PacketRead::Missing | PacketRead::Growing | PacketRead::Linked) => Patience::Packet,
        Some(PacketRead::Open) => Patience::OpenPacket,
        None
        | Some(
            PacketRead::Bytes(_)
            | PacketRead::Unsafe(_)
            | PacketRead::TooLarge
            | PacketRead::OfAnother(_),
        ) => Patience::SecondLook,
    }
}

fn input(packet: Option<&PacketRead>) -> PacketInput<'_> {
    match packet {
        None => PacketInput::NotNamed,
        Some(PacketRead::Bytes(bytes)) => PacketInput::Bytes(bytes),
        Some(PacketRead::Missing) => PacketInput::Missing,
        Some(PacketRead::Growing) => PacketInput::Unsafe("it is still being written".to_owned()),
        Some(PacketRead::Open) => {
            PacketInput::Unsafe("a program has it open for writing".to_owned())
        }
        Some(PacketRead::Linked) => {
            PacketInput::Unsafe("it is a file with several names".to_owned())
        }
        Some(PacketRead::Unsafe(reason)) => PacketInput::Unsafe(reason.to_string()),
        Some(PacketRead::TooLarge) => PacketInput::TooLarge,
        Some(PacketRead::OfAnother(_)) => {
            PacketInput::Unsafe("it belongs to another user".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_user_is_read_no_further_and_looked_at_again() {
        let outbox: AgentName = "claude".parse().expect("a name");
        let file = "a.yaml".parse().expect("a name");
        let body = Body::message(b"from: claude\n".to_vec());
        let found = OutboxFile {
            owner: 7,
            ..OutboxFile::finished("claude", file, body)
        };
        for (user, patience) in [
            (None, None),
            (Some(7), None),
            (Some(8), Some(Patience::SecondLook)),
        ] {
            let submission = Submission {
                found: &found,
                outbox: &outbox,
                user,
            };
            let stopped = read(submission).err().map(|stop| stop.patience);
            assert_eq!(stopped, patience, "{user:?}");
        }
    }

    #[test]
    fn a_writer_that_may_be_at_work_is_given_time() {
        for (patience, still_ms, retries) in [
            (Patience::None, 0, [0, 0, 0]),
            (Patience::SecondLook, 500, [500, 500, 500]),
            (Patience::CutOff, 5_000, [5_000, 5_000, 5_000]),
            (Patience::Packet, 5_000, [5, 20, 50]),
        ] {
            let pauses = [0, 20, 80].map(|waited| patience.retry_ms(waited));
            let found = (patience.still_ms(), pauses);
            assert_eq!(found, (still_ms, retries), "{patience:?}");
        }
    }
}
