//! Third-party programs that cargo builds: the one on the `PATH` if it has our version, else one installed into the
//! build folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::binaries;

/// A program that a test or a job runs, in a fixed version so that results are the same everywhere.
#[derive(Debug)]
pub struct Tool {
    /// Its name, which is also its package's.
    pub name: &'static str,
    /// Its version, three numbers.
    pub version: &'static str,
    /// The arguments that make it print its version.
    pub asked: &'static [&'static str],
    /// More options of `cargo install`, such as features to leave out.
    pub options: &'static [&'static str],
}

impl Tool {
    /// Finds the program, or installs it below this build folder; the first time needs the crates registry.
    pub fn program(&self, target: &Path) -> Result<PathBuf, String> {
        let root = target.join(format!("{}-{}", self.name, self.version));
        let kept = root.join("bin").join(self.name);
        for program in [PathBuf::from(self.name), kept.clone()] {
            if self.is_ours(&program) {
                return Ok(program);
            }
        }
        self.install(&root)?;
        Ok(kept)
    }

    /// True if the program runs and has our version: its last word is `1.2.3` or `v1.2.3`.
    fn is_ours(&self, program: &Path) -> bool {
        let said = Command::new(program).args(self.asked).output();
        said.is_ok_and(|said| {
            let said = String::from_utf8_lossy(&said.stdout).into_owned();
            let version = said.split_whitespace().last().unwrap_or_default();
            version.strip_prefix('v').unwrap_or(version) == self.version
        })
    }

    fn install(&self, root: &Path) -> Result<(), String> {
        let (name, version) = (self.name, self.version);
        let build = root.join("build");
        let output = binaries::cargo()
            // It runs for seconds, and optimising it would take minutes.
            .args(["install", name, "--locked", "--quiet", "--debug"])
            .args(["--version", version, "--root"])
            .arg(root)
            .args(self.options)
            // A separate build folder: our caller may hold the lock of the other.
            .env("CARGO_TARGET_DIR", &build)
            .env("CARGO_PROFILE_DEV_DEBUG", "false")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("cargo: {error}"))?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("cannot install {name} {version}: {why}"));
        }
        // Only the program is needed from here on.
        let _ = std::fs::remove_dir_all(build);
        Ok(())
    }
}
