//! Mounts that leave no trace: a mount namespace for one thread and its children, which disappears with the last of
//! them, and file systems on loop devices that free themselves.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::mount::{MountPropagationFlags, UnmountFlags};
use rustix::thread::UnshareFlags;

use super::image::Image;
use crate::power::run_to_end;

/// The longest wait for the kernel to free a loop device.
const LOOP_FREE_TIME: Duration = Duration::from_secs(5);

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
    /// Returns the kernel's name for it.
    pub fn name(self) -> &'static str {
        match self {
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
            FileSystem::Btrfs => "btrfs",
        }
    }

    /// Whether the daemon can tell one mount of it from another.
    pub(crate) fn numbers_mounts(self) -> bool {
        match self {
            FileSystem::Ext4 | FileSystem::Xfs => true,
            FileSystem::Btrfs => false,
        }
    }

    /// Its smallest size, in MiB.
    fn mib(self) -> u64 {
        match self {
            FileSystem::Ext4 => 24,
            FileSystem::Xfs => 300,
            FileSystem::Btrfs => 128,
        }
    }

    /// The number of states of one disk that can be mounted at once; btrfs identifies disks by a number that they
    /// share.
    pub(crate) fn at_a_time(self) -> usize {
        match self {
            FileSystem::Ext4 | FileSystem::Xfs => 4,
            FileSystem::Btrfs => 1,
        }
    }

    /// The offset of the block that no file system survives torn: disks write it atomically.
    pub(crate) fn superblock(self) -> u64 {
        match self {
            FileSystem::Ext4 | FileSystem::Xfs => 0,
            FileSystem::Btrfs => 64 * 1024,
        }
    }

    /// Returns the missing program and its Debian package, if any.
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
            // Write the tables now, not from a kernel thread in the middle of the run.
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

    /// Makes an empty disk with this file system.
    pub(crate) fn fresh(self, scratch: &Path) -> io::Result<Image> {
        let path = scratch.join(format!("fresh.{}", self.name()));
        std::fs::File::create(&path)?.set_len(self.mib() * 1024 * 1024)?;
        self.make(&path)?;
        let image = Image::load(&path);
        std::fs::remove_file(path)?;
        image
    }

    /// Mounts a disk image.
    pub(crate) fn mount(self, file: &Path, at: &Path) -> io::Result<Mounted> {
        std::fs::create_dir_all(at)?;
        let options = match self {
            FileSystem::Ext4 | FileSystem::Btrfs => "loop,noatime",
            // Several states of one disk are mounted at once.
            FileSystem::Xfs => "loop,noatime,nouuid",
        };
        run_to_end(
            Command::new("mount")
                .args(["-t", self.name(), "-o", options])
                .arg(file)
                .arg(at),
        )?;
        Ok(Mounted {
            file: file.to_owned(),
            at: at.to_owned(),
        })
    }
}

/// A mounted image; dropping the value unmounts it and waits until its loop device is free.
pub(crate) struct Mounted {
    file: PathBuf,
    at: PathBuf,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if rustix::mount::unmount(&self.at, UnmountFlags::empty()).is_err() {
            // After a panic somebody may still have a file open; a lazy unmount waits for that.
            let _ = rustix::mount::unmount(&self.at, UnmountFlags::DETACH);
            return;
        }
        // The kernel frees the loop device after the call, and has the image open until then: the file system beneath
        // would still be busy.
        let end = Instant::now() + LOOP_FREE_TIME;
        while is_attached(&self.file) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Returns whether a loop device has this file open.
fn is_attached(file: &Path) -> bool {
    let devices = std::fs::read_dir("/sys/block").into_iter().flatten();
    devices.flatten().any(|device| {
        let open = std::fs::read_to_string(device.path().join("loop/backing_file"));
        open.is_ok_and(|open| Path::new(open.trim_end()) == file)
    })
}

/// Gives this thread and its children their own mounts.
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

/// The boot id that this thread's mounts show.
pub(crate) struct Boots {
    file: PathBuf,
    kernels: String,
}

/// A boot in which a daemon recovers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Boot {
    /// That of the machine, in which the daemon was recorded: only the mount is another one.
    Recorded,
    /// One of ours.
    Number(u32),
}

impl Boots {
    /// Mounts a file of ours over the kernel's boot id.
    pub(crate) fn begin(file: PathBuf) -> io::Result<Boots> {
        const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
        let kernels = std::fs::read_to_string(BOOT_ID)?;
        std::fs::write(&file, "")?;
        rustix::mount::mount_bind(&file, BOOT_ID)?;
        Ok(Boots { file, kernels })
    }

    /// Begins a boot.
    pub(crate) fn boot(&self, boot: Boot) -> io::Result<()> {
        match boot {
            Boot::Recorded => std::fs::write(&self.file, &self.kernels),
            Boot::Number(n) => {
                std::fs::write(&self.file, format!("{n:08x}-0b00-4000-8000-0123456789ab\n"))
            }
        }
    }
}
