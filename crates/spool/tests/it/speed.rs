//! What it costs. Run with `cargo test -p spool --release -- --ignored --nocapture`.

#![expect(clippy::print_stderr, reason = "the figures are what these tests are run for")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use spool::{
    Away, Body, Content, Delivery, Disk, Draft, Handle, Intake, Layout, Now, Open, Original, Os, Spool,
};

use crate::daemon::{LATER, inbox, json};

const COUNT: u32 = 10_000;

fn draft(found: spool::Found) -> Draft {
    let Body::Message { bytes, digest } = found.body else { panic!("a message") };
    let text = String::from_utf8(bytes).expect("text");
    Draft {
        at: "2026-02-13T10:00:00.000Z".to_owned(),
        kind: "accepted".to_owned(),
        review: Some("86/claude/codex".to_owned()),
        id: Some(format!("id-{}", found.file)),
        original: Some(Original {
            outbox: found.agent,
            file: found.file.clone(),
            digest: Some(digest),
            stamp: Some(found.stamp),
            away: Away::Sent(found.file.clone()),
            text: Some(text),
        }),
        deliveries: vec![Delivery { mailbox: inbox("codex"), file: found.file, content: Content::Original }],
        decision: json(r#"{"opened":{"round":1,"max_rounds":2},"limits":{"turns":8,"runtime_s":600}}"#),
    }
}

fn message(n: u32) -> String {
    let body: String = (0..20).map(|line| format!("  line {line} of the body of message {n:06}\n")).collect();
    format!("id: m-{n}\nfrom: claude\nto: codex\nbody: |\n{body}")
}

/// The least that must be done for a message, by the file system alone: read it, make a file under a hidden name, rename
/// it, and rename the original.
struct Least {
    outbox: Handle,
    sent: Handle,
    inbox: Handle,
    next: u32,
    took: Duration,
}

impl Least {
    fn new(root: &std::path::Path) -> Least {
        Layout::init(root, &["claude", "codex"]).expect("a tree");
        write_messages(root);
        let root = Os.open_root(root).expect("the root");
        let open = |path: &str| Os.open_dir(&root, path.as_ref()).expect("a directory");
        let [outbox, sent, inbox] =
            ["agents/claude/outbox", "agents/claude/sent", "agents/codex/inbox"].map(open);
        Least { outbox, sent, inbox, next: 0, took: Duration::ZERO }
    }

    fn step(&mut self, count: usize) {
        let begin = Instant::now();
        let mut buffer = [0; 4096];
        for _ in 0..count {
            let (name, hidden) = (format!("{:06}.yaml", self.next), format!(".{}.tmp", self.next));
            self.next += 1;
            let file = Os.open(&self.outbox, name.as_ref(), Open::Read).expect("a file");
            Os.stat(&file).expect("an answer");
            let taken = Os.read_at(&file, &mut buffer, 0).expect("bytes");
            drop(file);
            let file = Os.open(&self.inbox, hidden.as_ref(), Open::New).expect("a file");
            Os.write_at(&file, &buffer[..taken], 0).expect("a write");
            drop(file);
            Os.rename_new(&self.inbox, hidden.as_ref(), &self.inbox, name.as_ref()).expect("a rename");
            Os.rename_new(&self.outbox, name.as_ref(), &self.sent, name.as_ref()).expect("a rename");
        }
        self.took += begin.elapsed();
    }
}

fn write_messages(root: &std::path::Path) {
    for n in 0..COUNT {
        std::fs::write(root.join(format!("agents/claude/outbox/{n:06}.yaml")), message(n)).expect("a file");
    }
}

#[test]
#[ignore = "measures"]
fn ten_thousand_waiting_messages() {
    // The two take turns, so that what else the machine does meets both. Some file systems make files slowly for a while after many were removed, so nothing is removed before the end.
    let other = tempfile::tempdir().expect("a directory");
    let mut least = Least::new(other.path());
    let dir = tempfile::tempdir().expect("a directory");
    Layout::init(dir.path(), &["claude", "codex"]).expect("a tree");
    let mut spool = Spool::open(dir.path(), Arc::new(Os), &mut |_| Ok(())).expect("a start").spool;
    write_messages(dir.path());
    let agents = ["claude".to_owned(), "codex".to_owned()];
    let mut intake = Intake::new(256 * 1024, 50);
    let begin = Instant::now();
    assert!(intake.scan(&spool.view(), &agents).is_empty());
    let scan = begin.elapsed();
    let (mut take, mut commit, mut deliver) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let mut count = 0;
    loop {
        let begin = Instant::now();
        let taken = intake.take(&spool.view(), Now { mono: 0, ..LATER }, 256);
        take += begin.elapsed();
        if taken.found.is_empty() {
            break;
        }
        count += taken.found.len();
        least.step(taken.found.len());
        let drafts = taken.found.into_iter().map(draft).collect();
        let begin = Instant::now();
        spool.commit(spool.next_seq(), drafts).expect("a commit");
        commit += begin.elapsed();
        let begin = Instant::now();
        let pass = spool.deliver(0).expect("a pass");
        assert!(pass.parked.is_empty(), "{:?}", pass.parked);
        deliver += begin.elapsed();
    }
    let begin = Instant::now();
    spool.checkpoint().expect("a checkpoint");
    let checkpoint = begin.elapsed();
    assert_eq!(count, COUNT as usize);
    let total = scan + take + commit + deliver;
    let each = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(COUNT);
    eprintln!(
        "per message: scan {:.1} us, take {:.1} us, commit {:.1} us, deliver {:.1} us, all {:.1} us; \
         the file system alone {:.1} us; checkpoint {checkpoint:?}",
        each(scan),
        each(take),
        each(commit),
        each(deliver),
        each(total),
        each(least.took)
    );
    assert!(total < least.took * 5, "{total:?} against {:?}", least.took);
}

#[test]
#[ignore = "measures"]
fn the_start_reads_a_hundred_thousand_records() {
    let dir = tempfile::tempdir().expect("a directory");
    Layout::init(dir.path(), &["claude", "codex"]).expect("a tree");
    let mut spool = Spool::open(dir.path(), Arc::new(Os), &mut |_| Ok(())).expect("a start").spool;
    let text: String = message(1).repeat(2);
    for _ in 0..100 {
        let next = spool.next_seq();
        let drafts = (next..next + 1000).map(|_| Draft {
            original: None,
            deliveries: vec![Delivery {
                mailbox: spool::Mailbox::Packets("briefs".to_owned()),
                file: spool::FileName::new("a.yaml").expect("a name"),
                content: Content::Text(text.clone()),
            }],
            at: "2026-02-13T10:00:00.000Z".to_owned(),
            kind: "accepted".to_owned(),
            review: Some("86/claude/codex".to_owned()),
            id: Some("id".to_owned()),
            decision: json(r#"{"opened":{"round":1,"max_rounds":2},"limits":{"turns":8,"runtime_s":600}}"#),
        });
        spool.commit(next, drafts.collect()).expect("a commit");
        spool.deliver(0).expect("a pass");
    }
    spool.checkpoint().expect("a checkpoint");
    drop(spool);
    let bytes = std::fs::metadata(dir.path().join(".settled/ledger/00000000000000000001.jsonl"))
        .map(|data| data.len());
    let mut records = 0_u64;
    let begin = Instant::now();
    let opened = Spool::open(dir.path(), Arc::new(Os), &mut |_| {
        records += 1;
        Ok(())
    });
    let took = begin.elapsed();
    assert!(opened.expect("a start").recovery.pass.parked.is_empty());
    eprintln!("{records} records, first segment {bytes:?} bytes: {took:?}");
    assert!(took < Duration::from_secs(5));
}

#[test]
#[ignore = "measures"]
fn a_huge_outbox_is_sorted_once() {
    let dir = tempfile::tempdir().expect("a directory");
    Layout::init(dir.path(), &["claude"]).expect("a tree");
    let spool = Spool::open(dir.path(), Arc::new(Os), &mut |_| Ok(())).expect("a start").spool;
    for n in 0..100_000 {
        std::fs::write(dir.path().join(format!("agents/claude/outbox/{n:06}.yaml")), "x").expect("a file");
    }
    let agents = ["claude".to_owned()];
    let mut intake = Intake::new(256 * 1024, 50);
    let begin = Instant::now();
    intake.scan(&spool.view(), &agents);
    let first = begin.elapsed();
    let begin = Instant::now();
    intake.scan(&spool.view(), &agents);
    let second = begin.elapsed();
    let begin = Instant::now();
    let found = intake.take(&spool.view(), LATER, 256).found.len();
    eprintln!("100000 files: scan {first:?}, again {second:?}, take {found}: {:?}", begin.elapsed());
}
