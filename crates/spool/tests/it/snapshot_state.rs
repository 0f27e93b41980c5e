//! The state in a snapshot is compared with the fold of the records, and its lines may be long.

use std::io;
use std::sync::Arc;

use spool::{Agreement, Entry, Fold, RowKey, Rows, VisitError, fold_ledger, verify_with};

use crate::daemon::{BOOT, Workspace};
use crate::snapshot::{resumed, write_some};

/// A state of one line, to which each record adds 20 000 letters.
#[derive(Debug, Default, PartialEq)]
struct OneLine {
    text: String,
    /// Adds other letters than it should.
    is_wrong: bool,
}

impl Fold for OneLine {
    fn form(&self) -> String {
        "one line".to_owned()
    }
    fn clear(&mut self) {
        self.text.clear();
    }
    fn add(&mut self, _: &Entry) -> Result<(), VisitError> {
        let letter = if self.is_wrong { "y" } else { "x" };
        self.text += &letter.repeat(20_000);
        Ok(())
    }
    fn save(&self, line: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        line(self.text.as_bytes())
    }
    fn new_rows(&self) -> Vec<(RowKey, &[u8])> {
        Vec::new()
    }
    fn is_removal(&self, _: &RowKey, _: &[u8]) -> bool {
        false
    }
    fn rest_on(&mut self, _: &Arc<Rows>) {}
    fn restore(
        &mut self,
        lines: &mut dyn Iterator<Item = Vec<u8>>,
        _: &Arc<Rows>,
    ) -> Result<(), VisitError> {
        self.text = String::from_utf8(lines.flatten().collect())?;
        Ok(())
    }
}

/// A workspace with four records and a snapshot of them, made with a right or a wrong fold.
fn with_snapshot(is_wrong: bool) -> Workspace {
    let workspace = Workspace::new(&["claude", "codex"]);
    write_some(&workspace, "1");
    let mut daemon = resumed(&workspace, BOOT);
    daemon.run().expect("a run");
    let mut fold = OneLine {
        is_wrong,
        ..OneLine::default()
    };
    let maker = daemon.spool.snapshot_maker().expect("no error");
    let made = maker.expect("something to save").make(&mut fold);
    assert_eq!(made.expect("a snapshot").seq, 4);
    workspace
}

#[test]
fn a_snapshot_that_differs_from_the_fold_of_the_records_is_told() {
    for (is_wrong, expected) in [(false, Agreement::Agrees), (true, Agreement::Differs)] {
        let workspace = with_snapshot(is_wrong);
        let compared = verify_with::<OneLine>(workspace.root(), &mut |_| Ok(()));
        assert_eq!(compared.expect("a whole ledger").1, [(4, expected)]);
    }
}

#[test]
fn a_snapshot_with_a_line_of_80_000_bytes_is_loaded() {
    let workspace = with_snapshot(false);
    let mut fold = OneLine::default();
    let folded = fold_ledger(workspace.root(), &mut fold).expect("a ledger");
    assert_eq!(folded.snapshot, Some(4));
    assert_eq!(fold.text, "x".repeat(80_000));
}

#[test]
fn a_snapshot_of_durable_deliveries_lists_nothing_that_is_owed() {
    let workspace = with_snapshot(false);
    let path = ".settled/snapshots/00000000000000000004.snapshot";
    let text = workspace.read(path).expect("a snapshot");
    let begins = |word: &str| text.lines().filter(|line| line.starts_with(word)).count();
    assert!(begins("lane ") > 3, "{}", &text[..1_000]);
    assert_eq!((begins("after "), begins("owed ")), (0, 0));
}
