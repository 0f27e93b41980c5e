//! Makes a snapshot from the ledger while the daemon goes on serving: everything in it is already durable, and the same
//! calls fold it that a start makes.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::file::{SnapshotWriter, Title};
use super::load::{Checked, LoadedSnapshot, Usable, load_newest, rows_of};
use super::{Fold, list};
use crate::delivery::{Heads, Lane, Pos, items_of};
use crate::ledger::read::{self, LedgerPosition, LedgerRecord, Stretch};
use crate::root::{Dir, DirState, OpenRoot};
use crate::{Spool, SpoolError, dirs, layout, stretch};
use disk::{Handle, OpenMode};
use sorted_rows::{Layer, Rows, merged, named, write_layer};

/// Makes one snapshot, on any thread.
pub struct SnapshotMaker {
    root: OpenRoot,
    seq: u64,
    /// The lanes that still need records, each with the item up to which it survived a power cut when this was made.
    /// They may go on meanwhile.
    owing: BTreeMap<Lane, Pos>,
}

/// A new snapshot.
#[derive(Debug, Clone)]
pub struct SnapshotInfo {
    /// The file.
    pub path: PathBuf,
    /// The last record it holds.
    pub seq: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its rows, for a fold that continues from it.
    pub rows: Arc<Rows>,
}

/// A fold that goes on from a snapshot, with all that the next one needs.
pub(crate) struct Folding<'a> {
    pub(crate) fold: &'a mut dyn Fold,
    pub(crate) heads: Heads,
    /// The rows of the snapshot that was used before.
    rows: Option<Arc<Rows>>,
}

impl<'a> Folding<'a> {
    /// Goes on from a snapshot that was loaded into the fold, or from the beginning. Returns the place as well.
    pub(crate) fn after(
        taken: Option<LoadedSnapshot>,
        fold: &'a mut dyn Fold,
        durable: &mut dyn FnMut(&Lane) -> Pos,
    ) -> (LedgerPosition, Folding<'a>) {
        let (place, mut heads, rows) = taken.map_or_else(Default::default, |taken| {
            (taken.place, taken.heads, Some(taken.rows))
        });
        heads.renew(durable);
        (place, Folding { fold, heads, rows })
    }

    /// Writes a snapshot of the records up to the one at `place`.
    pub(crate) fn write(
        &self,
        root: &OpenRoot,
        place: &LedgerPosition,
    ) -> Result<SnapshotInfo, SpoolError> {
        let seq = place.seq;
        let ledger = root.dir(dirs::LEDGER.as_ref())?;
        let segments = read::segments_up_to(&*root.disk, &root.layout, &ledger.handle, place)?;
        let title = Title::new(self.fold.form(), place, segments, &self.heads);
        let dir = directory(root)?;
        let bytes = write_file(root, &dir, &title, self)?;
        let rows = Arc::new(rows_of(root, seq)?);
        tidy(root, &dir, &[Some(&rows), self.rows.as_deref()])?;
        let path = root.path(&dir.path).join(layout::snapshot_name(seq));
        Ok(SnapshotInfo {
            path,
            seq,
            bytes,
            rows,
        })
    }

    /// Writes a snapshot like [`Self::write`] and drops its rows from memory. The fold looks up the rows of millions of
    /// records next, so the filters are kept.
    pub(crate) fn rest(
        &mut self,
        root: &OpenRoot,
        place: &LedgerPosition,
    ) -> Result<(), SpoolError> {
        let mut made = self.write(root, place)?;
        Arc::get_mut(&mut made.rows)
            .expect("nobody else has the new rows yet")
            .keep_filters()
            .map_err(|source| root.error("read again", dirs::SNAPSHOTS.as_ref(), source))?;
        self.fold.rest_on(&made.rows);
        self.rows = Some(made.rows);
        Ok(())
    }
}

impl Spool {
    /// Returns a maker for a snapshot of all current records. `None` while a lane that is not parked has work. The
    /// snapshot lists the records that parked lanes still need, and those whose files a power cut could undo.
    pub fn snapshot_maker(&self) -> Result<Option<SnapshotMaker>, SpoolError> {
        self.ledger.stopped()?;
        let seq = self.next_seq() - 1;
        let Some(owing) = self.lanes.owing().filter(|_| seq > 0) else {
            return Ok(None);
        };
        let root = self.root.try_clone()?;
        Ok(Some(SnapshotMaker { root, seq, owing }))
    }

    /// Returns the size of the ledger's segments in bytes.
    pub fn ledger_bytes(&self) -> Result<u64, SpoolError> {
        self.ledger.bytes()
    }
}

