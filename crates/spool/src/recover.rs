//! The start: takes the lock, reads the ledger, cuts a torn tail, and finishes what the last process left undone.
//!
//! When it is done, every judged original is put away or known as judged, so intake may open.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::delivery::{Backlog, Heads, Lane, Pass, items_of};
use crate::ledger::read::{LedgerPosition, LedgerRecord};
use crate::ledger::{Ledger, TornTail};
use crate::lock::LockGuard;
use crate::packet::Packets;
use crate::root::OpenRoot;
use crate::snapshot::load::{Checked, NO_LANES, Usable, load_newest};
use crate::snapshot::make::Folding;
use crate::snapshot::{Fold, PassedOver};
use crate::spool::Spool;
use crate::{Digest, Entry, Homes, SpoolError, VisitError, lock};
use disk::Disk;

/// The most files that a start makes between two looks at its interrupt: a fraction of a second.
const SLICE_FILES: usize = 128;

/// The findings and repairs of a start, for the operator.
#[derive(Debug, Default)]
pub struct Recovery {
    /// The number of records in the ledger.
    pub records: u64,
    /// Bytes of an unfinished batch that were cut off the ledger; a copy is in `.settled/torn/`.
    pub torn: Option<TornTail>,
    /// True if the system has rebooted, or has mounted the file system again, since some lanes were last made durable, so
    /// the start looked for their files.
    pub new_boot: bool,
    /// The last record of the snapshot that was loaded, if any: the records up to it were not read.
    pub snapshot: Option<u64>,
    /// The size of the ledger up to that record, in bytes.
    pub snapshot_bytes: u64,
    /// Newer snapshots that could not be used.
    pub passed_over: Vec<PassedOver>,
    /// Lanes whose cursor was lost: the start looked for every file they ever got.
    pub cursors_lost: Vec<Lane>,
    /// The lanes whose cursors kept only their durable part.
    pub notes_lost: Vec<Lane>,
    /// The deliveries and the originals put away, and the lanes that failed.
    pub pass: Pass,
}

/// A spool and what its start found.
pub struct Opened {
    /// The spool.
    pub spool: Spool,
    /// The findings of the start.
    pub recovery: Recovery,
}

impl Spool {
    /// Opens the workspace at `root`, folds the ledger into `fold` from the newest usable snapshot on, and finishes
    /// what a killed process left undone. Fails without changing anything if another process has the workspace or the
    /// ledger is damaged.
    pub fn resume(
        root: &Path,
        disk: Arc<dyn Disk>,
        fold: &mut dyn Fold,
    ) -> Result<Opened, SpoolError> {
        Spool::resume_at(root, disk, Homes::of_all(), fold)
    }

