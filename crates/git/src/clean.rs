//! Compares the files of a worktree with its commit. The author of the worktree also wrote its index, its config and its
//! attributes. Each of these can hide a changed file from `git status`, so this ignores them all.

use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use message_schema::id::CommitSha;

use crate::repository::{GitError, Repository};

impl Repository {
    /// Returns the checked-out commit if every tracked file is there as the commit has it, also in the submodules that
    /// are checked out. `None` if a file differs, or if an object of the commit is missing.
    pub fn clean_head(&self) -> Option<CommitSha> {
        let head = CommitSha::new(self.resolve("HEAD").ok()??).ok()?;
        self.is_clean_at(&head).ok()?.then_some(head)
    }

    fn is_clean_at(&self, head: &CommitSha) -> Result<bool, GitError> {
        let top = self.succeeded(&["rev-parse", "--show-toplevel"], None, &[])?;
        let top = Path::new(OsStr::from_bytes(top.strip_suffix(b"\n").unwrap_or(&top)));
        // `core.worktree` can name a directory that has nothing to do with this one.
        let directory = self.directory().canonicalize();
        if !directory.is_ok_and(|directory| directory.starts_with(top)) {
            return Ok(false);
        }
        let copy = Copy::new().map_err(|source| self.not_run(source))?;
        self.copy_commit(&copy.0, head)?;
        let tree = Self::at(top);
        let run = |args: &[&str]| {
            let mut git = tree.by_copy(&copy.0, args);
            // An untracked `.gitattributes` could say that other bytes mean the same.
            git.env("GIT_ATTR_NOSYSTEM", "1")
                .env("GIT_ATTR_SOURCE", head.as_str());
            tree.finish(git, None)
        };
        // An index that was just made knows no file's time and has no mark on any.
        let made = run(&["read-tree", head.as_str()])?;
        let compared = run(&[
            "-c",
            "core.attributesFile=/dev/null",
            "update-index",
            "--ignore-submodules",
            "--really-refresh",
        ])?;
        let listed = run(&["ls-files", "--stage", "-z"])?;
        let submodules = listed.stdout.split(|byte| *byte == 0);
        Ok([&made, &compared, &listed]
            .iter()
            .all(|output| output.status.success())
            && submodules
                .filter_map(submodule)
                .all(|(commit, path)| is_clean_submodule(&top.join(path), commit)))
    }
}

/// The commit and the path of a line of `git ls-files --stage`, if it is a submodule.
fn submodule(line: &[u8]) -> Option<(&str, &Path)> {
    let line = line.strip_prefix(b"160000 ")?;
    let at = line.iter().position(|byte| *byte == b'\t')?;
    let commit = std::str::from_utf8(&line[..at])
        .ok()?
        .split_whitespace()
        .next()?;
    Some((commit, Path::new(OsStr::from_bytes(&line[at + 1..]))))
}

/// True if nothing is checked out there, or the commit.
fn is_clean_submodule(directory: &Path, commit: &str) -> bool {
    if directory.join(".git").symlink_metadata().is_err() {
        let mut files = std::fs::read_dir(directory).into_iter().flatten();
        return files.next().is_none();
    }
    let repository = Repository::at(directory);
    let Ok(Some(head)) = repository.resolve("HEAD") else {
        return false;
    };
    // No commit contains itself, so this ends even if the repository there is this one.
    head == commit
        && CommitSha::new(head)
            .is_ok_and(|head| repository.is_clean_at(&head).is_ok_and(|is_clean| is_clean))
}

/// A directory that only this user can open, for as long as this lives.
struct Copy(PathBuf);

impl Copy {
    fn new() -> io::Result<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let time = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!(
            "settled-{}-{}-{number}.git",
            std::process::id(),
            time.as_nanos()
        );
        let path = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_copy_is_for_this_user_only_and_gone_after_its_use() {
        let [one, other] = [Copy::new(), Copy::new()].map(|copy| copy.expect("a directory"));
        assert_ne!(one.0, other.0);
        let path = one.0.clone();
        let mode = path.metadata().expect("it is there").mode();
        assert_eq!(mode & 0o777, 0o700);
        std::fs::write(path.join("file"), "text").expect("a file");
        drop(one);
        assert!(!path.exists());
    }
}
