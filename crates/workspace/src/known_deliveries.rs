//! Remembers every delivery to an inbox as a hash, so that a file no record made can be told from delivered mail.

use std::collections::HashSet;

use spool::{Content, Digest, Entry, Mailbox};

/// The hashes of recipient and bytes of every file the ledger delivered to an inbox.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct KnownDeliveries(HashSet<u64>);

impl KnownDeliveries {
    /// Adds the deliveries of an entry.
    pub fn note(&mut self, entry: &Entry) {
        for delivery in &entry.deliveries {
            let (Mailbox::Inbox(agent), Some(digest)) =
                (&delivery.mailbox, digest(entry, &delivery.content))
            else {
                continue;
            };
            self.0.insert(hash(agent, &digest));
        }
    }

    /// Whether the ledger delivered these bytes to that inbox.
    pub fn contains(&self, agent: &str, digest: &Digest) -> bool {
        self.0.contains(&hash(agent, digest))
    }

    /// The hashes in ascending order.
    pub(crate) fn hashes(&self) -> Vec<u64> {
        let mut hashes: Vec<u64> = self.0.iter().copied().collect();
        hashes.sort_unstable();
        hashes
    }

    /// Adds deliveries by their hashes.
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

/// Snapshots keep this hash, so it must be the same in every build.
fn hash(agent: &str, digest: &Digest) -> u64 {
    let text = [agent.as_bytes(), &[0], &digest.bytes()].concat();
    let digest = Digest::of(&text).bytes();
    u64::from_be_bytes(digest[..8].try_into().expect("eight of 32 bytes"))
}
