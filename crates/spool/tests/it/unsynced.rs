//! Files are durable after a checkpoint, whichever process made them: the disk forgets everything else.

use std::collections::BTreeMap;
use std::sync::Arc;

use spool::{Arrival, Disk as _, FaultyDisk, VolatileDisk};

use crate::daemon::{BOOT, Daemon, LATER, OTHER_BOOT, Workspace, run};

/// Cuts the power now: everything that was not synced is lost.
fn cut(workspace: &Workspace, disk: &VolatileDisk) {
    let notes = disk.notes();
    for top in std::fs::read_dir(workspace.root())
        .expect("a workspace")
        .flatten()
    {
        std::fs::remove_dir_all(top.path()).expect("a directory to remove");
    }
    notes
        .restore(notes.len(), &|_| Arrival::Lost, workspace.root())
        .expect("a tree");
}

fn disk(workspace: &Workspace) -> Arc<VolatileDisk> {
    Arc::new(VolatileDisk::new(workspace.root(), BOOT).expect("a disk"))
}

#[test]
fn a_checkpoint_makes_durable_what_a_killed_process_delivered() {
    let workspace = Workspace::new(&["claude", "codex"]);
    workspace.write("agents/claude/outbox/a.yaml", "to codex: alpha");
    workspace.write("agents/claude/outbox/b.yaml", "to codex: beta");
    let disk = disk(&workspace);
    let mut daemon = Daemon::start(&workspace, Arc::clone(&disk) as _).expect("a start");
    assert_eq!(daemon.step(LATER).expect("a step").0, 2);
    drop(daemon);
    let mut daemon = Daemon::start(&workspace, Arc::clone(&disk) as _).expect("a second start");
    daemon.run().expect("nothing to do, and a checkpoint");
    drop(daemon);
    let before = workspace.show("agents/codex/inbox");
    assert_eq!(before.len(), 4);

    cut(&workspace, &disk);
    assert_eq!(
        workspace.show("agents/codex/inbox"),
        before,
        "without anybody fixing it"
    );
    assert_eq!(workspace.show("agents/claude/sent").len(), 2);
    let daemon = run(&workspace, OTHER_BOOT);
    assert!(daemon.recovery.pass.redelivered.is_empty() && daemon.recovery.pass.fixed.is_empty());
}

#[test]
fn what_the_recovery_put_into_sent_survives_the_next_cut() {
    let workspace = Workspace::new(&["claude", "codex"]);
    workspace.write("agents/claude/outbox/a.yaml", "to codex: alpha");
    let mut daemon = Daemon::start(&workspace, Arc::new(FaultyDisk::new(BOOT))).expect("a start");
    daemon.step(LATER).expect("a step");
    drop(daemon);
    std::fs::remove_file(workspace.path("agents/claude/sent/a.yaml")).expect("the original");
    workspace.write("agents/claude/sent/.settled-1.away.tmp", "to co");

    let disk = Arc::new(VolatileDisk::new(workspace.root(), OTHER_BOOT).expect("a disk"));
    Daemon::start(&workspace, Arc::clone(&disk) as _)
        .expect("a start")
        .run()
        .expect("a checkpoint");
    cut(&workspace, &disk);
    assert_eq!(
        workspace.read("agents/claude/sent/a.yaml").as_deref(),
        Some("to codex: alpha")
    );
}

#[test]
fn a_rename_that_arrived_by_half_leaves_no_second_name() {
    let workspace = Workspace::new(&["claude", "codex"]);
    workspace.write("agents/claude/outbox/a.yaml", "to codex: alpha");
    let mut daemon = Daemon::start(&workspace, Arc::new(FaultyDisk::new(BOOT))).expect("a start");
    daemon.step(LATER).expect("a step");
    drop(daemon);
    workspace.write("agents/claude/sent/.settled-1.away.tmp", "to codex: alpha");
    run(&workspace, OTHER_BOOT);
    assert_eq!(workspace.hidden("agents/claude/sent"), [""; 0]);
}

