//! Counts what agents have finished with, and removes what is older than the caller says.
//!
//! Only `sent/`, `archive/` and `dead_letter/` are looked at. A file goes if a record of the ledger made it or put it
//! away, and if its lane's cursor says that this survives a power cut: no later start looks for it again, short of a
//! lost cursor. What no record knows, hidden files and whatever is no plain file stay. Removing is plain unlinking
//! beneath opened directories, one file after the other: whatever stops it, the next time does the rest. How old is too
//! old, and what time it is, is the caller's to say.

mod folder;
mod recorded;

use std::path::Path;
use std::sync::Arc;

use self::folder::FolderScan;
use self::recorded::Recorded;
use crate::delivery::{Cursors, Lane};
use crate::root::OpenRoot;
use crate::{Layout, SpoolError, dirs, read_ledger};
use disk::Os;

/// A directory of an agent that keeps finished messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeptFolder {
    /// Accepted originals.
    Sent,
    /// The messages that the agent has finished with.
    Archive,
    /// Refused originals and the reports on them.
    DeadLetter,
}

impl KeptFolder {
    /// All of them.
    pub const ALL: [KeptFolder; 3] = [
        KeptFolder::Sent,
        KeptFolder::Archive,
        KeptFolder::DeadLetter,
    ];

    /// The directory's name.
    pub fn directory(self) -> &'static str {
        match self {
            KeptFolder::Sent => dirs::SENT,
            KeptFolder::Archive => dirs::ARCHIVE,
            KeptFolder::DeadLetter => dirs::DEAD_LETTER,
        }
    }
}

/// An instant; what was changed or decided before it is old.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cutoff {
    /// In nanoseconds since 1970, UTC, for files.
    pub wall_ns: i64,
    /// The same as records have it: RFC 3339, UTC, with milliseconds.
    pub at: String,
}

/// The cutoff of each folder; in a folder without one, no file is old.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Old {
    /// In `sent/`.
    pub sent: Option<Cutoff>,
    /// In `archive/`.
    pub archive: Option<Cutoff>,
    /// In `dead_letter/`.
    pub dead_letter: Option<Cutoff>,
}

impl Old {
    fn of(&self, folder: KeptFolder) -> Option<&Cutoff> {
        match folder {
            KeptFolder::Sent => self.sent.as_ref(),
            KeptFolder::Archive => self.archive.as_ref(),
            KeptFolder::DeadLetter => self.dead_letter.as_ref(),
        }
    }
}

/// The mode of [`tidy`]: it removes old files or only counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// Removed.
    Now,
    /// Counted as if they were.
    Pretended,
}

/// Some files and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// The number of files.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

impl Count {
    fn add(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }
}

/// The files of one folder, and what became of the old ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderReport {
    /// The agent that owns the folder.
    pub agent: String,
    /// The folder.
    pub folder: KeptFolder,
    /// All plain files that are not hidden.
    pub there: Count,
    /// The earliest of their last changes, in nanoseconds since 1970.
    pub oldest_ns: Option<i64>,
    /// Old ones that were removed, or would be.
    pub gone: Count,
    /// Old ones that a power cut might still undo, and stay until that is past.
    pub uncertain: Count,
    /// Old ones that no record knows, and stay.
    pub unknown: Count,
    /// The files that could not be read or removed, each with the reason.
    pub failed: Vec<String>,
}

/// Looks through the folders of every agent of the workspace at `path`, without the lock, and removes what is old and
/// finished, or pretends to. Fails before anything is removed if the ledger is damaged.
pub fn tidy(path: &Path, old: &Old, removal: Removal) -> Result<Vec<FolderReport>, SpoolError> {
    let root = OpenRoot::look_at(path, Arc::new(Os))?;
    let mut folders = Vec::new();
    let mut recorded = Recorded::default();
    for agent in Layout::known_agents(path)? {
        for folder in KeptFolder::ALL {
            let scan = FolderScan::look(&root, &agent, folder, old.of(folder))?;
            recorded.ask(&scan);
            folders.push(scan);
        }
    }
    if !recorded.is_empty() {
        read_ledger(path, &mut |entry| {
            recorded.read(entry);
            Ok(())
        })?;
    }
    // Behind the ledger: a cursor may have come further than the records read, never the other way round.
    let cursors = Cursors::read(&root)?;
    let durable = |lane: &Lane| cursors.durable(&root.boot, lane);
    let tidied = folders
        .into_iter()
        .map(|scan| scan.tidy(&root, &recorded, &durable, removal));
    Ok(tidied.collect())
}

/// Counts the copies of torn batches in `.settled/torn`; they are evidence, and nobody removes them but a person.
pub fn torn_copies(path: &Path) -> Result<Count, SpoolError> {
    let root = OpenRoot::look_at(path, Arc::new(Os))?;
    let mut count = Count::default();
    let Some(dir) = root.dir_if_there(dirs::TORN.as_ref())? else {
        return Ok(count);
    };
    let names = root
        .disk
        .list(&dir.handle)
        .map_err(|source| root.error("list", &dir.path, source))?;
    for name in names {
        count.add(root.look(&dir, &name)?.map_or(0, |stat| stat.size));
    }
    Ok(count)
}
