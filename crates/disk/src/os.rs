//! The disk of the operating system. Linux first; other systems make the same promises with more calls.

use std::io;
use std::os::fd::AsFd as _;
use std::path::{Component, Path};

use os_calls::Writer;
use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::FileName;
use crate::{Disk, FileKind, Handle, Names, OpenMode, Stat};

/// The real disk.
#[derive(Debug, Clone, Copy, Default)]
pub struct Os;

/// Follows no link at the end of a path, and no program that we start inherits the file.
const OURS: OFlags = OFlags::CLOEXEC.union(OFlags::NOFOLLOW);

/// Opens without blocking on a pipe and without acquiring a controlling terminal.
const AT_ONCE: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

const FILE_MODE: Mode = Mode::from_raw_mode(0o644);
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o755);

impl Disk for Os {
    fn open_root(&self, path: &Path) -> io::Result<Handle> {
        let flags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
        Ok(retry_on_intr(|| {
            rustix::fs::openat(CWD, path, flags, Mode::empty())
        })?)
    }

    fn open_dir(&self, at: &Handle, path: &Path) -> io::Result<Handle> {
        open_beneath(at, path, OFlags::DIRECTORY)
    }

    fn open_beneath(&self, at: &Handle, path: &Path) -> io::Result<Handle> {
        open_beneath(at, path, AT_ONCE)
    }

    fn open(&self, dir: &Handle, name: &Path, how: OpenMode) -> io::Result<Handle> {
        let how = match how {
            OpenMode::Read => OFlags::RDONLY,
            OpenMode::Write => OFlags::RDWR,
            OpenMode::New => OFlags::RDWR.union(OFlags::CREATE).union(OFlags::EXCL),
        };
        let flags = how.union(OURS).union(AT_ONCE);
        Ok(retry_on_intr(|| {
            rustix::fs::openat(dir, name, flags, FILE_MODE)
        })?)
    }

    fn stat(&self, file: &Handle) -> io::Result<Stat> {
        Ok(stat(&rustix::fs::fstat(file)?))
    }

    fn stat_at(&self, dir: &Handle, name: &Path) -> io::Result<Stat> {
        Ok(stat(&rustix::fs::statat(
            dir,
            name,
            AtFlags::SYMLINK_NOFOLLOW,
        )?))
    }

    fn list(&self, dir: &Handle) -> io::Result<Vec<FileName>> {
        self.names(dir)?.collect()
    }

    fn names(&self, dir: &Handle) -> io::Result<Names> {
        let entries = rustix::fs::Dir::read_from(dir)?;
        // `.` and `..` are the only entries that are not file names.
        let name = |entry: rustix::io::Result<rustix::fs::DirEntry>| match entry {
            Ok(entry) => FileName::new(entry.file_name().to_bytes()).ok().map(Ok),
            Err(error) => Some(Err(error.into())),
        };
        Ok(Box::new(entries.filter_map(name)))
    }

    fn read_at(&self, file: &Handle, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(retry_on_intr(|| {
            rustix::io::pread(file, &mut *buffer, offset)
        })?)
    }

    fn writer(&self, file: &Handle) -> io::Result<Writer> {
        Ok(os_calls::writer(file.as_fd()))
    }

    fn lock(&self, file: &Handle) -> io::Result<bool> {
        match retry_on_intr(|| rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(target_os = "linux")]
    fn boot_id(&self, root: &Handle) -> io::Result<String> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let boot = boot.trim();
        Ok(match mount_number(root)? {
            Some(mount) => {
                let beginning: String = boot.chars().take(BOOT_CHARS).collect();
                format!("{beginning}.{mount:x}")
            }
            None => boot.to_owned(),
        })
    }

    /// Elsewhere the system's own boot id needs more than file calls. The age of a directory that the system recreates
    /// at its start identifies a boot instead.
    #[cfg(not(target_os = "linux"))]
    fn boot_id(&self, _root: &Handle) -> io::Result<String> {
        let made = rustix::fs::stat("/dev")?;
        Ok(format!(
            "dev-{}-{}",
            wide(made.st_ctime),
            wide(made.st_ctime_nsec)
        ))
    }

