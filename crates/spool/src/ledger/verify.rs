//! The ledger as others may read it while the daemon runs: without the lock, changing nothing.

use std::path::Path;
use std::sync::Arc;

use super::read::{self, Place, Stretch, TornTail, Visit};
use crate::delivery::Cursors;
use crate::disk::{Disk, Os};
use crate::layout::{self, Layout};
use crate::root::OpenRoot;
use crate::snapshot::{self, Fold, PassedOver};
use crate::{Digest, Entry, SpoolError, VisitError};

/// What a whole ledger was found to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// How many records there are; the last one has this number.
    pub records: u64,
    /// How many segments they lie in.
    pub segments: usize,
    /// How many bytes the records have.
    pub bytes: u64,
    /// The digest of the last line: whoever keeps it can prove later that nothing before was changed.
    pub last: Digest,
    /// Bytes behind the last record: a batch being written right now, or the torn tail of a daemon that was killed.
    pub torn: Option<TornTail>,
}

/// Reads the ledger of the workspace at `root`, checks the chain, and hands every record to `visit`.
pub fn read_ledger(
    root: &Path,
    visit: &mut dyn FnMut(&Entry) -> Result<(), VisitError>,
) -> Result<Verified, SpoolError> {
    let whole = Place::default();
    walk(root, whole, &mut |entry| {
        visit(&entry).map_err(|source| SpoolError::Visit {
            seq: entry.seq,
            source,
        })
    })
}

/// What an onlooker's fold was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded {
    /// The ledger; the chain was checked from the snapshot on.
    pub verified: Verified,
    /// The last record of the snapshot that was taken up, if one was.
    pub snapshot: Option<u64>,
    /// Newer snapshots that were of no use.
    pub passed_over: Vec<PassedOver>,
}

/// Adds the ledger of the workspace at `path` up in `fold`, without the lock: takes up the newest snapshot and reads what
/// follows it. For whoever wants to know how things stand; `verify` is for whether the ledger is whole.
pub fn fold_ledger(path: &Path, fold: &mut dyn Fold) -> Result<Folded, SpoolError> {
    let root = OpenRoot::look_at(path, Arc::new(Os))?;
    let (taken, passed_over) = snapshot::take_up(&root, None, u64::MAX, fold)?;
    let from = taken.map(|taken| taken.place);
    let snapshot = from.as_ref().map(|place| place.seq);
    let verified = walk(path, from.unwrap_or_default(), &mut |entry| {
        fold.add(&entry).map_err(|source| SpoolError::Visit {
            seq: entry.seq,
            source,
        })
    })?;
    Ok(Folded {
        verified,
        snapshot,
        passed_over,
    })
}

/// Reads the ledger of the workspace at `path` and checks the chain, and that it holds every record the cursors speak
/// of, as the start does; damage is an error that names the line.
pub fn verify(path: &Path) -> Result<Verified, SpoolError> {
    let root = OpenRoot::look_at(path, Arc::new(Os))?;
    // Before the ledger: a daemon that is at work moves both on, the ledger first.
    let cursors = Cursors::read(&root)?;
    let verified = walk(path, Place::default(), &mut |_| Ok(()))?;
    cursors.check(&root, verified.records)?;
    Ok(verified)
}

fn walk(root: &Path, from: Place, visit: &mut Visit<'_>) -> Result<Verified, SpoolError> {
    let layout = Layout::new(root);
    let at = Os.open_root(root).map_err(SpoolError::io("open", root))?;
    let path = Path::new(layout::LEDGER);
    let dir = Os
        .open_dir(&at, path)
        .map_err(SpoolError::io("open", root.join(path)))?;
    let stretch = Stretch { from, to: u64::MAX };
    Ok(read::read(&Os, &layout, &dir, &stretch, visit)?.verified())
}
