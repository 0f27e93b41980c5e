//! The way of a message, on one page: found, read, checked, decided, committed, delivered.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use message_schema::id::AgentName;
use message_schema::{Code, Message};
use review::{ContentDigest, Policy, Posted, Record, State};
use spool::{
    Body, Draft, FileName, Found, Intake, Os, PacketRead, QUIET_MS, Recovery, Spool, SpoolError, Stamp, Unfit,
};
use validate_message::PacketInput;

use crate::clock::Moment;
use crate::config::{Config, ConfigError};
use crate::draft::Slip;
use crate::fold;
use crate::names::NameBook;
use crate::rejection::Rejection;
use crate::workspace;

/// The largest message and the largest packet, in bytes.
const SIZE_MAX: u64 = 256 * 1024;

/// The most messages that are judged and committed together.
const BATCH_MAX: usize = 256;

/// How long, in milliseconds, an empty or cut-off file and a missing or growing packet are given.
const PATIENCE_MS: u64 = 5_000;

/// How long, in milliseconds, any other file is given before it is refused for what it says: a
/// writer that appends in several goes is whole again by then.
const SECOND_LOOK_MS: u64 = 500;

/// How soon, in milliseconds, a packet is looked for again.
const PACKET_RETRY_MS: u64 = 50;

/// What stops the mailroom.
#[derive(Debug, thiserror::Error)]
pub enum MailroomError {
    /// The config cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The disk or the ledger.
    #[error(transparent)]
    Spool(#[from] SpoolError),
}

/// A workspace being served: the only writer of its ledger.
pub struct Mailroom {
    root: PathBuf,
    config: Config,
    agents: Vec<AgentName>,
    policy: Policy,
    spool: Spool,
    intake: Intake,
    state: State,
    names: NameBook,
    /// Files that were given time, and since when they have been the same.
    waits: HashMap<(String, FileName), (Stamp, u64)>,
}

/// What one pass did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Messages accepted.
    pub accepted: usize,
    /// Messages refused.
    pub refused: usize,
    /// Messages put away as duplicates.
    pub duplicates: usize,
    /// Files made in mailboxes.
    pub delivered: usize,
}

impl Pass {
    /// Whether anything happened.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A judgement: something to commit, or a moment more for the file.
enum Judged {
    Decided(Box<Draft>, Record),
    NotYet { until: u64 },
}

impl Mailroom {
    /// Opens the workspace: takes the lock, folds the ledger, finishes what was left undone.
    pub fn open(root: &Path) -> Result<(Self, Recovery), MailroomError> {
        let config = Config::load(root)?;
        let mut state = State::default();
        let mut names = NameBook::default();
        let opened = Spool::open(root, Arc::new(Os), &mut |entry| {
            names.note(entry);
            fold::fold(&mut state, entry).map_err(Into::into)
        })?;
        let mut mailroom = Self {
            root: root.to_owned(),
            policy: config.policy([]),
            config,
            agents: Vec::new(),
            spool: opened.spool,
            intake: Intake::new(SIZE_MAX, QUIET_MS),
            state,
            names,
            waits: HashMap::new(),
        };
        mailroom.call_the_roll()?;
        Ok((mailroom, opened.recovery))
    }

    /// Looks who has a mailbox now, and through every outbox. Gives the outboxes that are new.
    pub fn sweep(&mut self) -> Result<Vec<PathBuf>, SpoolError> {
        let new = self.call_the_roll()?;
        let agents: Vec<String> = self.agents.iter().map(ToString::to_string).collect();
        for trouble in self.intake.scan(&self.spool, &agents) {
            tracing::warn!(error = %chain(&trouble), "an outbox cannot be listed; it is tried again");
        }
        Ok(new.iter().map(|agent| self.spool.layout().outbox(agent.as_str())).collect())
    }

    fn call_the_roll(&mut self) -> Result<Vec<AgentName>, SpoolError> {
        let agents = workspace::agents(&self.root)?;
        if agents == self.agents {
            return Ok(Vec::new());
        }
        let new = agents.iter().filter(|agent| !self.agents.contains(agent)).cloned().collect();
        self.policy = self.config.policy(agents.iter().cloned());
        self.agents = agents;
        Ok(new)
    }

    /// Notes what the watcher saw of a file.
    pub fn hint(&mut self, agent: &str, file: &FileName, hint: spool::Hint) {
        self.intake.hint(agent, file, hint);
    }

