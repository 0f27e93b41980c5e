//! A ledger on this disk as a log: batches are appended directly after its end and returned one by one.

use std::sync::Arc;

use spool::log::{
    Appended, Batch, Head, HostKeys, HostName, Local, Log, LogError, NotABatch, Signed,
};
use spool::{Digest, DiskFault, FaultyDisk, Spool, SpoolError};

use crate::daemon::{BOOT, Workspace, inbox, notice};

const SEGMENT: &str = ".settled/ledger/00000000000000000001.jsonl";

/// Signs with the digest of the signed bytes.
struct Digests;

impl HostKeys for Digests {
    fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        Digest::of(bytes).bytes().to_vec()
    }

    fn is_signed(&self, _key: &str, bytes: &[u8], signature: &[u8]) -> bool {
        self.sign(bytes) == signature
    }
}

fn host(name: &str) -> HostName {
    name.parse().expect("a host's name")
}

fn local(workspace: &Workspace) -> Local {
    let disk = Arc::new(FaultyDisk::new(BOOT));
    Local::open(workspace.root(), disk, host("here")).expect("a ledger")
}

/// Writes batches of these sizes as a daemon without a log does; returns them.
fn written(sizes: &[u64]) -> (Workspace, Vec<Batch>) {
    let workspace = Workspace::new(&["codex"]);
    let disk = Arc::new(FaultyDisk::new(BOOT));
    let opened = Spool::open(workspace.root(), disk, &mut |_| Ok(()));
    let mut spool = opened.expect("a start").spool;
    let mut batches: Vec<Batch> = Vec::new();
    let mut read = 0;
    for count in sizes {
        let next = spool.next_seq();
        let drafts = (next..next + count)
            .map(|seq| notice(inbox("codex"), &format!("{seq}.yaml"), "text"))
            .collect();
        spool.commit(next, drafts).expect("a commit");
        let bytes = workspace.read(SEGMENT).expect("a segment").into_bytes();
        let after = batches.last().map_or(Head::EMPTY, Batch::head);
        let batch = Batch::read(bytes[read..].to_vec(), after);
        batches.push(batch.expect("what a daemon writes is a batch"));
        read = bytes.len();
    }
    (workspace, batches)
}

fn signed(batch: &Batch) -> Signed {
    Signed::new(batch.clone(), "w", host("tower"), &Digests)
}

#[test]
fn a_ledger_put_into_another_one_batch_by_batch_gives_the_same_bytes() {
    let (from, batches) = written(&[1, 2, 3]);
    let to = Workspace::new(&["codex"]);
    let mut log = local(&to);
    for batch in &batches {
        assert_eq!(log.append(&signed(batch)), Ok(Appended::Committed));
    }
    drop(log);
    assert_eq!(to.read(SEGMENT), from.read(SEGMENT));
    // Appended batches come back with their host and signature, also after a restart.
    let followed = local(&to).follow(Head::EMPTY).expect("batches");
    assert_eq!(followed.len(), batches.len());
    for (given, batch) in followed.iter().zip(&batches) {
        assert_eq!(given.batch.bytes(), batch.bytes());
        assert_eq!(given.host, host("tower"));
        assert!(given.is_by("any", "w", &Digests));
        assert!(!given.is_by("any", "another workspace", &Digests));
    }
}

#[test]
fn a_batch_of_8_mib_is_taken_and_one_byte_more_is_refused() {
    let bytes_max = 8 * 1024 * 1024;
    let workspace = Workspace::new(&["codex"]);
    let disk = Arc::new(FaultyDisk::new(BOOT));
    let opened = Spool::open(workspace.root(), disk, &mut |_| Ok(()));
    let spool = opened.expect("a start").spool;
    let of_text = |len: usize| {
        let draft = notice(inbox("codex"), "1.yaml", &"x".repeat(len));
        spool.propose(vec![draft], &host("tower")).expect("a batch")
    };
    let around = of_text(0).bytes().len();
    let largest = of_text(bytes_max - around);
    let larger = of_text(bytes_max - around + 1);
    assert_eq!(largest.bytes().len(), bytes_max);
    let to = Workspace::new(&["codex"]);
    let mut log = local(&to);
    let bytes = bytes_max + 1;
    let refused = Err(LogError::TooLarge { bytes, bytes_max });
    assert_eq!(log.append(&signed(&larger)), refused);
    assert_eq!(log.append(&signed(&largest)), Ok(Appended::Committed));
}

#[test]
fn what_one_host_judged_alone_is_its_own_and_unsigned() {
    let (from, batches) = written(&[2, 1]);
    let followed = local(&from).follow(batches[0].head()).expect("batches");
    assert_eq!(followed.len(), 1);
    assert_eq!(followed[0].batch.bytes(), batches[1].bytes());
    assert_eq!(followed[0].host, host("here"));
    assert!(followed[0].signature.is_empty());
}

#[test]
fn a_place_inside_of_a_batch_gives_the_whole_batch() {
    let (from, batches) = written(&[1, 3]);
    let inside = batches[1].head_at(3).expect("it has record 3");
    let followed = local(&from).follow(inside).expect("batches");
    assert_eq!(followed.len(), 1);
    assert_eq!(followed[0].batch.after(), batches[0].head());
}

