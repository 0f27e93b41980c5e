//! Follows a ledger that several hosts share and decides what this host may record. A decision of this host goes to the
//! log first, and to this host's mirror once the log has it. `clocks` finds whose clock is wrong, and `heartbeats` exchanges
//! the hosts' states.

mod clocks;
mod heartbeats;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use chrono::{DateTime, Utc};
use fleet::{Fleet, FleetRefusal};
use message_schema::id::AgentName;
use review::{HostChange, Record, Review, ReviewKey, State};
use spool::log::{Appended, Head, HostKeys, HostName, Log, LogError, Signed};
use spool::{Committed, EntryDraft, Homes, Spool, SpoolError, join};
use workspace::clock::Moment;
use workspace::config;
use workspace::index;

pub(crate) use self::heartbeats::{PAST_MAX, PastHeads};

use self::heartbeats::Heartbeats;

/// The pause, in milliseconds, after the log could not be reached or gave no answer.
const RETRY_MS: u64 = 500;

/// The pause, in milliseconds, after the log gave its records and took none from this host. Only a change of the remote's
/// rights or rules ends that.
const REFUSED_MS: u64 = 2_000;

/// The parts that make a workspace one of several hosts.
pub struct Sharing {
    /// The workspace's name in the log, which every signature names.
    pub workspace: String,
    /// This host.
    pub host: HostName,
    /// The hosts in this host's ledger or, before it has any, the host that the log begins with.
    pub fleet: Fleet,
    /// The shared part of this host's `settled.toml`.
    pub policy: String,
    /// The log.
    pub log: Box<dyn Log>,
    /// Signs for this host.
    pub keys: Box<dyn HostKeys>,
    /// The public half of the key that it signs with, in the form the ledger has it.
    pub key: String,
    /// The command that lets this host join its log again.
    pub join: String,
}

/// The relation of this host's ledger to the shared one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharingState {
    /// This host's ledger follows the shared one.
    InStep,
    /// This host cannot reach the log, or got no answer: it accepts nothing, and loses nothing.
    Waiting {
        /// The time it began.
        since: DateTime<Utc>,
        /// The log's last answer.
        why: String,
    },
    /// The log holds a record that does not follow from this host's ledger.
    Frozen {
        /// The record.
        seq: u64,
        /// The rule.
        why: String,
    },
    /// A person must change this host before it can go on: it has an older version, another policy, or a retired key.
    Outdated {
        /// The missing part, and its fix.
        why: String,
    },
}

/// The sharing, and its current state.
pub(crate) struct SharedLedger {
    pub(crate) sharing: Sharing,
    pub(crate) sharing_state: SharingState,
    /// True for a command that lets this host join: it follows the log even if this host's key is not one of the fleet's.
    pub(crate) is_joining: bool,
    heartbeats: Heartbeats,
    /// Set while the log answers but takes no batch from this host.
    refusing: Option<Refusing>,
    /// A batch that the log may or may not have.
    pub(crate) unknown: Option<Signed>,
    /// The number of bytes the log takes, if it refused a batch for its size.
    too_large: Option<usize>,
    /// The end of the batch that broke a rule, if that froze this host.
    pub(crate) refused: Option<Head>,
    /// The last record of another host that raised the time, if it was ahead of this host's clock.
    record_ahead: Option<(HostName, DateTime<Utc>)>,
    /// The time of the next look at the log, on the monotonic clock.
    pub(crate) look_at: u64,
    pub(crate) has_changed: Arc<AtomicBool>,
    /// The last record.
    pub(crate) last: LastRecord,
    pub(crate) past: PastHeads,
}

/// A log that took no batch from this host.
#[derive(Debug)]
struct Refusing {
    since: DateTime<Utc>,
    /// The log's last answer.
    why: String,
    /// True once this host has judged again since that answer. Without another one there was nothing to append.
    is_tried_again: bool,
}

/// The parts of the last record, besides its digest, that limit later records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastRecord {
    /// Its time; no later record has an earlier one.
    pub(crate) at: DateTime<Utc>,
    /// True if the record names a host; every later record does too.
    pub(crate) names_host: bool,
}

impl Default for LastRecord {
    fn default() -> Self {
        Self {
            at: DateTime::UNIX_EPOCH,
            names_host: false,
        }
    }
}

