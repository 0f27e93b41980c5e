//! Finds, for old files, the last record that brought each to its folder. A file without one is never removed: its
//! agent put it there.

use std::collections::HashMap;

use super::KeptFolder;
use super::folder::FolderScan;
use crate::delivery::{Lane, Pos};
use crate::{Away, Content, Digest, Entry, FileName, Mailbox, Stamp};

/// The key by which the ledger knows a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum FileIdentity {
    /// Its bytes.
    Digest(Digest),
    /// Its name and inode, if the daemon refused it for its size without reading its bytes.
    Unread(FileName, u64),
}

/// The record that last brought a file to its folder.
#[derive(Debug, Clone)]
pub(super) struct LastRecord {
    pub(super) lane: Lane,
    pub(super) pos: Pos,
    pub(super) at: String,
}

/// The answers for the requested files, by agent and folder.
#[derive(Default)]
pub(super) struct Recorded(
    HashMap<(String, KeptFolder), HashMap<FileIdentity, Option<LastRecord>>>,
);

impl Recorded {
    /// Requests the records of a folder's old files.
    pub(super) fn ask(&mut self, scan: &FolderScan) {
        if scan.old.is_empty() {
            return;
        }
        let identities = self
            .0
            .entry((scan.report.agent.clone(), scan.report.folder))
            .or_default();
        identities.extend(
            scan.old
                .iter()
                .flat_map(|file| file.identities())
                .map(|identity| (identity, None)),
        );
    }

    /// Returns whether nothing was requested.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes from a record what it says about the requested files; a later record overrules an earlier one.
    pub(super) fn read(&mut self, entry: &Entry) {
        if let Some(original) = &entry.original {
            let (folder, file) = match &original.away {
                Away::Sent(file) => (KeptFolder::Sent, file),
                Away::DeadLetter(file) => (KeptFolder::DeadLetter, file),
            };
            let pos = Pos {
                seq: entry.seq,
                n: 0,
            };
            let record = || LastRecord {
                lane: Lane::Outbox(original.outbox.clone()),
                pos,
                at: entry.at.clone(),
            };
            let identities: Vec<FileIdentity> = match (&original.digest, original.stamp) {
                (Some(digest), _) => vec![FileIdentity::Digest(*digest)],
                (None, Some(Stamp { ino, .. })) => file
                    .variants(entry.seq)
                    .map(|name| FileIdentity::Unread(name, ino))
                    .into(),
                (None, None) => Vec::new(),
            };
            identities
                .iter()
                .for_each(|identity| self.note(&original.outbox, folder, identity, record));
        }
        for (index, delivery) in entry.deliveries.iter().enumerate() {
            let (agent, folder) = match &delivery.mailbox {
                Mailbox::Inbox(agent) => (agent, KeptFolder::Archive),
                Mailbox::DeadLetter(agent) => (agent, KeptFolder::DeadLetter),
                Mailbox::Packets(_) | Mailbox::PullRequest(_) => continue,
            };
            if !self.0.contains_key(&(agent.clone(), folder)) {
                continue;
            }
            let digest = match &delivery.content {
                Content::Original => entry.original.as_ref().and_then(|original| original.digest),
                Content::Text(text) => Some(Digest::of(text.as_bytes())),
                Content::Withdrawn(_) => None,
            };
            let Some(digest) = digest else { continue };
            let lane = Lane::of(&delivery.mailbox);
            let before = entry.deliveries[..index]
                .iter()
                .filter(|other| other.mailbox == delivery.mailbox);
            let n = u32::try_from(before.count()).expect("a record has few deliveries");
            let pos = Pos { seq: entry.seq, n };
            let record = || LastRecord {
                lane: lane.clone(),
                pos,
                at: entry.at.clone(),
            };
            self.note(agent, folder, &FileIdentity::Digest(digest), record);
        }
    }

    fn note(
        &mut self,
        agent: &str,
        folder: KeptFolder,
        identity: &FileIdentity,
        record: impl Fn() -> LastRecord,
    ) {
        let Some(identities) = self.0.get_mut(&(agent.to_owned(), folder)) else {
            return;
        };
        if let Some(answer) = identities.get_mut(identity) {
            *answer = Some(record());
        }
    }

    /// Returns the record that last brought this file to its folder.
    pub(super) fn of(
        &self,
        agent: &str,
        folder: KeptFolder,
        identity: &FileIdentity,
    ) -> Option<&LastRecord> {
        self.0
            .get(&(agent.to_owned(), folder))?
            .get(identity)?
            .as_ref()
    }
}
