//! An agent that closes a directory keeps no snapshot from being made: the snapshot lists the records that the parked
//! lane still needs, and a start reads those again.

use std::collections::BTreeMap;
use std::sync::Arc;

use spool::{Agreement, FaultyDisk, Spool, SpoolError, fold_ledger, verify_with};

use crate::closed::{close, open};
use crate::daemon::{BOOT, Daemon, LATER, OTHER_BOOT, State, Workspace, inbox, notice};
use crate::snapshot::{disk, resumed, snapshot, whole, write_some};
use crate::snapshot_fold::PORTION;
use crate::snapshot_kill::at_each_kill;

const INBOX: &str = "agents/codex/inbox";
const SEGMENT: &str = ".settled/ledger/00000000000000000001.jsonl";
const CURSOR: &str = ".settled/cursors/codex.inbox.cursor";

/// Commits a notice to each of these agents, tries to deliver and makes durable what was delivered.
fn tell(daemon: &mut Daemon, agents: &[&str], file: &str) {
    let drafts = agents.iter().map(|agent| notice(inbox(agent), file, file));
    let next = daemon.spool.next_seq();
    for committed in daemon
        .spool
        .commit(next, drafts.collect())
        .expect("a commit")
    {
        daemon.state.apply(&committed);
    }
    daemon.spool.deliver(LATER.mono).expect("a pass");
    daemon.spool.checkpoint().expect("a checkpoint");
}

/// A workspace with a notice to each agent in every record, and a snapshot after record 6: codex closed its inbox after
/// record 2 and is owed the records 4 and 6.
fn parked() -> (Workspace, Daemon) {
    let workspace = Workspace::new(&["claude", "codex"]);
    let mut daemon = resumed(&workspace, BOOT);
    tell(&mut daemon, &["claude", "codex"], "a.yaml");
    close(&workspace.path(INBOX));
    tell(&mut daemon, &["claude", "codex"], "b.yaml");
    tell(&mut daemon, &["claude", "codex"], "c.yaml");
    assert_eq!(daemon.spool.parked().len(), 1);
    assert_eq!(snapshot(&daemon).expect("a snapshot"), Some(6));
    (workspace, daemon)
}

