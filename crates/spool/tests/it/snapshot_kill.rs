//! The process is killed, or the disk fails, at every change around the making of a snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use spool::{Agreement, DiskFault, FaultyDisk, verify_with};

use crate::daemon::{BOOT, Daemon, State, Workspace};
use crate::snapshot::{disk, resumed, snapshot, whole, write_some, written};

/// Returns the delivered texts with their counts.
fn delivered(workspace: &Workspace) -> BTreeMap<String, u32> {
    let mut texts = BTreeMap::new();
    let places = [
        "agents/codex/inbox",
        "agents/claude/inbox",
        "agents/claude/sent",
        "agents/codex/sent",
    ];
    for text in places
        .into_iter()
        .chain(["packets/briefs"])
        .flat_map(|place| workspace.show(place).into_values())
    {
        *texts.entry(text).or_default() += 1;
    }
    texts
}

/// Kills the process in a fresh workspace at each of the changes that `run` makes, and lets `go_on` start it again: its
/// state and its snapshots are then those of the whole ledger.
pub(crate) fn at_each_kill(
    changes: u64,
    fresh: &dyn Fn() -> Workspace,
    run: fn(&Workspace, &Arc<FaultyDisk>),
    go_on: &dyn Fn(&Workspace, &str) -> Daemon,
) {
    for n in 1..=changes {
        for fault in [DiskFault::StopAfter(n), DiskFault::StopWithin(n)] {
            let (workspace, killed) = (fresh(), disk());
            killed.set(Some(fault));
            run(&workspace, &killed);
            let context = format!("{fault:?} ({:?})", killed.log().last());
            assert!(killed.stopped(), "{context}: the fault was never reached");
            let daemon = go_on(&workspace, &context);
            assert_eq!(daemon.state, whole(&workspace), "{context}");
            let (_, snapshots) =
                verify_with::<State>(workspace.root(), &mut |_| Ok(())).expect("a whole ledger");
            let agree = |(_, agreement): &(u64, Agreement)| *agreement == Agreement::Agrees;
            assert!(snapshots.iter().all(agree), "{context}: {snapshots:?}");
        }
    }
}

/// Runs twice with a snapshot after each, until the process is killed.
fn run_until_killed(workspace: &Workspace, disk: &Arc<FaultyDisk>) {
    for _ in 0..2 {
        let Ok(mut daemon) = Daemon::resume(workspace, Arc::clone(disk) as _) else {
            return;
        };
        if daemon.run().is_err() || snapshot(&daemon).is_err() {
            return;
        }
        if !workspace.path("agents/claude/outbox/a-2.yaml").exists() && whole(workspace).next == 5 {
            write_some(workspace, "2");
        }
    }
}

#[test]
fn a_kill_at_any_change_around_a_snapshot_has_no_effect() {
    let fresh = || {
        let workspace = Workspace::new(&["claude", "codex"]);
        write_some(&workspace, "1");
        workspace
    };
    let (template, undisturbed) = (fresh(), disk());
    run_until_killed(&template, &undisturbed);
    let (expected, changes) = (delivered(&template), undisturbed.changes());
    assert_eq!(whole(&template).next, 9);
    let replaced = undisturbed
        .log()
        .iter()
        .filter(|line| line.contains(".snapshot"))
        .count();
    assert!(replaced == 2 && changes > 80, "{:#?}", undisturbed.log());
    at_each_kill(changes, &fresh, run_until_killed, &|workspace, context| {
        if !workspace.path("agents/claude/outbox/a-2.yaml").exists() && whole(workspace).next <= 5 {
            write_some(workspace, "2");
        }
        let mut daemon = resumed(workspace, BOOT);
        daemon.run().expect("a run without faults");
        assert_eq!(delivered(workspace), expected, "{context}");
        assert!(
            snapshot(&daemon).is_ok_and(|seq| seq == Some(8)),
            "{context}"
        );
        daemon
    });
}

#[test]
fn one_that_cannot_be_written_leaves_everything_as_it_was() {
    let workspace = written();
    let failing = disk();
    let daemon = Daemon::resume(&workspace, Arc::clone(&failing) as _).expect("a start");
    failing.set(None);
    assert_eq!(snapshot(&daemon).expect("a snapshot"), Some(12));
    let changes = failing.changes();
    drop(daemon);
    for n in 1..=changes {
        for errno in [28, 5] {
            let (workspace, failing) = (written(), disk());
            let daemon = Daemon::resume(&workspace, Arc::clone(&failing) as _).expect("a start");
            failing.set(Some(DiskFault::Fail(n, errno)));
            let made = snapshot(&daemon);
            let last = failing.log().last().cloned();
            assert!(made.is_err(), "change {n} fails with {errno}: {last:?}");
            drop(daemon);
            let daemon = resumed(&workspace, BOOT);
            assert!(
                daemon.recovery.snapshot >= Some(8),
                "{last:?}: {:?}",
                daemon.recovery.passed_over
            );
            assert_eq!(daemon.state, whole(&workspace));
        }
    }
}
