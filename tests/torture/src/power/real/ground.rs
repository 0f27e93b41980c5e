//! Mounts that leave no trace: a mount namespace for one thread and those it starts, gone with the
//! last of them; file systems made and mounted over loop devices that free themselves.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::mount::{MountPropagationFlags, UnmountFlags};
use rustix::thread::UnshareFlags;

use super::image::Image;
use crate::power::run_to_end;

/// A real file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// ext4 with its journal.
    Ext4,
    /// xfs.
    Xfs,
    /// btrfs.
    Btrfs,
}

impl FileSystem {
    /// Its name as the kernel knows it.
    pub fn name(self) -> &'static str {
        match self {
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
            FileSystem::Btrfs => "btrfs",
        }
    }

    /// The smallest size it is content with, in MiB.
    fn mib(self) -> u64 {
        match self {
            FileSystem::Ext4 => 24,
            FileSystem::Xfs => 300,
            FileSystem::Btrfs => 128,
        }
    }

    /// The number of states of one disk that may be mounted at a time; btrfs knows its disks by a number they share.
    pub(crate) fn at_a_time(self) -> usize {
        match self {
            FileSystem::Ext4 | FileSystem::Xfs => 4,
            FileSystem::Btrfs => 1,
        }
    }

    /// The offset of the block whose tearing no file system survives: disks write it whole.
    pub(crate) fn superblock(self) -> u64 {
        match self {
            FileSystem::Ext4 | FileSystem::Xfs => 0,
            FileSystem::Btrfs => 64 * 1024,
        }
    }

    /// Says which program is missing, and where Debian has it.
    pub(crate) fn lacks(self) -> Option<String> {
        let package = match self {
            FileSystem::Ext4 => "e2fsprogs",
            FileSystem::Xfs => "xfsprogs",
            FileSystem::Btrfs => "btrfs-progs",
        };
        let program = format!("mkfs.{}", self.name());
        let asked = Command::new(&program)
            .arg("-V")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        asked
            .err()
            .map(|error| format!("{program}: {error} (Debian: apt-get install {package})"))
    }

    fn make(self, path: &Path) -> io::Result<()> {
        let mut command = match self {
            FileSystem::Ext4 => Command::new("mkfs.ext4"),
            FileSystem::Xfs => Command::new("mkfs.xfs"),
            FileSystem::Btrfs => Command::new("mkfs.btrfs"),
        };
        match self {
            // The tables are made at once, not by a thread of the kernel in the middle of the run.
            FileSystem::Ext4 => {
                command.args([
                    "-q",
                    "-F",
                    "-b",
                    "4096",
                    "-E",
                    "lazy_itable_init=0,lazy_journal_init=0",
                ]);
                command.args(["-J", "size=4"])
            }
            FileSystem::Xfs => command.args(["-q", "-f"]),
            FileSystem::Btrfs => command.args(["-q", "-f", "-m", "single", "-d", "single"]),
        };
        run_to_end(command.arg(path))
    }

    /// An empty disk with this file system.
    pub(crate) fn fresh(self, scratch: &Path) -> io::Result<Image> {
        let path = scratch.join(format!("fresh.{}", self.name()));
        std::fs::File::create(&path)?.set_len(self.mib() * 1024 * 1024)?;
        self.make(&path)?;
        let image = Image::load(&path);
        std::fs::remove_file(path)?;
        image
    }

    /// Mounts what a file holds; the loop device under it goes with the mount.
    pub(crate) fn mount(self, file: &Path, at: &Path) -> io::Result<Mounted> {
        std::fs::create_dir_all(at)?;
        let options = match self {
            FileSystem::Ext4 | FileSystem::Btrfs => "loop,noatime",
            // Several states of one disk are mounted at a time.
            FileSystem::Xfs => "loop,noatime,nouuid",
        };
        run_to_end(
            Command::new("mount")
                .args(["-t", self.name(), "-o", options])
                .arg(file)
                .arg(at),
        )?;
        Ok(Mounted(at.to_owned()))
    }
}

/// A mount at this path; unmounted with the value.
pub(crate) struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        if rustix::mount::unmount(&self.0, UnmountFlags::empty()).is_err() {
            // Somebody still has a file open, after a panic: it goes when that one does.
            let _ = rustix::mount::unmount(&self.0, UnmountFlags::DETACH);
        }
    }
}

/// Gives this thread, and all that come from it, mounts of its own.
#[expect(
    deprecated,
    reason = "what can go wrong is sharing descriptors; only mounts are parted here"
)]
pub(crate) fn part_mounts() -> io::Result<()> {
    rustix::thread::unshare(UnshareFlags::NEWNS)?;
    Ok(rustix::mount::mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?)
}

/// Another boot of the kernel, as far as those see who share this thread's mounts.
pub(crate) struct Boots(PathBuf);

impl Boots {
    /// Puts a file of ours over the kernel's word.
    pub(crate) fn begin(file: PathBuf) -> io::Result<Boots> {
        std::fs::write(&file, "")?;
        rustix::mount::mount_bind(&file, "/proc/sys/kernel/random/boot_id")?;
        Ok(Boots(file))
    }

    /// Begins boot number `n`.
    pub(crate) fn boot(&self, n: u32) -> io::Result<()> {
        std::fs::write(&self.0, format!("{n:08x}-0b00-4000-8000-0123456789ab\n"))
    }
}
