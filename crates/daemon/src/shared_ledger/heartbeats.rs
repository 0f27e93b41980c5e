//! Exchanges heartbeats between the hosts that share the ledger: sends this host's state every few seconds, and keeps
//! what the others sent for commands that show it. They decide one thing: a host stops that has another record than a host
//! it hears. A log that shows hosts different histories looks sound to each of them.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use spool::log::{Batch, Head};
use spool::{Digest, HostName};
use workspace::clock::Moment;
use workspace::heartbeat::{self, HeardHost, HostState};

use super::{SharedLedger, Sharing, SharingState};

/// The number of ended daemon runs of other hosts to remember.
const ENDED_MAX: usize = 1_000;

/// The number of past ends of this host's ledger to remember. A host that is further behind is compared once it has caught up.
pub(crate) const PAST_MAX: usize = 10_000;

/// The last ends that this host's ledger had, the oldest first.
#[derive(Default)]
pub(crate) struct PastHeads(VecDeque<Head>);

impl PastHeads {
    /// Notes the end after one more record.
    pub(crate) fn note(&mut self, head: Head) {
        if self.0.back().is_some_and(|last| last.seq >= head.seq) {
            return;
        }
        if self.0.len() == PAST_MAX {
            self.0.pop_front();
        }
        self.0.push_back(head);
    }

    /// Notes the end after each record of a batch.
    pub(crate) fn note_batch(&mut self, batch: &Batch) {
        let seqs = batch.entries().iter().map(|entry| entry.seq);
        seqs.filter_map(|seq| batch.head_at(seq))
            .for_each(|head| self.note(head));
    }

    /// The digest of this record here, if it is known.
    fn digest(&self, seq: u64) -> Option<Digest> {
        let at = self.0.binary_search_by_key(&seq, |head| head.seq).ok()?;
        Some(self.0[at].digest)
    }
}

/// The heartbeats of the other hosts, and this host's next one.
#[derive(Default)]
pub(crate) struct Heartbeats {
    heard: BTreeMap<HostName, HeardHost>,
    /// Daemon runs of other hosts that a later run replaced, the oldest first.
    ended: VecDeque<(HostName, DateTime<Utc>)>,
    /// The monotonic time of the next heartbeat.
    speak_at: u64,
    /// True if the last heartbeat said that this host is frozen. This host says so at once, because it ends the comparison
    /// on the other hosts.
    told_frozen: bool,
    /// The start of this daemon run, and the number of its next heartbeat.
    started: Option<DateTime<Utc>>,
    number: u64,
}

impl Heartbeats {
    /// The hosts that are heard now, each with the lead of its clock over this host's.
    pub(crate) fn clocks(
        &self,
        now: DateTime<Utc>,
    ) -> impl Iterator<Item = (&HostName, TimeDelta)> {
        self.heard_at(now)
            .map(|heard| (&heard.state.host, heard.clock_ahead()))
    }

    fn heard_at(&self, now: DateTime<Utc>) -> impl Iterator<Item = &HeardHost> {
        let is_heard = move |heard: &&HeardHost| (now - heard.heard_at).abs() <= heartbeat::SILENT;
        self.heard.values().filter(is_heard)
    }

    /// A host that follows the log, was heard lately, and has another record than this host: its name, the record's number,
    /// and its digest there and here. A host that does not follow knows that already.
    fn other_history(
        &self,
        past: &PastHeads,
        now: DateTime<Utc>,
    ) -> Option<(&HostState, Digest, Digest)> {
        self.heard_at(now).find_map(|HeardHost { state, .. }| {
            let (theirs, ours) = (state.digest?, past.digest(state.seq)?);
            let differs = theirs != ours && state.state == SharingState::InStep.word();
            differs.then_some((state, theirs, ours))
        })
    }

