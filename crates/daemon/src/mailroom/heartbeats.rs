//! The heartbeats of hosts that share the ledger: this one says every few seconds how it is, and keeps what it hears of the
//! others for those who look. Nothing is decided by them.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use spool::HostName;
use workspace::clock::Moment;
use workspace::heartbeat::{self, HeardHost, HostState};

use super::{Mailroom, Sharing};

/// The heartbeats of the other hosts, and the time of this host's next one.
#[derive(Default)]
pub(super) struct Heartbeats {
    heard: BTreeMap<HostName, HeardHost>,
    /// On the monotonic clock.
    speak_at: u64,
}

impl Mailroom {
    /// Says how this host is if it is time, and notes what the others said.
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
            let known = beats.heard.get(&state.host);
            // One that was recorded on its way and sent again is older than what is known.
            if state.host == *host || known.is_some_and(|known| known.state.at >= state.at) {
                continue;
            }
            let waited = i64::try_from(heartbeat.waited_ms).unwrap_or(i64::MAX);
            let heard = HeardHost {
                heard_at: moment.utc - TimeDelta::milliseconds(waited),
                behind: seq.saturating_sub(state.seq),
                state,
            };
            beats.heard.insert(heard.state.host.clone(), heard);
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
            };
            log.send_heartbeat(heartbeat::written(&state, workspace, &**keys));
        }
        if is_news {
            heartbeat::save(&self.root, beats.heard.values());
        }
    }
}
