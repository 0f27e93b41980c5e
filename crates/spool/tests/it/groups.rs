//! Many files of one mailbox share two notes: the process is killed, or something fails, among them.

use std::collections::BTreeMap;
use std::sync::Arc;

use spool::{Content, Delivery, Digest, DiskFault, EntryDraft, FaultyDisk, Spool};

use crate::daemon::{BOOT, Workspace, inbox, name, notice};

/// More than one group.
const FILES: usize = 37;
/// Texts that a sender put into the inbox itself: refused first, accepted later.
const REFUSED: [&str; 2] = ["refused at first", "refused later on"];
const STRANGER: &str = "left here by somebody else";

/// Withdrawals at the beginning and in the middle, the same bytes accepted after them under the same name, and a taken
/// name.
fn drafts() -> Vec<EntryDraft> {
    let numbered = |n: usize| {
        notice(
            inbox("codex"),
            &format!("{n:02}.yaml"),
            &format!("text {n}"),
        )
    };
    let mut drafts: Vec<EntryDraft> = (0..FILES).map(numbered).collect();
    for (at, text) in [(0, REFUSED[0]), (5, REFUSED[1])] {
        let withdrawn = Delivery {
            mailbox: inbox("codex"),
            file: name(&format!("{text}.yaml")),
            content: Content::Withdrawn(Digest::of(text.as_bytes())),
        };
        drafts.insert(
            at,
            EntryDraft {
                deliveries: vec![withdrawn],
                ..notice(inbox("codex"), "-", "")
            },
        );
        drafts.insert(
            at + 2,
            notice(inbox("codex"), &format!("{text}.yaml"), text),
        );
    }
    drafts.push(notice(inbox("codex"), "taken.yaml", "another text"));
    drafts
}

fn workspace() -> Workspace {
    let workspace = Workspace::new(&["codex"]);
    for text in REFUSED {
        workspace.write(&format!("agents/codex/inbox/{text}.yaml"), text);
    }
    workspace.write("agents/codex/inbox/taken.yaml", STRANGER);
    workspace
}

type Seen = BTreeMap<String, u32>;

/// Takes the visible files, except those that the withdrawal must find.
fn take(workspace: &Workspace, seen: &mut Seen) {
    for (file, text) in workspace.show("agents/codex/inbox") {
        if !REFUSED.contains(&text.as_str()) {
            *seen.entry(text).or_default() += 1;
            std::fs::remove_file(workspace.path("agents/codex/inbox").join(file))
                .expect("a file to take");
        }
    }
}

fn each_came_once(workspace: &Workspace, mut seen: Seen, context: &str) {
    assert_eq!(
        workspace.hidden("agents/codex/inbox"),
        Vec::<String>::new(),
        "{context}"
    );
    for text in workspace.show("agents/codex/inbox").into_values() {
        *seen.entry(text).or_default() += 1;
    }
    let texts = (0..FILES).map(|n| format!("text {n}"));
    let others = REFUSED
        .into_iter()
        .chain([STRANGER, "another text"])
        .map(str::to_owned);
    let expected: Seen = texts.chain(others).map(|text| (text, 1)).collect();
    assert_eq!(seen, expected, "{context}");
}

fn open(workspace: &Workspace, disk: &Arc<FaultyDisk>) -> Option<Spool> {
    Spool::open(workspace.root(), Arc::clone(disk) as _, &mut |_| Ok(()))
        .ok()
        .map(|opened| opened.spool)
}

/// Commits all drafts, then delivers them with the fault; returns the disk, which counts the attempted changes.
fn deliver(workspace: &Workspace, fault: Option<DiskFault>) -> Arc<FaultyDisk> {
    let disk = Arc::new(FaultyDisk::new(BOOT));
    let mut spool = open(workspace, &disk).expect("a start");
    spool.commit(1, drafts()).expect("a commit");
    disk.set(fault);
    // A retry of the lane completes whatever failed once.
    for now in [0, 1_000] {
        let _ = spool.deliver(now);
    }
    disk
}

