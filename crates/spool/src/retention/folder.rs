//! Scans one folder for old files and removes those that the ledger knows.

use super::recorded::{FileIdentity, Recorded};
use super::{Cutoff, FolderReport, KeptFolder, Removal};
use crate::delivery::{Lane, Pos};
use crate::root::{Dir, OpenRoot};
use crate::{Digest, FileName, SpoolError, layout};
use disk::{FileKind, Stat};

/// No file that we made or ever read is larger than this, in bytes. The ledger knows a larger file by name and inode,
/// never by its digest, so reading it would only cost time.
const READ_MAX: u64 = 4 * 1024 * 1024;

/// A file that nobody changed for a long time.
pub(super) struct OldFile {
    name: FileName,
    stat: Stat,
    digest: Option<Digest>,
}

impl OldFile {
    /// Lists the identities under which the ledger may know the file.
    pub(super) fn identities(&self) -> impl Iterator<Item = FileIdentity> + use<'_> {
        let unread = FileIdentity::Unread(self.name.clone(), self.stat.ino);
        self.digest
            .map(FileIdentity::Digest)
            .into_iter()
            .chain([unread])
    }
}

pub(super) struct FolderScan {
    pub(super) report: FolderReport,
    pub(super) old: Vec<OldFile>,
    dir: Option<Dir>,
    cutoff: Option<Cutoff>,
}

impl FolderScan {
    /// Scans a folder. The report names the files that could not be read.
    pub(super) fn scan(
        root: &OpenRoot,
        agent: &str,
        folder: KeptFolder,
        cutoff: Option<&Cutoff>,
    ) -> Result<FolderScan, SpoolError> {
        let report = FolderReport {
            agent: agent.to_owned(),
            folder,
            there: super::Count::default(),
            oldest_ns: None,
            gone: super::Count::default(),
            uncertain: super::Count::default(),
            unknown: super::Count::default(),
            failed: Vec::new(),
        };
        let mut scan = FolderScan {
            report,
            old: Vec::new(),
            dir: None,
            cutoff: cutoff.cloned(),
        };
        let path = layout::agent_dir(agent, folder.directory());
        // A link in place of the folder leads elsewhere and is not followed.
        let dir = match root.dir_if_there(&path) {
            Ok(Some(dir)) => dir,
            Ok(None) => return Ok(scan),
            Err(error) => {
                scan.report.failed.push(error.chain());
                return Ok(scan);
            }
        };
        match root.disk.list(&dir.handle) {
            Ok(mut names) => {
                names.sort_unstable();
                for name in names
                    .into_iter()
                    .filter(|name| !name.as_bytes().starts_with(b"."))
                {
                    scan.see(root, &dir, name);
                }
            }
            Err(source) => scan
                .report
                .failed
                .push(root.error("list", &path, source).chain()),
        }
        scan.dir = Some(dir);
        Ok(scan)
    }

    fn see(&mut self, root: &OpenRoot, dir: &Dir, name: FileName) {
        let stat = match root.stat(dir, &name) {
            Ok(Some(stat)) => stat,
            Ok(None) => return,
            Err(error) => return self.report.failed.push(error.chain()),
        };
        if stat.kind != FileKind::File {
            return;
        }
        self.report.there.add(stat.size);
        let oldest = self
            .report
            .oldest_ns
            .map_or(stat.mtime_ns, |oldest| oldest.min(stat.mtime_ns));
        self.report.oldest_ns = Some(oldest);
        let Some(cutoff) = self
            .cutoff
            .as_ref()
            .filter(|cutoff| stat.mtime_ns < cutoff.wall_ns)
        else {
            return;
        };
        // A reader moved it here. By its modification time alone a message would look old on the day it was archived.
        if stat.ctime_ns >= cutoff.wall_ns {
            return;
        }
        match root.bytes(dir, &name, READ_MAX) {
            Ok(bytes) => {
                let digest = bytes.map(|bytes| Digest::of(&bytes));
                self.old.push(OldFile { name, stat, digest });
            }
            Err(error) => self.report.failed.push(error.chain()),
        }
    }

    /// Removes, or only counts, the files that are old and finished.
    pub(super) fn tidy(
        self,
        root: &OpenRoot,
        recorded: &Recorded,
        durable: &dyn Fn(&Lane) -> Pos,
        removal: Removal,
    ) -> FolderReport {
        let FolderScan {
            mut report,
            old,
            dir,
            cutoff,
        } = self;
        let (Some(dir), Some(cutoff)) = (dir, cutoff) else {
            return report;
        };
        for file in old {
            let record = file.identities().find_map(|identity| {
                recorded
                    .of(&report.agent, report.folder, &identity)
                    .cloned()
            });
            let bytes = file.stat.size;
            match record {
                None => report.unknown.add(bytes),
                // The record is younger than the cutoff.
                Some(record) if record.at >= cutoff.at => {}
                Some(record) if durable(&record.lane) < record.pos => {
                    report.uncertain.add(bytes);
                }
                Some(_) => match removed(root, &dir, &file, removal) {
                    Ok(true) => report.gone.add(bytes),
                    Ok(false) => {}
                    Err(error) => report.failed.push(error.chain()),
                },
            }
        }
        report
    }
}

/// Removes a file unless another one has replaced it by now.
fn removed(
    root: &OpenRoot,
    dir: &Dir,
    file: &OldFile,
    removal: Removal,
) -> Result<bool, SpoolError> {
    let is_same = root
        .stat(dir, &file.name)?
        .is_some_and(|now| now == file.stat);
    match removal {
        Removal::Now if is_same => root.remove(dir, &file.name).map(|()| true),
        Removal::Now | Removal::Pretended => Ok(is_same),
    }
}
