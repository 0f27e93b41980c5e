//! Tests what one call to `take` hands over, what it says about files that were given time, and when it wants the next call.

use std::os::unix::fs::symlink;

use spool::{Body, Intake, OutboxFile, read_ledger};

use crate::daemon::{BOOT, Workspace, name, run, scan};
use crate::intake::{Desk, QUIET, at};

#[test]
fn a_call_ends_behind_the_file_that_fills_128_kib() {
    let mut desk = Desk::new(&["claude"]);
    desk.intake = Intake::new(1 << 20, QUIET);
    for (file, kib) in [("a", 100), ("b", 27), ("c", 1), ("d", 1)] {
        desk.write(
            &format!("claude/outbox/{file}.yaml"),
            &"x".repeat(kib << 10),
            -1_000,
        );
    }
    desk.scan();
    assert_eq!((desk.intake.waiting(), desk.intake.known("claude")), (4, 4));
    assert!(desk.intake.has_queued("claude"));
    assert_eq!(desk.take(at(0)), ["a.yaml", "b.yaml", "c.yaml"]);
    assert_eq!((desk.intake.waiting(), desk.intake.known("claude")), (1, 1));
    assert_eq!(desk.take(at(0)), ["d.yaml"]);
    assert_eq!((desk.intake.waiting(), desk.intake.known("claude")), (0, 0));
    assert!(!desk.intake.has_queued("claude"));
}

#[test]
fn of_files_that_are_gone_only_those_that_were_given_time_are_named() {
    let mut desk = Desk::new(&["claude"]);
    for file in ["given", "seen"] {
        desk.write(&format!("claude/outbox/{file}.yaml"), "text", -1_000);
        desk.scan();
        if file == "given" {
            let found = desk.take_all(at(0));
            desk.intake.give_time(&found[0], at(1_000).mono);
        }
    }
    for file in ["given", "seen"] {
        let path = format!("agents/claude/outbox/{file}.yaml");
        std::fs::remove_file(desk.workspace.path(&path)).expect("a file");
    }
    let taken = desk.intake.take(&desk.spool.view(), at(1_000), 10);
    assert_eq!(taken.gone, [("claude".to_owned(), name("given.yaml"))]);
    assert!(
        taken.found.is_empty() && taken.errors.is_empty(),
        "{taken:?}"
    );
    assert_eq!(desk.intake.waiting(), 0);
}

#[test]
fn a_file_that_is_recalled_counts_as_queued_since() {
    let mut desk = Desk::new(&["claude"]);
    desk.write("claude/outbox/a.yaml", "text", -1_000);
    desk.scan();
    let found = desk.take_all(at(0));
    desk.intake.give_time(&found[0], at(5_000).mono);
    let mark = desk.intake.mark();
    desk.intake.recall("claude", &name("a.yaml"));
    assert!(desk.intake.has_queued("claude"));
    assert!(!desk.intake.has_waiting_since(mark), "it was queued later");
    assert!(desk.intake.has_waiting_since(desk.intake.mark()));
    assert_eq!(desk.take(at(0)), ["a.yaml"]);
}

#[test]
fn a_file_that_cannot_be_read_is_looked_at_less_and_less_often() {
    let mut desk = Desk::new(&["claude", "codex"]);
    desk.write("claude/outbox/a.yaml", "text", -1_000);
    desk.scan();
    let outbox = desk.workspace.path("agents/claude/outbox");
    std::fs::rename(&outbox, outbox.with_file_name("aside")).expect("an outbox");
    symlink("../codex/outbox", &outbox).expect("a link");
    let errors = scan(&mut desk.intake, &desk.spool.view(), &desk.agents);
    let said: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(said, [format!("cannot open {}", outbox.display())]);

    let mut now = at(0);
    let (mut pauses, mut hopeful) = (Vec::new(), Vec::new());
    for _ in 0..11 {
        let taken = desk.intake.take(&desk.spool.view(), now, 10);
        assert_eq!((taken.found.len(), taken.errors.len()), (0, 1));
        let next = desk.intake.next_wakeup().expect("another look");
        hopeful.push(desk.intake.next_hopeful().is_some());
        pauses.push(next - now.mono);
        now = at(next - at(0).mono);
    }
    assert_eq!(
        pauses,
        [
            100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000
        ]
    );
    assert_eq!(hopeful, [&[true; 3][..], &[false; 8]].concat());
    // A watcher's hint brings the file back at once.
    std::fs::remove_file(&outbox).expect("a link");
    std::fs::rename(outbox.with_file_name("aside"), &outbox).expect("an outbox");
    desk.intake.hint("claude", &name("a.yaml"));
    assert_eq!(desk.take(now), ["a.yaml"]);
}

#[test]
fn the_file_of_an_accepted_message_is_known_from_its_record() {
    let workspace = Workspace::new(&["claude", "codex"]);
    let text = "to codex: alpha";
    workspace.write("agents/claude/outbox/a.yaml", text);
    workspace.write("agents/claude/outbox/b.yaml", "to codex: bad");
    run(&workspace, BOOT);
    let (mut stamps, mut recorded) = (Vec::new(), Vec::new());
    let read = read_ledger(workspace.root(), &mut |entry| {
        stamps.extend(entry.original.as_ref().and_then(|original| original.stamp));
        recorded.push(OutboxFile::recorded(entry));
        Ok(())
    });
    read.expect("a ledger");
    let [Some(accepted), None] = &recorded[..] else {
        panic!("{recorded:?}");
    };
    assert_eq!(
        (&*accepted.agent, &accepted.file),
        ("claude", &name("a.yaml"))
    );
    assert_eq!(accepted.stamp, stamps[0]);
    assert_eq!(accepted.stamp.size, text.len() as u64);
    assert_eq!(accepted.body, Body::message(text.into()));
}
