//! Reads the ledger beside a running daemon, without the lock and without changing anything.

use std::path::Path;
use std::sync::Arc;

use crate::delivery::Cursors;
use crate::layout::Layout;
use crate::ledger::read::{self, LedgerPosition, LedgerRecord, Stretch, Verified, Visit};
use crate::root::OpenRoot;
use crate::snapshot::load::{Checked, NO_LANES, load_newest};
use crate::snapshot::{Fold, PassedOver};
use crate::{Entry, SpoolError, VisitError, dirs};
use disk::{Disk, Os};

/// Reads the ledger of the workspace at `root`, checks the chain, and hands every record to `visit`.
pub fn read_ledger(
    root: &Path,
    visit: &mut dyn FnMut(&Entry) -> Result<(), VisitError>,
) -> Result<Verified, SpoolError> {
    walk(root, &Stretch::default(), &mut naming(visit))
}

/// Reads the ledger of the workspace at `root` up to record `seq`, checks the chain, and hands every record to `visit`.
pub fn read_ledger_to(
    root: &Path,
    seq: u64,
    visit: &mut dyn FnMut(&Entry) -> Result<(), VisitError>,
) -> Result<(), SpoolError> {
    let stretch = Stretch {
        from: LedgerPosition::default(),
        to: seq,
    };
    walk(root, &stretch, &mut naming(visit)).map(drop)
}

/// Wraps a visitor so that its error names the record.
pub(crate) fn naming(
    visit: &mut dyn FnMut(&Entry) -> Result<(), VisitError>,
) -> impl FnMut(&LedgerRecord) -> Result<(), SpoolError> {
    |LedgerRecord { entry, .. }| visit(entry).map_err(SpoolError::visit(entry))
}

/// The sources of a fold without the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded {
    /// The ledger; the chain was checked from the snapshot on.
    pub verified: Verified,
    /// The last record of the snapshot that was loaded, if any.
    pub snapshot: Option<u64>,
    /// Newer snapshots that could not be used.
    pub passed_over: Vec<PassedOver>,
}

/// Folds the ledger of the workspace at `path` into `fold` without the lock: loads the newest snapshot and reads what
/// follows it. For looking at the state; `verify` checks the whole ledger.
pub fn fold_ledger(path: &Path, fold: &mut dyn Fold) -> Result<Folded, SpoolError> {
    let root = OpenRoot::look_at(path, Arc::new(Os))?;
    let (taken, passed_over) = load_newest(&root, (NO_LANES, Checked::WhatIsRead), u64::MAX, fold)?;
    let from = taken.map(|taken| taken.place);
    let snapshot = from.as_ref().map(|place| place.seq);
    let behind = Stretch {
        from: from.unwrap_or_default(),
        to: u64::MAX,
    };
    let verified = walk(path, &behind, &mut naming(&mut |entry| fold.add(entry)))?;
    Ok(Folded {
        verified,
        snapshot,
        passed_over,
    })
}

/// Reads the ledger of the workspace at `path`, checks the chain, and checks that it holds every record the cursors
/// name, as the start does. Damage is an error that names the line.
pub fn verify(path: &Path) -> Result<Verified, SpoolError> {
    let root = OpenRoot::look_at(path, Arc::new(Os))?;
    // Cursors before the ledger: a running daemon advances both, the ledger first.
    let cursors = Cursors::read(&root)?;
    let verified = walk(path, &Stretch::default(), &mut |_| Ok(()))?;
    cursors.check(&root, verified.records)?;
    Ok(verified)
}

fn walk(root: &Path, stretch: &Stretch, visit: &mut Visit<'_>) -> Result<Verified, SpoolError> {
    let layout = Layout::new(root);
    let at = Os.open_root(root).map_err(SpoolError::io("open", root))?;
    let path = Path::new(dirs::LEDGER);
    let dir = Os
        .open_dir(&at, path)
        .map_err(SpoolError::io("open", root.join(path)))?;
    Ok(read::read(&Os, &layout, &dir, stretch, visit)?.verified())
}
