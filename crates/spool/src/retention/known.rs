//! What the ledger knows of the old files that lie in the shelves: which record brought each there last.

use std::collections::HashMap;

use super::Shelf;
use super::shelf::Lying;
use crate::delivery::{Lane, Pos};
use crate::{Away, Content, Digest, Entry, FileName, Mailbox, Stamp};

/// What a file is known by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Mark {
    /// Its bytes.
    Digest(Digest),
    /// Its name and inode, where nobody ever read its bytes: it was refused for its size.
    Unread(FileName, u64),
}

/// The record that last brought a file to its shelf.
#[derive(Debug, Clone)]
pub(super) struct Brought {
    pub(super) lane: Lane,
    pub(super) pos: Pos,
    pub(super) at: String,
}

/// Answers, for the files asked for, by agent and shelf.
#[derive(Default)]
pub(super) struct Known(HashMap<(String, Shelf), HashMap<Mark, Option<Brought>>>);

impl Known {
    /// Asks for the old files of a shelf.
    pub(super) fn ask(&mut self, lying: &Lying) {
        if lying.old.is_empty() {
            return;
        }
        let marks = self
            .0
            .entry((lying.shelved.agent.clone(), lying.shelved.shelf))
            .or_default();
        marks.extend(
            lying
                .old
                .iter()
                .flat_map(|file| file.marks())
                .map(|mark| (mark, None)),
        );
    }

    /// Says whether nothing was asked for.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes from a record what it says of the files asked for; a later one overrules.
    pub(super) fn hear(&mut self, entry: &Entry) {
        if let Some(original) = &entry.original {
            let (shelf, file) = match &original.away {
                Away::Sent(file) => (Shelf::Sent, file),
                Away::DeadLetter(file) => (Shelf::DeadLetter, file),
            };
            let pos = Pos {
                seq: entry.seq,
                n: 0,
            };
            let brought = || Brought {
                lane: Lane::Outbox(original.outbox.clone()),
                pos,
                at: entry.at.clone(),
            };
            let marks: Vec<Mark> = match (&original.digest, original.stamp) {
                (Some(digest), _) => vec![Mark::Digest(*digest)],
                (None, Some(Stamp { ino, .. })) => file
                    .variants(entry.seq)
                    .map(|name| Mark::Unread(name, ino))
                    .into(),
                (None, None) => Vec::new(),
            };
            marks
                .iter()
                .for_each(|mark| self.note(&original.outbox, shelf, mark, brought));
        }
        for (index, delivery) in entry.deliveries.iter().enumerate() {
            let (agent, shelf) = match &delivery.mailbox {
                Mailbox::Inbox(agent) => (agent, Shelf::Archive),
                Mailbox::DeadLetter(agent) => (agent, Shelf::DeadLetter),
                Mailbox::Packets(_) | Mailbox::PullRequest(_) => continue,
            };
            if !self.0.contains_key(&(agent.clone(), shelf)) {
                continue;
            }
            let digest = match &delivery.content {
                Content::Original => entry.original.as_ref().and_then(|original| original.digest),
                Content::Text(text) => Some(Digest::of(text.as_bytes())),
                Content::Withdrawn(_) => None,
            };
            let Some(digest) = digest else { continue };
            let lane = Lane::Mailbox(delivery.mailbox.clone());
            let before = entry.deliveries[..index]
                .iter()
                .filter(|other| other.mailbox == delivery.mailbox);
            let n = u32::try_from(before.count()).expect("a record has few deliveries");
            let pos = Pos { seq: entry.seq, n };
            let brought = || Brought {
                lane: lane.clone(),
                pos,
                at: entry.at.clone(),
            };
            self.note(agent, shelf, &Mark::Digest(digest), brought);
        }
    }

    fn note(&mut self, agent: &str, shelf: Shelf, mark: &Mark, brought: impl Fn() -> Brought) {
        let Some(marks) = self.0.get_mut(&(agent.to_owned(), shelf)) else {
            return;
        };
        if let Some(answer) = marks.get_mut(mark) {
            *answer = Some(brought());
        }
    }

    /// What brought this file to its shelf.
    pub(super) fn of(&self, agent: &str, shelf: Shelf, mark: &Mark) -> Option<&Brought> {
        self.0.get(&(agent.to_owned(), shelf))?.get(mark)?.as_ref()
    }
}
