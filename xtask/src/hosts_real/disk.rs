//! A small disk for each broker and each host: a file system in an image, which can be filled and freed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{FallocateFlags, fallocate};

use super::HOSTS;
use super::player::broker_name;

/// The size of each disk in bytes.
const BYTES: u64 = 512 * 1024 * 1024;

/// The file that fills a disk.
const BALLAST: &str = ".ballast";

/// The disks; dropping the value unmounts them.
pub(super) struct Disks(Vec<PathBuf>);

impl Disks {
    /// Mounts a disk for each broker and host below `keep`.
    pub(super) fn mount(keep: &Path) -> Result<Disks, String> {
        let mut disks = Disks(Vec::new());
        for name in names() {
            let (image, place) = (keep.join(format!("{name}.img")), keep.join(&name));
            std::fs::create_dir_all(&place).map_err(|error| error.to_string())?;
            let made = File::create(&image).and_then(|file| file.set_len(BYTES));
            made.map_err(|error| format!("{}: {error}", image.display()))?;
            // No blocks are reserved for root, so a full disk is full for a daemon of root too.
            run(Command::new("mkfs.ext4")
                .args(["-q", "-F", "-m", "0", "-i", "8192"])
                .arg(&image))?;
            run(Command::new("mount")
                .args(["-o", "loop"])
                .arg(&image)
                .arg(&place))?;
            let _ = std::fs::remove_dir(place.join("lost+found"));
            disks.0.push(place);
        }
        Ok(disks)
    }

    /// Fills a disk to the last block.
    pub(super) fn fill(&self, player: usize) -> Result<(), String> {
        let path = self.0[player].join(BALLAST);
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let ballast = File::create(&path).map_err(failed)?;
        let mut at = 0;
        // Ever smaller steps follow what others allocate or free meanwhile.
        for step in [64 << 20, 4 << 20, 128 << 10, 4 << 10] {
            while fallocate(&ballast, FallocateFlags::empty(), at, step).is_ok() {
                at += step;
            }
        }
        Ok(())
    }

    /// Frees a full disk.
    pub(super) fn free(&self, player: usize) -> Result<(), String> {
        let path = self.0[player].join(BALLAST);
        std::fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        self.0.iter().for_each(|place| unmount(place));
    }
}

/// Unmounts the disks of an interrupted run.
pub(super) fn unmount_all(keep: &Path) {
    names().for_each(|name| unmount(&keep.join(name)));
}

fn names() -> impl Iterator<Item = String> {
    let brokers = (0..HOSTS.len()).map(broker_name);
    brokers.chain(HOSTS.map(str::to_owned))
}

fn unmount(place: &Path) {
    // A process that still uses it is in its own namespace and will end soon.
    let _ = run(Command::new("umount").arg("--lazy").arg(place));
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("{command:?}: {said}; it takes root, and e2fsprogs"))
}
