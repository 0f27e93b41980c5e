//! `serve --once`: judges and delivers what there is, and ends.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use spool::SpoolError;
use workspace::error::chain;

use super::file_limit::prove_room_for_files;
use super::{Daemon, DaemonError};
use crate::mailroom::{Pass, Sharing, SharingState};
use crate::schedule::Wakeup;

/// The time that `serve --once` gives files that may become finished or readable, in milliseconds: a little longer than
/// the longest patience with a file whose packet is missing.
const ONCE_FILES_MS: u64 = 6_000;

/// The time for which `serve --once` retries failed work, and the pause between tries, in milliseconds.
const ONCE_RETRY_MS: (u64, u64) = (1_000, 100);

/// The time that `serve --once` gives a silent log, in milliseconds: a cluster elects a new leader within it.
const ONCE_LOG_MS: u64 = 15_000;

/// The results of `serve --once`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    /// Messages accepted.
    pub accepted: usize,
    /// Messages refused.
    pub refused: usize,
    /// Messages archived as duplicates.
    pub duplicates: usize,
    /// Files that could not be delivered or put away, and one more if delivered files could not be synced.
    pub undelivered: usize,
    /// Outboxes and files that could not be read, and one more if the orders could not be listed.
    pub unread: usize,
}

/// The results of `serve --once` as one of the hosts that share a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedOnce {
    /// The results of judging on this host.
    pub tally: Tally,
    /// The state of this host at the end. Unless it is in step, it accepted nothing more.
    pub sharing_state: SharingState,
    /// True if agents came home to this host or left it; a second run then handles their mail.
    pub has_other_homes: bool,
}

/// Judges and delivers everything there is, waits for unfinished files, then stops.
pub fn serve_once(root: &Path) -> Result<Tally, DaemonError> {
    prove_room_for_files().map_err(DaemonError::Setup)?;
    let mut daemon = Daemon::open(root, None, Arc::default())?;
    daemon.serve_once(0)
}

/// Serves once as one of the hosts that share the ledger: takes over what the log has, at least up to record `end`,
/// then judges what is here. Returns whether this host is then in step with the log. Waits some seconds for a log that
/// does not answer.
pub fn serve_shared_once(
    root: &Path,
    sharing: Sharing,
    end: u64,
) -> Result<ServedOnce, DaemonError> {
    prove_room_for_files().map_err(DaemonError::Setup)?;
    let mut daemon = Daemon::open(root, Some(sharing), Arc::default())?;
    let tally = daemon.serve_once(end)?;
    let sharing_state = daemon.mailroom.sharing_state().cloned();
    Ok(ServedOnce {
        tally,
        sharing_state: sharing_state.expect("it shares a ledger"),
        has_other_homes: daemon.mailroom.has_other_homes(),
    })
}

/// Treats records that the shared ledger did not take as no result: the next pass or start judges them again.
fn untaken<T: Default>(done: Result<T, SpoolError>) -> Result<T, SpoolError> {
    match done {
        Err(SpoolError::NotTaken { .. }) => Ok(T::default()),
        done => done,
    }
}

/// Counts a checkpoint that failed as one file that is left over: the error names one path, and the next start syncs what
/// is left. Fails only if retrying is pointless.
fn unsynced(checkpoint: Result<(), SpoolError>) -> Result<usize, SpoolError> {
    match checkpoint {
        Ok(()) => Ok(0),
        Err(error) if error.is_retryable() => {
            tracing::warn!(error = %chain(&error), "could not sync delivered files; the next start does");
            Ok(1)
        }
        Err(error) => Err(error),
    }
}

