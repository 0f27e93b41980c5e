//! Sweeps the outboxes and watches them. The watcher's hints make delivery fast; the sweep finds what they miss.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use file_events::Watch;
use message_schema::id::AgentName;
use spool::{FileName, SpoolError, dirs};
use workspace::clock::Moment;
use workspace::error::chain;

use super::{Daemon, SWEEP_MS};
use crate::docket::find_agent;
use crate::schedule::Duty;

/// The pause between two sweeps is this many times as long as a sweep, up to the maximum below, in milliseconds.
const SWEEP_PAUSE: u64 = 30;
const SWEEP_MAX_MS: u64 = 10_000;

/// The most hints between two passes; the others wait for the next round of the loop.
const HINTS_PER_ROUND: usize = 256;

/// The most packets that the daemon looks at because of a hint between two passes. It looks at the others when a message
/// names them.
const PACKETS_PER_ROUND: usize = 16;

/// The time in milliseconds during which a throttled directory does not wake the daemon: an outbox in which a look led to
/// nothing that could be judged, and that of the packets after several changed at once.
const THROTTLED_MS: u64 = 5;

impl Daemon<'_> {
    pub(super) fn start_watching(&mut self) {
        let (watch, started) = Watch::start(may_matter);
        self.watch = watch;
        if let Err(error) = started {
            tracing::warn!(error = %chain(&error), "no events from the file system; the sweep finds everything");
        }
    }

    /// Continues the sweep or begins one, and returns when to call it again. An agent that locks its own outbox does
    /// not delay the start. Fails only if retrying is pointless.
    pub(super) fn sweep(&mut self, now: Moment) -> Result<u64, SpoolError> {
        let (sweep, asked) = match self.sweeping {
            Some(going) => going,
            None => {
                self.sweep_again = false;
                // For orders it is enough to know that something changed.
                warn_unwatched(&self.orders, self.watch.keep(&self.orders));
                warn_unwatched(&self.findings, self.watch.keep(&self.findings));
                (self.mailroom.next_sweep(), now)
            }
        };
        let Self {
            mailroom,
            watch,
            outboxes,
            ..
        } = self;
        let swept = mailroom.sweep_on(sweep, &mut |agent, outbox| {
            watch_outbox(watch, outboxes, agent, outbox);
        });
        match swept {
            Ok(false) => {
                self.sweeping = Some((sweep, asked));
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
        let Self {
            mailroom,
            watch,
            outboxes,
            orders,
            findings,
            ..
        } = self;
        let agents = mailroom.agents();
        let before = outboxes.len();
        outboxes.retain(|_, agent| find_agent(agents, agent).is_some());
        if outboxes.len() < before {
            watch.retain(|directory| {
                outboxes.contains_key(directory) || directory == orders || directory == findings
            });
        }
        if let Some(ready) = self.ready.take() {
            ready(&self.mailroom);
            self.supervisor.ready(&self.mailroom.status_line());
        }
    }

    /// Passes on some of the watcher's hints. If it lost some, a sweep finds what happened.
    pub(super) fn take_hints(&mut self) {
        let mut throttled: HashSet<PathBuf> = self.mailroom.take_fruitless().collect();
        if self.has_many_packets {
            throttled.insert(self.findings.clone());
        }
        let rested = self.clock.read().mono + THROTTLED_MS;
        self.schedule
            .set(Duty::Hints, (!throttled.is_empty()).then_some(rested));
        let seen = self.watch.take(HINTS_PER_ROUND, throttled);
        let mut packets = 0;
        for (directory, names) in seen.hints {
            let names = names.into_iter().map(OsString::into_encoded_bytes);
            let names = names.filter_map(|name| FileName::new(name).ok());
            if let Some(agent) = self.outboxes.get(&directory) {
                names.for_each(|name| self.mailroom.hint(agent, &name));
            } else if directory == self.orders {
                self.mailroom.hint_order();
            } else if directory == self.findings {
                for name in names {
                    packets += 1;
                    if packets <= PACKETS_PER_ROUND {
                        self.mailroom.hint_packet(&name);
                    } else {
                        self.mailroom.note_packet(&name);
                    }
                }
            }
        }
        self.has_many_packets = packets > 1;
        for directory in seen.lost {
            if let Some(agent) = self.outboxes.get(&directory) {
                self.mailroom.hint_outbox(agent);
            } else if directory == self.orders {
                self.mailroom.hint_order();
            }
        }
        if seen.sweep {
            self.sweep_again = true;
            self.schedule.set(Duty::Sweep, Some(0));
        }
    }
}

/// False for a file in an outbox that can be no message.
fn may_matter(directory: &Path, name: &OsStr) -> bool {
    // The name of a message needs no look at the path.
    FileName::new(name.as_encoded_bytes()).is_ok_and(|name| spool::is_candidate(&name))
        || !directory.ends_with(dirs::OUTBOX)
}

/// Watches an outbox that is about to be listed: the listing finds earlier files, the watch sees later ones.
pub(super) fn watch_outbox(
    watch: &mut Watch,
    outboxes: &mut HashMap<PathBuf, String>,
    agent: &AgentName,
    outbox: &Path,
) {
    warn_unwatched(outbox, watch.keep(outbox));
    if !outboxes.contains_key(outbox) {
        outboxes.insert(outbox.to_owned(), agent.to_string());
    }
}

/// Warns if a directory cannot be watched.
fn warn_unwatched(directory: &Path, kept: Result<bool, file_events::Error>) {
    if let Err(error) = kept {
        tracing::warn!(directory = %directory.display(), error = %chain(&error), "not watched; the sweep finds everything");
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::tests::{opened, write_question};
    use super::*;

    #[test]
    fn a_sweep_knows_the_outboxes_there_are_and_the_next_one_is_seconds_later() {
        let root = tempfile::tempdir().expect("a directory");
        let ready = Cell::new(0);
        let mut daemon = opened(root.path());
        daemon.ready = Some(Box::new(|mailroom| {
            ready.set(ready.get() + mailroom.agents().len());
        }));
        let mut swept = |ready: &Cell<usize>| {
            let now = daemon.clock.read();
            let next = loop {
                let at = daemon.sweep(now).expect("a sweep");
                if daemon.sweeping.is_none() {
                    break at - now.mono;
                }
            };
            assert!((SWEEP_MS..=SWEEP_MAX_MS).contains(&next), "{next} ms");
            let mut outboxes: Vec<&str> = daemon.outboxes.values().map(String::as_str).collect();
            outboxes.sort_unstable();
            format!("{} {}", outboxes.join(" "), ready.get())
        };
        assert_eq!(swept(&ready), "claude codex 2");
        std::fs::remove_dir_all(root.path().join("agents/codex")).expect("an agent to remove");
        assert_eq!(swept(&ready), "claude 2", "it is ready once");
    }

    #[test]
    fn an_outbox_wakes_the_daemon_later_after_a_hint_that_led_to_nothing() {
        let root = tempfile::tempdir().expect("a directory");
        let mut daemon = opened(root.path());
        let now = daemon.clock.read();
        write_question(root.path(), "q-1");
        let mut throttles_after = |file: &str| {
            daemon
                .mailroom
                .hint("claude", &file.parse().expect("a name"));
            daemon.pass(now).expect("a pass");
            daemon.take_hints();
            daemon.schedule.at(Duty::Hints).is_some()
        };
        assert!(!throttles_after("q-1.yaml"), "it was judged");
        assert!(throttles_after("gone.yaml"));
    }
}
