//! A snapshot only shortens the reading: whatever happens to it, and wherever the process is killed around it, the
//! state is that of the records and every file exists once.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use spool::{
    Agreement, Digest, Entry, FaultyDisk, Fold, Homes, RowKey, Rows, Spool, SpoolError, VisitError,
    fold_ledger, read_ledger, verify, verify_with,
};

use crate::daemon::{BOOT, Daemon, LATER, OTHER_BOOT, State, Workspace, inbox, notice};
use crate::threads;

pub(crate) fn disk() -> Arc<FaultyDisk> {
    Arc::new(FaultyDisk::new(BOOT))
}

/// Returns the state that the records give when read one by one.
pub(crate) fn whole(workspace: &Workspace) -> State {
    let mut state = State {
        next: 1,
        ..State::default()
    };
    let read = read_ledger(workspace.root(), &mut |entry| {
        state.apply(entry);
        Ok(())
    });
    read.expect("a whole ledger");
    state
}

pub(crate) fn snapshot(daemon: &Daemon) -> Result<Option<u64>, SpoolError> {
    let maker = daemon.spool.snapshot_maker()?;
    maker
        .map(|maker| maker.make(&mut State::default()).map(|made| made.seq))
        .transpose()
}

pub(crate) fn resumed(workspace: &Workspace, boot: &str) -> Daemon {
    Daemon::resume(workspace, Arc::new(FaultyDisk::new(boot))).expect("a start")
}

/// Puts three messages, a duplicate and a bad one into the outboxes, distinguished by `tag`.
pub(crate) fn write_some(workspace: &Workspace, tag: &str) {
    workspace.write(
        &format!("agents/claude/outbox/a-{tag}.yaml"),
        &format!("to codex: alpha {tag}"),
    );
    workspace.write(
        &format!("agents/claude/outbox/again-{tag}.yaml"),
        &format!("to codex: alpha {tag}"),
    );
    workspace.write(
        &format!("agents/claude/outbox/x-{tag}.yaml"),
        &format!("to codex: bad {tag}"),
    );
    workspace.write(
        &format!("agents/codex/outbox/c-{tag}.yaml"),
        &format!("to claude: gamma {tag}"),
    );
}

/// A workspace with 12 records and two snapshots, the second at record 8.
pub(crate) fn written() -> Workspace {
    let workspace = Workspace::new(&["claude", "codex"]);
    for tag in ["1", "2", "3"] {
        let mut daemon = resumed(&workspace, BOOT);
        write_some(&workspace, tag);
        daemon.run().expect("a run");
        if tag != "3" {
            assert!(snapshot(&daemon).expect("a snapshot").is_some());
        }
    }
    workspace
}

const NEWEST: &str = ".settled/snapshots/00000000000000000008.snapshot";
const OLDER: &str = ".settled/snapshots/00000000000000000004.snapshot";

/// Notes each record it adds, and whether another thread reads the ledger when it adds the first. Interrupts the start at a
/// record.
#[derive(Default)]
struct Listening {
    state: State,
    seen: Vec<u64>,
    has_reader: bool,
    interrupt: Arc<AtomicBool>,
    interrupts_at: u64,
}

impl Fold for Listening {
    fn form(&self) -> String {
        self.state.form()
    }
    fn clear(&mut self) {
        self.state.clear();
    }
    fn add(&mut self, entry: &Entry) -> Result<(), VisitError> {
        if self.seen.is_empty() {
            self.has_reader = threads::has_thread("ledger-reader");
        }
        self.seen.push(entry.seq);
        if entry.seq == self.interrupts_at {
            self.interrupt.store(true, Ordering::Relaxed);
        }
        self.state.add(entry)
    }
    fn save(&self, line: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.state.save(line)
    }
    fn new_rows(&self) -> Vec<(RowKey, &[u8])> {
        self.state.new_rows()
    }
    fn is_removal(&self, key: &RowKey, value: &[u8]) -> bool {
        self.state.is_removal(key, value)
    }
    fn rest_on(&mut self, rows: &Arc<Rows>) {
        self.state.rest_on(rows);
    }
    fn restore(
        &mut self,
        lines: &mut dyn Iterator<Item = Vec<u8>>,
        rows: &Arc<Rows>,
    ) -> Result<(), VisitError> {
        self.state.restore(lines, rows)
    }
    fn interrupt(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.interrupt)
    }
}

