//! The parts of a repository for a process that may read its history but not its settings: a config can hold tokens and
//! name programs.

use std::path::{Path, PathBuf};

use crate::repository::{GitError, Repository};

/// The paths from which git reads a repository's history, all absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// The top of the worktree.
    pub top: PathBuf,
    /// The directory shared by all its worktrees.
    pub common: PathBuf,
    /// The paths that hold the history: parts of the shared directory, and a linked worktree's own directory.
    pub parts: Vec<PathBuf>,
    /// Object directories elsewhere that the repository borrows from.
    pub borrowed: Vec<PathBuf>,
    /// A config that only says how the repository is stored.
    pub config: String,
}

/// The parts of the shared directory that hold history, not settings.
const HISTORY: [&str; 7] = [
    "HEAD",
    "index",
    "objects",
    "packed-refs",
    "refs",
    "reftable",
    "shallow",
];

impl Repository {
    /// Returns the parts of the worktree's repository; `None` if the directory is in no worktree.
    pub fn store(&self) -> Result<Option<Store>, GitError> {
        let asked = [
            "rev-parse",
            "--path-format=absolute",
            "--show-toplevel",
            "--git-common-dir",
            "--git-dir",
        ];
        let output = self.run(&asked, None)?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let [top, common, own] = printed.lines().collect::<Vec<_>>()[..] else {
            return Ok(None);
        };
        let [top, common, own] = [top, common, own].map(PathBuf::from);
        let mut parts: Vec<PathBuf> = HISTORY.iter().map(|part| common.join(part)).collect();
        if own != common {
            parts.push(own);
        }
        Ok(Some(Store {
            borrowed: borrowed(&common),
            config: self.format(&common)?,
            top,
            common,
            parts,
        }))
    }

    /// The settings without which git would misread the repository's files.
    fn format(&self, common: &Path) -> Result<String, GitError> {
        let file = common.join("config");
        let file = file.to_string_lossy();
        let pattern = r"^(core\.repositoryformatversion|extensions\.)";
        let args = ["config", "--file", &file, "--null", "--get-regexp", pattern];
        let output = self.run(&args, None)?;
        let mut text = String::new();
        for setting in String::from_utf8_lossy(&output.stdout).split_terminator('\0') {
            let (name, value) = setting.split_once('\n').unwrap_or((setting, "true"));
            let (section, key) = name.split_once('.').unwrap_or(("core", name));
            let is_plain = |word: &str| word.chars().all(|it| it.is_ascii_alphanumeric());
            // Git's own settings all have plain names and values; any other setting does not belong in this config.
            if is_plain(key) && is_plain(value) {
                text.push_str(&format!("[{section}]\n\t{key} = {value}\n"));
            }
        }
        Ok(text)
    }
}

fn borrowed(common: &Path) -> Vec<PathBuf> {
    let objects = common.join("objects");
    let alternates = std::fs::read_to_string(objects.join("info/alternates")).unwrap_or_default();
    let named = alternates
        .lines()
        .filter(|line| !line.starts_with(['#', '"']));
    named.map(|line| objects.join(line)).collect()
}
