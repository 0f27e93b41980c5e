//! The only truth: one record a line, chained by digests, durable before anything follows from it.
//!
//! Appends and truncates; `delivery` makes what follows from a record.

pub(crate) mod backward;
pub(crate) mod read;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use ledger_records::{Batch, Head};
use read::LedgerPosition;
pub use read::{TornTail, Verified};

use crate::layout::{self, Layout};
use crate::{Digest, Entry, SpoolError, dirs};
use disk::{self, Disk, Handle, OpenMode, Stat};

/// A segment that exceeds this many bytes is followed by a new one.
const SEGMENT_MAX: u64 = 64 * 1024 * 1024;

/// The end of the ledger, open for appending.
pub(crate) struct Ledger {
    disk: Arc<dyn Disk>,
    layout: Layout,
    root: Handle,
    dir: Handle,
    segment: Option<OpenSegment>,
    head: u64,
    digest: Digest,
    stopped: Option<String>,
    segment_max: u64,
}

struct OpenSegment {
    /// Its first record.
    first: u64,
    file: Handle,
    path: PathBuf,
    len: u64,
}

impl Ledger {
    /// Reads the ledger after a known record, hands every record to `visit`, and opens the end. Changes nothing yet.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        layout: &Layout,
        root: &Handle,
        from: LedgerPosition,
        visit: &mut read::Visit<'_>,
    ) -> Result<(Ledger, Option<TornTail>), SpoolError> {
        let path = layout.root().join(dirs::LEDGER);
        let dir = disk
            .open_dir(root, dirs::LEDGER.as_ref())
            .map_err(SpoolError::io("open", &path))?;
        let end = read::read(
            &*disk,
            layout,
            &dir,
            &read::Stretch { from, to: u64::MAX },
            visit,
        )?;
        let segment = match end.segments.last() {
            None => None,
            Some((first, len)) => {
                let (first, len) = (*first, *len);
                let name = layout::segment_name(first);
                let path = path.join(&name);
                let file = disk
                    .open(&dir, name.as_ref(), OpenMode::Write)
                    .map_err(SpoolError::io("open", &path))?;
                Some(OpenSegment {
                    first,
                    file,
                    path,
                    len,
                })
            }
        };
        let layout = layout.clone();
        let root = root
            .try_clone()
            .map_err(SpoolError::io("open", layout.root()))?;
        let (head, digest, segment_max) = (end.place.seq, end.place.digest, SEGMENT_MAX);
        Ok((
            Ledger {
                disk,
                layout,
                root,
                dir,
                segment,
                head,
                digest,
                stopped: None,
                segment_max,
            },
            end.torn,
        ))
    }

    /// Cuts off a torn tail, keeping its bytes in `.settled/torn/`, and makes the rest durable. Nothing may be
    /// delivered before: what was read may have been in memory only.
    pub(crate) fn settle(
        &mut self,
        root: &Handle,
        torn: Option<&TornTail>,
    ) -> Result<(), SpoolError> {
        let Some(segment) = &self.segment else {
            return Ok(());
        };
        let disk = &*self.disk;
        if let Some(torn) = torn {
            keep_torn(disk, &self.layout, root, segment, torn)?;
            disk.truncate(&segment.file, torn.offset)
                .map_err(SpoolError::io("truncate", &segment.path))?;
        }
        disk.sync_data(&segment.file)
            .map_err(SpoolError::fatal("sync", &segment.path))?;
        disk.sync_dir(&self.dir).map_err(SpoolError::fatal(
            "sync",
            self.layout.root().join(dirs::LEDGER),
        ))
    }

    /// The number the next record gets.
    pub(crate) fn next_seq(&self) -> u64 {
        self.head + 1
    }

    /// The digest of the last record.
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// Starts a new segment once the last one has `bytes`.
    pub(crate) fn limit_segments(&mut self, bytes: u64) {
        self.segment_max = bytes;
    }

    /// Returns the size of all segments in bytes.
    pub(crate) fn bytes(&self) -> Result<u64, SpoolError> {
        read::bytes(&*self.disk, &self.layout, &self.dir)
    }

    /// Fails if an earlier failure stopped the ledger.
    pub(crate) fn stopped(&self) -> Result<(), SpoolError> {
        match &self.stopped {
            Some(why) => Err(SpoolError::Stopped { why: why.clone() }),
            None => Ok(()),
        }
    }

    /// Makes every later call fail.
    pub(crate) fn stop(&mut self, error: &SpoolError) {
        self.stopped.get_or_insert_with(|| error.chain());
    }

    pub(crate) fn end(&self) -> Head {
        Head {
            seq: self.head,
            digest: self.digest,
        }
    }

    /// Appends a batch that follows the end with one write and one sync, and returns the place of each record. After an
    /// error either nothing was written (`Full`), or the outcome is unknown and the ledger is stopped.
    pub(crate) fn append(&mut self, batch: &Batch) -> Result<Vec<LedgerPosition>, SpoolError> {
        self.stopped()?;
        self.open_segment(batch.after().seq + 1)?;
        self.still_there().inspect_err(|error| {
            if !error.is_retryable() {
                self.stopped = Some(error.chain());
            }
        })?;
        let segment = self.segment.as_mut().expect("a segment was just opened");
        if let Err(error) = write_batch(&*self.disk, segment, batch.bytes()) {
            if !error.is_retryable() {
                self.stop(&error);
            }
            return Err(error);
        }
        let place = |(entry, (digest, len)): (&Arc<Entry>, (Digest, usize))| {
            let line_begin = segment.len;
            segment.len += len as u64;
            LedgerPosition {
                seq: entry.seq,
                digest,
                segment: segment.first,
                line_begin,
                offset: segment.len,
            }
        };
        let places = batch.entries().iter().zip(batch.lines()).map(place);
        let places = places.collect();
        let Head { seq, digest } = batch.head();
        (self.head, self.digest) = (seq, digest);
        Ok(places)
    }

    /// Fails if the last segment's name no longer leads to the open file with its expected length: the next start would
    /// lose what is appended to another file, although its sender takes it for safe.
    pub(crate) fn still_there(&self) -> Result<(), SpoolError> {
        let Some(segment) = &self.segment else {
            return Ok(());
        };
        let look =
            |result: io::Result<Stat>| result.map_err(SpoolError::io("look at", &segment.path));
        let name = segment
            .path
            .strip_prefix(self.layout.root())
            .expect("segments are below the root");
        let replaced = |what| {
            Err(SpoolError::Replaced {
                path: segment.path.clone(),
                what,
            })
        };
        let there = match self.disk.stat_at(&self.root, name) {
            Err(error) if is_gone(&error) => {
                return replaced("was removed or moved away while it was served".to_owned());
            }
            result => look(result)?,
        };
        let ours = look(self.disk.stat(&segment.file))?;
        if (there.dev, there.ino) != (ours.dev, ours.ino) {
            return replaced("was replaced by another file while it was served".to_owned());
        }
        if ours.size != segment.len {
            let what = format!(
                "has {} bytes, expected {}: somebody else changed it while it was served",
                ours.size, segment.len
            );
            return replaced(what);
        }
        Ok(())
    }

    /// Opens the segment for the batch that starts with record `first`. A kill leaves an empty segment, which the next
    /// start takes for the last one.
    fn open_segment(&mut self, first: u64) -> Result<(), SpoolError> {
        if self
            .segment
            .as_ref()
            .is_some_and(|segment| segment.len < self.segment_max)
        {
            return Ok(());
        }
        let ledger = self.layout.root().join(dirs::LEDGER);
        let name = layout::segment_name(first);
        let path = ledger.join(&name);
        let file = match self.disk.open(&self.dir, name.as_ref(), OpenMode::New) {
            // Left over from an attempt that failed before its sync; nothing was ever written to it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.disk.open(&self.dir, name.as_ref(), OpenMode::Write)
            }
            result => result,
        }
        .map_err(SpoolError::io("create", &path))?;
        if let Err(source) = self.disk.sync_dir(&self.dir) {
            let error = SpoolError::Fatal {
                operation: "sync",
                path: ledger,
                source,
            };
            self.stop(&error);
            return Err(error);
        }
        self.segment = Some(OpenSegment {
            first,
            file,
            path,
            len: 0,
        });
        Ok(())
    }
}

