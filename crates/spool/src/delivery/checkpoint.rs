//! Remembers what deliveries touched since the last checkpoint, and makes it durable. A checkpoint may take seconds, so
//! another thread can sync while the daemon keeps delivering.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use super::Lane;
use super::note::{CursorNote, Pos, Slot};
use crate::root::{Dir, DirState, OpenRoot};
use crate::{FileName, SpoolError, dirs, layout};
use disk::{self, FileKind, OpenMode};

/// The number of touched files after which a power cut would make the next start slow.
const TOUCHED_MAX: usize = 32_768;

/// The number of touched files after which a checkpoint does not wait for a quiet moment: their names are still known.
const MANY: usize = 2_048;

/// The number of files whose names are kept, to be synced one by one. Systems that cannot sync a whole file system keep
/// all.
const NAMES_MAX: usize = if cfg!(target_os = "linux") {
    8_192
} else {
    usize::MAX
};

/// Up to this many files, syncing one by one is faster than one sync of the whole file system.
const FEW: usize = if cfg!(target_os = "linux") {
    64
} else {
    usize::MAX
};

/// The files, directories and lanes that a power cut could still undo.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// The directories with changed names, each with its new files; `None` if their names are not kept.
    dirs: BTreeMap<PathBuf, Option<Vec<FileName>>>,
    /// The number of files touched since the last checkpoint began to sync.
    pub(super) new: usize,
    /// The number of files with names that are kept, without those of lanes that could not be synced.
    named: usize,
    pub(super) lanes: BTreeSet<Lane>,
    /// True if new cursors may not be durable.
    pub(super) cursors_made: bool,
}

/// A directory that could not be opened, and the error: changes in it are not durable.
type Closed = (PathBuf, SpoolError);

/// A checkpoint that has begun: the directories touched until then, and how far each lane had come. Files delivered meanwhile
/// belong to the next checkpoint.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(super) touched: Touched,
    pub(super) lanes: Vec<DurableNote>,
}

/// The line of a cursor that says how far a lane survives a power cut.
#[derive(Debug)]
pub(super) struct DurableNote {
    pub(super) lane: Lane,
    pub(super) slot: Slot,
    pub(super) pos: Pos,
}

/// A checkpoint that was synced, or failed.
#[derive(Debug)]
pub(crate) struct SyncOutcome {
    pub(super) result: Result<(), SpoolError>,
    /// The changes that are still not durable.
    pub(super) left: Touched,
    /// The positions that the cursors now note as durable.
    pub(super) noted: Vec<DurableNote>,
    /// The lanes whose cursors were removed.
    pub(super) without_cursor: Vec<Lane>,
}

impl Touched {
    /// Notes that a lane works in this directory.
    pub(crate) fn lane(&mut self, lane: &Lane, dir: &Path, state: DirState) {
        if !self.lanes.contains(lane) {
            self.lanes.insert(lane.clone());
        }
        self.dir(dir);
        if state == DirState::Made {
            // Its parents, up to the root, may be new as well.
            dir.ancestors().skip(1).for_each(|above| self.dir(above));
        }
    }

    /// Notes that names in this directory changed.
    pub(crate) fn dir(&mut self, dir: &Path) {
        self.names(dir);
    }

    fn names(&mut self, dir: &Path) -> &mut Option<Vec<FileName>> {
        if !self.dirs.contains_key(dir) {
            self.dirs.insert(dir.to_owned(), Some(Vec::new()));
        }
        self.dirs.get_mut(dir).expect("it is there now")
    }

    /// Notes a new file.
    pub(crate) fn file(&mut self, dir: &Path, name: &FileName) {
        self.file_under(dir, [name.clone()]);
    }

    /// Notes a file that an earlier process made or found and may not have synced, under every name it may have.
    pub(crate) fn file_before(&mut self, dir: &Path, file: &FileName, seq: u64) {
        self.file_under(dir, file.variants(seq));
    }

