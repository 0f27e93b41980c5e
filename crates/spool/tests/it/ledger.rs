//! One line a record, chained; a torn tail is not taken for damage, and nothing is promised before its sync.

use std::sync::Arc;

use spool::{Digest, DiskFault, FaultyDisk, Mailbox, Spool, SpoolError, read_ledger, verify};

use crate::daemon::{BOOT, Workspace, inbox, make_fifo, notice};

fn open(workspace: &Workspace) -> Result<Spool, SpoolError> {
    open_on(workspace, &Arc::new(FaultyDisk::new(BOOT)))
}

fn open_on(workspace: &Workspace, disk: &Arc<FaultyDisk>) -> Result<Spool, SpoolError> {
    Spool::open(workspace.root(), Arc::clone(disk) as _, &mut |_| Ok(())).map(|opened| opened.spool)
}

fn commit(spool: &mut Spool, count: u64) -> Result<(), SpoolError> {
    let next = spool.next_seq();
    let drafts = (next..next + count)
        .map(|seq| notice(inbox("codex"), &format!("{seq}.yaml"), "text"))
        .collect();
    spool.commit(next, drafts).map(|_| ())
}

/// Five records: a batch of one, then two batches of two.
fn written() -> Workspace {
    let workspace = Workspace::new(&["codex"]);
    let mut spool = open(&workspace).expect("a start");
    for count in [1, 2, 2] {
        commit(&mut spool, count).expect("a commit");
    }
    workspace
}

const SEGMENT: &str = ".settled/ledger/00000000000000000001.jsonl";

fn lines(workspace: &Workspace) -> Vec<String> {
    workspace
        .read(SEGMENT)
        .expect("a segment")
        .split_inclusive('\n')
        .map(str::to_owned)
        .collect()
}

#[test]
fn each_line_names_the_digest_of_the_line_before() {
    let workspace = written();
    let mut expected = Digest::ZERO;
    for (line, batch) in lines(&workspace).iter().zip([1, 2, 2, 4, 4]) {
        let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(value["prev"], expected.to_string());
        assert_eq!(value["batch"], batch);
        expected = Digest::of(line.trim_end_matches('\n').as_bytes());
    }
    assert_eq!(verify(workspace.root()).expect("a ledger").last, expected);
}

#[test]
fn the_visitor_sees_every_record_in_order() {
    let workspace = written();
    let mut seen = Vec::new();
    let read = read_ledger(workspace.root(), &mut |entry| {
        seen.push((entry.seq, entry.deliveries[0].file.to_string()));
        Ok(())
    });
    assert_eq!(read.expect("a ledger").records, 5);
    let expected: Vec<_> = (1..=5).map(|seq| (seq, format!("{seq}.yaml"))).collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_changed_letter_anywhere_is_found() {
    let workspace = written();
    let bytes = std::fs::read(workspace.path(SEGMENT)).expect("a segment");
    let last_line = bytes.len() - lines(&workspace)[4].len();
    for at in (0..last_line).step_by(7) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        std::fs::write(workspace.path(SEGMENT), &changed).expect("a segment to write");
        let verified = verify(workspace.root());
        // In the last batch damage cannot be told from a torn write; before it, damage must be an error.
        let first_of_last_batch = bytes.len() - lines(&workspace)[3..].concat().len();
        match verified {
            Err(SpoolError::Damaged { .. } | SpoolError::TooNew { .. }) => {}
            Ok(verified) => {
                assert!(
                    verified.torn.is_some() && at >= first_of_last_batch,
                    "byte {at}: {verified:?}"
                );
            }
            Err(error) => panic!("byte {at}: {error}"),
        }
    }
}

#[test]
fn damage_before_the_last_batch_stops_the_start_and_changes_nothing() {
    let edits: [fn(&mut Vec<String>); 5] = [
        |lines| lines[1] = lines[1].replacen("text", "test", 1),
        |lines| lines[1] = "\0\0\0\0\n".to_owned(),
        |lines| lines[2].truncate(20),
        |lines| drop(lines.remove(1)),
        |lines| lines.swap(1, 2),
    ];
    for (at, edit) in edits.into_iter().enumerate() {
        let workspace = written();
        let mut damaged = lines(&workspace);
        edit(&mut damaged);
        workspace.write(SEGMENT, &damaged.concat());
        let error = open(&workspace).err().expect("a refusal");
        assert!(
            matches!(error, SpoolError::Damaged { line: 2..=3, .. }),
            "edit {at}: {error}"
        );
        assert_eq!(lines(&workspace).concat(), damaged.concat(), "edit {at}");
    }
}

#[test]
fn a_record_of_a_newer_version_is_never_cut_off() {
    let workspace = written();
    let mut text = lines(&workspace).concat();
    text.push_str("{\"v\":2,\"seq\":6}\n");
    workspace.write(SEGMENT, &text);
    assert!(matches!(
        open(&workspace),
        Err(SpoolError::TooNew {
            line: 6,
            version: 2,
            ..
        })
    ));
    assert_eq!(lines(&workspace).concat(), text);
}

