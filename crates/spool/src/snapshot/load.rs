//! Loads the newest snapshot that fits the ledger and the lanes, and says why each newer one does not. An intact snapshot
//! of other records is an error: somebody rewrote the ledger.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use super::file::{SnapshotReader, Title};
use super::{Fold, PassedOver, list};
use crate::delivery::Heads;
use crate::ledger::read::{LedgerPosition, Stretch};
use crate::root::{Dir, OpenRoot};
use crate::{Digest, FileName, SpoolError, dirs, layout, stretch};
use disk::{FileKind, Handle, OpenMode, if_there};
use sorted_rows::{Layer, Rows};

/// The lines handed from the reading thread to the fold at once, and how many such portions may wait.
const PORTION: usize = 256;
const PORTIONS: usize = 8;

/// A loaded snapshot; the fold holds its state.
pub(crate) struct LoadedSnapshot {
    /// The position from which the ledger is read on.
    pub(crate) place: LedgerPosition,
    /// The number of ledger bytes that the start need not read.
    pub(crate) bytes: u64,
    /// The lanes up to there.
    pub(crate) heads: Heads,
    /// Its rows.
    pub(crate) rows: Arc<Rows>,
}

/// The rows of a snapshot that its reader compares with their checksums.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checked {
    /// All of them, before any is used: for a process that runs on this snapshot for long.
    Whole,
    /// Each before it is used: for a process that reads a few.
    WhatIsRead,
}

/// Checks whether the caller's lanes can start from a snapshot with these heads; an error says why not.
pub(crate) type Usable<'a> = &'a dyn Fn(&Heads) -> Result<(), String>;

/// The check of a caller that delivers nothing.
pub(crate) const NO_LANES: Usable<'static> = &|_| Ok(());

/// Why a snapshot is not loaded.
pub(super) enum NotTaken {
    /// The snapshot is unusable; the start reads the records instead.
    OfNoUse(String),
    /// The snapshot is intact, but the ledger does not hold its records.
    Contradicts(String),
}

impl From<String> for NotTaken {
    fn from(why: String) -> NotTaken {
        NotTaken::OfNoUse(why)
    }
}