    fn file_under(&mut self, dir: &Path, possible: impl IntoIterator<Item = FileName>) {
        self.new += 1;
        let has_room = self.named < NAMES_MAX;
        let names = self.names(dir);
        if !has_room {
            *names = None;
        } else if let Some(names) = names {
            names.extend(possible);
            self.named += 1;
        }
    }

    /// Adds what another thread touched, or what an earlier checkpoint left.
    pub(crate) fn merge(&mut self, other: Touched) {
        self.new += other.new;
        self.named += other.named;
        let has_room = self.named <= NAMES_MAX;
        for (dir, names) in other.dirs {
            let known = self.names(&dir);
            match names {
                Some(names) if has_room || names.is_empty() => {
                    known
                        .iter_mut()
                        .for_each(|known| known.extend_from_slice(&names));
                }
                _ => *known = None,
            }
        }
        self.lanes.extend(other.lanes);
        self.cursors_made |= other.cursors_made;
    }

    /// Returns whether there is anything that a power cut could undo.
    pub(super) fn is_any(&self) -> bool {
        !self.lanes.is_empty() || self.cursors_made
    }

    /// Returns whether a checkpoint is due even without a quiet moment.
    pub(super) fn is_due(&self) -> bool {
        self.new >= TOUCHED_MAX
    }

    /// Returns whether so many files were touched that a checkpoint should begin without a quiet moment.
    pub(super) fn is_many(&self) -> bool {
        self.new >= MANY
    }

    /// Makes everything durable except in directories that cannot be opened, and returns those: their owner may have
    /// closed them, and no other mail waits for that. After an error that is not retryable, bytes may be lost, and only
    /// a new start looks for them.
    ///
    /// Syncs files one by one until the caller asks it to hurry: one call for the whole file system writes a flood's bytes
    /// at once, and every commit of the ledger waits for them.
    fn sync(
        &mut self,
        root: &OpenRoot,
        is_awaited: &AtomicBool,
    ) -> Result<Vec<Closed>, SpoolError> {
        self.new = 0;
        let mut ahead: usize = self.dirs.values().flatten().map(Vec::len).sum();
        let mut file_systems = FileSystems::default();
        let mut closed = Vec::new();
        for (path, names) in &self.dirs {
            let dir = match root.dir_if_there(path) {
                Ok(Some(dir)) => dir,
                Ok(None) => continue,
                Err(error) => {
                    closed.push((path.clone(), error));
                    continue;
                }
            };
            let names = names.as_deref();
            let mut whole = names.is_none().then_some(None);
            for name in names.unwrap_or_default() {
                if whole.is_none() && is_awaited.load(Ordering::Relaxed) && ahead > FEW {
                    whole = Some(None);
                }
                if whole.is_none() {
                    whole = sync_file(root, &dir, name)?.map(Some);
                }
                ahead -= 1;
            }
            if let Some(why) = whole {
                file_systems.add(root, dir, why)?;
            } else {
                root.disk
                    .sync_dir(&dir.handle)
                    .map_err(SpoolError::fatal("sync", root.path(path)))?;
            }
        }
        file_systems.sync(root)?;
        Ok(closed)
    }

    /// Keeps what is still not durable after a sync: everything in the lanes that `is_held` names.
    fn left(self, is_held: &dyn Fn(&Lane) -> bool) -> Touched {
        let lanes: BTreeSet<Lane> = self.lanes.into_iter().filter(is_held).collect();
        let places: Vec<PathBuf> = lanes.iter().flat_map(dirs_of).collect();
        let is_in = |dir: &Path| places.iter().any(|place| dir.starts_with(place));
        let is_left = |dir: &Path| is_in(dir) || places.iter().any(|place| place.starts_with(dir));
        let mut dirs = self.dirs;
        dirs.retain(|dir, names| {
            if !is_in(dir) {
                *names = Some(Vec::new());
            }
            is_left(dir)
        });
        // Nothing is delivered there meanwhile, so its names do not count.
        Touched {
            dirs,
            new: 0,
            named: 0,
            lanes,
            cursors_made: false,
        }
    }
}