    /// Judges what is ready, at most one batch, commits it with one sync, and delivers it.
    ///
    /// A message is applied to the state when it is decided, so that later ones of the batch are
    /// judged after it; nothing is delivered before the commit. If the commit fails for want of
    /// room, the state is folded anew and the files are judged again later.
    pub fn pass(&mut self, moment: Moment) -> Result<Pass, SpoolError> {
        let taken = self.intake.take(&self.spool, moment.spool(), BATCH_MAX);
        for trouble in taken.troubles {
            tracing::warn!(error = %chain(&trouble), "a file cannot be read; it is tried again");
        }
        let mut pass = Pass::default();
        let mut drafts = Vec::with_capacity(taken.found.len());
        let mut records = Vec::with_capacity(taken.found.len());
        for found in &taken.found {
            let seq = self.spool.next_seq() + drafts.len() as u64;
            match self.judge(found, seq, moment)? {
                Judged::Decided(draft, record) => {
                    self.waits.remove(&(found.agent.clone(), found.file.clone()));
                    review::apply(&mut self.state, &record, moment.utc);
                    pass.count(&record);
                    drafts.push(*draft);
                    records.push(record);
                }
                Judged::NotYet { until } => self.intake.give_time(found, until),
            }
        }
        if !drafts.is_empty() {
            let expected = self.spool.next_seq();
            match self.spool.commit(expected, drafts) {
                Ok(committed) => {
                    for (entry, record) in committed.iter().zip(&records) {
                        log(entry, record);
                    }
                }
                Err(error) => {
                    self.start_over()?;
                    return Err(error);
                }
            }
        }
        let delivered = self.spool.deliver(moment.mono)?;
        pass.delivered = delivered.delivered;
        for parked in &delivered.parked {
            tracing::warn!(lane = ?parked.lane, waiting = parked.waiting, why = %parked.why, "a mailbox cannot be written; it is tried again");
        }
        for (agent, file) in &delivered.came_back {
            tracing::info!(%agent, %file, "its writer changed it after it was judged; it is judged again");
            self.intake.hint(agent, file, spool::Hint::Created);
        }
        Ok(pass)
    }

    /// From a file to what the ledger will say of it.
    fn judge(&mut self, found: &Found, seq: u64, moment: Moment) -> Result<Judged, SpoolError> {
        let outbox = self.agents.iter().find(|agent| agent.as_str() == found.agent).cloned();
        let outbox = outbox.expect("intake looks only into the outboxes of agents on the roll");
        let slip = Slip { found, outbox: &outbox, message: None, seq, moment };
        let (bytes, digest) = match &found.body {
            Body::Message { bytes, digest } => (bytes, digest),
            Body::Unfit(unfit) => return Ok(self.reject(&slip, &unfit_to_be_read(*unfit, &found.file))),
        };

        let message = match message_schema::parse(bytes) {
            Ok(message) => message,
            Err(malformed) => {
                let patience = if malformed.looks_cut_off() { PATIENCE_MS } else { SECOND_LOOK_MS };
                return Ok(self
                    .not_yet(found, moment, patience, patience)
                    .unwrap_or_else(|| self.reject(&slip, &Rejection::malformed(malformed, &found.file))));
            }
        };
        let slip = Slip { message: Some(&message), ..slip };

        let packet = self.packet_of(&message, moment)?;
        if let Some(PacketRead::Missing | PacketRead::Growing) = packet
            && let Some(not_yet) = self.not_yet(found, moment, PATIENCE_MS, PACKET_RETRY_MS)
        {
            return Ok(not_yet);
        }
        let valid = match validate_message::check(&message, packet_input(packet.as_ref())) {
            Ok(valid) => valid,
            Err(violations) => {
                return Ok(self.not_yet(found, moment, SECOND_LOOK_MS, SECOND_LOOK_MS).unwrap_or_else(
                    || {
                        let rejection = Rejection::violations(&violations, &message, &outbox, &found.file);
                        self.reject(&slip, &rejection)
                    },
                ));
            }
        };

        let posted = Posted { outbox: &outbox, digest: ContentDigest(digest.bytes()), valid: &valid };
        match review::decide(&self.state, &self.policy, posted, moment.utc) {
            Ok(decision) => {
                let (draft, record) = slip.decided(decision, &mut self.names);
                Ok(Judged::Decided(Box::new(draft), record))
            }
            Err(refusal) => Ok(self.reject(&slip, &Rejection::refusal(refusal, &message, &found.file))),
        }
    }

