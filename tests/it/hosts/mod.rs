//! Workspaces that several hosts share, on real brokers and real repositories. `settled-host` itself tests how a
//! repository stores the ledger.

mod access;
mod alone;
mod cut_off;
mod damage;
mod gap;
mod git_daemon;
mod homes;
mod jetstream;
mod jetstream_suite;
mod long;
mod policy;
mod programs;

use settled_tests::wait;
use spool::Digest;
use spool::log::{Batch, Head, HostKeys, Log, Signed};

/// A signer whose signature is the digest of the bytes.
struct Digests;

impl HostKeys for Digests {
    fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        Digest::of(bytes).bytes().to_vec()
    }

    fn is_signed(&self, _key: &str, bytes: &[u8], signature: &[u8]) -> bool {
        self.sign(bytes) == signature
    }
}

/// A batch of `count` records after `after`; different `text`s make different batches.
fn batch(after: Head, count: u64, text: &str) -> Signed {
    let (mut bytes, mut head) = (Vec::new(), after);
    for seq in after.seq + 1..=after.seq + count {
        let line = format!(
            r#"{{"v":1,"seq":{seq},"at":"2026-02-13T10:00:00.000Z","prev":"{}","batch":{},"kind":"note","review":null,"id":null,"original":null,"deliveries":[],"decision":"{text}"}}"#,
            head.digest,
            after.seq + 1
        );
        let digest = Digest::of(line.as_bytes());
        head = Head { seq, digest };
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    let batch = Batch::read(bytes, after).expect("a batch");
    let host = "tower".parse().expect("a host's name");
    Signed::new(batch, "w", host, &Digests)
}

/// Follows until `count` batches have arrived.
fn follows(log: &mut dyn Log, from: Head, count: usize) -> Vec<Signed> {
    let mut all: Vec<Signed> = Vec::new();
    // On a busy machine a long log takes longer than a test waits for one thing, so it waits for each next part.
    while all.len() < count {
        let from = all.last().map_or(from, |signed| signed.batch.head());
        all.extend(wait::for_some("the next batches", || {
            match log.follow(from) {
                Ok(batches) => Some(batches).filter(|batches| !batches.is_empty()),
                Err(error) => {
                    assert!(error.is_retryable(), "{error}");
                    None
                }
            }
        }));
    }
    all
}
