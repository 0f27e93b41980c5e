//! Makes a snapshot from the ledger itself, beside the daemon that goes on serving: what is written down was durable
//! before, and was added up by the same calls that a start makes.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::file::{SnapshotWriter, Title};
use super::load::load_newest;
use super::{Fold, list};
use crate::delivery::Heads;
use crate::ledger::read::{self, Stretch};
use crate::root::{Dir, OpenRoot};
use crate::{Spool, SpoolError, dirs, layout};
use disk::OpenMode;

/// Makes one snapshot, on any thread.
pub struct SnapshotMaker {
    root: OpenRoot,
    seq: u64,
}

/// A snapshot that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// The file.
    pub path: PathBuf,
    /// The last record it holds.
    pub seq: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

impl Spool {
    /// Gives what makes a snapshot of all records there are; nothing while a file waits to be made or put away, or while
    /// a power cut could undo one: the next start would need the records before it all the same.
    pub fn snapshot_maker(&self) -> Result<Option<SnapshotMaker>, SpoolError> {
        self.ledger.stopped()?;
        let seq = self.next_seq() - 1;
        if seq == 0 || !self.lanes.are_at_rest() {
            return Ok(None);
        }
        let root = OpenRoot::look_at(self.root.layout.root(), Arc::clone(&self.root.disk))?;
        Ok(Some(SnapshotMaker { root, seq }))
    }

    /// Says how many bytes the ledger's segments have.
    pub fn ledger_bytes(&self) -> Result<u64, SpoolError> {
        self.ledger.bytes()
    }
}

impl SnapshotMaker {
    /// Adds the ledger up in `fold`, from the newest snapshot on, and writes the result down. Older snapshots are removed,
    /// but for the one that was of use. After an error everything is as it was.
    pub fn make(&self, fold: &mut dyn Fold) -> Result<SnapshotInfo, SpoolError> {
        let root = &self.root;
        let (taken, _) = load_newest(root, None, self.seq, fold)?;
        let (from, mut heads) =
            taken.map_or_else(Default::default, |taken| (taken.place, taken.heads));
        let used = from.seq;
        let dir = root.dir(dirs::LEDGER.as_ref())?;
        let stretch = Stretch { from, to: self.seq };
        let end = read::read(
            &*root.disk,
            &root.layout,
            &dir.handle,
            &stretch,
            &mut |entry| {
                let entry = Arc::new(entry);
                heads.note(&entry);
                fold.add(&entry).map_err(|source| SpoolError::Visit {
                    seq: entry.seq,
                    source,
                })
            },
        )?;
        if end.place.seq != self.seq {
            let source = io::Error::other(format!("the ledger ends with record {}", end.place.seq));
            return Err(root.error(
                "read up to the last record of",
                dirs::LEDGER.as_ref(),
                source,
            ));
        }
        let place = end.place;
        let title = Title::new(
            fold.form(),
            place.seq,
            place.digest,
            place.line_begin,
            end.segments,
        );
        let dir = self.directory()?;
        let bytes = self.write(&dir, &title, &heads, fold)?;
        self.tidy(&dir, used)?;
        let path = root.path(&dir.path).join(layout::snapshot_name(self.seq));
        Ok(SnapshotInfo {
            path,
            seq: self.seq,
            bytes,
        })
    }

    /// Opens the place for snapshots, and makes it for the first one.
    fn directory(&self) -> Result<Dir, SpoolError> {
        let (dir, is_new) = self.root.dir_of_known(dirs::SNAPSHOTS.as_ref(), None)?;
        if is_new {
            let own = self.root.dir(dirs::OWN.as_ref())?;
            let synced = self.root.disk.sync_dir(&own.handle);
            synced.map_err(|source| self.root.error("sync", &own.path, source))?;
        }
        Ok(dir)
    }

    /// Writes the file under another name, syncs it, and renames it: under its own name it is whole, and a kill leaves at
    /// most the other name, which the next one replaces.
    fn write(
        &self,
        dir: &Dir,
        title: &Title,
        heads: &Heads,
        fold: &dyn Fold,
    ) -> Result<u64, SpoolError> {
        let root = &self.root;
        let (temporary, name) = (
            layout::snapshot_temporary(),
            layout::snapshot_name(self.seq),
        );
        root.remove(dir, &temporary)?;
        let write = || {
            let file = root
                .disk
                .open(&dir.handle, temporary.as_ref(), OpenMode::New)?;
            let mut writer = SnapshotWriter::new(&*root.disk, &file);
            writer.title(title)?;
            writer.lanes(heads)?;
            fold.save(&mut |line| writer.content(line))?;
            let bytes = writer.finish()?;
            root.disk.sync_data(&file)?;
            root.disk
                .rename_over(&dir.handle, temporary.as_ref(), name.as_ref())?;
            Ok(bytes)
        };
        let bytes = write().map_err(|source| {
            // The room is needed more than the part; if even this fails, the next one removes it.
            let _ = root.remove(dir, &temporary);
            root.error_at("write", dir, &name, source)
        })?;
        let synced = root.disk.sync_dir(&dir.handle);
        synced
            .map_err(|source| root.error("sync", &dir.path, source))
            .map(|()| bytes)
    }

    /// Removes every other snapshot but the one that was used.
    fn tidy(&self, dir: &Dir, used: u64) -> Result<(), SpoolError> {
        let others = list(&self.root)?
            .into_iter()
            .filter(|(seq, _)| *seq != self.seq && *seq != used);
        others
            .into_iter()
            .try_for_each(|(_, name)| self.root.remove(dir, &name))
    }
}
