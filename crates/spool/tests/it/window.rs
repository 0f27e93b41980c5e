//! However many files an outbox holds, only a bounded number is known at a time, and every file has its turn.

use std::sync::Arc;

use spool::{Disk, FaultyDisk, Intake, Os, Spool};

use crate::daemon::{BOOT, LATER, Workspace, scan};
use crate::intake::Desk;

/// More than a window holds.
const FLOOD: usize = 18_000;

#[test]
fn a_flood_is_taken_to_the_last_file_while_others_have_their_turn() {
    let workspace = Workspace::new(&["claude", "gemini"]);
    for number in 0..FLOOD {
        workspace.write(&format!("agents/gemini/outbox/{number}.yaml"), "");
    }
    workspace.write("agents/claude/outbox/q.yaml", "q");
    let spool = Spool::open(workspace.root(), Arc::new(Os), &mut |_| Ok(()))
        .expect("a start")
        .spool;
    let mut intake = Intake::new(1000, 50);
    let agents = ["claude".to_owned(), "gemini".to_owned()];
    assert!(scan(&mut intake, &spool.view(), &agents).is_empty());
    let (mut flood, mut others, mut known_max) = (0, 0, intake.known("gemini"));
    while intake.next_wakeup() == Some(0) {
        let taken = intake.take(&spool.view(), LATER, 256);
        assert!(taken.errors.is_empty(), "{:?}", taken.errors);
        for found in taken.found {
            if found.agent == "claude" {
                assert!(flood < 256, "it waited for {flood} of the flood");
                others += 1;
            } else {
                flood += 1;
            }
            // Put the taken file away.
            std::fs::remove_file(
                workspace.path(&format!("agents/{}/outbox/{}", found.agent, found.file)),
            )
            .expect("the file is there");
        }
        known_max = known_max.max(intake.known("gemini"));
    }
    assert_eq!((flood, others), (FLOOD, 1));
    assert!(
        known_max <= 16_384,
        "{known_max} files of one outbox were known at a time"
    );
}

#[test]
fn a_flooded_outbox_is_listed_again_only_when_half_of_its_window_is_gone() {
    let workspace = Workspace::new(&["gemini"]);
    for number in 0..FLOOD {
        workspace.write(&format!("agents/gemini/outbox/{number}.yaml"), "");
    }
    let disk = Arc::new(FaultyDisk::new(BOOT));
    let spool = Spool::open(
        workspace.root(),
        Arc::clone(&disk) as Arc<dyn Disk>,
        &mut |_| Ok(()),
    )
    .expect("a start")
    .spool;
    let mut intake = Intake::new(1000, 50);
    let agents = ["gemini".to_owned()];
    assert!(scan(&mut intake, &spool.view(), &agents).is_empty());
    let full = intake.known("gemini");
    let mut listings = 0;
    let mut left = FLOOD;
    while left > 0 {
        // Nothing may be taken, so only looks at the outbox itself count.
        let (looks, known) = (disk.looks(), intake.known("gemini"));
        // Each call lists a slice.
        for _ in 0..10 {
            assert!(intake.take(&spool.view(), LATER, 0).found.is_empty());
        }
        if disk.looks() > looks {
            listings += 1;
            assert!(
                known <= full / 2,
                "it was listed while {known} of {full} files still waited for their turn"
            );
        }
        for found in intake.take(&spool.view(), LATER, 256).found {
            left -= 1;
            std::fs::remove_file(workspace.path(&format!("agents/gemini/outbox/{}", found.file)))
                .expect("the file is there");
        }
    }
    assert_eq!(
        listings, 1,
        "the rest of the flood fits into one more window"
    );
}

#[test]
fn an_outbox_with_more_hints_than_can_be_named_is_listed_without_a_sweep() {
    let mut desk = Desk::new(&["claude", "gemini"]);
    desk.write("claude/outbox/q.yaml", "text", 0);
    desk.write("gemini/outbox/q.yaml", "text", 0);
    assert!(desk.take(LATER).is_empty());
    desk.intake.hint_outbox("gemini");
    assert_eq!(desk.intake.next_wakeup(), Some(0));
    let found = desk.take_all(LATER);
    assert_eq!(
        found.iter().map(|found| &*found.agent).collect::<Vec<_>>(),
        ["gemini"]
    );
    assert_eq!(desk.intake.next_wakeup(), None);
}

#[test]
fn an_outbox_that_cannot_be_listed_is_tried_once_and_the_others_have_their_turn() {
    let mut desk = Desk::new(&["claude", "gemini"]);
    desk.write("gemini/outbox/q.yaml", "text", 0);
    let outbox = desk.workspace.path("agents/claude/outbox");
    std::fs::remove_dir(&outbox).expect("an empty outbox");
    std::os::unix::fs::symlink("/", &outbox).expect("a link");
    desk.intake.hint_outbox("claude");
    desk.intake.hint_outbox("gemini");
    let taken = desk.intake.take(&desk.spool.view(), LATER, 1);
    assert_eq!((taken.errors.len(), taken.found.len()), (1, 0));
    assert_eq!(desk.take(LATER), ["q.yaml"]);
    assert_eq!(desk.intake.next_wakeup(), None);
}