#[test]
fn a_start_reads_only_what_follows_the_snapshot_and_much_of_it_on_another_thread() {
    let workspace = written();
    let start = || {
        let mut fold = Listening::default();
        let opened = Spool::resume(workspace.root(), disk(), &mut fold).expect("a start");
        assert_eq!(opened.recovery.snapshot, Some(8));
        assert_eq!(fold.state, whole(&workspace));
        (opened, fold)
    };
    let (opened, fold) = start();
    assert_eq!(opened.recovery.records, 12);
    assert_eq!(fold.seen, [9, 10, 11, 12]);
    let mut spool = opened.spool;
    // The reader cannot be done when the first is added: only 64 records are handed over at once, and few times 64 wait.
    let text = "x".repeat(40 << 10);
    let long = |number| notice(inbox("codex"), &format!("long-{number}.yaml"), &text);
    let next = spool.next_seq();
    spool
        .commit(next, (0..450).map(long).collect())
        .expect("a commit");
    drop(spool);
    let (_, fold) = start();
    assert_eq!(fold.seen, (9..=462).collect::<Vec<u64>>());
    assert!(fold.has_reader);
}

#[test]
fn an_interrupted_start_ends_before_its_work_is_done_and_the_next_one_does_the_rest_once() {
    let workspace = Workspace::new(&["claude", "codex"]);
    let records = 3000;
    let mut spool = resumed(&workspace, BOOT).spool;
    let drafts = (0..records).map(|number| notice(inbox("codex"), &format!("{number}.yaml"), "a"));
    spool.commit(1, drafts.collect()).expect("a commit");
    drop(spool);
    let start = |interrupts_at| {
        let mut fold = Listening {
            interrupts_at,
            ..Listening::default()
        };
        let opened = Spool::resume(workspace.root(), disk(), &mut fold);
        (opened.map(|opened| opened.recovery.pass), fold.seen.len())
    };
    let is_interrupted = |pass| matches!(pass, Err(SpoolError::Interrupted));
    let made = || workspace.show("agents/codex/inbox").len();
    // During the reading nothing is delivered, and during the delivery a part.
    let (pass, seen) = start(10);
    assert!(is_interrupted(pass));
    assert_eq!((seen, made()), (10, 0));
    let (pass, seen) = start(records);
    assert!(is_interrupted(pass));
    let before = made();
    assert_eq!(seen as u64, records);
    assert!(0 < before && before < 3000, "{before}");
    let (pass, _) = start(0);
    let pass = pass.expect("a start");
    assert_eq!((before + pass.delivered, made()), (3000, 3000));
    assert_eq!((pass.redelivered, pass.came_back), (vec![], vec![]));
}

#[test]
fn onlookers_and_the_whole_ledger_say_the_same() {
    let workspace = written();
    let mut state = State::default();
    let folded = fold_ledger(workspace.root(), &mut state).expect("a ledger");
    assert_eq!((folded.snapshot, folded.verified.records), (Some(8), 12));
    assert_eq!(state, whole(&workspace));
    let (verified, snapshots) =
        verify_with::<State>(workspace.root(), &mut |_| Ok(())).expect("a whole ledger");
    assert_eq!(
        (verified.records, verified.last),
        (12, folded.verified.last)
    );
    assert_eq!(snapshots, [(4, Agreement::Agrees), (8, Agreement::Agrees)]);
}

#[test]
fn whatever_byte_of_it_is_wrong_no_start_is_misled() {
    let workspace = written();
    let good = std::fs::read(workspace.path(NEWEST)).expect("a snapshot");
    let expected = whole(&workspace);
    let mut used = BTreeMap::new();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        std::fs::write(workspace.path(NEWEST), &bad).expect("a file");
        let mut state = State::default();
        let folded = fold_ledger(workspace.root(), &mut state).expect("a ledger");
        assert_eq!(
            state,
            expected,
            "byte {at} of {}",
            String::from_utf8_lossy(&good)
        );
        *used.entry(folded.snapshot).or_insert(0) += 1;
    }
    assert_eq!(
        used,
        BTreeMap::from([(Some(4), good.len())]),
        "each is noticed, and the older one is used"
    );
    for len in (0..good.len()).step_by(7) {
        std::fs::write(workspace.path(NEWEST), &good[..len]).expect("a file");
        let mut state = State::default();
        let folded = fold_ledger(workspace.root(), &mut state).expect("a ledger");
        assert_eq!(
            (folded.snapshot, &state),
            (Some(4), &expected),
            "cut to {len} bytes"
        );
    }
    std::fs::write(workspace.path(NEWEST), [&good[..], b"\n"].concat()).expect("a file");
    assert_eq!(
        resumed(&workspace, BOOT).recovery.snapshot,
        Some(4),
        "bytes behind its end"
    );
}

