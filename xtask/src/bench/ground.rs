//! The place of the measurements: a fresh journaled file system if one can be mounted, since earlier use makes an old
//! one slower.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Result;

/// The size of the image in MiB; it is sparse.
const IMAGE_MIB: u64 = 8_192;

/// A directory for measurements, unmounted at the end.
pub(crate) struct Ground {
    dir: PathBuf,
    image: Option<PathBuf>,
}

impl Ground {
    pub(crate) fn prepare(dir: Option<&Path>) -> Result<Self> {
        if let Some(dir) = dir {
            std::fs::create_dir_all(dir)?;
            return Ok(Self {
                dir: dir.to_owned(),
                image: None,
            });
        }
        let base = target().join("bench");
        std::fs::create_dir_all(&base)?;
        let (image, mount) = (base.join("ext4.img"), base.join("ext4"));
        std::fs::create_dir_all(&mount)?;
        quietly(Command::new("umount").arg(&mount));
        let file = std::fs::File::create(&image)?;
        file.set_len(IMAGE_MIB * 1024 * 1024)?;
        let made = quietly(
            Command::new("mkfs.ext4")
                .args(["-q", "-F", "-i", "4096"])
                .arg(&image),
        ) && quietly(
            Command::new("mount")
                .args(["-o", "loop"])
                .arg(&image)
                .arg(&mount),
        );
        if made {
            return Ok(Self {
                dir: mount,
                image: Some(image),
            });
        }
        std::fs::remove_file(&image)?;
        let dir = base.join("plain");
        std::fs::create_dir_all(&dir)?;
        Ok(Self { dir, image: None })
    }

    pub(crate) fn describe(&self) -> String {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let what = if self.image.is_some() {
            "a fresh journaled ext4 image"
        } else {
            "this directory's own file system"
        };
        format!("{what} ({}), {cores} cores", self.dir.display())
    }

    /// Empties the image: leftovers would take space from the next measurement.
    pub(crate) fn clear(&self) -> Result<()> {
        if self.image.is_none() {
            return Ok(());
        }
        for left in std::fs::read_dir(&self.dir)? {
            let left = left?;
            // A measurement leaves files and sockets besides directories.
            if !left.file_type()?.is_dir() {
                std::fs::remove_file(left.path())?;
            } else if left.file_name() != "lost+found" {
                std::fs::remove_dir_all(left.path())?;
            }
        }
        Ok(())
    }

    /// Makes an empty directory of that name.
    pub(crate) fn fresh(&self, name: &str) -> Result<PathBuf> {
        let dir = self.dir.join(name);
        if dir.exists() {
            std::fs::remove_dir_all(&dir)?;
        }
        std::fs::create_dir_all(&dir)?;
        // Earlier writes must not be flushed during a measurement.
        rustix::fs::sync();
        Ok(dir)
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if let Some(image) = &self.image {
            quietly(Command::new("umount").arg(&self.dir));
            let _ = std::fs::remove_file(image);
        }
    }
}

/// Returns the target directory of this binary.
pub(crate) fn target() -> PathBuf {
    let exe = std::env::current_exe().expect("this process has a program");
    exe.ancestors()
        .nth(2)
        .expect("target/release/xtask")
        .to_owned()
}

fn quietly(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
