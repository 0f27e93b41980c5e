//! What proves that a file in an inbox was delivered: every delivery the ledger has, as hashes.

use std::collections::HashSet;

use spool::{Content, Digest, Entry, Mailbox};

/// Everything the ledger ever delivered to an inbox, as hashes of recipient and bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Proofs(HashSet<u64>);

impl Proofs {
    /// Remembers what a record delivers.
    pub fn note(&mut self, entry: &Entry) {
        for delivery in &entry.deliveries {
            let (Mailbox::Inbox(agent), Some(digest)) =
                (&delivery.mailbox, digest(entry, &delivery.content))
            else {
                continue;
            };
            self.0.insert(proof(agent, &digest));
        }
    }

    /// Whether the ledger delivered these bytes to that inbox.
    pub fn has(&self, agent: &str, digest: &Digest) -> bool {
        self.0.contains(&proof(agent, digest))
    }

    /// The hashes, in order.
    pub(crate) fn hashes(&self) -> Vec<u64> {
        let mut hashes: Vec<u64> = self.0.iter().copied().collect();
        hashes.sort_unstable();
        hashes
    }

    /// Remembers deliveries by their hashes.
    pub fn extend(&mut self, hashes: impl IntoIterator<Item = u64>) {
        self.0.extend(hashes);
    }
}

fn digest(entry: &Entry, content: &Content) -> Option<Digest> {
    match content {
        Content::Original => entry.original.as_ref()?.digest,
        Content::Text(text) => Some(Digest::of(text.as_bytes())),
        Content::Withdrawn(_) => None,
    }
}

/// The same in every build, for snapshots keep it.
fn proof(agent: &str, digest: &Digest) -> u64 {
    let text = [agent.as_bytes(), &[0], &digest.bytes()].concat();
    let digest = Digest::of(&text).bytes();
    u64::from_be_bytes(digest[..8].try_into().expect("eight of 32 bytes"))
}