#[test]
fn without_one_that_is_of_use_all_is_read() {
    let expected = whole(&written());
    type Spoil = fn(&Workspace);
    let spoils: [(&str, Spoil); 6] = [
        ("removed", |workspace| {
            std::fs::remove_dir_all(workspace.path(".settled/snapshots")).expect("snapshots");
        }),
        ("of another form", |workspace| {
            for path in [NEWEST, OLDER] {
                let text = workspace
                    .read(path)
                    .expect("a snapshot")
                    .replace("test 1", "test 0");
                workspace.write(path, &text);
            }
        }),
        ("of a newer version", |workspace| {
            for path in [NEWEST, OLDER] {
                let text = workspace
                    .read(path)
                    .expect("a snapshot")
                    .replace("\"v\":2", "\"v\":4");
                workspace.write(path, &text);
            }
        }),
        ("under another number", |workspace| {
            let to = NEWEST.replace("08.", "07.");
            std::fs::rename(workspace.path(NEWEST), workspace.path(&to)).expect("a snapshot");
            std::fs::remove_file(workspace.path(OLDER)).expect("a snapshot");
        }),
        ("directories", |workspace| {
            for path in [NEWEST, OLDER] {
                std::fs::remove_file(workspace.path(path)).expect("a snapshot");
                std::fs::create_dir(workspace.path(path)).expect("a directory");
            }
        }),
        ("links", |workspace| {
            for path in [NEWEST, OLDER] {
                std::fs::rename(workspace.path(path), workspace.path("kept")).expect("a snapshot");
                std::os::unix::fs::symlink(workspace.path("kept"), workspace.path(path))
                    .expect("a link");
            }
        }),
    ];
    for (what, spoil) in spoils {
        let workspace = written();
        spoil(&workspace);
        let daemon = resumed(&workspace, BOOT);
        assert_eq!(
            daemon.recovery.snapshot, None,
            "{what}: {:?}",
            daemon.recovery.passed_over
        );
        assert_eq!(daemon.state, expected, "{what}");
    }
}

#[test]
fn a_lane_that_needs_older_records_has_all_of_them_read() {
    let lanes = [
        "codex.inbox",
        "claude.outbox",
        "packets.briefs",
        "claude.dead_letter",
    ];
    for lane in lanes {
        let workspace = written();
        std::fs::remove_file(workspace.path(&format!(".settled/cursors/{lane}.cursor")))
            .expect("a cursor");
        let daemon = resumed(&workspace, BOOT);
        assert_eq!(
            daemon.recovery.snapshot, None,
            "{lane}: {:?}",
            daemon.recovery.passed_over
        );
        let lost: Vec<String> = daemon
            .recovery
            .cursors_lost
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(lost, [lane.replace('.', "/")]);
        assert_eq!(daemon.state, whole(&workspace));
    }
}

#[test]
fn a_power_cut_behind_it_is_mended_from_it_and_one_before_it_needs_all_records() {
    let workspace = written();
    let taken = workspace.path("agents/codex/inbox");
    // The third run was made durable as well, so the start looks for nothing.
    std::fs::remove_file(taken.join("a-3.yaml")).expect("a delivered file");
    assert_eq!(resumed(&workspace, OTHER_BOOT).recovery.snapshot, Some(8));
    assert!(
        !taken.join("a-3.yaml").exists(),
        "it was taken after the checkpoint"
    );

    // Records after the snapshot that are delivered and not yet durable.
    write_some(&workspace, "4");
    let mut daemon = resumed(&workspace, BOOT);
    daemon.step(LATER).expect("a step");
    drop(daemon);
    std::fs::remove_file(taken.join("a-4.yaml")).expect("a delivered file");
    let daemon = resumed(&workspace, OTHER_BOOT);
    assert_eq!(daemon.recovery.snapshot, Some(8));
    assert_eq!(daemon.recovery.pass.redelivered.len(), 1);
    drop(daemon);

    // A lane whose durable position is behind the snapshot.
    let path = workspace.path(".settled/cursors/codex.inbox.cursor");
    let other = Workspace::new(&["codex"]);
    let mut spool = Spool::open(other.root(), disk(), &mut |_| Ok(()))
        .expect("a start")
        .spool;
    spool
        .commit(1, vec![notice(inbox("codex"), "x.yaml", "x")])
        .expect("a commit");
    spool.deliver(0).expect("a delivery");
    spool.checkpoint().expect("a checkpoint");
    std::fs::copy(other.path(".settled/cursors/codex.inbox.cursor"), path).expect("an old cursor");
    assert_eq!(resumed(&workspace, OTHER_BOOT).recovery.snapshot, None);
}