impl Begun {
    /// Makes the work done durable, then notes that in the cursors. Hurries once the caller waits for it.
    pub(crate) fn sync(mut self, root: &OpenRoot, is_awaited: &AtomicBool) -> SyncOutcome {
        let mut outcome = SyncOutcome {
            result: Ok(()),
            left: Touched::default(),
            noted: Vec::new(),
            without_cursor: Vec::new(),
        };
        match self.sync_and_note(root, is_awaited, &mut outcome) {
            Ok(closed) => {
                outcome.left = self.touched.left(&|lane| is_held(&closed, lane));
                let first = closed.into_iter().next();
                outcome.result = first.map_or(Ok(()), |(_, error)| Err(error));
            }
            Err(error) => {
                outcome.left = self.touched;
                outcome.result = Err(error);
            }
        }
        outcome
    }

    fn sync_and_note(
        &mut self,
        root: &OpenRoot,
        is_awaited: &AtomicBool,
        outcome: &mut SyncOutcome,
    ) -> Result<Vec<Closed>, SpoolError> {
        let closed = self.touched.sync(root, is_awaited)?;
        // A kill from here on leaves some cursors out of date. After a power cut the next start then looks for files
        // that exist, nothing worse.
        let dir = root.dir(dirs::CURSORS.as_ref())?;
        for note in std::mem::take(&mut self.lanes) {
            if is_held(&closed, &note.lane) {
                continue;
            }
            if note.write(root, &dir)? {
                outcome.noted.push(note);
            } else {
                outcome.without_cursor.push(note.lane);
            }
        }
        if self.touched.cursors_made {
            root.disk
                .sync_dir(&dir.handle)
                .map_err(SpoolError::fatal("sync", root.path(&dir.path)))?;
        }
        Ok(closed)
    }
}

impl DurableNote {
    /// Writes the line and syncs it. Deliveries write other lines of the same file meanwhile. False if somebody removed
    /// the file: only the lane knows its other lines.
    fn write(&self, root: &OpenRoot, dir: &Dir) -> Result<bool, SpoolError> {
        let name = self.lane.cursor_name();
        let line = CursorNote {
            pos: self.pos,
            verify: 0,
            boot: root.boot.clone(),
        }
        .line(self.slot);
        let file = root.disk.open(&dir.handle, name.as_ref(), OpenMode::Write);
        let file =
            disk::if_there(file).map_err(|source| root.error_at("open", dir, &name, source))?;
        let Some(file) = file else {
            return Ok(false);
        };
        disk::write_all(&*root.disk, &file, &line, self.slot.offset())
            .map_err(|source| root.error_at("write", dir, &name, source))?;
        root.disk
            .sync_data(&file)
            .map_err(SpoolError::fatal("sync", root.path(&dir.path.join(&name))))?;
        Ok(true)
    }
}

/// Returns whether a lane works in a directory that could not be opened.
fn is_held(closed: &[Closed], lane: &Lane) -> bool {
    closed.iter().any(|(path, _)| works_at(lane, path))
}

/// The file systems to sync as a whole, each with one of its directories, because an agent's may be a mount of its own,
/// and with the error if a file there could not be opened.
#[derive(Default)]
struct FileSystems(BTreeMap<u64, (Dir, Option<SpoolError>)>);

impl FileSystems {
    fn add(
        &mut self,
        root: &OpenRoot,
        dir: Dir,
        why: Option<SpoolError>,
    ) -> Result<(), SpoolError> {
        let stat = root
            .disk
            .stat(&dir.handle)
            .map_err(|source| root.error("look at", &dir.path, source))?;
        let (_, known) = self.0.entry(stat.dev).or_insert((dir, None));
        if known.is_none() {
            *known = why;
        }
        Ok(())
    }

    fn sync(self, root: &OpenRoot) -> Result<(), SpoolError> {
        for (dir, why) in self.0.into_values() {
            let synced = root
                .disk
                .sync_file_system(&dir.handle)
                .map_err(SpoolError::fatal("sync", root.path(&dir.path)))?;
            if let Some(why) = why.filter(|_| !synced) {
                return Err(why);
            }
        }
        Ok(())
    }
}