    fn reject(&mut self, slip: &Slip<'_>, rejection: &Rejection) -> Judged {
        let (draft, record) = slip.refused(rejection, &self.state, &mut self.names);
        Judged::Decided(Box::new(draft), record)
    }

    fn packet_of(&self, message: &Message, moment: Moment) -> Result<Option<PacketRead>, SpoolError> {
        let Some(path) = message.packet_path() else { return Ok(None) };
        self.spool.read_packet(path.as_str(), SIZE_MAX, moment.spool()).map(Some)
    }

    /// More time for a file that has not been still for as long as it may take to finish it.
    fn not_yet(&mut self, found: &Found, moment: Moment, patience: u64, retry: u64) -> Option<Judged> {
        let written_ago = moment.utc.timestamp_millis() - found.stamp.mtime_ns / 1_000_000;
        if u64::try_from(written_ago).is_ok_and(|ago| ago >= patience) {
            return None;
        }
        let key = (found.agent.clone(), found.file.clone());
        let (stamp, since) = self.waits.entry(key).or_insert((found.stamp, moment.mono));
        if *stamp != found.stamp {
            (*stamp, *since) = (found.stamp, moment.mono);
        }
        let over = since.saturating_add(patience);
        (moment.mono < over).then(|| Judged::NotYet { until: over.min(moment.mono.saturating_add(retry)) })
    }

    /// Forgets what was decided and not committed.
    fn start_over(&mut self) -> Result<(), SpoolError> {
        self.state = State::default();
        self.names = NameBook::default();
        let (state, names) = (&mut self.state, &mut self.names);
        spool::read_ledger(&self.root, &mut |entry| {
            names.note(entry);
            fold::fold(state, entry).map_err(Into::into)
        })?;
        Ok(())
    }

    /// Makes everything delivered so far survive a power cut.
    pub fn checkpoint(&mut self) -> Result<(), SpoolError> {
        self.spool.checkpoint()
    }

    /// When there is something to do without any event, on the monotonic clock; 0 for now.
    pub fn next_wakeup(&self) -> Option<u64> {
        [self.intake.next_wakeup(), self.spool.next_retry()].into_iter().flatten().min()
    }

    /// How many files are committed and not yet made or put away.
    pub fn undelivered(&self) -> usize {
        self.spool.waiting()
    }

    /// The outbox directory of every agent on the roll.
    pub fn outboxes(&self) -> impl Iterator<Item = (&AgentName, PathBuf)> {
        self.agents.iter().map(|agent| (agent, self.spool.layout().outbox(agent.as_str())))
    }

    /// The fold of the ledger.
    pub fn state(&self) -> &State {
        &self.state
    }
}

impl Pass {
    fn count(&mut self, record: &Record) {
        match record {
            Record::Accepted(_) => self.accepted += 1,
            Record::Duplicate { .. } => self.duplicates += 1,
            Record::Refused { .. } => self.refused += 1,
        }
    }
}

fn unfit_to_be_read(unfit: Unfit, file: &FileName) -> Rejection {
    let code = match unfit {
        Unfit::TooLarge(_) => Code::TooLarge,
        Unfit::Symlink | Unfit::Directory | Unfit::Special | Unfit::HardLink => Code::NotAFile,
    };
    Rejection::unfit(code, file, &unfit.to_string(), "write a regular file into the outbox")
}

fn packet_input(packet: Option<&PacketRead>) -> PacketInput<'_> {
    match packet {
        None => PacketInput::NotNamed,
        Some(PacketRead::Bytes(bytes)) => PacketInput::Bytes(bytes),
        Some(PacketRead::Missing) => PacketInput::Missing,
        Some(PacketRead::Growing) => PacketInput::Unsafe("it is still being written".to_owned()),
        Some(PacketRead::Unsafe(reason)) => PacketInput::Unsafe((*reason).to_owned()),
        Some(PacketRead::TooLarge) => PacketInput::TooLarge,
    }
}

fn log(entry: &spool::Committed, record: &Record) {
    let code = match record {
        Record::Refused { code, .. } => Some(code.as_str()),
        Record::Accepted(_) | Record::Duplicate { .. } => None,
    };
    let from = entry.original.as_ref().map(|original| original.outbox.as_str());
    let file = entry.original.as_ref().map(|original| original.file.to_string());
    tracing::info!(seq = entry.seq, verdict = %entry.kind, code, from, file, id = entry.id, review = entry.review);
}

/// The error with its causes, for a log line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
