//! Snapshots: the state after some record of the ledger, so that a start reads only the later records.
//!
//! A snapshot only shortens the reading. A start passes over a missing or torn snapshot, or one of another form, with a
//! reason, and reads an older snapshot or the whole ledger instead; removing them all costs only time. An intact snapshot
//! of other records proves that somebody rewrote the ledger: no start continues until a person accepts the ledger. The
//! caller, a [`Fold`], defines the content; this module decides whether a snapshot may be used.

pub(crate) mod check;
mod file;
pub(crate) mod load;
pub(crate) mod make;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::root::OpenRoot;
use crate::{Entry, FileName, Spool, SpoolError, VisitError, dirs, layout};
use sorted_rows::{RowKey, Rows};

/// A fold of the ledger that can be saved to a snapshot and restored from one.
pub trait Fold {
    /// Names the form of the lines and of the fold; a snapshot of another form is passed over.
    fn form(&self) -> String;
    /// Forgets everything.
    fn clear(&mut self);
    /// Adds one record.
    fn add(&mut self, entry: &Entry) -> Result<(), VisitError>;
    /// Writes the part of the state that is always needed, as lines without newlines that do not begin with `lane `,
    /// `beneath ` or `end `.
    fn save(&self, line: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>;
    /// Returns the part that is rarely needed: the rows that are new since the fold was restored or began, in key
    /// order.
    fn new_rows(&self) -> Vec<(RowKey, &[u8])>;
    /// Returns true if a row only says that older rows of its key count no more. A snapshot leaves it out if no file beneath
    /// can have an older one.
    fn is_removal(&self, key: &RowKey, value: &[u8]) -> bool;
    /// Returns the number of records after which a start writes a snapshot: what the fold keeps of so many has to fit
    /// into memory.
    fn portion(&self) -> u64 {
        96 * 1024
    }
    /// Replaces the state with the lines that `save` wrote and the place of all rows. After an error the caller clears
    /// the fold before it is used.
    fn restore(
        &mut self,
        lines: &mut dyn Iterator<Item = Vec<u8>>,
        rows: &Arc<Rows>,
    ) -> Result<(), VisitError>;
    /// Forgets the new rows: a snapshot now has them among `rows`.
    fn rest_on(&mut self, rows: &Arc<Rows>);
    /// Returns a flag that is set once the start should end as soon as possible; by default it never is.
    fn interrupt(&self) -> Arc<AtomicBool> {
        Arc::default()
    }
}

/// A snapshot that was passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub why: String,
}

/// Lists the snapshots in the directory, the newest first.
fn list(root: &OpenRoot) -> Result<Vec<(u64, FileName)>, SpoolError> {
    let Some(dir) = root.dir_if_there(dirs::SNAPSHOTS.as_ref())? else {
        return Ok(Vec::new());
    };
    let names = root
        .disk
        .list(&dir.handle)
        .map_err(|source| root.error("list", &dir.path, source))?;
    let mut found: Vec<(u64, FileName)> = names
        .into_iter()
        .filter_map(|name| layout::snapshot_seq(&name).map(|seq| (seq, name)))
        .collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    Ok(found)
}

impl Spool {
    /// Moves every snapshot to the evidence in `.settled/torn/`, because a person accepted the ledger as it is. After a
    /// kill before this, the ledger has to be accepted again.
    pub fn set_snapshots_aside(&self) -> Result<(), SpoolError> {
        let (root, accepted) = (&self.root, self.next_seq() - 1);
        let Some(dir) = root.dir_if_there(dirs::SNAPSHOTS.as_ref())? else {
            return Ok(());
        };
        let torn = root.dir(dirs::TORN.as_ref())?;
        for (seq, name) in list(root)? {
            let aside = layout::snapshot_aside(seq, accepted);
            let (from, to) = (name.as_ref(), aside.as_ref());
            root.disk
                .rename_new(&dir.handle, from, &torn.handle, to)
                .map_err(|source| root.error_at("set aside", &dir, &name, source))?;
        }
        let synced = [&torn, &dir].map(|dir| root.disk.sync_dir(&dir.handle));
        synced
            .into_iter()
            .collect::<io::Result<()>>()
            .map_err(|source| root.error("sync", &dir.path, source))
    }
}