    /// Resumes on one host of several, for the mail of the agents at home on it.
    pub fn resume_at(
        root: &Path,
        disk: Arc<dyn Disk>,
        homes: Homes,
        fold: &mut dyn Fold,
    ) -> Result<Opened, SpoolError> {
        let mut start = Start::read(root, disk, homes)?;
        start.interrupt = fold.interrupt();
        let usable = |heads: &Heads| start.backlog.can_rest_on(&start.root, heads);
        let with = (&usable as Usable<'_>, Checked::Whole);
        let (taken, passed_over) = load_newest(&start.root, with, u64::MAX, fold)?;
        if let Some(taken) = &taken {
            start.backlog.know(&start.root, &taken.heads)?;
        }
        let bytes = taken.as_ref().map_or(0, |taken| taken.bytes);
        let durable = &mut |lane: &Lane| start.backlog.durable(lane);
        let (from, mut folding) = Folding::after(taken, fold, durable);
        let (snapshot, portion) = ((from.seq > 0).then_some(from.seq), folding.fold.portion());
        let first = from.seq;
        let mut admit = |root: &OpenRoot, backlog: &mut Backlog, record: &LedgerRecord| {
            let LedgerRecord { entry, place } = record;
            let items = items_of(entry);
            let durable = &mut |lane: &Lane| backlog.durable(lane);
            folding.heads.note(&items, place, durable);
            backlog.admit(items, place);
            folding.fold.add(entry).map_err(SpoolError::visit(entry))?;
            // A snapshot of each portion moves its rows to disk, so a long ledger needs no more memory than a short one. If
            // this snapshot cannot be written, the next one has the rows of both portions.
            if (place.seq - first).is_multiple_of(portion) {
                let _ = folding.rest(root, place);
            }
            Ok(())
        };
        let mut opened = start.finish(from, None, &mut admit)?;
        opened.recovery.snapshot = snapshot;
        opened.recovery.snapshot_bytes = bytes;
        opened.recovery.passed_over = passed_over;
        Ok(opened)
    }

    /// Opens the workspace at `root` like [`Spool::resume`], although an intact snapshot contradicts the ledger, if the
    /// ledger ends with `head`. Reads all of it.
    pub fn accept(
        root: &Path,
        disk: Arc<dyn Disk>,
        head: Digest,
        fold: &mut dyn Fold,
    ) -> Result<Opened, SpoolError> {
        let start = Start::read(root, disk, Homes::of_all())?;
        match load_newest(&start.root, (NO_LANES, Checked::Whole), u64::MAX, fold) {
            Err(SpoolError::Contradicted { .. }) => {}
            Err(error) => return Err(error),
            Ok(_) => return Err(SpoolError::NotContradicted),
        }
        let mut admit = admitting(|entry| fold.add(entry));
        start.finish(LedgerPosition::default(), Some(head), &mut admit)
    }

    /// Opens the workspace at `root` like [`Spool::resume`], but without any snapshot: hands every record of the ledger
    /// to `visit` in order.
    pub fn open(
        root: &Path,
        disk: Arc<dyn Disk>,
        visit: &mut dyn FnMut(&Entry) -> Result<(), VisitError>,
    ) -> Result<Opened, SpoolError> {
        let start = Start::read(root, disk, Homes::of_all())?;
        start.finish(LedgerPosition::default(), None, &mut admitting(visit))
    }
}

/// Queues what a record's lanes have not done yet, and folds it.
type Admit<'a> = dyn FnMut(&OpenRoot, &mut Backlog, &LedgerRecord) -> Result<(), SpoolError> + 'a;

/// Queues what a record's lanes have not done yet, and hands it to `add`.
fn admitting(
    mut add: impl FnMut(&Entry) -> Result<(), VisitError>,
) -> impl FnMut(&OpenRoot, &mut Backlog, &LedgerRecord) -> Result<(), SpoolError> {
    move |_, backlog, LedgerRecord { entry, place }| {
        backlog.admit(items_of(entry), place);
        add(entry).map_err(SpoolError::visit(entry))
    }
}

/// A workspace with everything read except the ledger.
struct Start {
    root: OpenRoot,
    lock: LockGuard,
    backlog: Backlog,
    interrupt: Arc<AtomicBool>,
}

impl Start {
    fn read(root: &Path, disk: Arc<dyn Disk>, homes: Homes) -> Result<Start, SpoolError> {
        let root = OpenRoot::open(root, disk)?;
        let lock = lock::take(&root)?;
        let backlog = Backlog::read(&root, homes)?;
        Ok(Start {
            root,
            lock,
            backlog,
            interrupt: Arc::default(),
        })
    }

    /// Reads the ledger from a known record to its end, which must be `head` if given, and completes unfinished work.
    fn finish(
        self,
        from: LedgerPosition,
        head: Option<Digest>,
        admit: &mut Admit<'_>,
    ) -> Result<Opened, SpoolError> {
        let Start {
            root,
            lock,
            mut backlog,
            interrupt,
        } = self;
        let go_on = || match interrupt.load(Ordering::Relaxed) {
            true => Err(SpoolError::Interrupted),
            false => Ok(()),
        };
        let mut admit =
            |record: &LedgerRecord| go_on().and_then(|()| admit(&root, &mut backlog, record));
        let (mut ledger, torn) = Ledger::open(
            Arc::clone(&root.disk),
            &root.layout,
            &root.handle,
            from,
            &mut admit,
        )?;
        let found = ledger.digest();
        if let Some(accepted) = head.filter(|head| *head != found) {
            return Err(SpoolError::OtherHead { accepted, found });
        }
        let records = ledger.next_seq() - 1;
        let (lanes, judged, doubts) = backlog.settle(&root, records)?;
        // Nothing is changed before this point: everything read is consistent.
        ledger.settle(&root.handle, torn.as_ref())?;
        let mut spool = Spool {
            root,
            ledger,
            lanes,
            judged,
            packets: Packets::default(),
            signatures: None,
            slice_max: usize::MAX,
            _lock: lock,
        };
        spool.lanes.replace_cursors(&spool.root, &doubts.lost)?;
        let mut pass = spool.deliver_up_to(SLICE_FILES, 0)?;
        while !spool.is_delivered() {
            // Each delivered file has its note, so an interrupted start delivers nothing twice.
            go_on()?;
            pass = pass.and(spool.deliver_up_to(SLICE_FILES, 0)?);
        }
        let recovery = Recovery {
            records,
            torn,
            new_boot: doubts.new_boot,
            cursors_lost: doubts.lost,
            notes_lost: doubts.notes_lost,
            pass,
            ..Recovery::default()
        };
        Ok(Opened { spool, recovery })
    }
}
