//! A worktree for a run: the commit under review, as git stores it, in `.settled/trees/<id>`. Makes and removes it,
//! also after a kill; the caller chooses the commit.
//!
//! It writes a note beside the tree before it makes the tree, and removes the note after the repository has forgotten
//! the tree. A note without a run names a tree to remove.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use git::{GitError, Repository};
use message_schema::id::{CommitSha, DiffDigest};
use serde::{Deserialize, Serialize};
use spool::Layout;

/// The extension of a note that is being written, and the age at which its writer must have been killed.
const HALF: &str = "note";
const HALF_AGE: Duration = Duration::from_secs(60);

/// The largest tree by default, in MiB.
pub const MIB_MAX: u64 = 4096;

/// The tree of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkout {
    /// A directory in the repository of the commit.
    #[serde(with = "spool::path_text")]
    pub repository: PathBuf,
    /// The full id of the commit.
    pub commit: CommitSha,
    /// The commit to compare it with, if one is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub base: Option<CommitSha>,
    /// The directory of its files.
    #[serde(with = "spool::path_text")]
    pub tree: PathBuf,
    /// The names of files and directories that the agent must not see, such as those by which a repository instructs
    /// the agent's program.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub leave_out: Vec<String>,
    /// The most that its files may take on the disk, in MiB.
    #[serde(default = "mib_max")]
    pub mib_max: u64,
}

fn mib_max() -> u64 {
    MIB_MAX
}

/// The commit and the diff in the tree of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reviewed {
    /// The full id of the commit.
    pub commit: CommitSha,
    /// The digest of the diff between the base and the commit, if the repository has both.
    pub diff: Option<DiffDigest>,
}

impl Checkout {
    /// The tree of the run with this id; does not make it.
    pub fn of(
        root: &Path,
        id: &str,
        repository: &Path,
        (base, commit): (Option<&CommitSha>, CommitSha),
    ) -> Self {
        Self {
            repository: repository.to_owned(),
            base: base.cloned(),
            commit,
            tree: trees(root).join(id),
            leave_out: Vec::new(),
            mib_max: MIB_MAX,
        }
    }

    /// Makes the tree.
    pub fn make(&self) -> io::Result<()> {
        let trees = self.tree.parent().unwrap_or(&self.tree);
        DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(trees)?;
        let note = serde_json::to_vec(self).expect("paths of ours and a commit are JSON");
        // A process that looks for leftovers right now would mistake half a note for the remains of a kill.
        let half = self.tree.with_extension(HALF);
        std::fs::write(&half, note)?;
        std::fs::rename(&half, self.note())?;
        let repository = Repository::at(&self.repository);
        if repository.commit(&self.commit).map_err(io_error)?.is_none() {
            return Err(io::Error::other(format!(
                "the repository of {} does not have the commit {}: fetch it there before the request is sent, or set \
                 `checkout = \"workdir\"` for a reviewer that fetches it",
                self.repository.display(),
                self.commit
            )));
        }
        self.check_size(&repository, trees)?;
        repository
            .add_worktree(&self.tree, &self.commit)
            .map_err(io_error)
    }

    /// Fails if the files would take more than their limit, or more than half of what is free: the ledger and all
    /// mailboxes are on the same disk.
    fn check_size(&self, repository: &Repository, trees: &Path) -> io::Result<()> {
        let disk = rustix::fs::statvfs(trees)?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let (max, why) = size_max(free, self.mib_max);
        let size = repository.size_up_to(&self.commit, max.saturating_mul(1 << 20));
        match size.map_err(io_error)? {
            Some(_) => Ok(()),
            None => Err(io::Error::other(format!(
                "the files of the commit {} take more than {max} MiB, {why}",
                self.commit
            ))),
        }
    }

    /// Removes from the tree what the agent must not see.
    pub fn leave_out(&self) -> io::Result<()> {
        Repository::at(&self.tree)
            .leave_out(&self.leave_out)
            .map_err(io_error)
    }

    /// The commit and the digest of the diff under review. git computes the digest, because the one in the request is
    /// only the author's claim; none if git cannot.
    pub(crate) fn reviewed(&self) -> Reviewed {
        let digest = |base: &CommitSha| {
            let repository = Repository::at(&self.repository);
            let base = repository.commit(base).ok()??;
            let changes = repository.changes(base.as_str(), self.commit.as_str());
            changes.ok().map(|changes| changes.digest)
        };
        Reviewed {
            commit: self.commit.clone(),
            diff: self.base.as_ref().and_then(digest),
        }
    }

    /// Removes the tree, even a partial one, and has its repository forget it.
    pub fn remove(&self) -> io::Result<()> {
        remove_all(&git::copy_of(&self.tree))?;
        remove_all(&self.tree)?;
        // A deleted repository remembers nothing.
        if self.repository.exists() {
            Repository::at(&self.repository)
                .forget_worktree(&self.tree)
                .map_err(io_error)?;
        }
        gone(std::fs::remove_file(self.note()))
    }

