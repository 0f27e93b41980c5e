//! Remembers the file names the ledger has used in each mailbox, so that the name of a delivered file is chosen once, with
//! the decision.

use spool::{Away, Content, Delivery, Digest, Entry, FileName, Mailbox};

#[expect(
    clippy::disallowed_types,
    reason = "only asked whether it holds a hash, and sorted where it is written"
)]
type Hashes = std::collections::HashSet<u64>;

/// The used names, kept as hashes: eight bytes a name. Two names that share a hash only cost the
/// second one its plain name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct UsedNames {
    used: Hashes,
    /// Those that were chosen since the last commit.
    chosen: Vec<u64>,
}

/// A directory in which names are unique.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NameScope<'a> {
    /// A mailbox files are delivered to.
    Mailbox(&'a Mailbox),
    /// An agent's `sent/`.
    Sent(&'a str),
}

impl UsedNames {
    /// Remembers every name a record uses.
    pub fn note(&mut self, entry: &Entry) {
        for delivery in entry
            .deliveries
            .iter()
            .filter(|delivery| makes_a_file(delivery))
        {
            self.used
                .insert(hash(NameScope::Mailbox(&delivery.mailbox), &delivery.file));
        }
        if let Some(original) = &entry.original {
            match &original.away {
                Away::Sent(file) => self
                    .used
                    .insert(hash(NameScope::Sent(&original.outbox), file)),
                Away::DeadLetter(file) => {
                    let mailbox = Mailbox::DeadLetter(original.outbox.clone());
                    self.used.insert(hash(NameScope::Mailbox(&mailbox), file))
                }
            };
        }
    }

    /// Whether the ledger ever used the name there.
    pub(crate) fn has_used(&self, scope: NameScope<'_>, name: &FileName) -> bool {
        self.used.contains(&hash(scope, name))
    }

    /// The wanted name if the ledger never used it there, else the one with the record's number.
    pub(crate) fn choose(&mut self, scope: NameScope<'_>, wanted: &FileName, seq: u64) -> FileName {
        let name = if self.used.contains(&hash(scope, wanted)) {
            wanted.numbered(seq)
        } else {
            wanted.clone()
        };
        let hash = hash(scope, &name);
        if self.used.insert(hash) {
            self.chosen.push(hash);
        }
        name
    }

    /// The ledger has the names that were chosen.
    pub(crate) fn commit(&mut self) {
        self.chosen.clear();
    }

    /// The ledger does not have the names that were chosen since the last commit.
    pub(crate) fn roll_back(&mut self) {
        for hash in self.chosen.drain(..) {
            self.used.remove(&hash);
        }
    }

    /// The hashes, in order.
    pub fn hashes(&self) -> Vec<u64> {
        let mut hashes: Vec<u64> = self.used.iter().copied().collect();
        hashes.sort_unstable();
        hashes
    }

    /// Remembers names by their hashes.
    pub fn extend(&mut self, hashes: impl IntoIterator<Item = u64>) {
        self.used.extend(hashes);
    }
}

fn makes_a_file(delivery: &Delivery) -> bool {
    match delivery.content {
        Content::Original | Content::Text(_) => true,
        Content::Withdrawn(_) => false,
    }
}

/// The same in every build, for snapshots keep it; no scope's name has the separator in it.
fn hash(scope: NameScope<'_>, file: &FileName) -> u64 {
    let mut text = match scope {
        NameScope::Mailbox(mailbox) => mailbox.to_string(),
        NameScope::Sent(agent) => format!("{agent}/sent"),
    }
    .into_bytes();
    text.push(0);
    text.extend_from_slice(file.as_bytes());
    let digest = Digest::of(&text).bytes();
    u64::from_be_bytes(digest[..8].try_into().expect("eight of 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_plain_once_and_numbered_after() {
        let mut names = UsedNames::default();
        let inbox = Mailbox::Inbox("codex".to_owned());
        let file = FileName::new("a.yaml").expect("a name");
        let mut choose = |seq| {
            names
                .choose(NameScope::Mailbox(&inbox), &file, seq)
                .to_string()
        };
        assert_eq!(
            [choose(1), choose(2), choose(3)],
            ["a.yaml", "a.2.yaml", "a.3.yaml"]
        );
    }
}