impl SharingState {
    /// The state's word in metrics and in heartbeats.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            SharingState::InStep => "in_step",
            SharingState::Waiting { .. } => "waiting",
            SharingState::Frozen { .. } => "frozen",
            SharingState::Outdated { .. } => "stopped",
        }
    }

    /// The sentence for operators while this host waits, or does not go on.
    pub(crate) fn describe(&self) -> Option<String> {
        match self {
            SharingState::InStep => None,
            SharingState::Waiting { since, why } => Some(format!(
                "waiting for the shared ledger since {}: {why}; nothing is accepted here meanwhile, and nothing is lost",
                since.format("%Y-%m-%dT%H:%M:%SZ")
            )),
            SharingState::Frozen { seq, why } => Some(format!(
                "frozen at record {seq} of the shared ledger: {why}; nothing is judged or delivered here"
            )),
            SharingState::Outdated { why } => Some(format!(
                "this host stopped following the shared ledger: {why}"
            )),
        }
    }
}

impl Sharing {
    /// The agents at home on this host.
    pub(crate) fn homes(&self) -> Homes {
        let here = self.fleet.at_home(&self.host);
        Homes::of(here.map(ToString::to_string))
    }

    /// Checks that the other hosts accept what this one signs, as of its ledger's last record.
    fn check_key(&self) -> Result<(), FleetRefusal> {
        self.fleet.check_key(&self.host, &self.key)
    }

    /// Checks that this host may record the change. Only a join brings its key with it.
    pub(crate) fn check_change(&self, change: &HostChange) -> Result<(), FleetRefusal> {
        if !matches!(change, HostChange::Joined(_)) {
            self.check_key()?;
        }
        self.fleet.clone().change(change, &self.host)
    }
}

impl SharedLedger {
    pub(crate) fn new(
        mut sharing: Sharing,
        known: Fleet,
        last: LastRecord,
        past: PastHeads,
    ) -> Self {
        if !known.is_empty() {
            sharing.fleet = known;
        }
        Self {
            sharing,
            sharing_state: SharingState::InStep,
            is_joining: false,
            heartbeats: Heartbeats::default(),
            refusing: None,
            unknown: None,
            too_large: None,
            refused: None,
            record_ahead: None,
            look_at: 0,
            has_changed: Arc::new(AtomicBool::new(true)),
            last,
            past,
        }
    }

    /// The reason this host cannot go on, and the fix.
    fn lacks(&self) -> Option<String> {
        if let (Err(refusal), false) = (self.sharing.check_key(), self.is_joining) {
            let Sharing { host, join, .. } = &self.sharing;
            let (why, needs_new_key) = without_its_key(&refusal, host);
            let new_key = if needs_new_key { " --new-key" } else { "" };
            return Some(format!("{why}; `{join}{new_key}` lets it in again"));
        }
        self.has_other_policy().then(|| {
            "the policy in settled.toml differs from that of the other hosts; `settled host policy --take` takes theirs"
                .to_owned()
        })
    }

    /// True if the fleet's key of this host is the one held here. A flag for the name would not do: while this host was
    /// away, its key may have been retired and another machine may have joined under its name. Records with the key held
    /// here would then freeze all hosts.
    fn has_its_key(&self) -> bool {
        self.sharing.check_key().is_ok()
    }

    fn is_stopped_by_its_key(&self) -> bool {
        !self.has_its_key() && !self.is_joining
    }

    pub(crate) fn has_other_policy(&self) -> bool {
        let Sharing { fleet, policy, .. } = &self.sharing;
        let theirs = fleet.policy();
        theirs.is_some_and(|theirs| !config::is_same_policy(theirs, policy))
    }

    /// True if only a policy that differs from the fleet's stops this host.
    pub(crate) fn is_stopped_by_policy(&self) -> bool {
        let is_stopped = matches!(self.sharing_state, SharingState::Outdated { .. });
        is_stopped && self.has_other_policy() && !self.is_stopped_by_its_key()
    }

    /// Stops this host if it lacks something. A frozen host stays frozen: it lacks nothing.
    pub(crate) fn stop_if_it_lacks(&mut self) {
        let is_frozen = matches!(self.sharing_state, SharingState::Frozen { .. });
        if let (false, Some(why)) = (is_frozen, self.lacks()) {
            self.sharing_state = SharingState::Outdated { why };
        }
    }

    /// Stops this host as soon as it learns that its key is not the fleet's any more, so that it says so at once.
    pub(crate) fn stop_without_its_key(&mut self) {
        if self.is_stopped_by_its_key() {
            self.stop_if_it_lacks();
        }
    }

    /// Looks at the log again after a pause.
    pub(crate) fn pause(&mut self, moment: Moment) {
        self.look_at = self.look_at.max(moment.mono.saturating_add(RETRY_MS));
    }

