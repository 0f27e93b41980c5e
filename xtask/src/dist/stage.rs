//! The folder from which every package is made: stripped programs, their generated pages and completions, licences.

use std::path::{Path, PathBuf};
use std::process::Command;

use settled_tests::repository;

use super::platform::Platform;
use super::{copy, ran, write};

/// The packed programs.
pub(super) use settled_tests::debian::PROGRAMS;

/// The workspace packages that contain them.
pub(super) const PACKAGES: [&str; 6] = [
    "settled",
    "settled-host",
    "settled-mcp",
    "settled-page",
    "settled-watch",
    "validate-message-cli",
];

/// The files ready for packing.
pub(super) struct Stage {
    pub(super) platform: Platform,
    /// `bin`, `man`, `completions` and the licences.
    pub(super) root: PathBuf,
    /// The directory for packages in progress.
    pub(super) work: PathBuf,
    /// The directory for finished packages.
    pub(super) out: PathBuf,
    /// The compression level: 0 stores, 9 compresses best.
    pub(super) level: &'static str,
}

impl Stage {
    /// Fills the folder from scratch. The programs have to run here, because they print their pages and completions.
    pub(super) fn make(
        programs: &Path,
        platform: Platform,
        out: PathBuf,
        level: &'static str,
    ) -> Result<Self, String> {
        let work = out.join("work");
        if work.exists() {
            // Otherwise files of removed programs would be packed too.
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

    /// Returns the licences, for packages with a place for them.
    pub(super) fn licences(&self) -> [PathBuf; 3] {
        ["LICENSE-MIT", "LICENSE-APACHE", "LICENSES-THIRD-PARTY.txt"]
            .map(|name| self.root.join(name))
    }
}
