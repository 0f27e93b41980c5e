//! The readers of the daemon's own files: the ledger's lines and the lanes' cursors. Both read from a workspace in
//! memory, which needs no waiting for a disk.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use spool::{Content, Delivery, EntryDraft, FileName, Layout, Mailbox, Os, Spool, SpoolError};
use tempfile::TempDir;

use crate::ledger::digest;

/// The number of records in the sample; each makes one file in one inbox.
const RECORDS: u64 = 3;

/// The beginning of the chain in every line.
const PREV: &str = "\"prev\":\"sha256:";

/// The hexadecimal digits of a digest.
const DIGITS: usize = 64;

/// A workspace with a delivered ledger of three records.
struct Sample {
    directory: TempDir,
    segment: PathBuf,
    ledger: Vec<u8>,
    cursor: Vec<u8>,
}

impl Sample {
    fn new() -> Self {
        let directory = crate::scratch();
        let root = directory.path();
        Layout::init(root, &["codex"]).expect("a tree");
        let opened = Spool::open(root, std::sync::Arc::new(Os), &mut |_| Ok(())).expect("a start");
        let mut spool = opened.spool;
        for number in 1..=RECORDS {
            spool
                .commit(number, vec![record(number)])
                .expect("a commit");
        }
        spool.deliver(0).expect("a delivery");
        spool.checkpoint().expect("a checkpoint");
        drop(spool);
        let segment = root.join(".settled/ledger/00000000000000000001.jsonl");
        let ledger = std::fs::read(&segment).expect("a ledger");
        let cursor = std::fs::read(root.join(CURSOR)).expect("a cursor");
        Self {
            directory,
            segment,
            ledger,
            cursor,
        }
    }

    fn root(&self) -> &Path {
        self.directory.path()
    }
}

const CURSOR: &str = ".settled/cursors/codex.inbox.cursor";

fn record(number: u64) -> EntryDraft {
    let mailbox = Mailbox::Inbox("codex".to_owned());
    let file = FileName::new(format!("{number}.yaml")).expect("a name");
    EntryDraft {
        at: "2026-02-13T10:00:00.000Z".to_owned(),
        kind: "notice".to_owned(),
        rules: 1,
        review: None,
        id: None,
        original: None,
        deliveries: vec![Delivery {
            mailbox,
            file,
            content: Content::Text(format!("text {number}\n")),
        }],
        decision: serde_json::value::RawValue::from_string("{}".to_owned()).expect("JSON"),
    }
}

/// The workspace that the readers share; one at a time.
fn sample() -> std::sync::MutexGuard<'static, Sample> {
    static SAMPLE: OnceLock<Mutex<Sample>> = OnceLock::new();
    SAMPLE
        .get_or_init(|| Mutex::new(Sample::new()))
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// Returns the ledger and the cursor of the sample, as seeds for inputs.
pub fn seeds() -> (Vec<u8>, Vec<u8>) {
    let sample = sample();
    (sample.ledger.clone(), sample.cursor.clone())
}

/// Reads the bytes as a ledger's only segment. If the first byte is odd, repairs the chain first, so that the code
/// after its check is reached too.
pub fn ledger(bytes: &[u8]) {
    let Some((mode, bytes)) = bytes.split_first() else {
        return;
    };
    let bytes = if mode % 2 == 1 {
        chained(bytes)
    } else {
        bytes.to_vec()
    };
    let sample = sample();
    std::fs::write(&sample.segment, &bytes).expect("room");
    let mut accepted = 0;
    let read = spool::read_ledger(sample.root(), &mut |entry| {
        accepted += 1;
        assert_eq!(entry.seq, accepted, "records are read in their order");
        Ok(())
    });
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    match read {
        Ok(verified) => {
            assert_eq!(verified.records, accepted);
            let whole = usize::try_from(accepted).expect("a few lines");
            fits(&lines[..whole], &verified.last.to_string());
            let good: usize = lines[..whole].iter().map(|line| line.len()).sum();
            let torn = verified
                .torn
                .map_or((good as u64, 0), |torn| (torn.offset, torn.bytes));
            assert_eq!(
                torn,
                (good as u64, (bytes.len() - good) as u64),
                "every byte is a record or torn"
            );
        }
        Err(SpoolError::Damaged { line, .. } | SpoolError::TooNew { line, .. }) => {
            assert!(
                (1..=lines.len() as u64).contains(&line),
                "line {line} of {}",
                lines.len()
            );
        }
        Err(error) => panic!("{error}: {:?}", std::error::Error::source(&error)),
    }
}

/// Checks the chain independently: each line names the digest of the one before.
fn fits(lines: &[&[u8]], last: &str) {
    let mut prev = "0".repeat(DIGITS);
    for line in lines {
        let text = line.strip_suffix(b"\n").expect("a record's line ends");
        let value: serde_json::Value = serde_json::from_slice(text).expect("a record is JSON");
        assert_eq!(
            value["prev"],
            format!("sha256:{prev}"),
            "a record that does not fit was accepted"
        );
        prev = digest(text);
    }
    assert_eq!(last, format!("sha256:{prev}"));
}

/// The lines with the correct `prev`.
fn chained(bytes: &[u8]) -> Vec<u8> {
    let mut prev = "0".repeat(DIGITS);
    let mut out = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let mut line = line.to_vec();
        let at = line
            .windows(PREV.len())
            .position(|window| window == PREV.as_bytes());
        if let Some(digits) =
            at.and_then(|at| line.get_mut(at + PREV.len()..at + PREV.len() + DIGITS))
        {
            digits.copy_from_slice(prev.as_bytes());
        }
        prev = digest(line.strip_suffix(b"\n").unwrap_or(&line));
        out.extend(line);
    }
    out
}

/// Reads the bytes as a lane's cursor: as a reader without the lock does, then as a start that continues from it.
pub fn cursor(bytes: &[u8]) {
    let sample = sample();
    std::fs::write(&sample.segment, &sample.ledger).expect("room");
    std::fs::write(sample.root().join(CURSOR), bytes).expect("room");
    match spool::verify(sample.root()) {
        Ok(verified) => assert_eq!((verified.records, verified.torn), (RECORDS, None)),
        // It names records that the ledger does not have, so the start refuses too.
        Err(SpoolError::Damaged { line, .. }) => return assert_eq!(line, RECORDS + 1),
        Err(error) => panic!("{error}"),
    }
    let opened = Spool::open(sample.root(), std::sync::Arc::new(Os), &mut |_| Ok(()));
    drop(opened.unwrap_or_else(|error| panic!("verified, and then not opened: {error}")));
    // The inbox has exactly the delivered files, whatever the cursor claims.
    let inbox = sample.root().join("agents/codex/inbox");
    let names = crate::names(&inbox)
        .into_iter()
        .filter(|name| !name.starts_with('.'));
    assert_eq!(names.collect::<Vec<_>>(), ["1.yaml", "2.yaml", "3.yaml"]);
    for number in 1..=RECORDS {
        assert_eq!(
            crate::read(inbox.join(format!("{number}.yaml"))),
            format!("text {number}\n")
        );
    }
}
