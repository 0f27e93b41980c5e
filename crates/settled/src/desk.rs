//! The desk: from a file to what the ledger will say of it. Reads, checks and decides; touches
//! nothing but the packet it has to read, so it works while the spool delivers.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use message_schema::id::AgentName;
use message_schema::{Code, Message};
use review::{ContentDigest, Decision, Policy, Posted, Record, State};
use spool::{
    Body, EntryDraft, FileName, Hint, Intake, OutboxFile, PacketRead, QUIET_MS, SpoolError, Stamp,
    Unfit, View,
};
use validate_message::PacketInput;

use crate::briefs;
use crate::clock::Moment;
use crate::config::Config;
use crate::draft::{Slip, named_recipients};
use crate::fold::Books;
use crate::names::NameBook;
use crate::rejection::Rejection;
use crate::troubles::Troubles;
use crate::unproven::Proofs;
use crate::untaken::Untaken;

/// The largest message and the largest packet, in bytes.
const SIZE_MAX: u64 = 256 * 1024;

/// The most messages that are judged and committed together.
const BATCH_MAX: usize = 256;

/// After so many bytes of messages and packets a batch is full: what is large takes long, and nobody
/// else's mail waits for more than one batch.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;

/// So many messages are in memory at once before they are judged.
const PORTION: usize = 4;

/// How long, in milliseconds, an empty or cut-off file and a missing or growing packet are given.
const PATIENCE_MS: u64 = 5_000;

/// How long, in milliseconds, any other file is given before it is refused for what it says: a
/// writer that appends in several goes is whole again by then.
const SECOND_LOOK_MS: u64 = 500;

/// How soon, in milliseconds, a packet is looked for again.
const PACKET_RETRY_MS: u64 = 50;

/// Everything a judgement looks at, and the files that wait for one.
pub(crate) struct Desk {
    pub(crate) intake: Intake,
    /// The agents that have a mailbox, sorted.
    pub(crate) agents: Arc<[AgentName]>,
    pub(crate) policy: Policy,
    pub(crate) state: State,
    pub(crate) names: NameBook,
    pub(crate) untaken: Untaken,
    pub(crate) proofs: Proofs,
    pub(crate) troubles: Troubles,
    /// The user of each agent that has one of its own.
    users: BTreeMap<AgentName, u32>,
    /// Files that were given time, and since when they have been the same.
    waits: HashMap<(String, FileName), (Stamp, u64)>,
    /// Review messages that wait for a packet, or behind one that does.
    held: HashMap<(String, FileName), Held>,
    /// How many were held so far.
    held_count: u64,
    /// How many bytes of messages and packets were read for this batch.
    batch_bytes: usize,
}

/// A review message that later ones of its outbox to the same recipient must not overtake.
#[derive(Debug)]
struct Held {
    place: u64,
    to: Vec<String>,
}

/// What was decided and is to be committed together; the records in the same order.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) drafts: Vec<EntryDraft>,
    pub(crate) records: Vec<Record>,
}

/// A judgement: something to commit, or a moment more for the file.
enum Judged {
    Decided(Box<(EntryDraft, Record)>),
    NotYet { until: u64 },
}

impl Desk {
    pub(crate) fn new(config: &Config, books: Books, troubles: Troubles) -> Self {
        let intake = Intake::new(SIZE_MAX, QUIET_MS);
        let Books {
            state,
            names,
            untaken,
            proofs,
            ..
        } = books;
        Self {
            intake,
            agents: Arc::from([]),
            policy: config.policy([]),
            state,
            names,
            untaken,
            proofs,
            troubles,
            users: config.users(),
            waits: HashMap::new(),
            held: HashMap::new(),
            held_count: 0,
            batch_bytes: 0,
        }
    }

    /// Judges by another config from the next message on, with the same agents on the roll.
    pub(crate) fn reconfigure(&mut self, config: &Config) {
        self.policy = config.policy(self.agents.iter().cloned());
        self.users = config.users();
    }