#[test]
fn a_torn_tail_is_named_by_verify_and_cut_by_the_start() {
    let workspace = written();
    let whole = lines(&workspace).concat();
    workspace.write(SEGMENT, &format!("{whole}{{\"v\":1,\"se"));
    let torn = verify(workspace.root())
        .expect("a ledger")
        .torn
        .expect("a torn tail");
    assert_eq!((torn.offset, torn.bytes), (whole.len() as u64, 10));
    let mut spool = open(&workspace).expect("a start");
    assert_eq!(lines(&workspace).concat(), whole);
    commit(&mut spool, 1).expect("a commit");
    assert_eq!(verify(workspace.root()).expect("a ledger").records, 6);
}

#[test]
fn verify_misses_the_last_record_like_the_start_where_a_cursor_speaks_of_it() {
    let workspace = written();
    let mut spool = open(&workspace).expect("a start");
    spool.deliver(0).expect("a pass");
    spool.checkpoint().expect("a checkpoint");
    drop(spool);
    assert_eq!(verify(workspace.root()).expect("a ledger").records, 5);
    let mut cut = lines(&workspace);
    cut.pop();
    workspace.write(SEGMENT, &cut.concat());
    let said = verify(workspace.root()).expect_err("damage").to_string();
    assert!(
        said.contains("ends with record 4") && said.contains("speaks of record 5"),
        "{said}"
    );
    assert_eq!(open(&workspace).err().expect("a refusal").to_string(), said);
}

#[test]
fn segments_follow_each_other_and_a_missing_one_is_found() {
    let workspace = Workspace::new(&["codex"]);
    let mut spool = open(&workspace).expect("a start");
    spool.limit_segments(500);
    for _ in 0..4 {
        commit(&mut spool, 2).expect("a commit");
    }
    drop(spool);
    let verified = verify(workspace.root()).expect("a ledger");
    assert_eq!((verified.records, verified.segments), (8, 4));
    assert_eq!(open(&workspace).expect("a start").next_seq(), 9);
    std::fs::remove_file(workspace.path(".settled/ledger/00000000000000000003.jsonl"))
        .expect("a segment");
    assert!(matches!(
        verify(workspace.root()),
        Err(SpoolError::Damaged { line: 1, .. })
    ));
}

#[test]
fn an_empty_file_in_the_place_of_the_next_segment_is_used_and_one_with_bytes_is_not() {
    for (text, is_used) in [("", true), ("{}\n", false)] {
        let workspace = written();
        let mut spool = open(&workspace).expect("a start");
        spool.limit_segments(1);
        let segment = ".settled/ledger/00000000000000000006.jsonl";
        workspace.write(segment, text);
        let committed = commit(&mut spool, 2);
        drop(spool);
        if is_used {
            committed.expect("a commit");
            let verified = verify(workspace.root()).expect("a ledger");
            assert_eq!((verified.records, verified.segments), (7, 2));
        } else {
            let error = committed.expect_err("a refusal");
            assert!(matches!(error, SpoolError::Replaced { .. }), "{error}");
            assert_eq!(workspace.read(segment).as_deref(), Some(text));
        }
    }
}

#[test]
fn a_batch_decided_for_another_end_is_not_written() {
    let workspace = written();
    let mut spool = open(&workspace).expect("a start");
    let before = lines(&workspace);
    for expected in [5, 7] {
        let drafts = vec![notice(inbox("codex"), "x.yaml", "text")];
        let error = spool.commit(expected, drafts).expect_err("a refusal");
        assert!(
            matches!(error, SpoolError::Sequence { next: 6, .. }),
            "{error}"
        );
    }
    assert_eq!(lines(&workspace), before);
}

#[test]
fn a_draft_that_leads_out_of_the_tree_is_not_written() {
    let workspace = written();
    let mut spool = open(&workspace).expect("a start");
    let [packets, pull] = [
        Mailbox::Packets("other".to_owned()),
        Mailbox::PullRequest("../86".to_owned()),
    ];
    for mailbox in [inbox("../codex"), inbox(""), packets, pull] {
        let error = spool
            .commit(6, vec![notice(mailbox, "x.yaml", "text")])
            .expect_err("a refusal");
        assert!(
            matches!(error, SpoolError::Unfit { index: 0, .. }),
            "{error}"
        );
    }
    let mut without_text = notice(inbox("codex"), "x.yaml", "text");
    without_text.deliveries[0].content = spool::Content::Original;
    assert!(matches!(
        spool.commit(6, vec![without_text]),
        Err(SpoolError::Unfit { .. })
    ));
    commit(&mut spool, 1).expect("the spool still works");
}

/// Counts the changes up to the write of a batch: the cursor and the segment exist already.
fn failing_commit(
    fault: fn(u64, i32) -> DiskFault,
    change: u64,
    errno: i32,
) -> (Workspace, Spool, SpoolError) {
    let workspace = written();
    let disk = Arc::new(FaultyDisk::new(BOOT));
    let mut spool = open_on(&workspace, &disk).expect("a start");
    disk.set(Some(fault(change, errno)));
    let error = commit(&mut spool, 2).expect_err("a failure");
    disk.set(None);
    (workspace, spool, error)
}

