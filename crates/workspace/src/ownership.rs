//! Reads and changes the owner, group and mode of a workspace's files and directories.
//!
//! Every call works on an entry opened beneath the root: `settled init --separate-users` runs as root, and a path that
//! an agent replaces by a link must not make it change the owner of `/etc`. The caller decides which users there are
//! and what they get.

use std::io;
use std::path::Path;

use rustix::fs::{Gid, Mode, RawMode, Uid};

use spool::{Disk, FileKind, FileName, Handle, Os, SpoolError, if_there};

/// The permission bits of a mode.
const PERMISSIONS: u32 = 0o7777;

/// The owner, group and permissions of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ownership {
    /// The user id.
    pub uid: u32,
    /// The group id.
    pub gid: u32,
    /// The twelve permission bits.
    pub mode: u32,
}

/// A workspace's tree, opened to change who owns its entries.
#[derive(Debug)]
pub struct OwnedTree {
    root: Handle,
}

impl OwnedTree {
    /// Opens the workspace at `root`.
    pub fn open(root: &Path) -> Result<OwnedTree, SpoolError> {
        Ok(OwnedTree {
            root: Os.open_root(root).map_err(failed("open", root))?,
        })
    }

    /// Reads a directory's or file's ownership; `None` if it does not exist. The root is the empty path. Fails for a
    /// file with several names and for anything that is neither file nor directory, because changing it might change
    /// something outside the workspace.
    pub fn ownership(&self, path: &Path) -> Result<Option<Ownership>, SpoolError> {
        let found = if_there(self.entry(path)).map_err(failed("look at", path))?;
        found
            .map(|entry| ownership(&entry).map_err(failed("look at", path)))
            .transpose()
    }

    /// Gives a directory or file this ownership; true if that changed anything.
    pub fn grant(&self, path: &Path, to: Ownership) -> Result<bool, SpoolError> {
        let grant = || {
            let entry = self.entry(path)?;
            let before = ownership(&entry)?;
            if (before.uid, before.gid) != (to.uid, to.gid) {
                rustix::fs::fchown(
                    &entry,
                    Some(Uid::from_raw(to.uid)),
                    Some(Gid::from_raw(to.gid)),
                )?;
            }
            // The permissions come last, because changing the owner can remove some.
            if before != to {
                rustix::fs::fchmod(&entry, permissions(to.mode))?;
            }
            Ok(before != to)
        };
        grant().map_err(failed("change the owner of", path))
    }

    /// Lists the names in a directory; none if it does not exist.
    pub fn names(&self, path: &Path) -> Result<Vec<FileName>, SpoolError> {
        let listed = if_there(self.entry(path).and_then(|dir| Os.list(&dir)));
        Ok(listed.map_err(failed("list", path))?.unwrap_or_default())
    }

    /// True if it is a directory, not a link to one.
    pub fn is_dir(&self, path: &Path) -> bool {
        Os.open_dir(&self.root, path).is_ok()
    }

    fn entry(&self, path: &Path) -> io::Result<Handle> {
        if path.as_os_str().is_empty() {
            return self.root.try_clone();
        }
        let entry = Os.open_beneath(&self.root, path)?;
        let stat = Os.stat(&entry)?;
        match stat.kind {
            FileKind::Directory => Ok(entry),
            FileKind::File if stat.links == 1 => Ok(entry),
            FileKind::File => Err(io::Error::other(
                "it has several names, and the others may be anywhere",
            )),
            FileKind::Symlink | FileKind::Special => {
                Err(io::Error::other("it is neither a file nor a directory"))
            }
        }
    }
}

/// Converts a mode for the system call.
fn permissions(mode: u32) -> Mode {
    let bits = RawMode::try_from(mode & PERMISSIONS).expect("twelve bits fit");
    Mode::from_raw_mode(bits)
}

