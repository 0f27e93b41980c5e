//! Sweeps the outboxes and watches them. The watcher's hints make delivery fast; the sweep finds what they miss.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use message_schema::id::AgentName;
use spool::{FileName, SpoolError};
use workspace::clock::Moment;
use workspace::error::chain;

use super::{Daemon, SWEEP_MS};
use crate::docket::on_the_roll;
use crate::schedule::Duty;
use crate::watch::Watch;

/// The pause between two sweeps is this many times as long as a sweep, up to the maximum below, in milliseconds.
const SWEEP_PAUSE: u64 = 30;
const SWEEP_MAX_MS: u64 = 10_000;

impl Daemon<'_> {
    pub(super) fn start_watching(&mut self) {
        let (watch, started) = Watch::start();
        self.watch = watch;
        if let Err(error) = started {
            tracing::warn!(error = %chain(&error), "no events from the file system; the sweep finds everything");
        }
    }

    /// Continues the sweep or begins one, and returns when to call it again. An agent that locks its own outbox does
    /// not delay the start. Fails only if retrying is pointless.
    pub(super) fn sweep(&mut self, now: Moment) -> Result<u64, SpoolError> {
        let (round, asked) = match self.sweeping {
            Some(going) => going,
            None => {
                self.sweep_again = false;
                // For orders it is enough to know that something changed.
                for directory in [&self.findings, &self.orders] {
                    keep(&mut self.watch, directory);
                }
                (self.mailroom.next_round(), now)
            }
        };
        let Self {
            mailroom,
            watch,
            outboxes,
            ..
        } = self;
        let swept = mailroom.sweep_on(round, &mut |agent, outbox| {
            watch_outbox(watch, outboxes, agent, outbox);
        });
        match swept {
            Ok(false) => {
                self.sweeping = Some((round, asked));
                return Ok(now.mono);
            }
            Ok(true) => self.swept(),
            Err(error) if error.is_retryable() => {
                tracing::warn!(error = %chain(&error), "the sweep failed; will retry");
            }
            Err(error) => return Err(error),
        }
        self.sweeping = None;
        if self.sweep_again {
            return Ok(now.mono);
        }
        let took = self.clock.read().mono.saturating_sub(asked.mono);
        Ok(now.mono + (SWEEP_PAUSE * took).clamp(SWEEP_MS, SWEEP_MAX_MS))
    }

    /// Notes that a sweep has listed every outbox.
    fn swept(&mut self) {
        let agents = self.mailroom.agents();
        self.outboxes
            .retain(|_, agent| on_the_roll(agents, agent).is_some());
        if let Some(ready) = self.ready.take() {
            ready(&self.mailroom);
            self.supervisor.ready(&self.mailroom.status_line());
        }
    }

    /// Passes on the watcher's hints. If it lost some, a sweep finds what happened.
    pub(super) fn take_hints(&mut self) {
        let seen = self.watch.take();
        for (directory, name, hint) in seen.hints {
            let Ok(name) = FileName::new(name.into_encoded_bytes()) else {
                continue;
            };
            if let Some(agent) = self.outboxes.get(&directory) {
                self.mailroom.hint(agent, &name, hint);
            } else if directory == self.orders {
                self.mailroom.hint_order();
            } else if directory == self.findings {
                self.mailroom.hint_packet(&name, hint);
            }
        }
        if seen.sweep {
            self.mailroom.doubt_hints();
            self.sweep_again = true;
            self.schedule.set(Duty::Sweep, Some(0));
        }
    }
}

/// Watches an outbox that is about to be listed: the listing finds earlier files, the watch sees later ones.
pub(super) fn watch_outbox(
    watch: &mut Watch,
    outboxes: &mut HashMap<PathBuf, String>,
    agent: &AgentName,
    outbox: &Path,
) {
    keep(watch, outbox);
    if !outboxes.contains_key(outbox) {
        outboxes.insert(outbox.to_owned(), agent.to_string());
    }
}

/// Watches a directory that is not watched yet or was replaced by another one.
fn keep(watch: &mut Watch, directory: &Path) {
    if let Err(error) = watch.keep(directory) {
        tracing::warn!(directory = %directory.display(), error = %chain(&error), "not watched; the sweep finds everything");
    }
}