const SEGMENT: &str = ".settled/ledger/00000000000000000001.jsonl";

/// Returns the error that a start and `fold_ledger` give for a ledger that an intact snapshot contradicts.
fn contradiction(workspace: &Workspace) -> String {
    let error = Spool::resume(workspace.root(), disk(), &mut State::default())
        .err()
        .expect("no start");
    assert!(matches!(error, SpoolError::Contradicted { .. }), "{error}");
    let seen = fold_ledger(workspace.root(), &mut State::default()).expect_err("no fold");
    assert_eq!(seen.to_string(), error.to_string());
    error.to_string()
}

/// Returns a workspace whose ledger ends before its newest snapshot, as one from a backup does, without cursors.
fn cut_short() -> Workspace {
    let workspace = written();
    let text = workspace.read(SEGMENT).expect("a segment");
    let five: String = text.split_inclusive('\n').take(5).collect();
    workspace.write(SEGMENT, &five);
    std::fs::remove_dir_all(workspace.path(".settled/cursors")).expect("cursors");
    workspace
}

#[test]
fn one_that_was_made_from_other_records_stops_the_reading() {
    let workspace = cut_short();
    let why = contradiction(&workspace);
    assert!(why.ends_with("record 8 is not where it was"), "{why}");
    let (_, snapshots) =
        verify_with::<State>(workspace.root(), &mut |_| Ok(())).expect("a whole ledger");
    let beyond = Agreement::Contradicts("record 8 is not where it was".to_owned());
    assert_eq!(snapshots, [(4, Agreement::Agrees), (8, beyond)]);

    // Another ledger altogether.
    let workspace = written();
    let other = Workspace::new(&["claude", "codex"]);
    write_some(&other, "other");
    write_some(&other, "and another");
    write_some(&other, "and a third");
    resumed(&other, BOOT).run().expect("a run");
    std::fs::copy(other.path(SEGMENT), workspace.path(SEGMENT)).expect("a ledger");
    contradiction(&workspace);
    let (_, snapshots) =
        verify_with::<State>(workspace.root(), &mut |_| Ok(())).expect("a whole ledger");
    let is_contradiction =
        |(_, agreement): &(u64, Agreement)| matches!(agreement, Agreement::Contradicts(_));
    assert!(snapshots.iter().all(is_contradiction), "{snapshots:?}");
}

#[test]
fn one_that_contradicts_the_ledger_and_fails_its_own_checksum_is_passed_over() {
    let workspace = cut_short();
    let newest = ".settled/snapshots/00000000000000000008.snapshot";
    let text = workspace.read(newest).expect("a snapshot");
    workspace.write(newest, &text.replacen("lane ", "lanE ", 1));
    let mut state = State::default();
    let folded = fold_ledger(workspace.root(), &mut state).expect("a ledger");
    assert_eq!((folded.snapshot, folded.passed_over.len()), (Some(4), 1));
}

