//! Files for a mailbox that cannot be written do not stay in memory: the ledger has them, and the lane reads them again when
//! its turn comes.

use std::collections::BTreeMap;
use std::sync::Arc;

use spool::{DiskFault, FaultyDisk, Spool, SpoolError};

use crate::closed::{close, open};
use crate::daemon::{BOOT, Workspace, inbox, notice};

const INBOX: &str = "agents/codex/inbox";
const SEGMENT: &str = ".settled/ledger/00000000000000000001.jsonl";

/// The files and their lengths: the first is as long as what a lane keeps of its records, and the second as what it reads
/// at once.
const FILES: [(&str, usize); 3] = [("a.yaml", 4 << 20), ("b.yaml", 256 << 10), ("c.yaml", 1)];

fn start(workspace: &Workspace, disk: &Arc<FaultyDisk>) -> Result<Spool, SpoolError> {
    let disk = Arc::clone(disk);
    Spool::open(workspace.root(), disk as _, &mut |_| Ok(())).map(|opened| opened.spool)
}

fn disk() -> Arc<FaultyDisk> {
    Arc::new(FaultyDisk::new(BOOT))
}

/// Commits three notices for a closed inbox. Only the first stays in memory.
fn closed_inbox() -> (Workspace, Spool) {
    let workspace = Workspace::new(&["codex"]);
    let mut spool = start(&workspace, &disk()).expect("a start");
    close(&workspace.path(INBOX));
    let drafts = FILES.map(|(file, len)| notice(inbox("codex"), file, &file[..1].repeat(len)));
    spool.commit(1, drafts.into()).expect("a commit");
    assert_eq!(spool.deliver(0).expect("a pass").delivered, 0);
    (workspace, spool)
}

/// The files of the inbox, each with its first letter and its length.
fn shown(workspace: &Workspace) -> BTreeMap<String, (String, usize)> {
    let files = workspace.show(INBOX).into_iter();
    let brief = |(name, text): (String, String)| (name, (text[..1].to_owned(), text.len()));
    files.map(brief).collect()
}

fn all() -> BTreeMap<String, (String, usize)> {
    let file = |(name, len): (&str, usize)| (name.to_owned(), (name[..1].to_owned(), len));
    FILES.map(file).into()
}

#[test]
fn a_closed_mailbox_keeps_little_in_memory_and_gets_everything_once_it_is_open() {
    let (workspace, mut spool) = closed_inbox();
    open(&workspace.path(INBOX));
    // Without its records the lane has no more than what it kept.
    let (segment, aside) = (workspace.path(SEGMENT), workspace.path("aside"));
    std::fs::rename(&segment, &aside).expect("a segment");
    let pass = spool.deliver(1_000).expect("a pass");
    let [parked] = &*pass.parked else {
        panic!("{pass:?}");
    };
    assert_eq!((pass.delivered, parked.waiting), (1, 2));
    assert!(parked.why.contains("record 2"), "{}", parked.why);
    assert_eq!(Vec::from_iter(shown(&workspace).into_keys()), ["a.yaml"]);
    std::fs::rename(&aside, &segment).expect("a segment");
    let pass = spool.deliver(2_000).expect("a pass");
    assert_eq!((pass.delivered, spool.waiting()), (2, 0));
    assert_eq!(shown(&workspace), all());
    drop(spool);
    std::fs::remove_file(workspace.path(INBOX).join("b.yaml")).expect("a notice");
    start(&workspace, &disk()).expect("a start");
    assert_eq!(shown(&workspace).len(), 2, "what its reader took");
}

#[test]
fn mail_for_an_open_mailbox_is_not_read_again() {
    let workspace = Workspace::new(&["codex"]);
    let mut spool = start(&workspace, &disk()).expect("a start");
    let (segment, aside) = (workspace.path(SEGMENT), workspace.path("aside"));
    // More than a lane keeps, but never at once.
    for n in 1..=10 {
        let text = "x".repeat(512 << 10);
        let draft = notice(inbox("codex"), &format!("{n}.yaml"), &text);
        spool.commit(n, vec![draft]).expect("a commit");
        std::fs::rename(&segment, &aside).expect("a segment");
        assert_eq!(spool.deliver(0).expect("a pass").delivered, 1, "{n}");
        std::fs::rename(&aside, &segment).expect("a segment");
    }
}

#[test]
fn what_a_start_does_not_keep_it_delivers_all_the_same() {
    let (workspace, spool) = closed_inbox();
    drop(spool);
    let mut spool = start(&workspace, &disk()).expect("a start");
    assert_eq!((spool.parked().len(), spool.waiting()), (1, 3));
    open(&workspace.path(INBOX));
    assert_eq!(spool.deliver(1_000).expect("a pass").delivered, 3);
    assert_eq!(shown(&workspace), all());
}

#[test]
fn a_kill_between_two_records_that_are_read_again_has_no_effect() {
    let changes = {
        let (workspace, spool) = closed_inbox();
        drop(spool);
        open(&workspace.path(INBOX));
        let disk = disk();
        start(&workspace, &disk).expect("a start");
        disk.changes()
    };
    for n in 1..=changes {
        let (workspace, spool) = closed_inbox();
        drop(spool);
        open(&workspace.path(INBOX));
        let killed = disk();
        killed.set(Some(DiskFault::StopAfter(n)));
        drop(start(&workspace, &killed));
        assert!(killed.stopped(), "change {n} was never reached");
        // Its reader takes what it has.
        let mut taken = shown(&workspace);
        for name in taken.keys() {
            std::fs::remove_file(workspace.path(INBOX).join(name)).expect("a notice");
        }
        start(&workspace, &disk()).expect("a start");
        for (name, file) in shown(&workspace) {
            assert!(
                taken.insert(name, file).is_none(),
                "after change {n} it came twice"
            );
        }
        assert_eq!(taken, all(), "after change {n}");
    }
}
