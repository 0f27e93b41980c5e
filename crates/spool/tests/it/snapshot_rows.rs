//! The rows of snapshots: each is found in whichever file has it, files stay few, and no damaged byte goes unnoticed.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spool::{DiskFault, Entry, FaultyDisk, Fold, RowKey, Rows, Spool, VisitError, fold_ledger};

use crate::daemon::{Workspace, inbox, notice};
use crate::snapshot::disk;

/// The bytes of each row: enough that snapshots do not all merge into one file.
const ROW: usize = 30_000;

/// A fold with one row for each record, and one that changes with each.
#[derive(Default)]
pub(crate) struct Words {
    stored: Option<Arc<Rows>>,
    new: BTreeMap<RowKey, Vec<u8>>,
    /// The records after which a start writes a snapshot, if not as many as usual.
    portion: Option<u64>,
    /// The records after which the row of one is removed, if ever.
    kept: Option<u64>,
}

fn key(seq: u64) -> RowKey {
    let mut key = [b'w'; 20];
    // Spreads like a hash, although the last bytes hardly vary.
    key[1..9].copy_from_slice(&seq.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key
}

fn value(seq: u64) -> Vec<u8> {
    seq.to_string().into_bytes().repeat(ROW / 2)
}

impl Fold for Words {
    fn form(&self) -> String {
        "words 1".to_owned()
    }

    fn clear(&mut self) {
        let (portion, kept) = (self.portion, self.kept);
        *self = Self {
            portion,
            kept,
            ..Self::default()
        };
    }

    fn add(&mut self, entry: &Entry) -> Result<(), VisitError> {
        self.new.insert(key(entry.seq), value(entry.seq));
        self.new.insert(key(0), entry.seq.to_string().into_bytes());
        if let Some(gone) = self.kept.and_then(|kept| entry.seq.checked_sub(kept))
            && gone > 0
        {
            self.new.insert(key(gone), Vec::new());
        }
        Ok(())
    }

    fn portion(&self) -> u64 {
        self.portion.unwrap_or(96 * 1024)
    }

    fn save(&self, line: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        line(b"words")
    }

    fn new_rows(&self) -> Vec<(RowKey, &[u8])> {
        let rows = self.new.iter().map(|(key, value)| (*key, &value[..]));
        rows.collect()
    }

    fn restore(
        &mut self,
        lines: &mut dyn Iterator<Item = Vec<u8>>,
        rows: &Arc<Rows>,
    ) -> Result<(), VisitError> {
        lines.for_each(drop);
        self.rest_on(rows);
        Ok(())
    }

    fn is_removal(&self, _: &RowKey, value: &[u8]) -> bool {
        value.is_empty()
    }

    fn rest_on(&mut self, rows: &Arc<Rows>) {
        self.new.clear();
        self.stored = Some(Arc::clone(rows));
    }
}

impl Words {
    /// Returns all rows whose key begins with `prefix`; an error if a byte of them is wrong.
    fn beginning_with(&self, prefix: &[u8]) -> io::Result<BTreeMap<RowKey, Vec<u8>>> {
        let mut rows = BTreeMap::new();
        if let Some(stored) = &self.stored {
            stored.visit(prefix, &mut |key, value| {
                assert!(rows.insert(key, value.to_vec()).is_none(), "each once");
            })?;
        }
        let new = self.new.iter().filter(|(key, _)| key.starts_with(prefix));
        rows.extend(new.map(|(key, value)| (*key, value.clone())));
        Ok(rows)
    }

    fn value(&self, seq: u64) -> Option<Vec<u8>> {
        let rows = self.beginning_with(&key(seq)).expect("good bytes");
        rows.into_values().next()
    }
}

/// Returns the rows expected after this many records.
fn expected(records: u64) -> BTreeMap<RowKey, Vec<u8>> {
    let mut rows: BTreeMap<_, _> = (1..=records).map(|seq| (key(seq), value(seq))).collect();
    rows.insert(key(0), records.to_string().into_bytes());
    rows
}

fn files(workspace: &Workspace) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(workspace.path(".settled/snapshots")).expect("snapshots");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files
}

/// Commits and delivers this many records, and calls `after` with each.
fn commit(workspace: &Workspace, records: u64, after: impl Fn(&mut Spool, u64)) {
    let mut spool = Spool::open(workspace.root(), disk(), &mut |_| Ok(()))
        .expect("a start")
        .spool;
    for seq in 1..=records {
        let file = notice(inbox("codex"), &format!("{seq}.yaml"), "x");
        spool.commit(seq, vec![file]).expect("a commit");
        spool.deliver(0).expect("a delivery");
        spool.checkpoint().expect("a checkpoint");
        after(&mut spool, seq);
    }
}