    /// Takes what the ledger says in place of what was known.
    pub(crate) fn keep(&mut self, books: Books) {
        let Books {
            state,
            names,
            untaken,
            proofs,
            ..
        } = books;
        (self.state, self.names, self.untaken, self.proofs) = (state, names, untaken, proofs);
    }

    /// Judges what is ready, at most one batch.
    ///
    /// A message is applied to the state when it is decided, so that later ones of the batch are
    /// judged after it; whoever cannot commit the batch has to fold the state anew.
    pub(crate) fn judge_batch(&mut self, view: &View<'_>, moment: Moment) -> Batch {
        let mut batch = Batch::default();
        self.batch_bytes = 0;
        let mut left = BATCH_MAX;
        while left > 0 && self.batch_bytes < BATCH_BYTES_MAX {
            match self.judge_portion(&mut batch, left.min(PORTION), view, moment) {
                0 => break,
                looked => left -= looked,
            }
        }
        batch
    }

    /// Judges the next few files, and says how many there were. Nothing puts one of them back into the
    /// queue before the batch is done: neither a sweep nor a hint comes in between.
    fn judge_portion(
        &mut self,
        batch: &mut Batch,
        limit: usize,
        view: &View<'_>,
        moment: Moment,
    ) -> usize {
        let mut taken = self.intake.take(view, moment.spool(), limit);
        if !self.held.is_empty() {
            // Who waited came first; the others keep their order.
            let place = |found: &OutboxFile| {
                self.held
                    .get(&key(found))
                    .map_or(u64::MAX, |held| held.place)
            };
            taken.found.sort_by_cached_key(place);
        }
        for trouble in taken
            .troubles
            .iter()
            .filter(|trouble| !self.troubles.tell_unreadable(trouble))
        {
            tracing::warn!(error = %crate::mailroom::chain(trouble), "a file cannot be read; it is tried again");
        }
        for found in &taken.found {
            let seq = view.next_seq() + batch.drafts.len() as u64;
            match self.judge(found, view, seq, moment) {
                Ok(Judged::Decided(decided)) => {
                    let (mut draft, record) = *decided;
                    let key = key(found);
                    self.waits.remove(&key);
                    self.held.remove(&key);
                    review::apply(&mut self.state, &record, moment.utc);
                    let Self {
                        state,
                        policy,
                        names,
                        ..
                    } = self;
                    let brief = briefs::of(&record, state, policy, (seq, moment), names);
                    draft.deliveries.extend(brief);
                    batch.drafts.push(draft);
                    batch.records.push(record);
                }
                Ok(Judged::NotYet { until }) => self.intake.give_time(found, until),
                // An I/O error is nobody's refusal.
                Err(error) => {
                    if !self.troubles.tell_unreadable(&error) {
                        tracing::warn!(error = %crate::mailroom::chain(&error), "a packet cannot be read; it is tried again");
                    }
                    self.intake.give_time(found, moment.mono + SECOND_LOOK_MS);
                }
            }
        }
        taken.found.len()
    }

    /// Notes what was seen of a file in the outbox of an agent on the roll; a sweep finds the others.
    pub(crate) fn hint(&mut self, agent: &str, file: &FileName, hint: Hint) {
        if on_the_roll(&self.agents, agent).is_some() {
            self.intake.hint(agent, file, hint);
        }
    }