#[test]
fn without_room_the_ledger_is_as_before_and_the_batch_may_be_tried_again() {
    let before = lines(&written());
    let (workspace, mut spool, error) = failing_commit(DiskFault::FailWithin, 1, 28);
    assert!(
        matches!(error, SpoolError::Full { .. }) && error.is_retryable(),
        "{error}"
    );
    assert_eq!(lines(&workspace), before);
    commit(&mut spool, 2).expect("the same batch");
    assert_eq!(verify(workspace.root()).expect("a ledger").records, 7);
}

#[test]
fn a_failed_write_or_sync_is_final() {
    let (broken, no_room) = (5, 28);
    // The write fails; the sync fails; there is no room and the room cannot be given back either.
    for (fault, change, errno) in [
        (DiskFault::Fail as fn(u64, i32) -> DiskFault, 1, broken),
        (DiskFault::Fail, 2, broken),
        (DiskFault::Fail, 2, no_room),
        (DiskFault::FailFrom, 1, no_room),
    ] {
        let (_workspace, mut spool, error) = failing_commit(fault, change, errno);
        assert!(matches!(error, SpoolError::Fatal { .. }), "{error}");
        assert!(matches!(
            commit(&mut spool, 1),
            Err(SpoolError::Stopped { .. })
        ));
        assert!(matches!(spool.deliver(0), Err(SpoolError::Stopped { .. })));
        assert!(matches!(
            spool.checkpoint(),
            Err(SpoolError::Stopped { .. })
        ));
    }
}

#[test]
fn a_batch_is_one_write_and_one_sync() {
    let workspace = written();
    let disk = Arc::new(FaultyDisk::new(BOOT));
    let mut spool = open_on(&workspace, &disk).expect("a start");
    disk.set(None);
    commit(&mut spool, 200).expect("a commit");
    assert_eq!(
        disk.log()
            .iter()
            .map(|line| line.trim_end())
            .collect::<Vec<_>>(),
        ["1 write", "2 sync"]
    );
}

#[test]
fn one_process_at_a_time_has_the_spool() {
    let workspace = written();
    let first = open(&workspace).expect("a start");
    let error = open(&workspace).err().expect("a refusal");
    let ours = std::process::id();
    assert!(
        matches!(error, SpoolError::Locked { pid: Some(pid), .. } if pid == ours),
        "{error}"
    );
    drop(first);
    open(&workspace).expect("the lock ends with its holder");
}

#[test]
fn an_onlooker_keeps_nobody_out_and_other_users_cannot_hold_the_lock() {
    use std::os::unix::fs::PermissionsExt as _;
    let workspace = written();
    let path = workspace.path(".settled/lock");
    let mode = || path.metadata().expect("the lock").permissions().mode() & 0o777;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("an old lock");
    assert_eq!(spool::is_served(workspace.root()), Some(false));
    let onlooker = std::fs::File::open(&path).expect("the lock");
    onlooker.try_lock_shared().expect("nobody serves");
    std::thread::scope(|scope| {
        let start = scope.spawn(|| open(&workspace).map(|_| spool::is_served(workspace.root())));
        // The permissions are set just before the lock is tried.
        while mode() != 0o600 {
            std::thread::yield_now();
        }
        drop(onlooker);
        assert_eq!(
            start.join().expect("no panic").expect("a start"),
            Some(true)
        );
    });
    std::fs::remove_file(&path).expect("the lock");
    std::os::unix::fs::symlink("lock", &path).expect("a link to itself");
    assert_eq!(
        spool::is_served(workspace.root()),
        None,
        "it cannot be seen"
    );
}

#[test]
fn a_pipe_in_the_place_of_the_lock_is_not_waited_for() {
    let workspace = written();
    let path = workspace.path(".settled/lock");
    std::fs::remove_file(&path).expect("the lock");
    make_fifo(&path);
    // If it were waited for, this test would end by its writer, and not by the assertion.
    let (root, (say, said)) = (workspace.root().to_owned(), std::sync::mpsc::channel());
    let asked = std::thread::spawn(move || say.send(spool::is_served(&root)));
    let answer = said.recv_timeout(std::time::Duration::from_secs(10));
    let mode = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NONBLOCK;
    drop(rustix::fs::open(&path, mode, rustix::fs::Mode::empty()).expect("a writer"));
    asked.join().expect("no panic").expect("a listener");
    assert_eq!(
        answer,
        Ok(None),
        "no regular file proves that nobody serves"
    );
    let daemon = open(&workspace).expect("a pipe can be locked too");
    assert_eq!(spool::is_served(workspace.root()), Some(true));
    drop(daemon);
    assert_eq!(spool::is_served(workspace.root()), None);
}

#[test]
fn a_visitor_that_does_not_understand_stops_the_start() {
    let workspace = written();
    let opened = Spool::open(
        workspace.root(),
        Arc::new(FaultyDisk::new(BOOT)),
        &mut |entry| {
            if entry.seq == 3 {
                Err("strange".into())
            } else {
                Ok(())
            }
        },
    );
    assert!(matches!(
        opened.err(),
        Some(SpoolError::Visit { seq: 3, .. })
    ));
}