    fn make_dir(&self, at: &Handle, path: &Path) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(at, path, DIRECTORY_MODE)?)
    }

    fn write_at(&self, file: &Handle, bytes: &[u8], offset: u64) -> io::Result<usize> {
        Ok(retry_on_intr(|| rustix::io::pwrite(file, bytes, offset))?)
    }

    fn truncate(&self, file: &Handle, len: u64) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::ftruncate(file, len))?)
    }

    fn rename_new(&self, from: &Handle, old: &Path, to: &Handle, new: &Path) -> io::Result<()> {
        match rustix::fs::renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
            // Some network and user-space file systems know no flags. The names given here are ours to choose, so only
            // somebody who harms himself can take the name between the look and the rename.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                match rustix::fs::statat(to, new, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(_) => Err(Errno::EXIST.into()),
                    Err(Errno::NOENT) => Ok(rustix::fs::renameat(from, old, to, new)?),
                    Err(error) => Err(error.into()),
                }
            }
            result => Ok(result?),
        }
    }

    fn rename_over(&self, dir: &Handle, old: &Path, new: &Path) -> io::Result<()> {
        Ok(rustix::fs::renameat(dir, old, dir, new)?)
    }

    fn remove(&self, dir: &Handle, name: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(dir, name, AtFlags::empty())?)
    }

    #[cfg(target_os = "linux")]
    fn sync_data(&self, file: &Handle) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::fdatasync(file))?)
    }

    /// On Apple systems a plain fsync leaves the bytes in the drive's cache; std makes the call that flushes it.
    #[cfg(not(target_os = "linux"))]
    fn sync_data(&self, file: &Handle) -> io::Result<()> {
        std::fs::File::from(file.try_clone()?).sync_all()
    }

    #[cfg(target_os = "linux")]
    fn sync_dir(&self, dir: &Handle) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::fsync(dir))?)
    }

    #[cfg(not(target_os = "linux"))]
    fn sync_dir(&self, dir: &Handle) -> io::Result<()> {
        std::fs::File::from(dir.try_clone()?).sync_all()
    }

    #[cfg(target_os = "linux")]
    fn sync_file_system(&self, on: &Handle) -> io::Result<bool> {
        retry_on_intr(|| rustix::fs::syncfs(on))?;
        Ok(true)
    }

    #[cfg(not(target_os = "linux"))]
    fn sync_file_system(&self, _on: &Handle) -> io::Result<bool> {
        Ok(false)
    }
}

/// May cross mounts: an agent's directory can be a bind mount of its own.
#[cfg(target_os = "linux")]
fn open_beneath(at: &Handle, path: &Path, flags: OFlags) -> io::Result<Handle> {
    use rustix::fs::ResolveFlags;
    // A magic link is a link too.
    const RESOLVE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);
    match retry_on_intr(|| rustix::fs::openat2(at, path, flags.union(OURS), Mode::empty(), RESOLVE))
    {
        // An old kernel, or a sandbox that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => open_by_component(at, path, flags),
        result => Ok(result?),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_beneath(at: &Handle, path: &Path, flags: OFlags) -> io::Result<Handle> {
    open_by_component(at, path, flags)
}

/// Opens one component after the other, never through a symbolic link and never `..`.
fn open_by_component(at: &Handle, path: &Path, flags: OFlags) -> io::Result<Handle> {
    let mut reached: Option<Handle> = None;
    let mut components = path.components().peekable();
    while let Some(component) = components.next() {
        let name = match component {
            Component::Normal(name) => name,
            Component::CurDir => continue,
            Component::Prefix(_) | Component::RootDir | Component::ParentDir => {
                return Err(Errno::XDEV.into());
            }
        };
        let flags = if components.peek().is_some() {
            OFlags::DIRECTORY
        } else {
            flags
        };
        let from = reached.as_ref().unwrap_or(at);
        reached = Some(retry_on_intr(|| {
            rustix::fs::openat(from, name, flags.union(OURS), Mode::empty())
        })?);
    }
    reached.ok_or_else(|| Errno::NOENT.into())
}

fn stat(stat: &rustix::fs::Stat) -> Stat {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => FileKind::Special,
    };
    Stat {
        kind,
        dev: wide(stat.st_dev).cast_unsigned(),
        ino: stat.st_ino,
        uid: stat.st_uid,
        links: wide(stat.st_nlink).cast_unsigned(),
        size: wide(stat.st_size).cast_unsigned(),
        mtime_ns: wide(stat.st_mtime)
            .saturating_mul(1_000_000_000)
            .saturating_add(wide(stat.st_mtime_nsec)),
        ctime_ns: wide(stat.st_ctime)
            .saturating_mul(1_000_000_000)
            .saturating_add(wide(stat.st_ctime_nsec)),
    }
}