    /// From a file to what the ledger will say of it.
    fn judge(
        &mut self,
        found: &OutboxFile,
        view: &View<'_>,
        seq: u64,
        moment: Moment,
    ) -> Result<Judged, SpoolError> {
        let agents = Arc::clone(&self.agents);
        let Some(outbox) = on_the_roll(&agents, &found.agent) else {
            // It left the roll since the last sweep; the next one forgets its files, or finds it back.
            return Ok(Judged::NotYet {
                until: moment.mono.saturating_add(SECOND_LOOK_MS),
            });
        };
        let slip = Slip {
            found,
            outbox,
            message: None,
            agents: &agents,
            seq,
            moment,
        };
        let user = self.users.get(outbox).copied();
        if let Some(user) = user.filter(|user| *user != found.owner) {
            return Ok(self
                .not_yet(found, moment, SECOND_LOOK_MS, SECOND_LOOK_MS)
                .unwrap_or_else(|| {
                    self.reject(&slip, Rejection::of_another(found.owner, user, &found.file))
                }));
        }
        let (bytes, digest) = match &found.body {
            Body::Message { bytes, digest } => (bytes, digest),
            Body::Unfit(unfit) => {
                return Ok(self.reject(&slip, unfit_to_be_read(*unfit, &found.file)));
            }
        };

        self.batch_bytes += bytes.len();
        let message = match message_schema::parse(bytes) {
            Ok(message) => message,
            Err(malformed) => {
                let patience = if malformed.looks_cut_off() {
                    PATIENCE_MS
                } else {
                    SECOND_LOOK_MS
                };
                return Ok(self
                    .not_yet(found, moment, patience, patience)
                    .unwrap_or_else(|| {
                        self.reject(&slip, Rejection::malformed(malformed, &found.file))
                    }));
            }
        };
        let slip = Slip {
            message: Some(&message),
            ..slip
        };

        let digest = ContentDigest(digest.bytes());
        let before = message
            .id()
            .and_then(|id| review::repeated(&self.state, outbox, &id, digest));
        if let Some(record) = before {
            let decision = Decision::Duplicate(record);
            return Ok(Judged::Decided(Box::new(
                slip.decided(decision, &mut self.names),
            )));
        }
        if self.is_behind(found, &message) {
            self.hold(found, &message);
            return Ok(Judged::NotYet {
                until: moment.mono.saturating_add(PACKET_RETRY_MS),
            });
        }
        let packet = packet_of(view, &message, user, moment)?;
        if let Some(PacketRead::Bytes(bytes)) = &packet {
            self.batch_bytes += bytes.len();
        }
        if let Some(PacketRead::Missing | PacketRead::Growing | PacketRead::Linked) = packet
            && let Some(not_yet) = self.not_yet(found, moment, PATIENCE_MS, PACKET_RETRY_MS)
        {
            self.hold(found, &message);
            return Ok(not_yet);
        }
        if let (Some(PacketRead::OfAnother(owner)), Some(user)) = (&packet, user) {
            let rejection = Rejection::packet_of_another(*owner, user, &message, &found.file);
            return Ok(self
                .not_yet(found, moment, SECOND_LOOK_MS, SECOND_LOOK_MS)
                .unwrap_or_else(|| self.reject(&slip, rejection)));
        }
        let valid = match validate_message::check(&message, packet_input(packet.as_ref())) {
            Ok(valid) => valid,
            Err(violations) => {
                return Ok(self
                    .not_yet(found, moment, SECOND_LOOK_MS, SECOND_LOOK_MS)
                    .unwrap_or_else(|| {
                        let rejection =
                            Rejection::violations(&violations, &message, outbox, &found.file);
                        self.reject(&slip, rejection)
                    }));
            }
        };

        let posted = Posted {
            outbox,
            digest,
            valid: &valid,
        };
        match review::decide(&self.state, &self.policy, posted, moment.utc) {
            Ok(decision) => Ok(Judged::Decided(Box::new(
                slip.decided(decision, &mut self.names),
            ))),
            Err(refusal) => Ok(self.reject(
                &slip,
                Rejection::refusal(refusal, &message, valid.packet(), &found.file),
            )),
        }
    }

    fn reject(&mut self, slip: &Slip<'_>, rejection: Rejection) -> Judged {
        Judged::Decided(Box::new(slip.refused(
            rejection,
            &self.state,
            &mut self.names,
        )))
    }

