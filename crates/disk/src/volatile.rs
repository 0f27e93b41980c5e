//! A disk for tests that forgets: a power cut may undo any part of what was not synced, in any order, down to single
//! sectors.
//!
//! The spool sees a real directory on which everything happens at once. Each change is also noted, and from the notes a
//! test can make a tree that a cut might have left. It is harsher than any real file system: only a sync of the file
//! makes bytes durable, only a sync of the directory makes names durable, and half of a rename may arrive.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use os_calls::Writer;

use crate::FileName;
use crate::notes::{NodeId, Notes, Operation, Thing};
use crate::os::Os;
use crate::{Disk, Handle, OpenMode, Stat};

#[derive(Debug)]
struct VolatileState {
    notes: Notes,
    nodes: HashMap<u64, NodeId>,
    next: NodeId,
}

/// A directory whose changes are noted.
#[derive(Debug)]
pub struct VolatileDisk {
    state: Mutex<VolatileState>,
    boot_id: String,
}

impl VolatileDisk {
    /// Uses a directory as a disk; its present content is durable.
    pub fn new(root: &Path, boot_id: &str) -> io::Result<VolatileDisk> {
        let notes = Notes {
            base: Vec::new(),
            changes: Vec::new(),
            halves: HashMap::new(),
        };
        let mut state = VolatileState {
            notes,
            nodes: HashMap::new(),
            next: 0,
        };
        state.scan(root)?;
        state.next = state.notes.base.len();
        Ok(VolatileDisk {
            state: Mutex::new(state),
            boot_id: boot_id.to_owned(),
        })
    }

    /// Returns the number of notes.
    pub fn position(&self) -> usize {
        self.state().notes.changes.len()
    }

    /// Returns the notes so far.
    pub fn notes(&self) -> Notes {
        self.state().notes.clone()
    }

    fn state(&self) -> MutexGuard<'_, VolatileState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the real directory and notes the change, so that no other change comes between.
    fn change<T>(
        &self,
        act: impl FnOnce() -> io::Result<T>,
        note: impl FnOnce(&mut VolatileState, &T) -> io::Result<()>,
    ) -> io::Result<T> {
        let mut state = self.state();
        let done = act()?;
        note(&mut state, &done)?;
        Ok(done)
    }

    /// Performs a rename and notes it.
    fn renamed(
        &self,
        from: &Handle,
        old: &Path,
        to: &Handle,
        new: &Path,
        rename: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let act = || {
            let node = Os.stat_at(from, old)?.ino;
            rename()?;
            Ok(node)
        };
        self.change(act, |state, ino| {
            let (from, to, node) = (state.node(from)?, state.node(to)?, state.known(*ino)?);
            let first = state.note(Operation::Name(to, new.into(), Some(node)));
            let second = state.note(Operation::Name(from, old.into(), None));
            state.notes.halves.insert(first, second);
            Ok(())
        })
        .map(|_| ())
    }
}

impl VolatileState {
    /// Adds a directory and everything beneath it.
    fn scan(&mut self, path: &Path) -> io::Result<NodeId> {
        use std::os::unix::fs::MetadataExt;
        let data = path.symlink_metadata()?;
        let node = self.notes.base.len();
        self.nodes.insert(data.ino(), node);
        if !data.is_dir() {
            self.notes.base.push(Thing::File(std::fs::read(path)?));
            return Ok(node);
        }
        self.notes.base.push(Thing::Directory(BTreeMap::new()));
        let mut names = BTreeMap::new();
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            names.insert(entry.file_name(), self.scan(&entry.path())?);
        }
        self.notes.base[node] = Thing::Directory(names);
        Ok(node)
    }

    fn note(&mut self, change: Operation) -> usize {
        self.notes.changes.push(change);
        self.notes.changes.len() - 1
    }

    fn known(&self, ino: u64) -> io::Result<NodeId> {
        self.nodes
            .get(&ino)
            .copied()
            .ok_or_else(|| io::Error::other("somebody made this file behind the disk's back"))
    }

    fn node(&self, handle: &Handle) -> io::Result<NodeId> {
        self.known(Os.stat(handle)?.ino)
    }

    /// Notes a new file or directory.
    fn born(&mut self, dir: &Handle, name: &Path, ino: u64) -> io::Result<()> {
        let node = self.next;
        self.next += 1;
        self.nodes.insert(ino, node);
        let dir = self.node(dir)?;
        self.note(Operation::Name(dir, name.into(), Some(node)));
        Ok(())
    }
}

