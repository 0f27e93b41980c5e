//! A power cut: whatever was not synced may be gone, empty, zero-filled or truncated.

use std::sync::Arc;

use spool::{FaultyDisk, Spool};

use crate::daemon::{BOOT, Daemon, LATER, OTHER_BOOT, Workspace, inbox, notice, run};

const TEXTS: [&str; 3] = [
    "to codex: alpha",
    "to codex: beta, which is longer",
    "to codex: gamma",
];

/// Delivers three messages and leaves only the ledger durable.
fn delivered() -> Workspace {
    let workspace = Workspace::new(&["claude", "codex"]);
    for (text, name) in TEXTS.iter().zip(["a", "b", "c"]) {
        workspace.write(&format!("agents/claude/outbox/{name}.yaml"), text);
    }
    let mut daemon = Daemon::start(&workspace, Arc::new(FaultyDisk::new(BOOT))).expect("a start");
    daemon.step(LATER).expect("a step");
    assert_eq!(workspace.show("agents/codex/inbox").len(), 6);
    workspace
}

/// The fate of a file in a power cut, or with its reader before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Whole,
    Archived,
    ArchivedInside,
    Empty,
    Zeros,
    Cut,
    CutZeros,
    ArchivedEmpty,
    Gone,
}

const FATES: [Fate; 9] = [
    Fate::Whole,
    Fate::Archived,
    Fate::ArchivedInside,
    Fate::Empty,
    Fate::Zeros,
    Fate::Cut,
    Fate::CutZeros,
    Fate::ArchivedEmpty,
    Fate::Gone,
];

fn strike(workspace: &Workspace, file: &str, fate: Fate) {
    let path = workspace.path(&format!("agents/codex/inbox/{file}"));
    let archive = workspace.path(&format!("agents/codex/archive/{file}"));
    let inside = workspace.path("agents/codex/inbox/archive");
    let text = std::fs::read(&path).expect("a delivered file");
    let result = match fate {
        Fate::Whole => Ok(()),
        Fate::Archived => std::fs::rename(path, archive),
        Fate::ArchivedInside => {
            std::fs::create_dir_all(&inside).and_then(|()| std::fs::rename(path, inside.join(file)))
        }
        Fate::Empty => std::fs::write(path, ""),
        Fate::Zeros => std::fs::write(path, vec![0; text.len()]),
        Fate::Cut => std::fs::write(path, &text[..text.len() / 2]),
        Fate::CutZeros => {
            let mut cut = text;
            let half = cut.len() / 2;
            cut[half..].fill(0);
            std::fs::write(path, cut)
        }
        Fate::ArchivedEmpty => {
            std::fs::remove_file(path).and_then(|()| std::fs::write(archive, ""))
        }
        Fate::Gone => std::fs::remove_file(path),
    };
    result.expect("a file to change");
}

fn everything(workspace: &Workspace) -> Vec<String> {
    let mut texts = Vec::new();
    for place in [
        "agents/codex/inbox",
        "agents/codex/archive",
        "agents/codex/inbox/archive",
    ] {
        texts.extend(workspace.show(place).into_values());
    }
    texts.sort();
    texts
}

#[test]
fn after_a_power_cut_each_file_is_whole_and_there_once() {
    let template = everything(&delivered());
    for first in FATES {
        for second in FATES {
            for third in FATES {
                let fates = [
                    ("a.yaml", first),
                    ("b.yaml", second),
                    ("notice-2.yaml", third),
                ];
                let workspace = delivered();
                for (file, fate) in fates {
                    strike(&workspace, file, fate);
                }
                let daemon = run(&workspace, OTHER_BOOT);
                assert_eq!(everything(&workspace), template, "{fates:?}");
                let count = |wanted: &[Fate]| {
                    fates
                        .iter()
                        .filter(|(_, fate)| wanted.contains(fate))
                        .count()
                };
                let damaged = [
                    Fate::Empty,
                    Fate::Zeros,
                    Fate::Cut,
                    Fate::CutZeros,
                    Fate::ArchivedEmpty,
                ];
                assert_eq!(
                    daemon.recovery.pass.redelivered.len(),
                    count(&[Fate::Gone]),
                    "{fates:?}"
                );
                assert_eq!(
                    daemon.recovery.pass.fixed.len(),
                    count(&damaged),
                    "{fates:?}"
                );
                assert!(daemon.recovery.new_boot, "{fates:?}");
            }
        }
    }
}

#[test]
fn in_the_same_boot_a_file_that_is_gone_was_taken() {
    let workspace = delivered();
    strike(&workspace, "a.yaml", Fate::Gone);
    strike(&workspace, "b.yaml", Fate::Empty);
    let daemon = run(&workspace, BOOT);
    assert!(daemon.recovery.pass.redelivered.is_empty() && daemon.recovery.pass.fixed.is_empty());
    assert!(!workspace.show("agents/codex/inbox").contains_key("a.yaml"));
}