    fn note(&self) -> PathBuf {
        self.tree.with_extension("json")
    }
}

/// The most MiB that a tree may take beside this many free bytes, and where that limit comes from.
fn size_max(free: u64, mib_max: u64) -> (u64, &'static str) {
    let half = free >> 21;
    if half < mib_max {
        (half, "half of what is free on its disk: free some space")
    } else {
        (
            mib_max,
            "the limit: raise `tree_mib_max` in `[runner]` if that is intended",
        )
    }
}

/// The trees that were begun and not removed.
pub fn left(root: &Path) -> io::Result<Vec<Checkout>> {
    let listed = match std::fs::read_dir(trees(root)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut found = Vec::new();
    for entry in listed {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == HALF) {
            forget_half(&path)?;
        }
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let note = match std::fs::read(&path) {
            // Its run has ended meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            note => note?,
        };
        // A note that is not ours was written before any tree.
        match serde_json::from_slice::<Checkout>(&note) {
            Ok(checkout) if checkout.note() == path => found.push(checkout),
            Ok(_) | Err(_) => gone(std::fs::remove_file(&path))?,
        }
    }
    Ok(found)
}

/// Removes a half-written note whose writer must have been killed, because writing one takes no time.
fn forget_half(path: &Path) -> io::Result<()> {
    let age = path.metadata().and_then(|data| data.modified());
    let age = age.ok().and_then(|written| written.elapsed().ok());
    if age.is_some_and(|age| age > HALF_AGE) {
        gone(std::fs::remove_file(path))?;
    }
    Ok(())
}

fn trees(root: &Path) -> PathBuf {
    Layout::new(root).trees()
}

fn io_error(error: GitError) -> io::Error {
    match error {
        GitError::NotRun { directory, source } => io::Error::new(
            source.kind(),
            format!("cannot run git in {}: {source}", directory.display()),
        ),
        GitError::Unusable { what } => io::Error::other(what),
    }
}

/// Turns the error for a missing file into success.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            Ok(())
        } else {
            Err(error)
        }
    })
}

/// Removes a directory and everything in it, even what is write-protected.
fn remove_all(directory: &Path) -> io::Result<()> {
    match gone(std::fs::remove_dir_all(directory)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(directory)?;
            gone(std::fs::remove_dir_all(directory))
        }
        removed => removed,
    }
}

/// Gives the owner write permission to each directory below.
fn open_up(directory: &Path) -> io::Result<()> {
    std::fs::set_permissions(directory, Permissions::from_mode(0o700))?;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        // The type of a link is not a directory, so this never leaves the tree.
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_takes_no_more_than_its_limit_and_half_of_what_is_free() {
        const MIB: u64 = 1 << 20;
        for (free_mib, mib_max, max, why) in [
            (0, 100, 0, "half"),
            (10, 100, 5, "half"),
            (199, 100, 99, "half"),
            (200, 100, 100, "`tree_mib_max`"),
            (100_000, 100, 100, "`tree_mib_max`"),
        ] {
            let limit = size_max(free_mib * MIB, mib_max);
            assert_eq!(limit.0, max, "{free_mib} MiB are free");
            assert!(limit.1.contains(why), "{free_mib} MiB are free: {limit:?}");
        }
    }

    #[test]
    fn a_note_of_an_earlier_version_has_the_limit_by_default() {
        let commit = "0".repeat(40);
        let note = format!(r#"{{"repository":"/code","commit":"{commit}","tree":"/tree"}}"#);
        let checkout: Checkout = serde_json::from_str(&note).expect("a note");
        assert_eq!(checkout.mib_max, 4_096);
    }

    #[test]
    fn every_directory_of_a_tree_is_opened_up_and_none_that_a_link_leads_to() {
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        std::fs::create_dir_all(at("tree/a/b")).expect("directories");
        std::fs::create_dir(at("other")).expect("a directory");
        std::os::unix::fs::symlink("../../other", at("tree/a/link")).expect("a link");
        std::fs::write(at("tree/a/file"), "").expect("a file");
        let names = ["tree/a/b", "tree/a", "tree", "other", "tree/a/file"];
        for name in names {
            let closed = Permissions::from_mode(0o500);
            std::fs::set_permissions(at(name), closed).expect("its mode");
        }
        open_up(&at("tree")).expect("it is ours");
        let modes = names.map(|name| {
            let data = at(name).metadata().expect("it exists");
            data.permissions().mode() & 0o777
        });
        assert_eq!(modes, [0o700, 0o700, 0o700, 0o500, 0o500]);
    }
}
