//! The changes to a disk that forgets, and the trees that a power cut may leave.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

const SECTOR: usize = 512;

/// A file or directory of the notes, numbered by first appearance; 0 is the root.
pub(crate) type NodeId = usize;

/// One change, or the sync that makes changes durable.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
    /// This name in this directory now refers to that file, or to nothing.
    Name(NodeId, OsString, Option<NodeId>),
    Bytes(NodeId, u64, Vec<u8>),
    Length(NodeId, u64),
    Sync(NodeId),
    SyncAll,
}

/// The fate of a change that was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It never arrived.
    Lost,
    /// It arrived.
    Whole,
    /// Of written bytes, only the sectors whose bit is set arrived and the others are zero; any other change arrived.
    Sectors(u64),
}

#[derive(Debug, Clone)]
pub(crate) enum Thing {
    File(Vec<u8>),
    Directory(BTreeMap<OsString, NodeId>),
}

/// Everything done to a disk since its first state.
#[derive(Debug, Clone)]
pub struct Notes {
    pub(crate) base: Vec<Thing>,
    pub(crate) changes: Vec<Operation>,
    /// The other half of a rename, by the position of the first.
    pub(crate) halves: HashMap<usize, usize>,
}

impl Notes {
    /// Returns the number of notes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Returns whether nothing was done.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Lists the positions of the changes before `at` that a cut at `at` may undo.
    pub fn unsynced(&self, at: usize) -> Vec<usize> {
        let is_open = |index: &usize| {
            let node = match &self.changes[*index] {
                Operation::Name(node, ..)
                | Operation::Bytes(node, ..)
                | Operation::Length(node, _) => *node,
                Operation::Sync(_) | Operation::SyncAll => return false,
            };
            !self.changes[*index..at].iter().any(|later| match later {
                Operation::Sync(synced) => *synced == node,
                Operation::SyncAll => true,
                Operation::Name(..) | Operation::Bytes(..) | Operation::Length(..) => false,
            })
        };
        (0..at).filter(is_open).collect()
    }

    /// Returns the number of sectors that a change wrote; `None` if it wrote no bytes.
    pub fn sectors(&self, place: usize) -> Option<usize> {
        match self.changes.get(place)? {
            Operation::Bytes(_, _, bytes) => Some(bytes.len().div_ceil(SECTOR)),
            Operation::Name(..)
            | Operation::Length(..)
            | Operation::Sync(_)
            | Operation::SyncAll => None,
        }
    }

    /// Returns the other half of a rename whose first half is at this position.
    pub fn other_half(&self, first: usize) -> Option<usize> {
        self.halves.get(&first).copied()
    }

    /// Lists the names that came to refer to a file, as paths from the root, each with the number of notes after it.
    pub fn appearances(&self) -> Vec<(PathBuf, usize)> {
        let mut paths: HashMap<NodeId, PathBuf> = HashMap::from([(0, PathBuf::new())]);
        for (node, thing) in self.base.iter().enumerate() {
            let Thing::Directory(names) = thing else {
                continue;
            };
            let path = paths.get(&node).cloned().unwrap_or_default();
            paths.extend(names.iter().map(|(name, child)| (*child, path.join(name))));
        }
        let mut appeared = Vec::new();
        for (index, change) in self.changes.iter().enumerate() {
            if let Operation::Name(dir, name, Some(node)) = change {
                let path = paths.get(dir).cloned().unwrap_or_default().join(name);
                paths.insert(*node, path.clone());
                appeared.push((path, index + 1));
            }
        }
        appeared
    }

    /// Makes the tree that a cut at `at` leaves, if `arrival` gives the fate of each unsynced change.
    pub fn restore(
        &self,
        at: usize,
        arrival: &dyn Fn(usize) -> Arrival,
        into: &Path,
    ) -> io::Result<()> {
        let open = self.unsynced(at);
        let mut things: BTreeMap<NodeId, Thing> = self.base.iter().cloned().enumerate().collect();
        for (index, change) in self.changes[..at].iter().enumerate() {
            let arrival = if open.binary_search(&index).is_ok() {
                arrival(index)
            } else {
                Arrival::Whole
            };
            if arrival != Arrival::Lost {
                apply(&mut things, change, arrival);
            }
        }
        put(&things, 0, into)
    }
}

fn apply(things: &mut BTreeMap<NodeId, Thing>, change: &Operation, arrival: Arrival) {
    let mut file = |node: &NodeId| match things
        .entry(*node)
        .or_insert_with(|| Thing::File(Vec::new()))
    {
        Thing::File(bytes) => std::mem::take(bytes),
        Thing::Directory(_) => Vec::new(),
    };
    match change {
        Operation::Name(dir, name, node) => {
            let names = things
                .entry(*dir)
                .or_insert_with(|| Thing::Directory(BTreeMap::new()));
            if let Thing::File(_) = names {
                *names = Thing::Directory(BTreeMap::new());
            }
            if let Thing::Directory(names) = names {
                match node {
                    Some(node) => names.insert(name.clone(), *node),
                    None => names.remove(name),
                };
            }
        }
        Operation::Bytes(node, offset, written) => {
            let mut bytes = file(node);
            let begin = usize::try_from(*offset).expect("a file of a test fits memory");
            bytes.resize(bytes.len().max(begin + written.len()), 0);
            for (number, sector) in written.chunks(SECTOR).enumerate() {
                let arrived = match arrival {
                    Arrival::Sectors(mask) => mask >> (number % 64) & 1 == 1,
                    Arrival::Whole | Arrival::Lost => true,
                };
                if arrived {
                    let begin = begin + number * SECTOR;
                    bytes[begin..begin + sector.len()].copy_from_slice(sector);
                }
            }
            things.insert(*node, Thing::File(bytes));
        }
        Operation::Length(node, len) => {
            let mut bytes = file(node);
            bytes.resize(
                usize::try_from(*len).expect("a file of a test fits memory"),
                0,
            );
            things.insert(*node, Thing::File(bytes));
        }
        Operation::Sync(_) | Operation::SyncAll => {}
    }
}

fn put(things: &BTreeMap<NodeId, Thing>, node: NodeId, path: &Path) -> io::Result<()> {
    match things.get(&node) {
        Some(Thing::Directory(names)) => {
            std::fs::create_dir_all(path)?;
            names
                .iter()
                .try_for_each(|(name, child)| put(things, *child, &path.join(name)))
        }
        Some(Thing::File(bytes)) => std::fs::write(path, bytes),
        // Only the name of the file arrived.
        None => std::fs::write(path, ""),
    }
}