#[test]
fn mailboxes_made_again_are_durable() {
    let workspace = Workspace::new(&["claude", "codex"]);
    for directory in ["sent", "archive", "dead_letter", "inbox"] {
        std::fs::remove_dir(workspace.path(&format!("agents/claude/{directory}")))
            .expect("an empty directory");
    }
    let disk = disk(&workspace);
    let daemon = Daemon::start(&workspace, Arc::clone(&disk) as _).expect("a start");
    assert_eq!(
        daemon
            .spool
            .make_mailboxes("claude")
            .expect("mailboxes")
            .len(),
        4
    );
    cut(&workspace, &disk);
    assert!(
        workspace.path("agents/claude/sent").is_dir()
            && workspace.path("agents/claude/inbox").is_dir()
    );
}

#[test]
fn a_spoiled_note_beside_a_stale_one_holds_nothing_up() {
    let workspace = Workspace::new(&["claude", "codex"]);
    workspace.write("agents/claude/outbox/a.yaml", "to codex: alpha");
    run(&workspace, BOOT);
    let cursor = workspace.path(".settled/cursors/codex.inbox.cursor");
    let mut bytes = std::fs::read(&cursor).expect("a cursor");
    // Damages `delivered`, the last of the four lines; `prepared` then names the file before.
    bytes[3 * 128 + 20] ^= 1;
    std::fs::write(&cursor, bytes).expect("a cursor to write");
    workspace.write("agents/claude/outbox/b.yaml", "to codex: beta");
    run(&workspace, BOOT);
    assert_eq!(workspace.show("agents/codex/inbox").len(), 4);
}

/// All mail and all originals that were put away.
fn shown(workspace: &Workspace) -> Vec<BTreeMap<String, String>> {
    ["codex/inbox", "pi/inbox", "claude/sent"]
        .map(|place| workspace.show(&format!("agents/{place}")))
        .into()
}

#[test]
fn what_is_delivered_during_a_checkpoint_belongs_to_the_next_one() {
    for syncs_again in [false, true] {
        let workspace = Workspace::new(&["claude", "codex", "pi"]);
        for (name, text) in [
            ("a", "to codex: alpha"),
            ("b", "to codex: beta"),
            ("c", "to pi: gamma"),
        ] {
            workspace.write(&format!("agents/claude/outbox/{name}.yaml"), text);
        }
        let disk = disk(&workspace);
        let mut daemon = Daemon::start(&workspace, Arc::clone(&disk) as _).expect("a start");
        daemon.spool.limit_slices(3);
        daemon.judge(LATER).expect("three messages");
        daemon
            .spool
            .deliver_slice(LATER.mono)
            .expect("some of the files");
        let begun = daemon
            .spool
            .begin_checkpoint(&Arc::default())
            .expect("a checkpoint");
        let begun = begun.expect("something to sync");
        let first = shown(&workspace);
        daemon.spool.deliver(LATER.mono).expect("the others");
        assert_ne!(first, shown(&workspace));

        let refused = daemon.spool.begin_checkpoint(&Arc::default()).map(drop);
        assert!(refused.is_err_and(|error| error.is_retryable()));
        let refused = daemon.spool.checkpoint();
        assert!(refused.is_err_and(|error| error.is_retryable()));
        daemon.spool.end_checkpoint(begun.sync()).expect("its end");
        assert!(daemon.spool.wants_checkpoint());
        if syncs_again {
            daemon.spool.checkpoint().expect("the next one");
            assert!(!daemon.spool.wants_checkpoint());
        }
        drop(daemon);
        let before = shown(&workspace);
        cut(&workspace, &disk);
        assert_eq!(shown(&workspace) == before, syncs_again);
        let daemon = run(&workspace, OTHER_BOOT);
        assert_eq!(shown(&workspace), before);
        let pass = &daemon.recovery.pass;
        let is_whole = pass.redelivered.is_empty() && pass.fixed.is_empty();
        assert_eq!(is_whole, syncs_again);
    }
}