#[test]
fn what_a_checkpoint_made_durable_is_not_delivered_again() {
    let workspace = delivered();
    let mut daemon = Daemon::start(&workspace, Arc::new(FaultyDisk::new(BOOT))).expect("a start");
    daemon.spool.checkpoint().expect("a checkpoint");
    // This process touched nothing, so the checkpoint has nothing to do and promises nothing.
    drop(daemon);
    let mut daemon = Daemon::start(&workspace, Arc::new(FaultyDisk::new(BOOT))).expect("a start");
    workspace.write("agents/claude/outbox/d.yaml", "to codex: delta");
    daemon.run().expect("a run");
    drop(daemon);
    for file in ["a.yaml", "d.yaml", "notice-4.yaml"] {
        strike(&workspace, file, Fate::Gone);
    }
    let daemon = run(&workspace, OTHER_BOOT);
    assert!(
        daemon.recovery.pass.redelivered.is_empty(),
        "{:?}",
        daemon.recovery.pass.redelivered
    );
}

#[test]
fn a_kill_during_the_recovery_from_a_power_cut_delivers_nothing_twice() {
    for n in 1.. {
        let workspace = delivered();
        strike(&workspace, "a.yaml", Fate::Gone);
        strike(&workspace, "b.yaml", Fate::Archived);
        strike(&workspace, "c.yaml", Fate::Cut);
        let template = everything(&delivered());
        let disk = Arc::new(FaultyDisk::new(OTHER_BOOT));
        disk.set(Some(spool::DiskFault::StopAfter(n)));
        if let Ok(mut daemon) = Daemon::start(&workspace, Arc::clone(&disk) as _) {
            let _ = daemon.run();
        }
        if !disk.stopped() {
            break;
        }
        run(&workspace, OTHER_BOOT);
        assert_eq!(
            everything(&workspace),
            template,
            "killed after change {n}: {:?}",
            disk.log().last()
        );
    }
}

#[test]
fn a_kill_while_a_lost_cursor_is_replaced_delivers_nothing_twice() {
    let template = everything(&delivered());
    for n in 1.. {
        let workspace = delivered();
        strike(&workspace, "a.yaml", Fate::Archived);
        std::fs::remove_file(workspace.path(".settled/cursors/codex.inbox.cursor"))
            .expect("a cursor");
        let disk = Arc::new(FaultyDisk::new(BOOT));
        disk.set(Some(spool::DiskFault::StopAfter(n)));
        let started = Daemon::start(&workspace, Arc::clone(&disk) as _);
        drop(started);
        if !disk.stopped() {
            break;
        }
        run(&workspace, BOOT);
        assert_eq!(
            everything(&workspace),
            template,
            "killed after change {n}: {:?}",
            disk.log().last()
        );
    }
}

#[test]
fn an_original_whose_rename_was_undone_is_put_away_again_and_not_judged() {
    let workspace = delivered();
    let (sent, outbox) = ("agents/claude/sent/a.yaml", "agents/claude/outbox/a.yaml");
    std::fs::rename(workspace.path(sent), workspace.path(outbox)).expect("a file");
    let daemon = run(&workspace, OTHER_BOOT);
    assert_eq!(daemon.spool.next_seq(), 4, "something was judged again");
    assert_eq!(workspace.read(sent).as_deref(), Some(TEXTS[0]));
    assert_eq!(workspace.read(outbox), None);
}

#[test]
fn an_accepted_original_that_was_torn_is_made_whole_and_not_judged() {
    for (place, torn) in [
        ("outbox", ""),
        ("outbox", "to co"),
        ("sent", ""),
        ("sent", "to codex: al"),
        ("nowhere", ""),
    ] {
        let workspace = delivered();
        std::fs::remove_file(workspace.path("agents/claude/sent/a.yaml")).expect("a file");
        if place != "nowhere" {
            workspace.write(&format!("agents/claude/{place}/a.yaml"), torn);
        }
        let daemon = run(&workspace, OTHER_BOOT);
        assert_eq!(
            daemon.spool.next_seq(),
            4,
            "{place} {torn:?}: something was judged again"
        );
        assert_eq!(
            workspace.read("agents/claude/sent/a.yaml").as_deref(),
            Some(TEXTS[0]),
            "{place} {torn:?}"
        );
        assert_eq!(
            workspace.read("agents/claude/outbox/a.yaml"),
            None,
            "{place} {torn:?}"
        );
    }
}

