//! Batches as a host writes them, without a host.

use spool::log::{Batch, Head, HostName, Signed};
use spool::{Content, Delivery, Digest, Entry};

/// Returns a batch after `after` with one record for each text, judged by `host`.
pub fn batch(after: Head, texts: &[&str], host: &str) -> Signed {
    let host: HostName = host.parse().expect("a host's name");
    let mut bytes = Vec::new();
    let mut head = after;
    for text in texts {
        let line = record(head, after.seq + 1, text, &host).to_line();
        head = Head {
            seq: head.seq + 1,
            digest: Digest::of(&line),
        };
        bytes.extend_from_slice(&line);
        bytes.push(b'\n');
    }
    let batch = Batch::read(bytes, after).expect("lines that follow are a batch");
    // The log carries the signature and never looks at it.
    let signature = batch.head().digest.bytes().to_vec();
    Signed {
        batch,
        host,
        signature,
    }
}

fn record(after: Head, batch: u64, text: &str, host: &HostName) -> Entry {
    let decision = serde_json::value::to_raw_value("a decision").expect("a text is JSON");
    let seq = after.seq + 1;
    Entry {
        seq,
        prev: after.digest,
        batch,
        host: Some(host.clone()),
        at: "2026-02-13T10:00:00.000Z".to_owned(),
        kind: "accepted".to_owned(),
        rules: Some(1),
        review: None,
        id: None,
        original: None,
        deliveries: vec![Delivery {
            mailbox: "codex/inbox".parse().expect("a mailbox"),
            file: format!("{seq}.yaml").parse().expect("a name"),
            content: Content::Text(text.to_owned()),
        }],
        decision,
    }
}

/// Returns an end that no log of a test has.
pub fn nowhere(seq: u64) -> Head {
    Head {
        seq,
        digest: Digest::of(b"no line has this digest"),
    }
}