/// Returns a workspace with this many records and a snapshot after each.
fn written(records: u64) -> Workspace {
    let workspace = Workspace::new(&["codex"]);
    commit(&workspace, records, |spool, seq| {
        let maker = spool.snapshot_maker().expect("an answer");
        let made = maker.expect("nothing waits").make(&mut Words::default());
        assert_eq!(made.expect("a snapshot").rows.seq(), seq);
        assert!(files(&workspace).len() <= 10, "{:?}", files(&workspace));
    });
    workspace
}

fn looked_at(root: &Path) -> (Words, Option<u64>) {
    let mut words = Words::default();
    let folded = fold_ledger(root, &mut words).expect("a ledger");
    (words, folded.snapshot)
}

#[test]
fn rows_of_many_snapshots_are_found_each_with_its_newest_value() {
    let workspace = written(60);
    assert!(files(&workspace).len() > 2, "several files have the rows");
    let (words, snapshot) = looked_at(workspace.root());
    assert_eq!((snapshot, words.new.len()), (Some(60), 0));
    assert!(words.beginning_with(b"w").expect("good bytes") == expected(60));
    for seq in 1..=60 {
        assert!(words.value(seq) == Some(value(seq)), "{seq}");
    }
    assert_eq!(words.value(0).as_deref(), Some(&b"60"[..]));
    assert_eq!(words.value(61), None);
}

#[test]
fn a_removed_row_leaves_nothing_once_no_older_row_is_beneath() {
    let workspace = Workspace::new(&["codex"]);
    let kept = Some(3);
    commit(&workspace, 60, |spool, seq| {
        let maker = spool.snapshot_maker().expect("an answer");
        let maker = maker.expect("nothing waits");
        let fold = &mut Words {
            kept,
            ..Words::default()
        };
        let rows = maker.make(fold).expect("a snapshot").rows;
        let (mut removed, mut others) = (0, Vec::new());
        let visit = &mut |key, value: &[u8]| match value.is_empty() {
            true => removed += 1,
            false => others.push(key),
        };
        rows.visit(b"w", visit).expect("good bytes");
        let mut expected: Vec<_> = (seq.saturating_sub(2)..=seq).map(key).collect();
        expected.push(key(0));
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(others, expected, "{seq}");
        // Each of the few files beneath has at most the rows of the records that were kept when it was written.
        assert!(removed <= 4 * files(&workspace).len(), "{seq}: {removed}");
    });
}

#[test]
fn no_wrong_byte_of_any_file_misleads_a_start_or_an_onlooker() {
    let workspace = written(24);
    let expected = expected(24);
    let mut of_no_use = 0;
    let files = files(&workspace);
    for path in &files {
        let good = std::fs::read(path).expect("a snapshot");
        // A sample of the bytes near the head and the footer, and a sparser one between.
        let ends = (0..good.len()).filter(|at| *at < 600 || at + 600 > good.len());
        let between = (600..good.len().saturating_sub(600)).step_by(19_997);
        for at in ends.step_by(7).chain(between) {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(path, &bad).expect("a file");
            let context = format!("byte {at} of {}", path.display());

            let mut started = Words::default();
            let opened = Spool::resume(workspace.root(), disk(), &mut started).expect("a start");
            of_no_use += usize::from(opened.recovery.snapshot != Some(24));
            drop(opened);
            let rows = started.beginning_with(b"w");
            assert!(rows.is_ok_and(|rows| rows == expected), "{context}");

            let (looking, _) = looked_at(workspace.root());
            let rows = looking.beginning_with(b"w");
            assert!(
                rows.is_err() || rows.is_ok_and(|rows| rows == expected),
                "{context}"
            );
        }
        std::fs::write(path, &good).expect("a file");
    }
    assert!(of_no_use > 100, "{of_no_use} starts read more");
    let (words, snapshot) = looked_at(workspace.root());
    assert_eq!(snapshot, Some(24));
    assert!(words.beginning_with(b"w").expect("good bytes") == expected);
}

#[test]
fn a_start_writes_a_snapshot_after_each_portion_and_one_that_fails_costs_no_row() {
    let expected = expected(10);
    let mut failing = 0;
    loop {
        failing += 1;
        let workspace = Workspace::new(&["codex"]);
        commit(&workspace, 10, |_, _| ());
        let disk = disk();
        disk.set(Some(DiskFault::Fail(failing, 28)));
        let portion = Some(3);
        let mut words = Words {
            portion,
            ..Words::default()
        };
        let started = Spool::resume(
            workspace.root(),
            Arc::<FaultyDisk>::clone(&disk),
            &mut words,
        );
        let context = format!("change {failing} of {:?}", disk.log());
        if started.is_ok() {
            let rows = words.beginning_with(b"w").expect("good bytes");
            assert!(rows == expected, "{context}");
        }
        drop(started);
        let (later, snapshot) = looked_at(workspace.root());
        let rows = later.beginning_with(b"w").expect("good bytes");
        assert!(rows == expected, "{context}");
        if failing > disk.changes() {
            assert_eq!(snapshot, Some(9), "{context}");
            assert!(failing > 12, "{context}");
            return;
        }
    }
}