impl Disk for VolatileDisk {
    fn open_root(&self, path: &Path) -> io::Result<Handle> {
        Os.open_root(path)
    }

    fn open_dir(&self, at: &Handle, path: &Path) -> io::Result<Handle> {
        Os.open_dir(at, path)
    }

    fn open_beneath(&self, at: &Handle, path: &Path) -> io::Result<Handle> {
        Os.open_beneath(at, path)
    }

    fn open(&self, dir: &Handle, name: &Path, how: OpenMode) -> io::Result<Handle> {
        match how {
            OpenMode::Read | OpenMode::Write => Os.open(dir, name, how),
            OpenMode::New => self.change(
                || Os.open(dir, name, how),
                |state, made| state.born(dir, name, Os.stat(made)?.ino),
            ),
        }
    }

    fn stat(&self, file: &Handle) -> io::Result<Stat> {
        Os.stat(file)
    }

    fn stat_at(&self, dir: &Handle, name: &Path) -> io::Result<Stat> {
        Os.stat_at(dir, name)
    }

    fn list(&self, dir: &Handle) -> io::Result<Vec<FileName>> {
        Os.list(dir)
    }

    fn read_at(&self, file: &Handle, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        Os.read_at(file, buffer, offset)
    }

    fn writer(&self, file: &Handle) -> io::Result<Writer> {
        Os.writer(file)
    }

    fn lock(&self, file: &Handle) -> io::Result<bool> {
        Os.lock(file)
    }

    fn boot_id(&self, _root: &Handle) -> io::Result<String> {
        Ok(self.boot_id.clone())
    }

    fn make_dir(&self, at: &Handle, path: &Path) -> io::Result<()> {
        let act = || Os.make_dir(at, path).and_then(|()| Os.stat_at(at, path));
        self.change(act, |state, made| {
            state.born(at, path, made.ino)?;
            let node = state.next - 1;
            // A directory is one from the beginning, whatever happens to its entries.
            state
                .notes
                .base
                .resize_with(node + 1, || Thing::File(Vec::new()));
            state.notes.base[node] = Thing::Directory(BTreeMap::new());
            Ok(())
        })
        .map(|_| ())
    }

    fn write_at(&self, file: &Handle, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let act = || Os.write_at(file, bytes, offset);
        self.change(act, |state, taken| {
            let node = state.node(file)?;
            state.note(Operation::Bytes(node, offset, bytes[..*taken].to_vec()));
            Ok(())
        })
    }

    fn truncate(&self, file: &Handle, len: u64) -> io::Result<()> {
        let act = || Os.truncate(file, len);
        self.change(act, |state, ()| {
            let node = state.node(file)?;
            state.note(Operation::Length(node, len));
            Ok(())
        })
    }

    fn rename_new(&self, from: &Handle, old: &Path, to: &Handle, new: &Path) -> io::Result<()> {
        self.renamed(from, old, to, new, || Os.rename_new(from, old, to, new))
    }

    fn rename_over(&self, dir: &Handle, old: &Path, new: &Path) -> io::Result<()> {
        self.renamed(dir, old, dir, new, || Os.rename_over(dir, old, new))
    }

    fn remove(&self, dir: &Handle, name: &Path) -> io::Result<()> {
        let act = || Os.remove(dir, name);
        self.change(act, |state, ()| {
            let dir = state.node(dir)?;
            state.note(Operation::Name(dir, name.into(), None));
            Ok(())
        })
    }

    fn sync_data(&self, file: &Handle) -> io::Result<()> {
        let act = || Os.stat(file);
        self.change(act, |state, _| {
            let node = state.node(file)?;
            state.note(Operation::Sync(node));
            Ok(())
        })
        .map(|_| ())
    }

    fn sync_dir(&self, dir: &Handle) -> io::Result<()> {
        self.sync_data(dir)
    }

    fn sync_file_system(&self, on: &Handle) -> io::Result<bool> {
        let act = || Os.stat(on);
        self.change(act, |state, _| {
            state.note(Operation::SyncAll);
            Ok(())
        })
        .map(|_| true)
    }
}