/// Loads the newest usable snapshot up to record `seq_max`, or clears the fold. An intact snapshot that contradicts the
/// ledger is an error.
pub(crate) fn load_newest(
    root: &OpenRoot,
    (usable, checked): (Usable<'_>, Checked),
    seq_max: u64,
    fold: &mut dyn Fold,
) -> Result<(Option<LoadedSnapshot>, Vec<PassedOver>), SpoolError> {
    let mut passed_over = Vec::new();
    fold.clear();
    for (seq, name) in list(root)?.into_iter().filter(|(seq, _)| *seq <= seq_max) {
        match load(root, (usable, checked), seq, &name, fold) {
            Ok(taken) => return Ok((Some(taken), passed_over)),
            Err(why) => {
                fold.clear();
                let path = root.path(dirs::SNAPSHOTS.as_ref()).join(&name);
                match why {
                    NotTaken::OfNoUse(why) => passed_over.push(PassedOver { path, why }),
                    NotTaken::Contradicts(what) => {
                        // Damage takes precedence: its error names the line.
                        stretch::read(root, &Stretch::default(), &mut |_| Ok(()))?;
                        let snapshot = path;
                        return Err(SpoolError::Contradicted { snapshot, what });
                    }
                }
            }
        }
    }
    Ok((None, passed_over))
}

/// Loads this snapshot; an error says why it cannot be used.
pub(super) fn load(
    root: &OpenRoot,
    (usable, checked): (Usable<'_>, Checked),
    seq: u64,
    name: &FileName,
    fold: &mut dyn Fold,
) -> Result<LoadedSnapshot, NotTaken> {
    let dir = root
        .dir(dirs::SNAPSHOTS.as_ref())
        .map_err(|error| error.chain())?;
    let file = open(root, &dir, name)?;
    let (mut reader, title) = SnapshotReader::new(&*root.disk, &file)?;
    if title.seq != seq {
        let why = format!(
            "it was taken after record {}, as its name does not say",
            title.seq
        );
        return Err(why.into());
    }
    let place = match place_of(root, &title) {
        Ok(place) => place,
        // Only a complete snapshot can contradict the ledger.
        Err(NotTaken::Contradicts(what)) => {
            reader.lanes()?;
            let rows = rows(root, &dir, (seq, name), &reader.beneath()?, Checked::Whole)?;
            while reader.content()?.is_some() {}
            rows.check_head(reader.sum())?;
            return Err(NotTaken::Contradicts(what));
        }
        Err(of_no_use) => return Err(of_no_use),
    };
    let form = fold.form();
    if title.form != form {
        return Err(format!("its form is {}, this program's is {form}", title.form).into());
    }
    let heads = reader.lanes()?;
    usable(&heads)?;
    let rows = Arc::new(rows(root, &dir, (seq, name), &reader.beneath()?, checked)?);
    fill(reader, &rows, fold)?;
    let bytes = title.segments.iter().map(|(_, len)| len).sum();
    Ok(LoadedSnapshot {
        place,
        bytes,
        heads,
        rows,
    })
}

/// Reads the lanes of a snapshot alone.
pub(super) fn heads_of(root: &OpenRoot, name: &FileName) -> Result<Heads, String> {
    let dir = root.dir(dirs::SNAPSHOTS.as_ref());
    let file = open(root, &dir.map_err(|error| error.chain())?, name)?;
    SnapshotReader::new(&*root.disk, &file)?.0.lanes()
}

fn open(root: &OpenRoot, dir: &Dir, name: &FileName) -> Result<Handle, String> {
    let cannot_be_read = |error| format!("it cannot be read: {error}");
    let file = root
        .disk
        .open(&dir.handle, name.as_ref(), OpenMode::Read)
        .map_err(cannot_be_read)?;
    if root.disk.stat(&file).map_err(cannot_be_read)?.kind != FileKind::File {
        return Err("it is not a file".to_owned());
    }
    Ok(file)
}

/// Opens the rows of the snapshot that was made after record `seq`.
pub(super) fn rows_of(root: &OpenRoot, seq: u64) -> Result<Rows, SpoolError> {
    let dir = root.dir(dirs::SNAPSHOTS.as_ref())?;
    let name = layout::snapshot_name(seq);
    let opened = || {
        let file = open(root, &dir, &name)?;
        let (mut reader, _) = SnapshotReader::new(&*root.disk, &file)?;
        reader.lanes()?;
        rows(
            root,
            &dir,
            (seq, &name),
            &reader.beneath()?,
            Checked::WhatIsRead,
        )
    };
    opened().map_err(|why| root.error_at("read again", &dir, &name, io::Error::other(why)))
}

/// Opens the rows of a snapshot and of the snapshots beneath it.
fn rows(
    root: &OpenRoot,
    dir: &Dir,
    (seq, name): (u64, &FileName),
    beneath: &[(u64, Digest)],
    checked: Checked,
) -> Result<Rows, String> {
    let layer = |seq, name: &FileName| {
        Layer::open(Arc::clone(&root.disk), open(root, dir, name)?, seq)
            .map_err(|error| error.to_string())
    };
    let mut layers = vec![layer(seq, name)?];
    for (seq, sum) in beneath {
        let of_beneath = |why: String| format!("of the rows of snapshot {seq} beneath it: {why}");
        let found = layer(*seq, &layout::snapshot_name(*seq)).map_err(of_beneath)?;
        if found.sum != *sum {
            return Err(of_beneath("they are others".to_owned()));
        }
        layers.push(found);
    }
    let rows = Rows::new(root.layout.root(), layers);
    if checked == Checked::Whole {
        rows.verify().map_err(|error| error.to_string())?;
    }
    Ok(rows)
}

/// Compares the snapshot with the ledger: every segment up to its record must exist with its length, and the record
/// must be the one after which it was taken.
fn place_of(root: &OpenRoot, title: &Title) -> Result<LedgerPosition, NotTaken> {
    let dir = root
        .dir(dirs::LEDGER.as_ref())
        .map_err(|error| error.chain())?;
    let names = root
        .disk
        .list(&dir.handle)
        .map_err(|error| format!("cannot list the ledger: {error}"))?;
    let mut there: Vec<u64> = names
        .iter()
        .filter_map(layout::segment_first)
        .filter(|first| *first <= title.seq)
        .collect();
    there.sort_unstable();
    if there.is_empty() || !title.segments.iter().map(|(first, _)| *first).eq(there) {
        let what = "the ledger has other segments up to there".to_owned();
        return Err(NotTaken::Contradicts(what));
    }
    let (last, earlier) = title
        .segments
        .split_last()
        .expect("there is one, as in the ledger");
    for (first, len) in earlier {
        if len_of(root, &dir.handle, *first)? != Some(*len) {
            let what = format!("the segment of record {first} has another length");
            return Err(NotTaken::Contradicts(what));
        }
    }
    let (segment, offset) = *last;
    let place = LedgerPosition {
        seq: title.seq,
        digest: title.digest,
        segment,
        offset,
        line_begin: title.line_begin,
    };
    if len_of(root, &dir.handle, segment)?.is_none_or(|len| len < offset) {
        let what = format!("record {} is not where it was", title.seq);
        return Err(NotTaken::Contradicts(what));
    }
    let text = place.text(&*root.disk, &dir.handle);
    match text.map_err(|error| format!("cannot read the ledger: {error}"))? {
        Some(_) => Ok(place),
        None => Err(NotTaken::Contradicts(format!(
            "record {} is another one, expected {}",
            title.seq, title.digest
        ))),
    }
}

fn len_of(root: &OpenRoot, ledger: &Handle, first: u64) -> Result<Option<u64>, String> {
    let found = if_there(
        root.disk
            .stat_at(ledger, layout::segment_name(first).as_ref()),
    );
    let stat = found.map_err(|error| format!("cannot look at a segment of the ledger: {error}"))?;
    Ok(stat.map(|stat| stat.size))
}

/// Hands the caller's lines to the fold. A thread of its own reads and sums them up: each side takes about half of the
/// time. The fold's state counts only if all lines were complete.
fn fill(
    mut reader: SnapshotReader<'_>,
    rows: &Arc<Rows>,
    fold: &mut dyn Fold,
) -> Result<(), String> {
    std::thread::scope(|scope| {
        let (send, receive) = sync_channel::<Vec<Vec<u8>>>(PORTIONS);
        let reading = scope.spawn(move || {
            let mut portion = Vec::with_capacity(PORTION);
            while let Some(line) = reader.content()? {
                portion.push(line);
                if portion.len() == PORTION && send.send(std::mem::take(&mut portion)).is_err() {
                    // A receiver that has ended reports its own error.
                    return Ok(());
                }
            }
            let _ = send.send(portion);
            rows.check_head(reader.sum())
        });
        let restored = fold.restore(&mut receive.into_iter().flatten(), rows);
        let whole: Result<(), String> = reading
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        whole.and(restored.map_err(|error| error.to_string()))
    })
}
