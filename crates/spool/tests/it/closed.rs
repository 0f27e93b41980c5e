//! An agent that closes its directory holds up nobody else: work in the other directories becomes durable and goes on.

use std::path::Path;
use std::sync::Arc;

use spool::{Away, FaultyDisk, Original, Spool};

use crate::daemon::{BOOT, OTHER_BOOT, Workspace, inbox, name, notice};

fn start(workspace: &Workspace, boot: &str) -> spool::Opened {
    Spool::open(
        workspace.root(),
        Arc::new(FaultyDisk::new(boot)),
        &mut |_| Ok(()),
    )
    .expect("a start")
}

/// Delivers a notice to each of two agents; then codex's inbox is closed, for root as well.
fn one_of_two_is_closed(workspace: &Workspace) -> Spool {
    let mut spool = start(workspace, BOOT).spool;
    let drafts = ["claude", "codex"].map(|agent| notice(inbox(agent), "a.yaml", "first"));
    spool.commit(1, drafts.into()).expect("a commit");
    assert_eq!(spool.deliver(0).expect("a pass").delivered, 2);
    close(workspace.path("agents/codex/inbox").as_ref());
    spool
}

/// Puts a file in the place of a directory: it is closed, for root as well.
pub(crate) fn close(directory: &Path) {
    std::fs::rename(directory, directory.with_extension("away")).expect("a directory");
    std::fs::write(directory, "in the way").expect("a file");
}

/// Puts the directory back.
pub(crate) fn open(directory: &Path) {
    std::fs::remove_file(directory).expect("what was in the way");
    std::fs::rename(directory.with_extension("away"), directory).expect("a directory");
}

#[test]
fn a_checkpoint_leaves_out_only_the_lane_whose_directory_is_closed() {
    let workspace = Workspace::new(&["claude", "codex"]);
    let mut spool = one_of_two_is_closed(&workspace);
    let error = spool.checkpoint().expect_err("a closed directory is told");
    assert!(error.is_retryable(), "{error}");
    drop(spool);
    open(workspace.path("agents/codex/inbox").as_ref());
    for agent in ["claude", "codex"] {
        std::fs::remove_file(workspace.path(&format!("agents/{agent}/inbox/a.yaml")))
            .expect("a notice");
    }
    let again = start(&workspace, OTHER_BOOT).recovery.pass.redelivered;
    let again: Vec<_> = again.iter().map(|placed| placed.mailbox.clone()).collect();
    assert_eq!(again, [inbox("codex")], "the other one is durable");
}

#[test]
fn what_a_closed_directory_held_back_is_made_durable_once_it_is_open_again() {
    let workspace = Workspace::new(&["claude", "codex"]);
    let mut spool = one_of_two_is_closed(&workspace);
    spool.checkpoint().expect_err("a closed directory is told");
    open(workspace.path("agents/codex/inbox").as_ref());
    spool.checkpoint().expect("a checkpoint");
    drop(spool);
    std::fs::remove_file(workspace.path("agents/codex/inbox/a.yaml")).expect("a notice");
    assert!(
        start(&workspace, OTHER_BOOT)
            .recovery
            .pass
            .redelivered
            .is_empty()
    );
}

#[test]
fn deliveries_go_on_while_a_closed_directory_holds_a_large_checkpoint_up() {
    let workspace = Workspace::new(&["claude", "codex"]);
    let mut spool = one_of_two_is_closed(&workspace);
    // Their writer took them back: delivery looks for each and touches its directories without making a file.
    let taken_back = |n: u32| {
        let file = name(&format!("{n}.yaml"));
        let away = Away::DeadLetter(file.clone());
        let original = Original {
            outbox: "claude".to_owned(),
            file,
            digest: None,
            stamp: None,
            away,
            text: None,
        };
        spool::EntryDraft {
            original: Some(original),
            deliveries: Vec::new(),
            ..notice(inbox("claude"), "-", "-")
        }
    };
    let next = spool.next_seq();
    spool
        .commit(next, (0..32_768).map(taken_back).collect())
        .expect("a commit");
    spool.deliver(0).expect("a pass that is worth a checkpoint");
    let next = spool.next_seq();
    spool
        .commit(next, vec![notice(inbox("claude"), "b.yaml", "second")])
        .expect("a commit");
    assert_eq!(spool.deliver(0).expect("a pass").delivered, 1);
}