/// Returns whether a lane works in this directory, below it, or in one above it.
fn works_at(lane: &Lane, dir: &Path) -> bool {
    dirs_of(lane)
        .iter()
        .any(|place| place.starts_with(dir) || dir.starts_with(place))
}

/// Returns the directories below which a lane works.
fn dirs_of(lane: &Lane) -> Vec<PathBuf> {
    match lane {
        Lane::Mailbox(mailbox) => vec![layout::mailbox_dir(mailbox)],
        Lane::Pulls => vec![dirs::PULLS.into()],
        Lane::Outbox(agent) => [dirs::OUTBOX, dirs::SENT, dirs::DEAD_LETTER]
            .map(|name| layout::agent_dir(agent, name))
            .into(),
    }
}

/// Syncs one file. If it is missing, its reader took it and no sync is needed. A link, a FIFO or a directory that was
/// put away has no bytes of ours; syncing the parent directory covers its name. A file that cannot be opened is returned
/// as an error: its whole file system has to be synced, because nothing may be noted as durable that was not.
fn sync_file(
    root: &OpenRoot,
    dir: &Dir,
    name: &FileName,
) -> Result<Option<SpoolError>, SpoolError> {
    match disk::if_there(root.disk.open(&dir.handle, name.as_ref(), OpenMode::Read)) {
        Ok(None) => Ok(None),
        Ok(Some(file)) => {
            let stat = root
                .disk
                .stat(&file)
                .map_err(|source| root.error_at("look at", dir, name, source))?;
            if stat.kind == FileKind::File {
                let fatal = SpoolError::fatal("sync", root.path(&dir.path.join(name)));
                root.disk.sync_data(&file).map_err(fatal)?;
            }
            Ok(None)
        }
        Err(error)
            if matches!(
                Errno::from_io_error(&error),
                Some(Errno::LOOP | Errno::NXIO)
            ) =>
        {
            Ok(None)
        }
        Err(source) => Ok(Some(root.error_at("open", dir, name, source))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(dir: &str, files: usize) -> Touched {
        let mut touched = Touched::default();
        let lane = Lane::Outbox("claude".to_owned());
        touched.lane(&lane, dir.as_ref(), DirState::Found);
        for n in 0..files {
            let name = FileName::new(format!("{n}.yaml")).expect("a name");
            touched.file(dir.as_ref(), &name);
        }
        touched
    }

    fn names(touched: &Touched) -> Vec<(&str, Option<usize>)> {
        let mut shown = Vec::new();
        for (dir, names) in &touched.dirs {
            let dir = dir.to_str().expect("text");
            shown.push((dir, names.as_ref().map(Vec::len)));
        }
        shown
    }

    // Systems that cannot sync a whole file system keep all names.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_directory_whose_names_are_not_all_kept_has_none() {
        let full = touched("a", NAMES_MAX);
        assert_eq!(names(&full), [("a", Some(NAMES_MAX))]);
        assert_eq!(names(&touched("a", NAMES_MAX + 1)), [("a", None)]);

        let mut both = touched("a", NAMES_MAX);
        both.merge(touched("b", 1));
        both.dir("c".as_ref());
        assert_eq!(
            names(&both),
            [("a", Some(NAMES_MAX)), ("b", None), ("c", Some(0))]
        );
        both.merge(touched("a", 1));
        assert_eq!(names(&both)[0], ("a", None));
        assert_eq!(both.new, NAMES_MAX + 2);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_left_of_held_lanes_keeps_its_names_and_counts_as_old() {
        let mut both = touched("agents/claude/sent", 3);
        both.merge(touched("agents/codex/inbox", 2));
        let left = both.left(&|lane| *lane == Lane::Outbox("claude".to_owned()));
        assert_eq!(names(&left), [("agents/claude/sent", Some(3))]);
        assert_eq!((left.new, left.named, left.is_many()), (0, 0, false));
        let mut next = touched("agents/claude/sent", NAMES_MAX);
        next.merge(left);
        assert_eq!(names(&next), [("agents/claude/sent", Some(NAMES_MAX + 3))]);
    }
}