#[test]
fn a_checkpoint_that_fails_leaves_everything_to_the_next_one() {
    let workspace = Workspace::new(&["claude", "codex"]);
    workspace.write("agents/claude/outbox/a.yaml", "to codex: alpha");
    let disk = disk(&workspace);
    let mut daemon = Daemon::start(&workspace, Arc::clone(&disk) as _).expect("a start");
    daemon.step(LATER).expect("a step");
    let begun = daemon
        .spool
        .begin_checkpoint(&Arc::default())
        .expect("a checkpoint");
    std::fs::rename(
        workspace.path(".settled/cursors"),
        workspace.path("elsewhere"),
    )
    .expect("to move the cursors");
    let synced = begun.expect("something to sync").sync();
    std::fs::rename(
        workspace.path("elsewhere"),
        workspace.path(".settled/cursors"),
    )
    .expect("to move them back");
    let error = daemon.spool.end_checkpoint(synced).expect_err("no cursors");
    assert!(error.is_retryable(), "{error}");
    assert!(daemon.spool.wants_checkpoint());
    daemon.spool.checkpoint().expect("the next one");
    drop(daemon);
    let before = shown(&workspace);
    cut(&workspace, &disk);
    assert_eq!(shown(&workspace), before);
    std::fs::remove_file(workspace.path("agents/codex/inbox/a.yaml")).expect("a message to take");
    let daemon = run(&workspace, OTHER_BOOT);
    assert!(
        daemon.recovery.pass.redelivered.is_empty(),
        "its cursor says that it was delivered"
    );
}

#[test]
fn a_removed_cursor_is_made_again_and_as_durable_as_the_others() {
    for is_removed_first in [false, true] {
        let workspace = Workspace::new(&["claude", "codex"]);
        workspace.write("agents/claude/outbox/a.yaml", "to codex: alpha");
        workspace.write("agents/claude/outbox/.b", "to codex: beta");
        let disk = disk(&workspace);
        let root = disk.open_root(workspace.root()).expect("a root");
        let open = |path: &str| disk.open_dir(&root, path.as_ref()).expect("a directory");
        let remove_cursor = || {
            let cursors = open(".settled/cursors");
            disk.remove(&cursors, "codex.inbox.cursor".as_ref())
                .and_then(|()| disk.sync_dir(&cursors))
                .expect("a cursor to remove");
        };
        let mut daemon = Daemon::start(&workspace, Arc::clone(&disk) as _).expect("a start");
        daemon.step(LATER).expect("a step");
        daemon.spool.checkpoint().expect("a checkpoint");
        let outbox = open("agents/claude/outbox");
        disk.rename_new(&outbox, ".b".as_ref(), &outbox, "b.yaml".as_ref())
            .expect("a message");
        if is_removed_first {
            remove_cursor();
            daemon.step(LATER).expect("a step");
        } else {
            daemon.step(LATER).expect("a step");
            remove_cursor();
            daemon.spool.checkpoint().expect("a checkpoint without it");
            assert!(daemon.spool.wants_checkpoint(), "it is made again");
        }
        daemon.spool.checkpoint().expect("a checkpoint");
        assert!(!daemon.spool.wants_checkpoint());
        drop(daemon);
        let before = shown(&workspace);
        cut(&workspace, &disk);
        assert_eq!(shown(&workspace), before);
        for taken in ["a", "b"] {
            let taken = workspace.path(&format!("agents/codex/inbox/{taken}.yaml"));
            std::fs::remove_file(taken).expect("a message to take");
        }
        let daemon = run(&workspace, OTHER_BOOT);
        let again = &daemon.recovery.pass.redelivered;
        assert!(again.is_empty(), "{is_removed_first}: {again:?}");
    }
}