#[expect(
    clippy::useless_conversion,
    reason = "the system's type is narrower on macOS"
)]
fn ownership(entry: &Handle) -> io::Result<Ownership> {
    let stat = rustix::fs::fstat(entry)?;
    Ok(Ownership {
        uid: stat.st_uid,
        gid: stat.st_gid,
        mode: u32::from(stat.st_mode) & PERMISSIONS,
    })
}

/// Wraps an error with the operation and the path.
fn failed(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SpoolError {
    move |source| SpoolError::Io {
        operation,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    /// A tree of the user who runs this test, in a directory of its own.
    fn tree() -> (tempfile::TempDir, OwnedTree) {
        let root = tempfile::tempdir().expect("a directory");
        let at = |name: &str| root.path().join(name);
        std::fs::create_dir(at("folder")).expect("a directory");
        for (name, mode) in [("folder/a", 0o600), ("folder/b", 0o644), ("twice", 0o600)] {
            std::fs::write(at(name), "").expect("a file");
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(at(name), permissions).expect("permissions");
        }
        std::fs::hard_link(at("twice"), at("again")).expect("a second name");
        symlink("folder", at("link")).expect("a link");
        let tree = OwnedTree::open(root.path()).expect("a tree");
        (root, tree)
    }

    #[test]
    fn an_entry_is_read_and_changed_once() {
        let (root, tree) = tree();
        let path = Path::new("folder/a");
        let is = tree.ownership(path).expect("readable").expect("there");
        let own = root.path().metadata().expect("a directory");
        assert_eq!((is.uid, is.gid, is.mode), (own.uid(), own.gid(), 0o600));
        let wanted = Ownership { mode: 0o1640, ..is };
        assert!(tree.grant(path, wanted).expect("granted"));
        assert!(!tree.grant(path, wanted).expect("granted already"));
        assert_eq!(tree.ownership(path).expect("readable"), Some(wanted));
        let whole = tree.ownership(Path::new("")).expect("readable");
        assert_eq!(whole.map(|root| root.mode), Some(own.mode() & PERMISSIONS));
        assert_eq!(tree.ownership(Path::new("missing")).expect("no"), None);
        tree.grant(Path::new("missing"), wanted)
            .expect_err("nothing is created");
    }

    #[test]
    fn a_file_with_two_names_and_a_link_are_left_alone() {
        let (_root, tree) = tree();
        for (name, why) in [("twice", "several names"), ("link", "")] {
            let path = Path::new(name);
            let error = tree.ownership(path).expect_err(name);
            assert!(spool::chain(&error).contains(why), "{error}");
            let mode = Ownership {
                uid: 0,
                gid: 0,
                mode: 0o777,
            };
            tree.grant(path, mode).expect_err(name);
        }
    }

    #[test]
    fn the_names_of_a_directory_are_listed_and_a_link_is_none() {
        let (_root, tree) = tree();
        let names = |path: &str| -> Vec<String> {
            let mut names = tree.names(path.as_ref()).expect("a list");
            names.sort_unstable();
            names.iter().map(ToString::to_string).collect()
        };
        assert_eq!(names("folder"), ["a", "b"]);
        assert_eq!(names("missing"), [""; 0]);
        for (name, is_dir) in [
            ("folder", true),
            ("folder/a", false),
            ("link", false),
            ("missing", false),
        ] {
            assert_eq!(tree.is_dir(name.as_ref()), is_dir, "{name}");
        }
    }

    /// Only root can give a file away; another user's test ends here.
    #[test]
    fn a_file_gets_its_user_and_group_and_then_its_mode() {
        let (_root, tree) = tree();
        let path = Path::new("folder/a");
        let wanted = Ownership {
            uid: 7,
            gid: 70,
            mode: 0o6755,
        };
        if rustix::process::geteuid().is_root() {
            assert!(tree.grant(path, wanted).expect("granted"));
            assert_eq!(tree.ownership(path).expect("readable"), Some(wanted));
        }
    }
}
