//! Has the disk write deliveries before the checkpoint makes them durable. The checkpoint of many files is one call for
//! the whole file system. Beside a flood, that call takes as long as writing a second's worth of the flood, and mail
//! would wait for it.

use std::io;
use std::path::Path;
use std::thread::JoinHandle;

use spool::{Disk as _, Os, SpoolError};
use workspace::clock::Moment;

use super::{Daemon, DaemonError};

/// The pause between two looks at a running flush, in milliseconds.
const LOOK_MS: u64 = 20;

/// The thread of a running flush, if there is one.
#[derive(Default)]
pub(super) struct Flush(Option<JoinHandle<io::Result<()>>>);

impl Flush {
    /// Starts the flush or checks its progress. True once everything that existed at its start is written, or if no
    /// thread could be started. An error is final: the kernel may not report it again to the checkpoint that follows.
    fn is_done(&mut self, root: &Path) -> io::Result<bool> {
        match self.0.take() {
            None => {
                let root = root.to_owned();
                let flushing = std::thread::Builder::new().name("flush".to_owned());
                self.0 = flushing.spawn(move || flush(&root)).ok();
                Ok(self.0.is_none())
            }
            Some(flushing) if flushing.is_finished() => {
                let flushed = flushing.join();
                flushed
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                    .map(|()| true)
            }
            Some(flushing) => {
                self.0 = Some(flushing);
                Ok(false)
            }
        }
    }
}

fn flush(root: &Path) -> io::Result<()> {
    let root = Os.open_root(root)?;
    Os.sync_file_system(&root).map(drop)
}

impl Daemon<'_> {
    /// Makes deliveries durable once most of them are written; returns when to look again.
    pub(super) fn checkpoint_flushed(&mut self, now: Moment) -> Result<Option<u64>, DaemonError> {
        let root = self.mailroom.root();
        if self.mailroom.syncs_whole_disk() {
            let is_done = self.flush.is_done(root);
            let is_done = is_done.map_err(|source| SpoolError::Fatal {
                operation: "sync",
                path: root.to_owned(),
                source,
            })?;
            if !is_done {
                return Ok(Some(now.mono + LOOK_MS));
            }
        }
        Ok(self.checkpoint()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn awaited(flush: &mut Flush, root: &Path) -> io::Result<bool> {
        loop {
            match flush.is_done(root) {
                Ok(false) => std::thread::sleep(std::time::Duration::from_millis(1)),
                done => return done,
            }
        }
    }

    #[test]
    fn a_flush_ends_and_keeps_no_error_to_itself() {
        let root = tempfile::tempdir().expect("a directory");
        let mut flush = Flush::default();
        assert!(!flush.is_done(root.path()).expect("a thread"), "it begins");
        assert!(awaited(&mut flush, root.path()).expect("a flush"));
        let missing = root.path().join("missing");
        assert!(awaited(&mut flush, &missing).is_err());
    }
}
