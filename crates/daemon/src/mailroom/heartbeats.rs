//! Exchanges heartbeats between the hosts that share the ledger: sends this host's state every few seconds, and keeps
//! what the others sent for commands that show it. They decide nothing.

use std::collections::{BTreeMap, VecDeque};

use chrono::{DateTime, TimeDelta, Utc};
use spool::HostName;
use workspace::clock::Moment;
use workspace::heartbeat::{self, HeardHost, HostState};

use super::{Mailroom, Sharing};

/// The number of ended daemon runs of other hosts to remember.
const ENDED_MAX: usize = 1_000;

/// The heartbeats of the other hosts, and this host's next one.
#[derive(Default)]
pub(super) struct Heartbeats {
    heard: BTreeMap<HostName, HeardHost>,
    /// Daemon runs of other hosts that a later run replaced, the oldest first.
    ended: VecDeque<(HostName, DateTime<Utc>)>,
    /// The monotonic time of the next heartbeat.
    speak_at: u64,
    /// The start of this daemon run, and the number of its next heartbeat.
    started: Option<DateTime<Utc>>,
    number: u64,
}

impl Heartbeats {
    /// The hosts that are heard now, each with the lead of its clock over this host's.
    pub(super) fn clocks(
        &self,
        now: DateTime<Utc>,
    ) -> impl Iterator<Item = (&HostName, TimeDelta)> {
        let is_heard = move |heard: &&HeardHost| (now - heard.heard_at).abs() <= heartbeat::SILENT;
        let heard = self.heard.values().filter(is_heard);
        heard.map(|heard| (&heard.state.host, heard.clock_ahead()))
    }

    /// True if this heartbeat is newer than all that are known of its host. One that somebody recorded and sends again
    /// is not.
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

impl Mailroom {
    /// Sends this host's heartbeat if it is due, and notes those of the others.
    pub(super) fn exchange_heartbeats(&mut self, moment: Moment) {
        let seq = self.spool.head().seq;
        let Some(shared) = &mut self.shared else {
            return;
        };
        let Sharing {
            workspace,
            host,
            fleet,
            log,
            keys,
            ..
        } = &mut shared.sharing;
        let beats = &mut shared.heartbeats;
        let mut is_news = false;
        for heartbeat in log.heartbeats() {
            let Some(state) = heartbeat::heard(&heartbeat.bytes, workspace, fleet, &**keys) else {
                continue;
            };
            if state.host == *host || !beats.is_newer(&state) {
                continue;
            }
            let waited = i64::try_from(heartbeat.waited_ms).unwrap_or(i64::MAX);
            beats.note(HeardHost {
                heard_at: moment.utc - TimeDelta::milliseconds(waited),
                behind: seq.saturating_sub(state.seq),
                state,
            });
            is_news = true;
        }
        if moment.mono >= beats.speak_at {
            beats.speak_at = moment.mono.saturating_add(heartbeat::EVERY_MS);
            let state = HostState {
                host: host.clone(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                seq,
                standing: shared.standing.word().to_owned(),
                at: moment.utc,
                started: *beats.started.get_or_insert(moment.utc),
                number: beats.number,
            };
            beats.number += 1;
            log.send_heartbeat(heartbeat::written(&state, workspace, &**keys));
        }
        if is_news {
            heartbeat::save(&self.root, beats.heard.values());
        }
    }
}