#[test]
fn a_contradicted_ledger_is_accepted_by_its_head_alone() {
    let workspace = cut_short();
    let head = verify(workspace.root()).expect("a whole ledger").last;
    let accept = |head| Spool::accept(workspace.root(), disk(), head, &mut State::default());
    let before = workspace.read(SEGMENT).expect("a segment");
    let other = accept(Digest::of(b"another")).err().expect("no start");
    assert!(
        matches!(other, SpoolError::OtherHead { found, .. } if found == head),
        "{other}"
    );
    let mut spool = accept(head).expect("a start").spool;
    spool
        .commit(6, vec![notice(inbox("codex"), "x.yaml", "x")])
        .expect("a commit");
    drop(spool);
    // A kill before the snapshots are set aside: the ledger has to be accepted again.
    contradiction(&workspace);
    let head = verify(workspace.root()).expect("a whole ledger").last;
    let spool = accept(head).expect("a start").spool;
    spool.set_snapshots_aside().expect("a place for them");
    drop(spool);
    assert!(
        workspace
            .read(SEGMENT)
            .expect("a segment")
            .starts_with(&before)
    );
    let again = accept(head).err().expect("nothing to accept");
    assert!(matches!(again, SpoolError::NotContradicted), "{again}");
    assert_eq!(resumed(&workspace, BOOT).recovery.records, 6);
    for seq in [4, 8] {
        let aside = format!(".settled/torn/{seq:020}.snapshot.accepted-6");
        assert!(workspace.read(&aside).is_some(), "{aside}");
    }
}

#[test]
fn a_segment_that_is_gone_or_shorter_is_damage_as_without_a_snapshot() {
    let workspace = Workspace::new(&["codex"]);
    let mut spool = Spool::open(workspace.root(), disk(), &mut |_| Ok(()))
        .expect("a start")
        .spool;
    spool.limit_segments(1);
    for seq in 1..=6 {
        spool
            .commit(
                seq,
                vec![notice(inbox("codex"), &format!("{seq}.yaml"), "x")],
            )
            .expect("a commit");
    }
    spool.deliver(0).expect("a delivery");
    spool.checkpoint().expect("a checkpoint");
    let maker = spool
        .snapshot_maker()
        .expect("an answer")
        .expect("nothing waits");
    assert_eq!(
        maker.make(&mut State::default()).expect("a snapshot").seq,
        6
    );
    drop(spool);
    assert_eq!(resumed(&workspace, BOOT).recovery.snapshot, Some(6));
    let segment = |first: u64| workspace.path(&format!(".settled/ledger/{first:020}.jsonl"));
    let kept = std::fs::read(segment(3)).expect("a segment");
    for damage in [None, Some(&kept[..kept.len() - 1]), Some(&kept[..0])] {
        match damage {
            None => std::fs::remove_file(segment(3)).expect("a segment"),
            Some(bytes) => std::fs::write(segment(3), bytes).expect("a segment"),
        }
        let refused = Daemon::resume(&workspace, disk()).err().expect("a refusal");
        assert!(matches!(refused, SpoolError::Damaged { .. }), "{refused}");
        std::fs::write(segment(3), &kept).expect("a segment");
    }
    assert_eq!(resumed(&workspace, BOOT).recovery.snapshot, Some(6));
}

#[test]
fn the_newest_and_the_one_before_are_kept() {
    let workspace = written();
    workspace.write(".settled/snapshots/new.tmp", "left by a kill");
    let daemon = resumed(&workspace, BOOT);
    assert_eq!(snapshot(&daemon).expect("a snapshot"), Some(12));
    let names: Vec<String> = workspace.show(".settled/snapshots").into_keys().collect();
    assert_eq!(
        names,
        [
            "00000000000000000008.snapshot",
            "00000000000000000012.snapshot"
        ]
    );
    assert_eq!(snapshot(&daemon).expect("the same again"), Some(12));
    drop(daemon);
    assert_eq!(resumed(&workspace, BOOT).recovery.snapshot, Some(12));
}

#[test]
fn a_host_starts_from_a_snapshot_and_leaves_the_lanes_of_others_to_them() {
    let workspace = Workspace::new(&["claude", "codex"]);
    let start = || {
        let homes = Homes::of(["codex".to_owned()]);
        let opened = Spool::resume_at(workspace.root(), disk(), homes, &mut State::default());
        opened.expect("a start")
    };
    let mut spool = start().spool;
    let drafts = ["claude", "codex"].map(|agent| notice(inbox(agent), "a.yaml", "a"));
    spool.commit(1, drafts.into()).expect("a commit");
    spool.deliver(0).expect("a pass");
    spool.checkpoint().expect("a checkpoint");
    let maker = spool.snapshot_maker().expect("an answer");
    let made = maker.expect("a maker").make(&mut State::default());
    assert_eq!(made.expect("a snapshot").seq, 2);
    drop(spool);
    let recovery = start().recovery;
    assert_eq!(recovery.snapshot, Some(2), "{:?}", recovery.passed_over);
}