    /// True if this heartbeat is newer than all known ones of its host. A heartbeat that an attacker recorded and sends
    /// again is not newer.
    fn is_newer(&self, state: &HostState) -> bool {
        let is_over = |(host, started): &(HostName, DateTime<Utc>)| {
            *host == state.host && *started == state.started
        };
        let Some(HeardHost { state: known, .. }) = self.heard.get(&state.host) else {
            return true;
        };
        if known.started == state.started {
            known.number < state.number
        } else {
            !self.ended.iter().any(is_over)
        }
    }

    fn note(&mut self, heard: HeardHost) {
        let started = heard.state.started;
        let before = self.heard.insert(heard.state.host.clone(), heard);
        if let Some(HeardHost { state, .. }) = before.filter(|it| it.state.started != started) {
            if self.ended.len() == ENDED_MAX {
                self.ended.pop_front();
            }
            self.ended.push_back((state.host, state.started));
        }
    }
}

impl SharedLedger {
    /// The record that a host of another history has in the place of one here, and how they differ.
    pub(crate) fn other_history(&self, now: DateTime<Utc>) -> Option<(u64, String)> {
        let found = self.heartbeats.other_history(&self.past, now);
        let is_known = |host| self.sharing.fleet.key(host).is_some();
        let (HostState { host, seq, .. }, theirs, ours) =
            found.filter(|(state, ..)| is_known(&state.host))?;
        let why = format!(
            "host {host} follows the log and has {theirs}, here it is {ours}: the log shows hosts different histories"
        );
        Some((*seq, why))
    }

    /// Freezes this host if it hears one with another history.
    fn compare_histories(&mut self, now: DateTime<Utc>) {
        if self.sharing_state == SharingState::InStep
            && let Some((seq, why)) = self.other_history(now)
        {
            self.sharing_state = SharingState::Frozen { seq, why };
        }
    }

    /// Sends this host's heartbeat if it is due.
    fn send_heartbeat(&mut self, Head { seq, digest }: Head, moment: Moment) {
        let is_frozen = matches!(self.sharing_state, SharingState::Frozen { .. });
        let beats = &mut self.heartbeats;
        if moment.mono < beats.speak_at && (!is_frozen || beats.told_frozen) {
            return;
        }
        beats.told_frozen = is_frozen;
        beats.speak_at = moment.mono.saturating_add(heartbeat::EVERY_MS);
        let Sharing {
            workspace,
            host,
            log,
            keys,
            ..
        } = &mut self.sharing;
        let state = HostState {
            host: host.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seq,
            digest: Some(digest),
            state: self.sharing_state.word().to_owned(),
            at: moment.utc,
            started: *beats.started.get_or_insert(moment.utc),
            number: beats.number,
        };
        beats.number += 1;
        log.send_heartbeat(heartbeat::written(&state, workspace, &**keys));
    }

    /// Notes the heartbeats of the others, compares histories, and sends this host's heartbeat if it is due.
    pub(crate) fn exchange_heartbeats(&mut self, root: &Path, head: Head, moment: Moment) {
        let Sharing {
            workspace,
            host,
            fleet,
            log,
            keys,
            ..
        } = &mut self.sharing;
        let beats = &mut self.heartbeats;
        let mut is_news = false;
        for heartbeat in log.heartbeats() {
            let Some(state) = heartbeat::read_signed(&heartbeat.bytes, workspace, fleet, &**keys)
            else {
                continue;
            };
            if state.host == *host || !beats.is_newer(&state) {
                continue;
            }
            let waited = i64::try_from(heartbeat.waited_ms).unwrap_or(i64::MAX);
            beats.note(HeardHost {
                heard_at: moment.utc - TimeDelta::milliseconds(waited),
                behind: head.seq.saturating_sub(state.seq),
                state,
            });
            is_news = true;
        }
        self.compare_histories(moment.utc);
        self.send_heartbeat(head, moment);
        if is_news {
            heartbeat::save(root, self.heartbeats.heard.values());
        }
    }
}