    /// Replaces this host's policy and returns the previous one. A host that only the previous policy had stopped goes on.
    pub(crate) fn take_policy(&mut self, policy: String) -> String {
        let before = std::mem::replace(&mut self.sharing.policy, policy);
        if let SharingState::Outdated { .. } = self.sharing_state {
            self.sharing_state = SharingState::InStep;
        }
        self.stop_if_it_lacks();
        before
    }

    /// True if the other hosts can follow these records of this host. Since it judged them, somebody may have retired or
    /// replaced its key, or changed the policy: the records would freeze all hosts. The log takes a batch only behind the
    /// last record of this ledger, so no such change can come between this check and the append.
    fn may_record(&self, records: &[Record]) -> bool {
        let joins = |record| matches!(index::host_change(record), Some(HostChange::Joined(_)));
        let can_follow = !self.has_other_policy() && self.has_its_key();
        can_follow || records.iter().all(joins)
    }

    /// True if this host follows the log and has a key to record what it judges.
    pub(crate) fn may_judge(&self) -> bool {
        self.sharing_state == SharingState::InStep && self.has_its_key()
    }

    pub(crate) fn is_at_home(&self, agent: &AgentName) -> bool {
        self.sharing.fleet.home(agent) == Some(&self.sharing.host)
    }

    /// Commits what was judged for the very end of the ledger: in the log first, then in this host's mirror.
    pub(crate) fn commit(
        &mut self,
        spool: &mut Spool,
        drafts: Vec<EntryDraft>,
        records: &[Record],
        moment: Moment,
    ) -> Result<Vec<Committed>, SpoolError> {
        if self.sharing_state != SharingState::InStep || self.unknown.is_some() {
            let why = "this host waits for the log".to_owned();
            return Err(SpoolError::NotTaken { why });
        }
        if !self.may_record(records) {
            let why = "it was judged before a change of the hosts".to_owned();
            return Err(SpoolError::NotTaken { why });
        }
        if let Some(why) = self.clock_too_far_ahead(moment.utc) {
            self.wait(&why, moment);
            return Err(SpoolError::NotTaken { why });
        }
        let last = drafts.last().map(|draft| draft.at.clone());
        let Sharing {
            workspace,
            host,
            keys,
            ..
        } = &self.sharing;
        let batch = spool.propose(drafts, host)?;
        let signed = Signed::new(batch, workspace, host.clone(), &**keys);
        // The signature becomes durable while this host waits for the log. The batch itself is mirrored only once the log
        // has it; a signature without a batch fits no other.
        let (noted, appended) = join(
            || spool.note_signatures(std::slice::from_ref(&signed)),
            || self.append(&signed, moment),
        );
        appended?;
        if let Some(at) = last.and_then(|at| DateTime::parse_from_rfc3339(&at).ok()) {
            let at = at.to_utc();
            self.last = LastRecord {
                at,
                names_host: true,
            };
        }
        self.past.note_batch(&signed.batch);
        // If this cannot be written now, the batch comes again from the log.
        noted?;
        spool.mirror(&signed)
    }

    /// Appends a batch; every outcome but a commit is an error.
    fn append(&mut self, signed: &Signed, moment: Moment) -> Result<(), SpoolError> {
        let not_taken = |why: &str| {
            Err(SpoolError::NotTaken {
                why: why.to_owned(),
            })
        };
        match self.sharing.log.append(signed) {
            Ok(Appended::Committed) => {
                self.refusing = None;
                Ok(())
            }
            Ok(Appended::Moved(_)) => {
                self.look_at = 0;
                not_taken("another host's records came first")
            }
            Ok(Appended::Unknown(why)) => {
                self.unknown = Some(signed.clone());
                self.wait(&why, moment);
                not_taken(&why)
            }
            Err(error) => {
                self.failed(&error, moment);
                if let SharingState::Waiting { since, why } = &self.sharing_state {
                    self.refusing = Some(Refusing {
                        since: *since,
                        why: why.clone(),
                        is_tried_again: false,
                    });
                    self.look_at = moment.mono.saturating_add(REFUSED_MS);
                }
                not_taken(&error.to_string())
            }
        }
    }

    /// Follows the log again, because it gave its records. The next append shows whether it also takes any.
    pub(crate) fn goes_on(&mut self) {
        self.sharing_state = SharingState::InStep;
        self.refusing
            .take_if(|refusing| std::mem::replace(&mut refusing.is_tried_again, true));
    }

    /// The state for operators and other hosts. While the log refuses what this host judges, it is in step only to try
    /// again.
    pub(crate) fn told_state(&self) -> SharingState {
        match (&self.sharing_state, &self.refusing) {
            (SharingState::InStep, Some(Refusing { since, why, .. })) => SharingState::Waiting {
                since: *since,
                why: why.clone(),
            },
            (sharing_state, _) => sharing_state.clone(),
        }
    }