/// Widens a number whose type differs between systems.
fn wide(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// The characters of a boot id that are kept beside a mount: 14 of its 32 digits.
#[cfg(target_os = "linux")]
const BOOT_CHARS: usize = 16;

/// The file systems for which Linux makes a directory in `/sys/fs` at each mount of a device.
#[cfg(target_os = "linux")]
const NUMBERED: [&str; 3] = ["ext4", "xfs", "f2fs"];

/// Returns a number that no other mount of the file system has in this boot: that of its directory in `/sys`, which the
/// kernel gives to one directory only. It stays when the file system is mounted in more places or becomes read-only. `None`
/// for other file systems, and where `/sys` is not visible.
#[cfg(target_os = "linux")]
fn mount_number(root: &Handle) -> io::Result<Option<u64>> {
    let device = rustix::fs::fstat(root)?.st_dev;
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let Ok(device) = std::fs::read_link(format!("/sys/dev/block/{major}:{minor}")) else {
        return Ok(None);
    };
    Ok(NUMBERED.iter().find_map(|kind| {
        let directory = Path::new("/sys/fs").join(kind).join(device.file_name()?);
        Some(rustix::fs::stat(&directory).ok()?.st_ino)
    }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Both ways to open must refuse the same paths, whatever the kernel of the test machine knows.
    #[test]
    fn no_way_to_open_leaves_the_tree_or_follows_a_link() {
        let root = tempfile::tempdir().expect("a directory");
        let inside = root.path().join("inside");
        std::fs::create_dir_all(inside.join("deep")).expect("directories");
        std::fs::write(root.path().join("secret"), "x").expect("a file");
        std::fs::write(inside.join("deep/file"), "x").expect("a file");
        symlink(root.path().join("secret"), inside.join("link")).expect("a link");
        symlink(inside.join("deep"), inside.join("door")).expect("a link");
        let at = Os.open_root(&inside).expect("the root");
        let flags = OFlags::NONBLOCK;
        for open in [open_beneath, open_by_component] {
            assert!(open(&at, Path::new("deep/file"), flags).is_ok());
            for path in [
                "../secret",
                "link",
                "door/file",
                "deep/../../secret",
                "/etc/passwd",
                "nothing",
                "..",
                "/",
                "//deep/file",
                "/proc/self/root/etc/passwd",
            ] {
                assert!(
                    open(&at, Path::new(path), flags).is_err(),
                    "{path} was opened"
                );
            }
        }
    }

    #[test]
    fn no_way_to_open_is_led_out_by_a_directory_that_becomes_a_link_meanwhile() {
        let root = tempfile::tempdir().expect("a directory");
        let path = |name: &str| root.path().join(name);
        std::fs::create_dir_all(path("inside/deep")).expect("directories");
        std::fs::create_dir(path("outside")).expect("a directory");
        std::fs::write(path("inside/deep/file"), "right").expect("a file");
        std::fs::write(path("outside/file"), "canary").expect("a file");
        symlink(path("outside"), path("inside/link")).expect("a link");
        let at = Os.open_root(&path("inside")).expect("the root");
        let names = ["deep", "aside", "link"].map(|name| path("inside").join(name));
        let [deep, aside, link] = &names;
        let rename_all = || {
            for (from, to) in [(deep, aside), (link, deep), (deep, link), (aside, deep)] {
                std::fs::rename(from, to).expect("only we rename here");
            }
        };
        let (over, is_over) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // A failed assertion drops the other end, and the renaming stops.
                while is_over.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                    rename_all();
                    // If every open meets a rename, the kernel refuses them all and nothing is tested.
                    std::thread::yield_now();
                }
            });
            let over = over;
            for open in [open_beneath, open_by_component] {
                let (mut opened, mut tries) = (0, 0);
                while tries < 10_000 || (opened == 0 && tries < 1_000_000) {
                    tries += 1;
                    let Ok(file) = open(&at, Path::new("deep/file"), OFlags::RDONLY) else {
                        continue;
                    };
                    let mut bytes = [0; 8];
                    let read = Os.read_at(&file, &mut bytes, 0).expect("bytes");
                    assert_eq!(&bytes[..read], b"right");
                    opened += 1;
                }
                assert!(opened > 0, "nothing was opened");
            }
            drop(over);
        });
    }

    #[test]
    fn what_cannot_be_synced_is_an_error_and_the_boot_is_the_kernels() {
        let (pipe, _writer) = std::io::pipe().expect("a pipe");
        let pipe = Handle::from(pipe);
        assert!(Os.sync_data(&pipe).is_err() && Os.sync_dir(&pipe).is_err());
        let path = rustix::fs::openat(CWD, "/", OFlags::PATH, Mode::empty()).expect("a path");
        assert!(Os.sync_file_system(&path).is_err());
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot");
        let root = Os.open_root(Path::new("/proc")).expect("the root");
        let named = Os.boot_id(&root).expect("a boot");
        assert_eq!(named, boot.trim_end(), "no mount of it is numbered");
    }

    #[test]
    fn rename_new_never_replaces() {
        let root = tempfile::tempdir().expect("a directory");
        let at = Os.open_root(root.path()).expect("the root");
        std::fs::write(root.path().join("a"), "a").expect("a file");
        std::fs::write(root.path().join("b"), "b").expect("a file");
        let refused = Os
            .rename_new(&at, Path::new("a"), &at, Path::new("b"))
            .expect_err("b is taken");
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(root.path().join("b")).expect("b"), b"b");
    }

    #[test]
    fn the_lock_is_held_by_one_handle() {
        let root = tempfile::tempdir().expect("a directory");
        let at = Os.open_root(root.path()).expect("the root");
        let first = Os
            .open(&at, Path::new("lock"), OpenMode::New)
            .expect("a file");
        let second = Os
            .open(&at, Path::new("lock"), OpenMode::Write)
            .expect("the file");
        assert!(Os.lock(&first).expect("an answer"));
        assert!(!Os.lock(&second).expect("an answer"));
        drop(first);
        assert!(Os.lock(&second).expect("an answer"));
    }
}