    /// Whether an earlier review message of this outbox to the same recipient still waits. Each wait
    /// for a packet has its end, and a file that its writer took back waits no more.
    fn is_behind(&mut self, found: &OutboxFile, message: &Message) -> bool {
        if self.held.is_empty() || !is_review(message) {
            return false;
        }
        let Self { held, intake, .. } = self;
        let own = key(found);
        held.retain(|held, _| *held == own || intake.is_waiting(&held.0, &held.1));
        let place = held.get(&own).map_or(u64::MAX, |held| held.place);
        let to: Vec<&str> = named_recipients(message).collect();
        let earlier = held
            .iter()
            .filter(|((agent, _), held)| *agent == own.0 && held.place < place);
        earlier
            .into_iter()
            .any(|(_, held)| held.to.iter().any(|one| to.contains(&one.as_str())))
    }

    fn hold(&mut self, found: &OutboxFile, message: &Message) {
        if is_review(message) && !self.held.contains_key(&key(found)) {
            self.held_count += 1;
            let held = Held {
                place: self.held_count,
                to: named_recipients(message).map(str::to_owned).collect(),
            };
            self.held.insert(key(found), held);
        }
    }

    /// More time for a file that has not been still for as long as it may take to finish it.
    fn not_yet(
        &mut self,
        found: &OutboxFile,
        moment: Moment,
        patience: u64,
        retry: u64,
    ) -> Option<Judged> {
        let written_ago = moment.utc.timestamp_millis() - found.stamp.mtime_ns / 1_000_000;
        if u64::try_from(written_ago).is_ok_and(|ago| ago >= patience) {
            return None;
        }
        let (stamp, since) = self
            .waits
            .entry(key(found))
            .or_insert((found.stamp, moment.mono));
        if *stamp != found.stamp {
            (*stamp, *since) = (found.stamp, moment.mono);
        }
        let over = since.saturating_add(patience);
        (moment.mono < over).then(|| Judged::NotYet {
            until: over.min(moment.mono.saturating_add(retry)),
        })
    }
}

fn on_the_roll<'a>(agents: &'a [AgentName], name: &str) -> Option<&'a AgentName> {
    agents
        .binary_search_by(|agent| agent.as_str().cmp(name))
        .ok()
        .map(|place| &agents[place])
}

fn key(found: &OutboxFile) -> (String, FileName) {
    (found.agent.clone(), found.file.clone())
}

fn is_review(message: &Message) -> bool {
    message.kind().is_some_and(|kind| kind.is_review())
}

fn packet_of(
    view: &View<'_>,
    message: &Message,
    owner: Option<u32>,
    moment: Moment,
) -> Result<Option<PacketRead>, SpoolError> {
    let Some(path) = message.packet_path() else {
        return Ok(None);
    };
    view.read_packet(path.as_str(), SIZE_MAX, owner, moment.spool())
        .map(Some)
}

pub(crate) fn unfit_to_be_read(unfit: Unfit, file: &FileName) -> Rejection {
    let code = match unfit {
        Unfit::TooLarge(_) => Code::TooLarge,
        Unfit::Symlink | Unfit::Directory | Unfit::Special | Unfit::HardLink => Code::NotAFile,
    };
    Rejection::unfit(
        code,
        file,
        &unfit.to_string(),
        "write a regular file into the outbox",
    )
}

fn packet_input(packet: Option<&PacketRead>) -> PacketInput<'_> {
    match packet {
        None => PacketInput::NotNamed,
        Some(PacketRead::Bytes(bytes)) => PacketInput::Bytes(bytes),
        Some(PacketRead::Missing) => PacketInput::Missing,
        Some(PacketRead::Growing) => PacketInput::Unsafe("it is still being written".to_owned()),
        Some(PacketRead::Linked) => {
            PacketInput::Unsafe("it is a file with several names".to_owned())
        }
        Some(PacketRead::Unsafe(reason)) => PacketInput::Unsafe((*reason).to_owned()),
        Some(PacketRead::TooLarge) => PacketInput::TooLarge,
        Some(PacketRead::OfAnother(_)) => {
            PacketInput::Unsafe("it belongs to another user".to_owned())
        }
    }
}