/// Returns the lines that list owed records in the newest snapshot.
fn owed(workspace: &Workspace) -> usize {
    let text = workspace
        .show(".settled/snapshots")
        .into_values()
        .next_back();
    let text = text.expect("a snapshot");
    let lines = text.lines().filter(|line| line.starts_with("owed "));
    let is_at_rest = text.starts_with(r#"{"settled":"snapshot","v":2,"#);
    let count = lines.count();
    assert_eq!(is_at_rest, count == 0, "{text}");
    count
}

fn names(workspace: &Workspace) -> Vec<String> {
    workspace.show(INBOX).into_keys().collect()
}

#[test]
fn a_parked_lane_gets_its_files_once_from_the_records_that_a_snapshot_lists() {
    for boot in [BOOT, OTHER_BOOT] {
        let (workspace, daemon) = parked();
        assert_eq!(owed(&workspace), 2);
        drop(daemon);
        // Closed all the while: nothing is lost.
        let daemon = resumed(&workspace, boot);
        assert_eq!(daemon.recovery.snapshot, Some(6));
        assert_eq!(daemon.recovery.pass.parked.len(), 1);
        assert_eq!(daemon.spool.waiting(), 2);
        drop(daemon);
        open(&workspace.path(INBOX));
        // A notice that its reader took does not come again.
        std::fs::remove_file(workspace.path(INBOX).join("a.yaml")).expect("a notice");
        let mut daemon = resumed(&workspace, boot);
        assert_eq!(
            daemon.recovery.snapshot,
            Some(6),
            "{:?}",
            daemon.recovery.passed_over
        );
        assert_eq!(daemon.recovery.pass.delivered, 2);
        assert_eq!(names(&workspace), ["b.yaml", "c.yaml"]);
        assert_eq!(daemon.state, whole(&workspace));
        daemon.spool.checkpoint().expect("a checkpoint");
        drop(daemon);
        for name in ["b.yaml", "c.yaml"] {
            std::fs::remove_file(workspace.path(INBOX).join(name)).expect("a notice");
        }
        let daemon = resumed(&workspace, boot);
        assert_eq!(daemon.recovery.snapshot, Some(6));
        assert!(names(&workspace).is_empty());
    }
}

#[test]
fn what_is_still_owed_is_carried_into_the_next_snapshot_and_what_was_delivered_is_not() {
    let (workspace, daemon) = parked();
    drop(daemon);
    let mut daemon = resumed(&workspace, BOOT);
    tell(&mut daemon, &["codex", "claude"], "d.yaml");
    assert_eq!(snapshot(&daemon).expect("a snapshot"), Some(8));
    assert_eq!(owed(&workspace), 3);
    let (_, snapshots) = verify_with::<State>(workspace.root(), &mut |_| Ok(())).expect("a ledger");
    assert_eq!(snapshots, [(6, Agreement::Agrees), (8, Agreement::Agrees)]);
    let folded = fold_ledger(workspace.root(), &mut State::default()).expect("a ledger");
    assert_eq!(folded.snapshot, Some(8), "commands use it as well");
    drop(daemon);
    open(&workspace.path(INBOX));
    let mut daemon = resumed(&workspace, OTHER_BOOT);
    assert_eq!(daemon.recovery.snapshot, Some(8));
    assert_eq!(names(&workspace), ["a.yaml", "b.yaml", "c.yaml", "d.yaml"]);
    tell(&mut daemon, &["codex"], "e.yaml");
    assert_eq!(snapshot(&daemon).expect("a snapshot"), Some(9));
    assert_eq!(owed(&workspace), 0);
}

#[test]
fn a_lane_that_goes_on_while_a_snapshot_is_made_gets_nothing_twice() {
    let (workspace, mut daemon) = parked();
    tell(&mut daemon, &["claude"], "d.yaml");
    let maker = daemon.spool.snapshot_maker().expect("an answer");
    open(&workspace.path(INBOX));
    daemon.spool.deliver(LATER.mono * 2).expect("a pass");
    daemon.spool.checkpoint().expect("a checkpoint");
    assert_eq!(names(&workspace), ["a.yaml", "b.yaml", "c.yaml"]);
    let made = maker.expect("a maker").make(&mut State::default());
    assert_eq!(made.expect("a snapshot").seq, 7);
    assert_eq!(owed(&workspace), 2);
    drop(daemon);
    std::fs::remove_file(workspace.path(INBOX).join("c.yaml")).expect("a notice");
    for boot in [BOOT, OTHER_BOOT] {
        assert_eq!(resumed(&workspace, boot).recovery.snapshot, Some(7));
        assert_eq!(names(&workspace), ["a.yaml", "b.yaml"]);
    }
}

#[test]
fn what_a_power_cut_could_undo_is_listed_too() {
    let workspace = Workspace::new(&["claude", "codex"]);
    let mut daemon = resumed(&workspace, BOOT);
    tell(&mut daemon, &["codex"], "a.yaml");
    let next = daemon.spool.next_seq();
    let draft = notice(inbox("codex"), "b.yaml", "b");
    daemon.spool.commit(next, vec![draft]).expect("a commit");
    assert_eq!(daemon.spool.deliver(0).expect("a pass").delivered, 1);
    // Its agent closes the inbox before anything of it is durable.
    close(&workspace.path(INBOX));
    daemon
        .spool
        .checkpoint()
        .expect_err("a closed directory is told");
    assert_eq!(snapshot(&daemon).expect("a snapshot"), Some(2));
    drop(daemon);
    open(&workspace.path(INBOX));
    std::fs::remove_file(workspace.path(INBOX).join("b.yaml")).expect("a notice");
    let daemon = resumed(&workspace, BOOT);
    assert_eq!(daemon.recovery.snapshot, Some(2));
    assert_eq!(
        names(&workspace),
        ["a.yaml"],
        "a reader took it: there was no power cut"
    );
    drop(daemon);
    let daemon = resumed(&workspace, OTHER_BOOT);
    assert_eq!(daemon.recovery.snapshot, Some(2));
    assert_eq!(names(&workspace), ["a.yaml", "b.yaml"]);
}

#[test]
fn a_lane_that_needs_more_than_the_snapshot_lists_has_all_records_read() {
    let (workspace, daemon) = parked();
    drop(daemon);
    std::fs::remove_file(workspace.path(CURSOR)).expect("a cursor");
    open(&workspace.path(INBOX));
    std::fs::remove_file(workspace.path(INBOX).join("a.yaml")).expect("a notice");
    let daemon = resumed(&workspace, BOOT);
    assert_eq!(daemon.recovery.snapshot, None);
    let why = &daemon.recovery.passed_over[0].why;
    assert_eq!(why, "codex/inbox still needs records from before it");
    assert_eq!(names(&workspace), ["a.yaml", "b.yaml", "c.yaml"]);
}

#[test]
fn an_owed_record_that_is_damaged_is_damage_as_without_a_snapshot() {
    let (workspace, daemon) = parked();
    drop(daemon);
    let text = workspace.read(SEGMENT).expect("a segment");
    // Record 4, in which the file of record 3 is named.
    let at = text.match_indices("b.yaml").nth(2).expect("its name").0;
    let mut bytes = text.into_bytes();
    bytes[at] = b'x';
    std::fs::write(workspace.path(SEGMENT), bytes).expect("a segment");
    let refused = Daemon::resume(&workspace, disk()).err().expect("a refusal");
    assert!(
        matches!(refused, SpoolError::Damaged { line: 5, .. }),
        "{refused}"
    );
}

#[test]
fn an_original_that_could_not_be_put_away_is_judged_once_across_a_snapshot() {
    let workspace = Workspace::new(&["claude", "codex"]);
    close(&workspace.path("agents/claude/sent"));
    workspace.write("agents/claude/outbox/a.yaml", "to codex: alpha");
    let mut daemon = resumed(&workspace, BOOT);
    assert_eq!(daemon.step(LATER).expect("a step").0, 1);
    daemon.spool.checkpoint().expect("a checkpoint");
    assert_eq!(snapshot(&daemon).expect("a snapshot"), Some(1));
    drop(daemon);
    let mut daemon = resumed(&workspace, BOOT);
    assert_eq!(daemon.recovery.snapshot, Some(1));
    assert_eq!(
        daemon.step(LATER).expect("a step").0,
        0,
        "it was judged before"
    );
    open(&workspace.path("agents/claude/sent"));
    daemon.run().expect("a run");
    assert!(!workspace.path("agents/claude/outbox/a.yaml").exists());
    assert_eq!(workspace.show("agents/claude/sent").len(), 1);
}

/// Works with codex's inbox closed and makes a snapshot, starts again, and once more with the inbox open, until the
/// process is killed.
fn run_until_killed(workspace: &Workspace, disk: &Arc<FaultyDisk>) {
    for tag in ["1", "2", "open"] {
        let Ok(mut daemon) = Daemon::resume(workspace, Arc::clone(disk) as _) else {
            return;
        };
        if tag == "open" && workspace.path(INBOX).is_file() {
            open(&workspace.path(INBOX));
        } else if workspace.path(INBOX).is_file() {
            write_some(workspace, tag);
        }
        for pass in 1..4 {
            let mut now = LATER;
            now.mono += pass * 60_000;
            if daemon.step(now).is_err() {
                return;
            }
        }
        if daemon.spool.checkpoint().is_err() || snapshot(&daemon).is_err() {
            return;
        }
    }
}

#[test]
fn a_kill_at_any_change_while_a_lane_is_parked_has_no_effect() {
    let fresh = || {
        let workspace = Workspace::new(&["claude", "codex"]);
        close(&workspace.path(INBOX));
        workspace
    };
    let (template, undisturbed) = (fresh(), disk());
    run_until_killed(&template, &undisturbed);
    let (expected, changes) = (template.show(INBOX), undisturbed.changes());
    let log = undisturbed.log();
    let made = log.iter().filter(|line| line.contains(".snapshot"));
    assert!(made.count() >= 3, "{log:#?}");
    // Of each of the two messages the text and the notice.
    assert_eq!((expected.len(), whole(&template).next), (4, 9));
    at_each_kill(changes, &fresh, run_until_killed, &|workspace, context| {
        let is_closed = workspace.path(INBOX).is_file();
        for tag in ["1", "2"].into_iter().filter(|_| is_closed) {
            let sent = workspace.path(&format!("agents/claude/sent/a-{tag}.yaml"));
            if !sent.exists() {
                write_some(workspace, tag);
            }
        }
        let mut daemon = resumed(workspace, BOOT);
        if is_closed {
            open(&workspace.path(INBOX));
        }
        daemon.run().expect("a run without faults");
        let texts = |shown: &BTreeMap<String, String>| {
            let mut texts: Vec<String> = shown.values().cloned().collect();
            texts.sort();
            texts
        };
        assert_eq!(texts(&workspace.show(INBOX)), texts(&expected), "{context}");
        assert!(
            snapshot(&daemon).expect("a snapshot").is_some(),
            "{context}"
        );
        assert_eq!(owed(workspace), 0, "{context}");
        daemon
    });
}

#[test]
fn a_long_start_lists_what_is_owed_in_the_snapshots_that_it_makes() {
    let (workspace, mut daemon) = parked();
    std::fs::remove_dir_all(workspace.path(".settled/snapshots")).expect("snapshots");
    let next = daemon.spool.next_seq();
    let empty = || spool::EntryDraft {
        deliveries: Vec::new(),
        ..notice(inbox("claude"), "-", "-")
    };
    let drafts = (0..PORTION).map(|_| empty()).collect();
    daemon.spool.commit(next, drafts).expect("a commit");
    drop(daemon);
    let portion = Some(PORTION);
    assert_eq!(resumed(&workspace, BOOT).recovery.snapshot, None);
    assert_eq!(owed(&workspace), 2);
    let daemon = resumed(&workspace, BOOT);
    assert_eq!(
        daemon.recovery.snapshot, portion,
        "{:?}",
        daemon.recovery.passed_over
    );
    drop(daemon);
    open(&workspace.path(INBOX));
    let opened = Spool::resume(workspace.root(), disk(), &mut State::default()).expect("a start");
    assert_eq!(opened.recovery.snapshot, portion);
    assert_eq!(names(&workspace), ["a.yaml", "b.yaml", "c.yaml"]);
}
