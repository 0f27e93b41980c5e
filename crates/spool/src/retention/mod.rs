//! Counts the files that agents have finished with, and removes those older than a cutoff.
//!
//! Looks only at `sent/`, `archive/` and `dead_letter/`. Removes a file if a record of the ledger made it or put it
//! away, and if its lane's cursor says that this survives a power cut: no later start looks for it again, short of a
//! lost cursor. Files that no record knows, hidden files and anything but plain files stay. Removal unlinks one file
//! after the other beneath opened directories: if something stops it, the next call does the rest. The caller decides
//! the cutoff.

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

/// An instant; a change or decision before it is old.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cutoff {
    /// In nanoseconds since 1970, UTC, for files.
    pub wall_ns: i64,
    /// The same instant in the form of records: RFC 3339, UTC, with milliseconds.
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

/// The mode of [`tidy`]: remove old files or only count them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// Removed.
    Now,
    /// Counted as if removed.
    Pretended,
}

/// A number of files and their size.
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

/// The files of one folder, and the fate of the old ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderReport {
    /// The agent that owns the folder.
    pub agent: String,
    /// The folder.
    pub folder: KeptFolder,
    /// All plain files that are not hidden.
    pub there: Count,
    /// The earliest of their modification times, in nanoseconds since 1970.
    pub oldest_ns: Option<i64>,
    /// Old files that were removed, or would be.
    pub gone: Count,
    /// Old files whose delivery a power cut could still undo; they stay until it is durable.
    pub uncertain: Count,
    /// Old files that no record knows; they stay.
    pub unknown: Count,
    /// The files that could not be read or removed, each with the reason.
    pub failed: Vec<String>,
}

/// Scans the folders of every agent of the workspace at `path`, without the lock, and removes old and finished files,
/// or pretends to. Fails before it removes anything if the ledger is damaged.
pub fn tidy(path: &Path, old: &Old, removal: Removal) -> Result<Vec<FolderReport>, SpoolError> {
    let root = OpenRoot::look_at(path, Arc::new(Os))?;
    let mut folders = Vec::new();
    let mut recorded = Recorded::default();
    for agent in Layout::known_agents(path)? {
        for folder in KeptFolder::ALL {
            let scan = FolderScan::scan(&root, &agent, folder, old.of(folder))?;
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
    // Cursors after the ledger: a cursor may be ahead of the records read, never behind them.
    let cursors = Cursors::read(&root)?;
    let durable = |lane: &Lane| cursors.durable(&root.boot, lane);
    let tidied = folders
        .into_iter()
        .map(|scan| scan.tidy(&root, &recorded, &durable, removal));
    Ok(tidied.collect())
}

/// Counts the copies of torn batches in `.settled/torn`; they are evidence, and only a person removes them.
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
        count.add(root.stat(&dir, &name)?.map_or(0, |stat| stat.size));
    }
    Ok(count)
}
