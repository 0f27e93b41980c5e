//! Makes deliveries durable on a thread of its own: beside a flood that takes seconds, and mail need not wait for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use spool::{Checkpoint, SpoolError, SyncedCheckpoint};
use workspace::clock::Moment;
use workspace::error::chain;

use super::{Daemon, IDLE_MS, RETRY_MS};

/// The pause between two looks at a running checkpoint, in milliseconds.
const LOOK_MS: u64 = 20;

/// The checkpoint that is running, if there is one, and the last one's failure.
#[derive(Default)]
pub(super) struct Checkpoints {
    running: Option<Running>,
    /// Set once the daemon waits for the running checkpoint.
    is_awaited: Arc<AtomicBool>,
    /// The reason why the last checkpoint failed; a failure is logged once until it is over.
    pub(super) unsynced: Option<String>,
}

/// A thread that syncs. Without a checkpoint it has nothing to give back.
type Running = JoinHandle<Option<SyncedCheckpoint>>;

impl Checkpoints {
    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Returns the running checkpoint if it is done.
    fn done(&mut self) -> Option<SyncedCheckpoint> {
        let running = self.running.take_if(|running| running.is_finished());
        running.and_then(joined)
    }

    /// Waits for the running checkpoint.
    fn awaited(&mut self) -> Option<SyncedCheckpoint> {
        self.is_awaited.store(true, Ordering::Relaxed);
        self.running.take().and_then(joined)
    }
}

fn joined(running: Running) -> Option<SyncedCheckpoint> {
    let synced = running.join();
    synced.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Starts a thread that syncs the checkpoint sent to it. The daemon begins a checkpoint only once the thread runs, because a
/// lost checkpoint would block every later one.
fn thread() -> Option<(mpsc::Sender<Checkpoint>, Running)> {
    let (send, sent) = mpsc::channel();
    let thread = std::thread::Builder::new().name("checkpoint".to_owned());
    let running = thread.spawn(move || sent.recv().ok().map(Checkpoint::sync));
    Some((send, running.ok()?))
}

impl Daemon<'_> {
    /// Begins a checkpoint, or ends the one that is running; returns when to look again.
    pub(super) fn checkpoint_beside(&mut self, now: Moment) -> Result<Option<u64>, SpoolError> {
        if let Some(synced) = self.checkpoints.done() {
            let ended = self.mailroom.end_checkpoint(synced);
            let again = self.checkpointed(ended)?;
            // While mail keeps coming, no other moment has so little that is not durable.
            self.mailroom.rest(now);
            if self.checkpoints.unsynced.is_some() || !self.mailroom.wants_checkpoint_soon() {
                return Ok(again);
            }
        }
        let look = Some(now.mono + LOOK_MS);
        if self.checkpoints.is_running() {
            return Ok(look);
        }
        let Some((send, running)) = thread() else {
            let ended = self.mailroom.checkpoint();
            return self.checkpointed(ended);
        };
        match self.mailroom.begin_checkpoint(&self.checkpoints.is_awaited) {
            Ok(Some(begun)) => {
                send.send(begun).expect("the thread waits for it");
                self.checkpoints.running = Some(running);
                Ok(look)
            }
            ended => self.checkpointed(ended.map(drop)),
        }
    }

    /// Makes everything durable, and waits until it is. For the end.
    pub(super) fn checkpoint_now(&mut self) -> Result<(), SpoolError> {
        if let Some(synced) = self.checkpoints.awaited() {
            let ended = self.mailroom.end_checkpoint(synced);
            self.checkpointed(ended)?;
        }
        let ended = self.mailroom.checkpoint();
        self.checkpointed(ended).map(drop)
    }

    /// Returns when the next checkpoint is due after one that ended.
    fn checkpointed(&mut self, ended: Result<(), SpoolError>) -> Result<Option<u64>, SpoolError> {
        let now = self.clock.read().mono;
        match ended {
            Ok(()) => {
                self.checkpoints.unsynced = None;
                Ok(self.mailroom.wants_checkpoint().then_some(now + IDLE_MS))
            }
            Err(error) if error.is_retryable() => {
                let why = chain(&error);
                if self.checkpoints.unsynced.as_ref() != Some(&why) {
                    tracing::warn!(error = %why, "could not sync delivered files; will retry");
                    self.checkpoints.unsynced = Some(why);
                }
                Ok(Some(now + RETRY_MS))
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{opened, write_question};
    use super::*;

    /// Delivers a question of claude's.
    fn deliver(daemon: &mut Daemon<'_>, id: &str) -> Moment {
        let path = write_question(daemon.mailroom.root(), id);
        let file = std::fs::File::options().write(true).open(path);
        let finished = file.and_then(|file| file.set_modified(std::time::UNIX_EPOCH));
        finished.expect("a time to set");
        daemon.mailroom.sweep().expect("a sweep");
        let now = daemon.clock.read();
        // A process that another test starts has the file open until it executes its program.
        let mut later = (0..100).map(|n| Moment {
            mono: now.mono + 1_000 * n,
            ..now
        });
        let is_accepted = |at| daemon.mailroom.pass(at).expect("a pass").accepted == 1;
        assert!(later.any(is_accepted));
        now
    }

    #[test]
    fn what_is_delivered_beside_a_checkpoint_waits_for_a_quiet_moment() {
        let root = tempfile::tempdir().expect("a directory");
        let mut daemon = opened(root.path());
        let now = deliver(&mut daemon, "q-1");
        let look = daemon.checkpoint_beside(now).expect("a checkpoint");
        assert_eq!(look, Some(now.mono + LOOK_MS));
        assert!(daemon.checkpoints.is_running());

        let now = deliver(&mut daemon, "q-2");
        let running = daemon.checkpoints.running.as_ref().expect("it runs");
        while !running.is_finished() {
            std::thread::yield_now();
        }
        let again = daemon.checkpoint_beside(now).expect("its end");
        assert!(again.is_some_and(|again| again >= now.mono + IDLE_MS));
        assert!(!daemon.checkpoints.is_running());
        daemon.checkpoint_now().expect("the other one");
        let now = daemon.clock.read();
        assert_eq!(daemon.checkpoint_beside(now).expect("nothing"), None);
    }
}