impl SnapshotMaker {
    /// Folds the ledger into `fold` from the newest snapshot on and writes the result. Removes older snapshots, except
    /// the one that was used and those whose rows are still needed. After an error nothing has changed.
    pub fn make(&self, fold: &mut dyn Fold) -> Result<SnapshotInfo, SpoolError> {
        let root = &self.root;
        let durable = |lane: &Lane| self.owing.get(lane).copied().unwrap_or(Pos::END);
        let lists_all = |heads: &Heads| match heads.lacking(&|lane| Some(durable(lane))) {
            Some(lane) => Err(format!("it does not list what {lane} needs")),
            None => Ok(()),
        };
        let with = (&lists_all as Usable<'_>, Checked::WhatIsRead);
        let (taken, _) = load_newest(root, with, self.seq, fold)?;
        let (from, mut folding) = Folding::after(taken, fold, &mut |lane| durable(lane));
        let stretch = Stretch { from, to: self.seq };
        let end = stretch::read(root, &stretch, &mut |LedgerRecord { entry, place }| {
            let items = items_of(entry);
            folding.heads.note(&items, place, &mut |lane| durable(lane));
            folding.fold.add(entry).map_err(SpoolError::visit(entry))
        })?;
        if end.place.seq != self.seq {
            let source = io::Error::other(format!("the ledger ends with record {}", end.place.seq));
            return Err(root.error(
                "read up to the last record of",
                dirs::LEDGER.as_ref(),
                source,
            ));
        }
        folding.write(root, &end.place)
    }
}

/// Opens the directory of the snapshots, and creates it for the first one.
fn directory(root: &OpenRoot) -> Result<Dir, SpoolError> {
    let (dir, state) = root.dir_of_known(dirs::SNAPSHOTS.as_ref(), None)?;
    if state == DirState::Made {
        let own = root.dir(dirs::OWN.as_ref())?;
        let synced = root.disk.sync_dir(&own.handle);
        synced.map_err(|source| root.error("sync", &own.path, source))?;
    }
    Ok(dir)
}

/// Writes the file under another name, syncs it, and renames it: under its own name it is complete, and a kill leaves
/// at most the other name, which the next snapshot replaces.
fn write_file(
    root: &OpenRoot,
    dir: &Dir,
    title: &Title,
    new: &Folding<'_>,
) -> Result<u64, SpoolError> {
    let (temporary, name) = (
        layout::snapshot_temporary(),
        layout::snapshot_name(title.seq),
    );
    root.remove(dir, &temporary)?;
    let write = || {
        let file = root
            .disk
            .open(&dir.handle, temporary.as_ref(), OpenMode::New)?;
        let bytes = write_bytes(root, &file, title, new)?;
        root.disk.sync_data(&file)?;
        root.disk
            .rename_over(&dir.handle, temporary.as_ref(), name.as_ref())?;
        Ok(bytes)
    };
    let bytes = write().map_err(|source| {
        // Others need the room more than the partial file; if the removal fails, the next snapshot removes it.
        let _ = root.remove(dir, &temporary);
        root.error_at("write", dir, &name, source)
    })?;
    let synced = root.disk.sync_dir(&dir.handle);
    synced
        .map_err(|source| root.error("sync", &dir.path, source))
        .map(|()| bytes)
}

fn write_bytes(
    root: &OpenRoot,
    file: &Handle,
    title: &Title,
    new: &Folding<'_>,
) -> io::Result<u64> {
    let rows = new.fold.new_rows();
    let new_bytes = rows.iter().map(|(key, value)| key.len() + value.len());
    let new_bytes = new_bytes.sum::<usize>() as u64;
    let (absorbed, beneath) = new.rows.as_ref().map_or_else(Default::default, |before| {
        before.split(before.absorbed(new_bytes, title.seq))
    });
    let mut head = SnapshotWriter::new(&*root.disk, file);
    head.title(title)?;
    head.lanes(&new.heads)?;
    head.beneath(&named(beneath))?;
    new.fold.save(&mut |line| head.content(line))?;
    let (offset, sum) = head.finish()?;
    let rows_max = rows.len() as u64 + absorbed.iter().map(Layer::rows).sum::<u64>();
    let mut rows = rows.into_iter();
    write_layer(&*root.disk, file, (offset, sum), rows_max, &mut |put| {
        merged(absorbed, &[], &mut rows, &mut |key, value| {
            // A layer whose filter cannot be read may have an older row.
            let is_needed = || {
                let mut beneath = beneath.iter();
                beneath.any(|layer| layer.may_have_row(key).unwrap_or(true))
            };
            if new.fold.is_removal(key, value) && !is_needed() {
                return Ok(());
            }
            put(key, value)
        })
    })
}

/// Removes every snapshot except the one that was used and those whose rows either of them shares.
fn tidy(root: &OpenRoot, dir: &Dir, kept: &[Option<&Rows>]) -> Result<(), SpoolError> {
    let is_kept = |seq: u64| kept.iter().flatten().any(|rows| rows.has(seq));
    let others = list(root)?.into_iter().filter(|(seq, _)| !is_kept(*seq));
    others
        .into_iter()
        .try_for_each(|(_, name)| root.remove(dir, &name))
}