    /// True if this host reads the agent's outbox and delivers to it; without a shared ledger it is the only host.
    pub(crate) fn reads(shared: Option<&Self>, agent: &AgentName) -> bool {
        shared.is_none_or(|shared| shared.is_at_home(agent))
    }

    /// The number of bytes the log takes, if it refused the last batch for its size. Waits if that batch cannot be made
    /// smaller.
    pub(crate) fn take_too_large(&mut self, is_smallest: bool, moment: Moment) -> Option<usize> {
        let bytes_max = self.too_large.take()?;
        if is_smallest {
            let why = format!("it takes {bytes_max} bytes at once, and a record is larger");
            self.wait(&why, moment);
        }
        Some(bytes_max)
    }

    /// The time since which this host waits, if it does.
    pub(crate) fn waits_since(&self) -> Option<DateTime<Utc>> {
        match self.told_state() {
            SharingState::Waiting { since, .. } => Some(since),
            SharingState::InStep | SharingState::Frozen { .. } | SharingState::Outdated { .. } => {
                None
            }
        }
    }

    pub(crate) fn wait(&mut self, why: &str, moment: Moment) {
        let since = self.waits_since().unwrap_or(moment.utc);
        let why = why.to_owned();
        self.sharing_state = SharingState::Waiting { since, why };
        self.look_at = moment.mono.saturating_add(RETRY_MS);
    }

    pub(crate) fn failed(&mut self, error: &LogError, moment: Moment) {
        let why = error.to_string();
        match error {
            LogError::Unreachable { .. } | LogError::Denied { .. } => self.wait(&why, moment),
            // The next batch is a smaller one.
            LogError::TooLarge { bytes_max, .. } => self.too_large = Some(*bytes_max),
            LogError::TooNew(_) => {
                let why = format!("{why}; upgrade settled on this host");
                self.sharing_state = SharingState::Outdated { why };
            }
            LogError::RolledBack { ours, .. } => {
                let seq = ours.seq;
                self.sharing_state = SharingState::Frozen { seq, why };
            }
            LogError::Forked { at, .. } => {
                self.sharing_state = SharingState::Frozen { seq: *at, why }
            }
            LogError::Broken { .. } => {
                let seq = 0;
                self.sharing_state = SharingState::Frozen { seq, why };
            }
        }
    }

    /// True if the record of a deadline comes from a host that may fire it by then.
    pub(crate) fn may_fire(
        &self,
        state: &State,
        key: &ReviewKey,
        host: &HostName,
        at: DateTime<Utc>,
    ) -> bool {
        let Some(review) = state.review(key) else {
            return true;
        };
        let Some((deadline, _)) = review.deadline() else {
            return true;
        };
        let agent = awaited(review, key);
        self.sharing.fleet.may_fire_from(host, agent, deadline) <= at
    }

    /// True if this host recorded a deadline of this review away from the home of the agent it is about.
    pub(crate) fn is_away(&self, state: &State, key: &ReviewKey, host: &HostName) -> bool {
        let agent = state.review(key).map(|review| awaited(review, key));
        let home = agent.and_then(|agent| self.sharing.fleet.home(agent));
        home.is_some_and(|home| home != host)
    }
}

/// The reason a host stops whose key is not the fleet's, and whether it needs a new one to join again.
pub fn without_its_key(refusal: &FleetRefusal, host: &HostName) -> (String, bool) {
    match refusal {
        FleetRefusal::OtherKey(_) => {
            let why = format!(
                "another machine joined as host {host}, or this directory is an old copy: the key here is not that of host {host}; \
                 if this one has to go on instead, first run `settled host retire-key {host}` on another host"
            );
            (why, true)
        }
        FleetRefusal::RetiredKey(_) => (format!("the key of host {host} was retired"), true),
        FleetRefusal::UnknownHost(_)
        | FleetRefusal::AtHomeElsewhere { .. }
        | FleetRefusal::Homeless(_)
        | FleetRefusal::NotAHost(_)
        | FleetRefusal::Elsewhere { .. }
        | FleetRefusal::OtherPolicy => (format!("host {host} has not joined"), false),
    }
}

/// The agent that a deadline of this review waits for.
fn awaited<'r>(review: &'r Review, key: &'r ReviewKey) -> &'r AgentName {
    match review.phase.invocation() {
        Some(_) => review.reviewer(key),
        None => &key.author,
    }
}