#[test]
fn a_kill_at_any_change_of_a_group_has_no_effect() {
    let changes = deliver(&workspace(), None).changes();
    assert!(changes > 3 * FILES as u64, "only {changes} changes");
    for n in 1..=changes {
        for fault in [DiskFault::StopAfter(n), DiskFault::StopWithin(n)] {
            for readers_are_quick in [false, true] {
                let workspace = workspace();
                let disk = deliver(&workspace, Some(fault));
                let context = format!(
                    "{fault:?} {:?}, quick {readers_are_quick}",
                    disk.log().last()
                );
                assert!(disk.stopped(), "{context}");
                let mut seen = Seen::new();
                if readers_are_quick {
                    take(&workspace, &mut seen);
                }
                open(&workspace, &Arc::new(FaultyDisk::new(BOOT))).expect("a start");
                each_came_once(&workspace, seen, &context);
            }
        }
    }
}

#[test]
fn a_kill_during_the_recovery_of_a_group_has_no_effect() {
    let changes = deliver(&workspace(), None).changes();
    for n in (1..=changes).step_by(11) {
        for m in (1..).step_by(3) {
            let workspace = workspace();
            deliver(&workspace, Some(DiskFault::StopAfter(n)));
            let mut seen = Seen::new();
            take(&workspace, &mut seen);
            let second = Arc::new(FaultyDisk::new(BOOT));
            second.set(Some(DiskFault::StopAfter(m)));
            drop(open(&workspace, &second));
            if !second.stopped() {
                break;
            }
            take(&workspace, &mut seen);
            open(&workspace, &Arc::new(FaultyDisk::new(BOOT))).expect("a start");
            each_came_once(
                &workspace,
                seen,
                &format!("killed after {n}, then after {m}"),
            );
        }
    }
}

#[test]
fn a_failed_change_of_a_group_has_no_effect() {
    let changes = deliver(&workspace(), None).changes();
    for n in 1..=changes {
        for fault in [DiskFault::Fail(n, 28), DiskFault::FailWithin(n, 5)] {
            let workspace = workspace();
            let disk = deliver(&workspace, Some(fault));
            let context = format!("{fault:?} {:?}", disk.log().get(n as usize - 1));
            each_came_once(&workspace, Seen::new(), &context);
            // Nothing comes again after it was taken.
            let mut seen = Seen::new();
            take(&workspace, &mut seen);
            open(&workspace, &Arc::new(FaultyDisk::new(BOOT))).expect("a start");
            each_came_once(&workspace, seen, &context);
        }
    }
}

#[test]
fn half_a_temporary_file_of_what_its_reader_archived_meanwhile_never_shows() {
    let workspace = Workspace::new(&["codex"]);
    let disk = Arc::new(FaultyDisk::new(BOOT));
    let mut spool = open(&workspace, &disk).expect("a start");
    spool
        .commit(
            1,
            ["a.yaml", "b.yaml"]
                .map(|file| notice(inbox("codex"), file, "the text"))
                .to_vec(),
        )
        .expect("a commit");
    // Two notes, then the first file is made and half of it written.
    disk.set(Some(DiskFault::StopWithin(4)));
    let _ = spool.deliver(0);
    drop(spool);
    assert_eq!(
        workspace.hidden("agents/codex/inbox").len(),
        1,
        "{:?}",
        disk.log()
    );
    workspace.write("agents/codex/archive/a.yaml", "the text");
    open(&workspace, &Arc::new(FaultyDisk::new(BOOT))).expect("a start");
    let shown = workspace.show("agents/codex/inbox");
    assert_eq!(
        shown.into_iter().collect::<Vec<_>>(),
        [("b.yaml".to_owned(), "the text".to_owned())]
    );
    assert_eq!(workspace.hidden("agents/codex/inbox"), Vec::<String>::new());
}
