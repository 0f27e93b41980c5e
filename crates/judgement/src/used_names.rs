//! Remembers the file names that the ledger has used in each mailbox, so that a delivered file gets its final name with
//! the decision.

use std::sync::Arc;

use review::{RowKey, StoredRows, Table};
use spool::{Away, Content, Delivery, Entry, FileName, Mailbox};

/// The used names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct UsedNames {
    used: Table<b'n'>,
    /// The names chosen since the last commit.
    chosen: Vec<RowKey>,
}

/// A directory in which names are unique.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NameScope<'a> {
    /// A mailbox that receives files.
    Mailbox(&'a Mailbox),
    /// An agent's `sent/`.
    Sent(&'a str),
}

impl UsedNames {
    /// Remembers every name that a record uses.
    pub fn note(&mut self, entry: &Entry) {
        let made = entry.deliveries.iter().filter(|file| makes_a_file(file));
        let made = made.map(|file| row_of(NameScope::Mailbox(&file.mailbox), &file.file));
        let away = entry.original.iter().map(|original| match &original.away {
            Away::Sent(file) => row_of(NameScope::Sent(&original.outbox), file),
            Away::DeadLetter(file) => {
                let mailbox = Mailbox::DeadLetter(original.outbox.clone());
                row_of(NameScope::Mailbox(&mailbox), file)
            }
        });
        made.chain(away).for_each(|row| self.add(row));
    }

    fn add(&mut self, name: RowKey) {
        self.used.put(name, []);
    }

    /// True if the ledger ever used the name in this scope.
    pub(crate) fn has_used(&self, scope: NameScope<'_>, name: &FileName) -> bool {
        self.used.has(&row_of(scope, name))
    }

    /// Returns the wanted name if the ledger never used it in this scope, otherwise the name with the record's number.
    pub(crate) fn choose(&mut self, scope: NameScope<'_>, wanted: &FileName, seq: u64) -> FileName {
        let name = if self.has_used(scope, wanted) {
            wanted.numbered(seq)
        } else {
            wanted.clone()
        };
        let row = row_of(scope, &name);
        if !self.used.has(&row) {
            self.add(row);
            self.chosen.push(row);
        }
        name
    }

    /// Keeps the chosen names: the ledger has them.
    pub(crate) fn commit(&mut self) {
        self.chosen.clear();
    }

    /// Forgets the names chosen since the last commit: the ledger does not have them.
    pub(crate) fn roll_back(&mut self) {
        for row in self.chosen.drain(..) {
            self.used.put_back(row, None);
        }
    }

    /// Returns the new rows, for a snapshot.
    pub fn new_rows(&self) -> impl Iterator<Item = (RowKey, &[u8])> {
        self.used.new_rows()
    }

    /// Starts a snapshot.
    pub fn begin_snapshot(&mut self) {
        self.used.begin_snapshot();
    }

    /// Abandons the snapshot that was started.
    pub fn give_up_snapshot(&mut self) {
        self.used.give_up_snapshot();
    }

    /// Ends the snapshot, whose rows are `stored`.
    pub fn rest_on(&mut self, stored: &Arc<dyn StoredRows>) {
        self.used.rest_on(Arc::clone(stored));
    }
}

fn makes_a_file(delivery: &Delivery) -> bool {
    match delivery.content {
        Content::Original | Content::Text(_) => true,
        Content::Withdrawn(_) => false,
    }
}

/// Must stay the same in every build, because snapshots store it.
fn row_of(scope: NameScope<'_>, file: &FileName) -> RowKey {
    let scope = match scope {
        NameScope::Mailbox(Mailbox::Inbox(agent)) => [agent, "/inbox"].concat(),
        NameScope::Mailbox(Mailbox::Packets(folder)) => ["packets/", folder].concat(),
        NameScope::Mailbox(other) => other.to_string(),
        NameScope::Sent(agent) => [agent, "/sent"].concat(),
    };
    Table::<b'n'>::key(&[scope.as_bytes(), file.as_bytes()])
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
