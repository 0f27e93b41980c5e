//! The place of the measurements: a fresh journaled file system if one can be mounted, since earlier use makes an old
//! one slower.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::figures::Result;

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
        let made = mount_fresh(&image, &mount)?;
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

    /// Recreates the image: leftovers would take space from the next measurement, and their removal would slow it.
    pub(crate) fn clear(&self) -> Result<()> {
        let Some(image) = &self.image else {
            return Ok(());
        };
        let is_fresh =
            quietly(Command::new("umount").arg(&self.dir)) && mount_fresh(image, &self.dir)?;
        is_fresh
            .then_some(())
            .ok_or_else(|| format!("{} is still in use", self.dir.display()).into())
    }

    /// Makes an empty directory of that name, or of one that begins with it. On the image it removes nothing: for half a
    /// minute ext4 looks at every file that was deleted before it makes another, and a measurement of ours would begin
    /// with that.
    pub(crate) fn fresh(&self, name: &str) -> Result<PathBuf> {
        let mut dir = self.dir.join(name);
        if self.image.is_none() && dir.exists() {
            std::fs::remove_dir_all(&dir)?;
        }
        let mut others = 2..;
        while dir.exists() {
            dir = self
                .dir
                .join(format!("{name}.{}", others.next().expect("endless")));
        }
        std::fs::create_dir_all(&dir)?;
        // Earlier writes must not be flushed during a measurement.
        rustix::fs::sync();
        Ok(dir)
    }
}

/// Makes a file system in the image and mounts it; false if that is not possible here.
fn mount_fresh(image: &Path, mount: &Path) -> Result<bool> {
    // The kernel frees a loop device after the unmount returns. `mount` would use it again for the same file, with blocks
    // of the old file system in its cache.
    if image.exists() {
        std::fs::remove_file(image)?;
    }
    std::fs::File::create_new(image)?.set_len(IMAGE_MIB * 1024 * 1024)?;
    let mut mkfs = Command::new("mkfs.ext4");
    let mut mounting = Command::new("mount");
    Ok(quietly(mkfs.args(["-q", "-F", "-i", "4096"]).arg(image))
        && quietly(mounting.args(["-o", "loop"]).arg(image).arg(mount)))
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