#[test]
fn a_ledger_that_is_shorter_or_another_is_told() {
    let (from, batches) = written(&[1, 2]);
    let mut log = local(&from);
    let (ours, log_end) = (
        Head {
            seq: 9,
            digest: Digest::of(b"x"),
        },
        batches[1].head(),
    );
    let rolled_back = LogError::RolledBack { log: log_end, ours };
    assert_eq!(log.follow(ours).err(), Some(rolled_back));
    for seq in [1, 2, 3] {
        let ours = Digest::of(b"x");
        let forked = log.follow(Head { seq, digest: ours }).err();
        assert!(
            matches!(forked, Some(LogError::Forked { at, ours: told, .. }) if at == seq && told == ours),
            "{seq}: {forked:?}"
        );
    }
}

#[test]
fn a_changed_batch_is_no_batch() {
    let (_from, batches) = written(&[1, 2]);
    let (after, bytes) = (batches[1].after(), batches[1].bytes());
    assert!(Batch::read(bytes.to_vec(), after).is_ok());
    for at in 0..bytes.len() {
        let mut changed = bytes.to_vec();
        changed[at] ^= 1;
        // A change in the last line only shows in the head's digest; any other change breaks the chain.
        let read = Batch::read(changed, after);
        assert!(
            read.as_ref()
                .map_or(true, |batch| batch.head() != batches[1].head()),
            "byte {at} was changed unseen"
        );
    }
    assert_eq!(Batch::read(Vec::new(), after).err(), Some(NotABatch::Empty));
    let cut = bytes[..bytes.len() - 1].to_vec();
    assert_eq!(Batch::read(cut, after).err(), Some(NotABatch::Unfinished));
    let gap = Batch::read(bytes.to_vec(), Head::EMPTY).err();
    assert!(
        matches!(gap, Some(NotABatch::Unchained { seq: 1, .. })),
        "{gap:?}"
    );
}

#[test]
fn a_newer_version_asks_for_an_upgrade_and_is_no_damage() {
    let line = b"{\"v\":2,\"seq\":1,\"new\":true}\n".to_vec();
    let error = Batch::read(line, Head::EMPTY).expect_err("it is too new");
    assert_eq!(error, NotABatch::TooNew { seq: 1, version: 2 });
    assert!(matches!(LogError::from(error), LogError::TooNew(_)));
}

#[test]
fn a_line_with_more_in_it_than_this_version_writes_is_refused() {
    let (_from, batches) = written(&[1]);
    let line = String::from_utf8(batches[0].bytes().to_vec()).expect("text");
    let more = line.replacen("\"seq\":1,", "\"seq\":1,\"more\":1,", 1);
    assert_ne!(more, line);
    let error = Batch::read(more.into_bytes(), Head::EMPTY).err();
    assert!(
        matches!(error, Some(NotABatch::Unreadable { .. })),
        "{error:?}"
    );
}

/// Mirrors the missing batches as a host does that catches up, on a disk with this fault.
fn catch_up(
    workspace: &Workspace,
    batches: &[Signed],
    fault: Option<DiskFault>,
) -> Result<(), SpoolError> {
    let disk = Arc::new(FaultyDisk::new(BOOT));
    let opened = Spool::open(workspace.root(), Arc::clone(&disk) as _, &mut |_| Ok(()));
    let mut spool = opened.expect("a start").spool;
    disk.set(fault);
    let head = spool.head();
    let missing = batches
        .iter()
        .position(|signed| signed.batch.head().seq > head.seq)
        .expect("something is missing");
    spool.note_signatures(&batches[missing..])?;
    batches[missing..]
        .iter()
        .try_for_each(|signed| spool.mirror(signed).map(drop))
}

/// A catch-up notes all signatures before its first batch, so no batch is ever there without its own.
#[test]
fn a_kill_in_a_catch_up_leaves_signed_batches_and_the_next_start_goes_on() {
    let (from, batches) = written(&[1, 3, 2, 1]);
    let batches: Vec<Signed> = batches.iter().map(signed).collect();
    let whole = from.read(SEGMENT).expect("a ledger");
    for fault in [DiskFault::StopWithin, DiskFault::StopAfter] {
        for at in 1.. {
            let to = Workspace::new(&["codex"]);
            let ended = catch_up(&to, &batches, Some(fault(at)));
            let kept = local(&to).follow(Head::EMPTY).expect("batches");
            for (kept, known) in kept.iter().zip(&batches) {
                let is_whole = kept.batch.bytes() == known.batch.bytes();
                assert!(!is_whole || kept.is_by("any", "w", &Digests), "{at}");
            }
            let there = to.read(SEGMENT).unwrap_or_default();
            assert!(whole.starts_with(&there), "{at}: {there}");
            if there != whole {
                catch_up(&to, &batches, None).expect("a catch-up");
            }
            let kept = local(&to).follow(Head::EMPTY).expect("batches");
            assert_eq!(to.read(SEGMENT).as_deref(), Some(&*whole), "{at}");
            let mut kept = kept.iter();
            assert!(kept.all(|kept| kept.is_by("any", "w", &Digests)), "{at}");
            if ended.is_ok() {
                assert!(at > batches.len() as u64, "{at}");
                break;
            }
        }
    }
}