#[test]
fn a_spoiled_cursor_never_loses_or_repeats_what_is_still_there() {
    let template = everything(&delivered());
    let cursors = [
        ".settled/cursors/codex.inbox.cursor",
        ".settled/cursors/claude.outbox.cursor",
    ];
    for boot in [BOOT, OTHER_BOOT] {
        for cursor in cursors {
            for at in (0..=512).step_by(32) {
                for spoil in ["cut", "zeros from", "garbage from", "one bit", "removed"] {
                    let workspace = delivered();
                    strike(&workspace, "b.yaml", Fate::Archived);
                    let path = workspace.path(cursor);
                    let mut bytes = std::fs::read(&path).expect("a cursor");
                    match spoil {
                        "cut" => bytes.truncate(at),
                        "zeros from" => bytes[at..].fill(0),
                        "garbage from" => bytes[at..].fill(b'7'),
                        _ => bytes
                            .iter_mut()
                            .skip(at)
                            .take(1)
                            .for_each(|byte| *byte ^= 4),
                    }
                    std::fs::write(&path, bytes).expect("a cursor to write");
                    if spoil == "removed" {
                        std::fs::remove_file(&path).expect("a cursor to remove");
                    }
                    let daemon = run(&workspace, boot);
                    let context = format!("{spoil} {at} of {cursor} in {boot}");
                    assert_eq!(everything(&workspace), template, "{context}");
                    assert!(daemon.recovery.pass.redelivered.is_empty(), "{context}");
                    assert_eq!(
                        daemon.spool.next_seq(),
                        4,
                        "{context}: something was judged again"
                    );
                    let said = daemon.recovery.cursors_lost.len();
                    assert_eq!(
                        said,
                        usize::from(spoil == "removed" || (spoil != "one bit" && at < 128)),
                        "{context}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_cursor_that_knows_more_than_the_ledger_stops_the_start() {
    let workspace = delivered();
    let segment = workspace.path(".settled/ledger/00000000000000000001.jsonl");
    let text = std::fs::read_to_string(&segment).expect("a segment");
    let two: String = text.split_inclusive('\n').take(2).collect();
    std::fs::write(&segment, two).expect("a segment to write");
    let opened = Spool::open(
        workspace.root(),
        Arc::new(FaultyDisk::new(BOOT)),
        &mut |_| Ok(()),
    );
    let error = opened.err().expect("a refusal").to_string();
    assert!(
        error.contains("ends with record 2") && error.contains("speaks of record 3"),
        "{error}"
    );
}

#[test]
fn a_batch_torn_by_a_power_cut_is_cut_off_wherever_it_broke() {
    let workspace = Workspace::new(&["codex"]);
    let mut daemon = Daemon::start(&workspace, Arc::new(FaultyDisk::new(BOOT))).expect("a start");
    let text = "x".repeat(700);
    let batch = |from: u32| {
        (from..from + 3)
            .map(|n| notice(inbox("codex"), &format!("{n}.yaml"), &text))
            .collect()
    };
    daemon.spool.commit(1, batch(1)).expect("a commit");
    daemon.spool.deliver(0).expect("a pass");
    let segment = workspace.path(".settled/ledger/00000000000000000001.jsonl");
    let whole = std::fs::read(&segment).expect("a segment").len();
    daemon.spool.commit(4, batch(4)).expect("a commit");
    drop(daemon);
    let bytes = std::fs::read(&segment).expect("a segment");
    let sectors = (bytes.len() - whole).div_ceil(512);
    assert!(sectors > 4 && sectors < 12, "{sectors}");
    for lost in 1..1_u32 << sectors {
        let mut torn = bytes.clone();
        for sector in (0..sectors).filter(|sector| lost >> sector & 1 == 1) {
            let begin = whole + sector * 512;
            let end = torn.len().min(begin + 512);
            torn[begin..end].fill(0);
        }
        std::fs::write(&segment, &torn).expect("a segment to write");
        let daemon = Daemon::start(&workspace, Arc::new(FaultyDisk::new(OTHER_BOOT)));
        let daemon = daemon.unwrap_or_else(|error| panic!("sectors {lost:b} lost: {error}"));
        let tail = daemon.recovery.torn.as_ref().expect("a torn tail");
        let kept = std::fs::read(&segment).expect("a segment");
        assert!(
            kept.len() >= whole && bytes.starts_with(&kept),
            "sectors {lost:b} lost"
        );
        assert_eq!(
            (tail.offset, tail.bytes),
            (kept.len() as u64, (torn.len() - kept.len()) as u64)
        );
        let copies: Vec<_> = std::fs::read_dir(workspace.path(".settled/torn"))
            .expect("copies")
            .flatten()
            .collect();
        let is_copy = |path: std::path::PathBuf| {
            std::fs::read(path).is_ok_and(|copy| copy == torn[kept.len()..])
        };
        assert!(
            copies.iter().any(|copy| is_copy(copy.path())),
            "sectors {lost:b} lost: no copy was kept"
        );
        drop(daemon);
        for cursor in std::fs::read_dir(workspace.path(".settled/cursors"))
            .expect("cursors")
            .flatten()
        {
            std::fs::remove_file(cursor.path()).expect("a cursor to remove");
        }
        std::fs::remove_dir_all(workspace.path(".settled/torn")).expect("copies to remove");
    }
}