impl Daemon<'_> {
    /// Repeats passes until nothing is left to do, then finishes what it began.
    fn serve_once(&mut self, end: u64) -> Result<Tally, DaemonError> {
        self.sweep_once()?;
        let mut moved_at = self.clock.read().mono;
        let mut head = self.mailroom.head();
        loop {
            let now = self.clock.read();
            let was_in_step = self.mailroom.is_in_step();
            let mut pass = untaken(self.mailroom.pass(now))?;
            pass.events += untaken(self.mailroom.keep_deadlines_in_turn(now))?.events;
            let done = self.clock.read().mono;
            // A pass may wait for the log. Its time does not count, because the files of this host had no use of it.
            moved_at += done.saturating_sub(now.mono);
            let is_in_step = self.mailroom.is_in_step();
            if !pass.is_empty() || self.mailroom.head() != head || is_in_step != was_in_step {
                moved_at = done;
                head = self.mailroom.head();
            }
            let Some(due) = self.next_try(moved_at, now.mono, end) else {
                break;
            };
            let wait = due.saturating_sub(self.clock.read().mono);
            std::thread::sleep(Duration::from_millis(wait));
            if self.mailroom.left_over().at(Wakeup::Sweep).is_some() {
                self.sweep_once()?;
            }
        }
        let now = self.clock.read();
        if self.mailroom.is_in_step() {
            untaken(self.mailroom.keep_deadlines(now.utc, now))?;
            untaken(self.mailroom.pass(now))?;
            self.look_for_changed_originals(now)?;
        }
        self.mailroom.finish(now)?;
        // An agent that closed its mailbox makes this fail, and keeps no snapshot from being made.
        let checkpoint = self.mailroom.checkpoint();
        self.mailroom.close();
        let unsynced = unsynced(checkpoint)?;
        let Pass {
            accepted,
            refused,
            duplicates,
            ..
        } = *self.mailroom.judged();
        Ok(Tally {
            accepted,
            refused,
            duplicates,
            undelivered: self.mailroom.undelivered() + unsynced,
            unread: self.mailroom.unread(),
        })
    }

    /// The time of the next try if nothing has happened since `moved_at` and the log must reach record `end`; none if
    /// the time to wait is over. All times are in milliseconds of the monotonic clock.
    fn next_try(&self, moved_at: u64, now: u64, end: u64) -> Option<u64> {
        let quiet = now.saturating_sub(moved_at);
        let (retry, pause) = ONCE_RETRY_MS;
        let mut left = self.mailroom.left_over();
        left.not_before(Wakeup::Sweep, now + pause);
        let has_followed = self.mailroom.is_in_step() && self.mailroom.head().seq >= end;
        if has_followed || quiet >= ONCE_LOG_MS {
            left.set(Wakeup::Log, None);
        }
        if quiet >= ONCE_FILES_MS {
            left.set(Wakeup::Look, None);
        }
        if quiet >= retry {
            left.set(Wakeup::Retry, None);
            left.set(Wakeup::Sweep, None);
        }
        left.next()
    }

    /// Lists every outbox that can be listed. An agent that locks its own outbox does not delay the start. Fails only if
    /// retrying is pointless; otherwise the mailroom's schedule has the retry.
    fn sweep_once(&mut self) -> Result<(), SpoolError> {
        match self.mailroom.sweep() {
            Err(error) if error.is_retryable() => {
                tracing::warn!(error = %chain(&error), "the sweep failed; will retry");
                Ok(())
            }
            result => result,
        }
    }
}

impl Tally {
    /// Adds up two runs in a row: the counts of both, and what the later one left over.
    #[must_use]
    pub fn then(self, later: Tally) -> Tally {
        Tally {
            accepted: self.accepted + later.accepted,
            refused: self.refused + later.refused,
            duplicates: self.duplicates + later.duplicates,
            ..later
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::UNIX_EPOCH;

    use super::super::tests::{opened, write_question};
    use super::*;

    #[test]
    fn a_mailbox_closed_before_the_last_sync_is_left_over_and_fails_no_run() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        let mut daemon = opened(root);
        let path = write_question(root, "q-1");
        let finished = File::options().write(true).open(path);
        let finished = finished.and_then(|file| file.set_modified(UNIX_EPOCH));
        finished.expect("a time to set");
        daemon.sweep_once().expect("a sweep");
        let mut now = daemon.clock.read();
        // A process that another test starts has the file open until it executes its program.
        while daemon.mailroom.pass(now).expect("a pass").accepted == 0 {
            now.mono += 1_000;
        }
        // Closes it for root as well.
        let sent = root.join("agents/claude/sent");
        let aside = root.join("agents/claude/aside");
        std::fs::rename(&sent, &aside).expect("a mailbox");
        std::fs::write(&sent, "closed").expect("a file");
        let tally = daemon.serve_once(0).expect("a tally");
        let left = Tally {
            accepted: 1,
            undelivered: 1,
            ..Tally::default()
        };
        assert_eq!(tally, left);
        drop(daemon);
        std::fs::remove_file(&sent).expect("what was in the way");
        std::fs::rename(&aside, &sent).expect("the mailbox");
        assert_eq!(serve_once(root).expect("the rest"), Tally::default());
    }

    #[test]
    fn two_runs_add_up_and_what_the_first_left_over_is_not_counted() {
        let of = |n| Tally {
            accepted: n,
            refused: n + 1,
            duplicates: n + 2,
            undelivered: n + 3,
            unread: n + 4,
        };
        let both = Tally {
            accepted: 30,
            refused: 32,
            duplicates: 34,
            undelivered: 23,
            unread: 24,
        };
        assert_eq!(of(10).then(of(20)), both);
    }
}
