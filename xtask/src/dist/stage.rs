//! The folder that every package is made from: stripped programs, what they print of themselves, licences.

use std::path::{Path, PathBuf};
use std::process::Command;

use settled_tests::repository;

use super::platform::Platform;
use super::{copy, ran, write};

/// The programs that are packed.
pub(super) use settled_tests::debian::PROGRAMS;

/// The packages that hold them, by their names in the workspace.
pub(super) const PACKAGES: [&str; 6] = [
    "settled",
    "settled-host",
    "settled-mcp",
    "settled-page",
    "settled-watch",
    "validate-message-cli",
];

/// The files that are ready to be packed.
pub(super) struct Stage {
    pub(super) platform: Platform,
    /// `bin`, `man`, `completions` and the licences.
    pub(super) root: PathBuf,
    /// The directory in which packages are put together.
    pub(super) work: PathBuf,
    /// The directory for the packages.
    pub(super) out: PathBuf,
    /// The level of compression: 0 stores, 9 is small.
    pub(super) level: &'static str,
}

impl Stage {
    /// Fills the folder from scratch. The programs have to run here: they print their pages and completions.
    pub(super) fn make(
        programs: &Path,
        platform: Platform,
        out: PathBuf,
        level: &'static str,
    ) -> Result<Self, String> {
        let work = out.join("work");
        if work.exists() {
            // What is gone from the programs would be packed with the rest.
            std::fs::remove_dir_all(&work)
                .map_err(|error| format!("{}: {error}", work.display()))?;
        }
        let root = work.join("stage");
        for name in PROGRAMS {
            let program = root.join("bin").join(name);
            copy(&programs.join(name), &program)?;
            ran(Command::new("strip").arg(&program))?;
        }
        let settled = root.join("bin/settled");
        ran(Command::new(&settled).arg("man").arg(root.join("man")))?;
        for shell in ["bash", "fish", "zsh"] {
            let script = ran(Command::new(&settled).args(["completions", shell]))?;
            let name = format!("completions/settled.{shell}");
            write(root.join(name), script + "\n")?;
        }
        for name in ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md"] {
            copy(&repository().join(name), &root.join(name))?;
        }
        write(
            root.join("LICENSES-THIRD-PARTY.txt"),
            super::bom::licences(&platform)?,
        )?;
        Ok(Self {
            platform,
            root,
            work,
            out,
            level,
        })
    }

    /// The licences, for a package that has a place for them.
    pub(super) fn licences(&self) -> [PathBuf; 3] {
        ["LICENSE-MIT", "LICENSE-APACHE", "LICENSES-THIRD-PARTY.txt"]
            .map(|name| self.root.join(name))
    }
}