/// Returns whether the error says that a path leads nowhere any more.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Writes and syncs one batch.
fn write_batch(disk: &dyn Disk, segment: &OpenSegment, bytes: &[u8]) -> Result<(), SpoolError> {
    if let Err(source) = disk::write_all(disk, &segment.file, bytes, segment.len) {
        return Err(give_back(disk, segment, source));
    }
    // The sync is the commit point: before it nothing has been promised, after it every file of this batch will exist.
    // A kill on either side leaves complete lines or a torn tail, and the next start tells them apart. A failed sync
    // may have dropped the bytes and would succeed the next time, so it is never retried.
    disk.sync_data(&segment.file)
        .map_err(SpoolError::fatal("sync", &segment.path))
}

/// Truncates a write for which there was no room; any other failure is final.
fn give_back(disk: &dyn Disk, segment: &OpenSegment, source: io::Error) -> SpoolError {
    let path = segment.path.clone();
    let no_room = matches!(
        source.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge
            | io::ErrorKind::WriteZero
    );
    if !no_room {
        return SpoolError::Fatal {
            operation: "append to",
            path,
            source,
        };
    }
    match disk
        .truncate(&segment.file, segment.len)
        .and_then(|()| disk.sync_data(&segment.file))
    {
        Ok(()) => SpoolError::Full { path, source },
        Err(source) => SpoolError::Fatal {
            operation: "give back the room of a batch in",
            path,
            source,
        },
    }
}

/// Copies the torn bytes to `.settled/torn/` before they are cut off.
fn keep_torn(
    disk: &dyn Disk,
    layout: &Layout,
    root: &Handle,
    segment: &OpenSegment,
    torn: &TornTail,
) -> Result<(), SpoolError> {
    let dir_path = layout.root().join(dirs::TORN);
    let dir = disk
        .open_dir(root, dirs::TORN.as_ref())
        .map_err(SpoolError::io("open", &dir_path))?;
    let len = usize::try_from(torn.bytes).expect("a batch fits memory");
    let bytes = disk::read_part(disk, &segment.file, torn.offset, len)
        .map_err(SpoolError::io("read", &segment.path))?;
    let name = layout::torn_name(&segment.path, torn.offset, &Digest::of(&bytes));
    let path = dir_path.join(&name);
    // A kill may have left an earlier copy, complete or not.
    disk::if_there(disk.remove(&dir, name.as_ref())).map_err(SpoolError::io("remove", &path))?;
    let file = disk
        .open(&dir, name.as_ref(), OpenMode::New)
        .map_err(SpoolError::io("create", &path))?;
    disk::write_all(disk, &file, &bytes, 0)
        .and_then(|()| disk.sync_data(&file))
        .and_then(|()| disk.sync_dir(&dir))
        .map_err(SpoolError::io("write", &path))
}
