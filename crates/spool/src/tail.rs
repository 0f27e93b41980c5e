//! Follows the ledger from its last position: without the lock, changing nothing, and at almost no cost while nothing
//! is new.
//!
//! It hands over only whole lines of the ledger; a later call sees a line or a batch that is being written.

use std::path::{Path, PathBuf};

use crate::layout::{self, Layout};
use crate::ledger::backward::Backward;
use crate::ledger::is_gone;
use crate::ledger::read::{self, LedgerPosition, Stretch};
use crate::read_only::naming;
use crate::{Entry, SpoolError, Verified, VisitError, dirs};
use disk::Os;
use disk::{Disk, Handle, Stat};

/// The place at which a [`Tail`] begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// With the first record.
    Beginning,
    /// With the first record that does not exist yet. Reads only the end of the ledger.
    End,
    /// After this record. Reads at most one segment.
    Record(u64),
}

/// The ledger from some record on, read as it grows.
#[derive(Debug)]
pub struct Tail {
    layout: Layout,
    place: LedgerPosition,
    /// The metadata of the segment of `place` when it had been read to its end.
    seen: Option<Stat>,
    /// The size and the end of the ledger when records were last found.
    verified: Option<Verified>,
}

impl Tail {
    /// Begins to read the ledger of the workspace at `root`. Fails if the ledger does not have the named record: it was
    /// restored to an older state.
    pub fn open(root: &Path, since: Since) -> Result<Tail, SpoolError> {
        let layout = Layout::new(root);
        let dir = open_ledger(root)?;
        let place = match since {
            Since::Beginning => LedgerPosition::default(),
            Since::End => {
                let from = Backward::new(&Os, &layout, &dir)?.before_last_batch()?;
                read_to(&layout, &dir, from, u64::MAX)?
            }
            Since::Record(seq) => {
                let from = Backward::new(&Os, &layout, &dir)?.at_or_before(seq)?;
                let place = read_to(&layout, &dir, from, seq)?;
                if place.seq < seq {
                    let what = format!(
                        "ends with record {}, and had record {seq} before",
                        place.seq
                    );
                    return Err(older(layout.ledger(), &what));
                }
                place
            }
        };
        Ok(Tail {
            layout,
            place,
            seen: None,
            verified: None,
        })
    }

    /// Returns the number of the last record that was handed over, or after which it began; 0 before the first.
    pub fn seq(&self) -> u64 {
        self.place.seq
    }

    /// Returns the size and the end of the ledger when [`Tail::read`] last found records; `None` until it has found
    /// any.
    pub fn verified(&self) -> Option<&Verified> {
        self.verified.as_ref()
    }

    /// Hands every new record to `visit`, in order, and returns their number. Checks the chain from the record before.
    /// Fails if the ledger no longer has that record or is damaged; after an error the next call hands over the same
    /// records again.
    pub fn read(
        &mut self,
        visit: &mut dyn FnMut(&Entry) -> Result<(), VisitError>,
    ) -> Result<u64, SpoolError> {
        let root = Os
            .open_root(self.layout.root())
            .map_err(SpoolError::io("open", self.layout.root()))?;
        let now = self.stat_segment(&root, self.place.segment)?;
        if now.is_none() && self.place.seq > 0 {
            return Err(older(self.segment_path(), "is gone, and was read before"));
        }
        // A batch starts a new segment only at its first record, so there is only one name to look for.
        let is_followed =
            self.place.seq > 0 && self.stat_segment(&root, self.place.seq + 1)?.is_some();
        if now == self.seen && !is_followed {
            return Ok(0);
        }
        let dir = open_dir(&root, &self.layout)?;
        self.check_place(&dir)?;
        let stretch = Stretch {
            from: self.place.clone(),
            to: u64::MAX,
        };
        let end = read::read(&Os, &self.layout, &dir, &stretch, &mut naming(visit))?;
        let count = end.place.seq - self.place.seq;
        // The next call looks again at what was appended between the `stat` and the read.
        self.seen = now.filter(|_| end.place.segment == self.place.segment);
        self.verified = Some(end.verified());
        self.place = end.place;
        Ok(count)
    }

    fn stat_segment(&self, root: &Handle, first: u64) -> Result<Option<Stat>, SpoolError> {
        let name = Path::new(dirs::LEDGER).join(layout::segment_name(first));
        match Os.stat_at(root, &name) {
            Err(error) if is_gone(&error) => Ok(None),
            result => result
                .map(Some)
                .map_err(SpoolError::io("look at", self.layout.root().join(name))),
        }
    }

    /// Fails unless the last record that was read is still in its place.
    fn check_place(&self, dir: &Handle) -> Result<(), SpoolError> {
        if self.place.seq == 0 {
            return Ok(());
        }
        let path = self.segment_path();
        let text = self.place.text(&Os, dir);
        match text.map_err(SpoolError::io("read", &path))? {
            Some(_) => Ok(()),
            None => {
                let seq = self.place.seq;
                Err(older(
                    path,
                    &format!("does not hold the record {seq} that was read before"),
                ))
            }
        }
    }

    fn segment_path(&self) -> PathBuf {
        self.layout
            .ledger()
            .join(layout::segment_name(self.place.segment))
    }
}

fn older(path: PathBuf, what: &str) -> SpoolError {
    let what = format!("{what}: the ledger was put back to an older state");
    SpoolError::Replaced { path, what }
}

fn open_ledger(root: &Path) -> Result<Handle, SpoolError> {
    let layout = Layout::new(root);
    let root = Os.open_root(root).map_err(SpoolError::io("open", root))?;
    open_dir(&root, &layout)
}

fn open_dir(root: &Handle, layout: &Layout) -> Result<Handle, SpoolError> {
    Os.open_dir(root, Path::new(dirs::LEDGER))
        .map_err(SpoolError::io("open", layout.ledger()))
}

/// Returns the position at which a read from `from` up to record `to` ends.
fn read_to(
    layout: &Layout,
    dir: &Handle,
    from: LedgerPosition,
    to: u64,
) -> Result<LedgerPosition, SpoolError> {
    Ok(read::read(&Os, layout, dir, &Stretch { from, to }, &mut |_| Ok(()))?.place)
}

#[cfg(test)]
mod tests {
    use ledger_records::Head;

    use super::*;
    use crate::ledger::backward::tests::write_segment;

    #[test]
    fn what_was_read_to_its_end_is_known_by_its_metadata() {
        let root = tempfile::tempdir().expect("a directory");
        let layout = Layout::new(root.path());
        std::fs::create_dir_all(layout.ledger()).expect("a directory");
        let head = write_segment(&layout, Head::EMPTY, &[1, 2]);
        let mut tail = Tail::open(root.path(), Since::Beginning).expect("a ledger");
        let mut read = || {
            let count = tail.read(&mut |_| Ok(())).expect("records");
            (count, tail.seen.is_some())
        };
        assert_eq!((read(), read()), ((3, true), (0, true)));
        write_segment(&layout, head, &[1]);
        // The segment that this call read is no longer the last one; the next call reads the new one.
        assert_eq!((read(), read()), ((1, false), (0, true)));
    }
}
