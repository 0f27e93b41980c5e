//! A reader that continues from its last position sees every record once, whatever the ledger's files do meanwhile.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::Arc;

use spool::{FaultyDisk, Since, Spool, SpoolError, Tail};

use crate::daemon::{BOOT, Workspace, inbox, notice};

const NOTHING: [u64; 0] = [];

const SEGMENT: &str = ".settled/ledger/00000000000000000001.jsonl";

fn open(workspace: &Workspace) -> Spool {
    let disk = Arc::new(FaultyDisk::new(BOOT));
    Spool::open(workspace.root(), disk, &mut |_| Ok(()))
        .expect("a start")
        .spool
}

fn commit(spool: &mut Spool, count: u64) {
    commit_of(spool, count, "text");
}

fn commit_of(spool: &mut Spool, count: u64, text: &str) {
    let next = spool.next_seq();
    let names = next..next + count;
    let drafts = names
        .map(|seq| notice(inbox("codex"), &format!("{seq}.yaml"), text))
        .collect();
    spool.commit(next, drafts).expect("a commit");
}

/// Returns the numbers of the records since the last call.
fn came(tail: &mut Tail) -> Result<Vec<u64>, SpoolError> {
    let mut seen = Vec::new();
    let count = tail.read(&mut |entry| {
        seen.push(entry.seq);
        Ok(())
    })?;
    assert_eq!(count, seen.len() as u64);
    Ok(seen)
}

fn since(workspace: &Workspace, since: Since) -> Tail {
    Tail::open(workspace.root(), since).expect("a ledger")
}

fn append(workspace: &Workspace, bytes: &[u8]) {
    let mut file = OpenOptions::new()
        .append(true)
        .open(workspace.path(SEGMENT))
        .expect("a segment");
    file.write_all(bytes).expect("bytes to write");
}

#[test]
fn every_record_comes_once_and_an_idle_call_brings_none() {
    let workspace = Workspace::new(&["codex"]);
    let mut tail = since(&workspace, Since::Beginning);
    assert_eq!(came(&mut tail).expect("nothing yet"), NOTHING);
    let mut spool = open(&workspace);
    commit(&mut spool, 1);
    commit(&mut spool, 2);
    assert_eq!(came(&mut tail).expect("records"), [1, 2, 3]);
    for _ in 0..3 {
        assert_eq!(came(&mut tail).expect("nothing"), NOTHING);
    }
    commit(&mut spool, 1);
    assert_eq!(came(&mut tail).expect("a record"), [4]);
    assert_eq!(tail.seq(), 4);
}

#[test]
fn it_begins_where_it_was_told_to() {
    let workspace = Workspace::new(&["codex"]);
    assert_eq!(since(&workspace, Since::End).seq(), 0);
    let mut spool = open(&workspace);
    for count in [1, 2, 2] {
        commit(&mut spool, count);
    }
    let mut at_end = since(&workspace, Since::End);
    assert_eq!(at_end.seq(), 5);
    for behind in 0..=5 {
        let expected: Vec<u64> = (behind + 1..=5).collect();
        assert_eq!(
            came(&mut since(&workspace, Since::Record(behind))).expect("records"),
            expected
        );
    }
    commit(&mut spool, 2);
    assert_eq!(came(&mut at_end).expect("records"), [6, 7]);
}

#[test]
fn segments_change_under_it_and_nothing_is_missed() {
    let workspace = Workspace::new(&["codex"]);
    let mut spool = open(&workspace);
    spool.limit_segments(1);
    let mut tail = since(&workspace, Since::Beginning);
    for seq in 1..=4 {
        commit(&mut spool, 1);
        assert_eq!(came(&mut tail).expect("a record"), [seq]);
    }
    commit(&mut spool, 3);
    commit(&mut spool, 1);
    assert_eq!(came(&mut tail).expect("two segments"), [5, 6, 7, 8]);
    for behind in 0..=8 {
        let expected: Vec<u64> = (behind + 1..=8).collect();
        assert_eq!(
            came(&mut since(&workspace, Since::Record(behind))).expect("records"),
            expected
        );
    }
    // A kill between creating a segment and writing its first record leaves this.
    workspace.write(".settled/ledger/00000000000000000009.jsonl", "");
    for mut tail in [
        tail,
        since(&workspace, Since::End),
        since(&workspace, Since::Record(8)),
    ] {
        assert_eq!((came(&mut tail).expect("nothing"), tail.seq()), (vec![], 8));
    }
}

