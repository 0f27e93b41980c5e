//! A ledger on this disk as a log: the reference for all other logs, and the way to put a mirror's records back into a
//! log.

use std::path::Path;
use std::sync::Arc;

use super::signatures::Signatures;
use super::{Appended, Batch, Head, HostName, Log, LogError, OnChange, Signed};
use crate::ledger::Ledger;
use crate::ledger::read::{LedgerPosition, Stretch};
use crate::lock::{self, LockGuard};
use crate::root::OpenRoot;
use crate::{Entry, SpoolError, stretch};
use disk::Disk;

/// The ledger of a workspace, locked, as a log.
pub struct Local {
    root: OpenRoot,
    ledger: Ledger,
    signatures: Signatures,
    host: HostName,
    /// Held as long as the log lives.
    _lock: LockGuard,
}

impl Local {
    /// The most bytes of one batch, which is more than a daemon ever writes at once.
    pub const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

    /// Opens the ledger of the workspace at `root` as a daemon's start does, but delivers nothing. Batches without a
    /// signature were judged here, before there were other hosts: they count as `host`'s, with an empty signature.
    pub fn open(root: &Path, disk: Arc<dyn Disk>, host: HostName) -> Result<Local, SpoolError> {
        let root = OpenRoot::open(root, disk)?;
        let lock = lock::take(&root)?;
        let (mut ledger, torn) = Ledger::open(
            Arc::clone(&root.disk),
            &root.layout,
            &root.handle,
            LedgerPosition::default(),
            &mut |_| Ok(()),
        )?;
        ledger.settle(&root.handle, torn.as_ref())?;
        let signatures = Signatures::open(&root)?;
        Ok(Local {
            root,
            ledger,
            signatures,
            host,
            _lock: lock,
        })
    }

    /// Returns the batches that extend beyond record `seq`.
    fn batches_beyond(&self, seq: u64) -> Result<Vec<Batch>, SpoolError> {
        let mut entries: Vec<Arc<Entry>> = Vec::new();
        stretch::read(&self.root, &Stretch::default(), &mut |record| {
            entries.push(Arc::clone(&record.entry));
            Ok(())
        })?;
        let mut batches = Batch::split(entries, Head::EMPTY);
        batches.retain(|batch| batch.head().seq > seq);
        Ok(batches)
    }

    /// Returns the end that the ledger had after record `seq`.
    fn head_at(&self, seq: u64) -> Result<Option<Head>, SpoolError> {
        let end = self.ledger.end();
        if seq == end.seq {
            return Ok(Some(end));
        }
        let batches = self.batches_beyond(seq)?;
        Ok(batches.iter().find_map(|batch| batch.head_at(seq)))
    }
}

impl Log for Local {
    fn head(&mut self) -> Result<Head, LogError> {
        self.ledger.stopped()?;
        Ok(self.ledger.end())
    }

    fn append(&mut self, signed: &Signed) -> Result<Appended, LogError> {
        self.ledger.stopped()?;
        let batch = &signed.batch;
        let bytes = batch.bytes().len();
        if bytes > Local::BATCH_BYTES_MAX {
            let bytes_max = Local::BATCH_BYTES_MAX;
            return Err(LogError::TooLarge { bytes, bytes_max });
        }
        let end = self.ledger.end();
        if batch.after() == end {
            self.signatures
                .add(&self.root, std::slice::from_ref(signed))?;
            return match self.ledger.append(batch) {
                Ok(_) => Ok(Appended::Committed),
                Err(error) if error.is_retryable() => Err(error.into()),
                // The write may have reached the disk.
                Err(error) => Ok(Appended::Unknown(error.chain())),
            };
        }
        let beyond = self.batches_beyond(batch.after().seq)?;
        // The same records inside a larger batch are another batch.
        let is_it = |known: &Batch| known.after() == batch.after() && known.head() == batch.head();
        if beyond.first().is_some_and(is_it) {
            return Ok(Appended::Committed);
        }
        Ok(Appended::Moved(end))
    }

    fn follow(&mut self, from: Head) -> Result<Vec<Signed>, LogError> {
        self.ledger.stopped()?;
        let log = self.ledger.end();
        if from == log {
            return Ok(Vec::new());
        }
        if from.seq > log.seq {
            return Err(LogError::RolledBack { log, ours: from });
        }
        let there = self.head_at(from.seq)?.unwrap_or(Head::EMPTY);
        if there != from {
            return Err(LogError::Forked {
                at: from.seq,
                ours: from.digest,
                theirs: there.digest,
            });
        }
        let signatures = Signatures::read(&self.root)?;
        let batches = self.batches_beyond(from.seq)?.into_iter();
        Ok(batches
            .map(|batch| {
                let known = signatures.get(&(batch.after().seq + 1));
                let signed = known.and_then(|signature| signature.signed(batch.clone()));
                signed.unwrap_or(Signed {
                    batch,
                    host: self.host.clone(),
                    signature: Vec::new(),
                })
            })
            .collect())
    }

    fn on_change(&mut self, _on_change: OnChange) {
        // Nobody else writes while the lock is held.
    }

    fn poll_ms(&self) -> u64 {
        // There is no other writer to look for.
        60_000
    }
}

/// Maps a failing disk to an unreachable log and a damaged ledger to a broken one.
impl From<SpoolError> for LogError {
    fn from(error: SpoolError) -> LogError {
        let why = error.chain();
        if error.is_retryable() {
            LogError::Unreachable { why }
        } else {
            LogError::Broken { what: why }
        }
    }
}