#[test]
fn a_line_that_is_not_finished_is_not_there_yet() {
    let workspace = Workspace::new(&["codex"]);
    let mut spool = open(&workspace);
    commit(&mut spool, 2);
    let whole = std::fs::read(workspace.path(SEGMENT)).expect("a segment");
    commit(&mut spool, 2);
    let more = std::fs::read(workspace.path(SEGMENT))
        .expect("a segment")
        .split_off(whole.len());
    let first = more
        .iter()
        .position(|byte| *byte == b'\n')
        .expect("two lines")
        + 1;
    drop(spool);

    std::fs::write(workspace.path(SEGMENT), &whole).expect("an older ledger");
    let mut tail = since(&workspace, Since::Beginning);
    assert_eq!(came(&mut tail).expect("records"), [1, 2]);
    for (from, to, expected) in [
        (0, 10, vec![]),
        (10, first, vec![3]),
        (first, more.len() - 1, vec![]),
    ] {
        append(&workspace, &more[from..to]);
        assert_eq!(came(&mut tail).expect("what is whole"), expected);
        let end = since(&workspace, Since::End);
        assert_eq!(end.seq(), tail.seq(), "the end is the last whole record");
    }
    append(&workspace, b"\n");
    assert_eq!(came(&mut tail).expect("the last one"), [4]);
}

#[test]
fn what_a_kill_tore_is_waited_for_until_it_is_cut_off() {
    let workspace = Workspace::new(&["codex"]);
    let mut spool = open(&workspace);
    commit(&mut spool, 2);
    drop(spool);
    append(&workspace, b"\0\0\0\0\n{\"v\":1,\"se\n");
    let mut tail = since(&workspace, Since::End);
    assert_eq!((came(&mut tail).expect("nothing"), tail.seq()), (vec![], 2));
    let mut spool = open(&workspace);
    assert_eq!(came(&mut tail).expect("nothing"), NOTHING);
    commit(&mut spool, 1);
    assert_eq!(came(&mut tail).expect("a record"), [3]);
}

#[test]
fn a_ledger_that_was_put_back_is_told() {
    let workspace = Workspace::new(&["codex"]);
    let mut spool = open(&workspace);
    commit(&mut spool, 2);
    let older = std::fs::read(workspace.path(SEGMENT)).expect("a segment");
    commit(&mut spool, 2);
    drop(spool);
    let is_told = |tail: &mut Tail| {
        let error = came(tail).expect_err("an older ledger");
        assert!(matches!(error, SpoolError::Replaced { .. }), "{error}");
        assert!(
            error
                .to_string()
                .ends_with("the ledger was put back to an older state"),
            "{error}"
        );
    };
    let [mut tail, mut other] = [
        since(&workspace, Since::End),
        since(&workspace, Since::Record(3)),
    ];
    assert_eq!(came(&mut other).expect("a record"), [4]);

    std::fs::write(workspace.path(SEGMENT), &older).expect("an older ledger");
    is_told(&mut tail);
    let error = Tail::open(workspace.root(), Since::Record(4)).expect_err("it has two records");
    assert!(matches!(error, SpoolError::Replaced { .. }), "{error}");
    // It grows again, with other records under the same numbers.
    let mut spool = open(&workspace);
    commit_of(&mut spool, 4, "another text");
    is_told(&mut tail);
    is_told(&mut other);
    drop(spool);
    std::fs::remove_file(workspace.path(SEGMENT)).expect("a segment");
    is_told(&mut tail);
}

#[test]
fn the_end_is_found_behind_lines_of_any_length() {
    let workspace = Workspace::new(&["codex"]);
    let mut spool = open(&workspace);
    for length in [1, 70_000, 3, 65_536, 300_000] {
        commit_of(&mut spool, 2, &"x".repeat(length));
    }
    assert_eq!(since(&workspace, Since::End).seq(), 10);
}

#[test]
fn damage_is_an_error_and_no_end() {
    let workspace = Workspace::new(&["codex"]);
    let mut spool = open(&workspace);
    commit(&mut spool, 1);
    let mut tail = since(&workspace, Since::End);
    for _ in 0..3 {
        commit(&mut spool, 1);
    }
    let text = workspace.read(SEGMENT).expect("a segment");
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.remove(1);
    workspace.write(SEGMENT, &lines.concat());
    assert!(matches!(came(&mut tail), Err(SpoolError::Damaged { .. })));
}
