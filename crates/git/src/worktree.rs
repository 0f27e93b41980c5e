//! A detached worktree for a commit, separate from those that people use. Makes it without running anything that the
//! repository names, and removes it so that the repository forgets this worktree and no other.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use message_schema::id::CommitSha;

use crate::repository::{GitError, Repository};

/// Options against settings of the caller that would leave files out of the tree, or fill in those of other
/// repositories.
const WHOLE: [&str; 4] = [
    "-c",
    "core.sparseCheckout=false",
    "-c",
    "submodule.recurse=false",
];

impl Repository {
    /// Returns the full name of a commit that may be abbreviated; `None` if the repository does not have it. Ignores a
    /// branch of that name.
    pub fn commit(&self, sha: &CommitSha) -> Result<Option<CommitSha>, GitError> {
        let whole = self.resolve(sha.as_str())?;
        let whole = whole.and_then(|whole| CommitSha::new(whole).ok());
        Ok(whole.filter(|whole| whole.same_commit(sha)))
    }

    /// Returns the directory's path below the top of its worktree; empty at the top, and in a bare repository.
    pub fn prefix(&self) -> Result<PathBuf, GitError> {
        let printed = self.run(&["rev-parse", "--show-prefix"], None)?.stdout;
        let printed = String::from_utf8_lossy(&printed);
        Ok(PathBuf::from(printed.trim_end_matches(['\n', '/'])))
    }

    /// True if the commit has a directory at that path.
    pub fn has_directory(&self, commit: &CommitSha, path: &Path) -> Result<bool, GitError> {
        let name = format!("{commit}:{}", path.display());
        let kind = self.run(&["cat-file", "-t", &name], None)?;
        Ok(kind.stdout.trim_ascii() == b"tree")
    }

    /// Checks the commit out at an unused path: all files as they are stored, without filters and without submodules.
    /// Fails if a partial clone lacks an object, since it never fetches.
    pub fn add_worktree(&self, tree: &Path, commit: &CommitSha) -> Result<(), GitError> {
        let path = tree.to_str().ok_or_else(|| GitError::Unusable {
            what: format!("the path {} is not UTF-8", tree.display()),
        })?;
        let add = ["worktree", "add", "--detach", path];
        let args = [&WHOLE[..], &add, &[commit.as_str()]].concat();
        let made = self.run_with(&args, None, &self.without_drivers()?)?;
        if made.status.success() {
            return Ok(());
        }
        let errors = String::from_utf8_lossy(&made.stderr);
        let last = errors.lines().rev().find(|line| !line.trim().is_empty());
        Err(GitError::Unusable {
            what: format!(
                "git cannot check out {commit}: {}",
                last.unwrap_or("it says no more").trim()
            ),
        })
    }

    /// Removes the files from this worktree that have one of these names or are in a directory with one, in upper or
    /// lower case. The index keeps them, so git does not see them as deleted.
    pub fn leave_out(&self, names: &[String]) -> Result<(), GitError> {
        if names.is_empty() {
            return Ok(());
        }
        let listed = self.succeeded(&["ls-files", "-z"], None, &[])?;
        let is_named = |part: &[u8]| {
            let mut names = names.iter();
            names.any(|name| part.eq_ignore_ascii_case(name.as_bytes()))
        };
        let files = listed.split(|byte| *byte == 0);
        let meant: Vec<&[u8]> = files
            .filter(|file| file.split(|byte| *byte == b'/').any(is_named))
            .collect();
        let mark = ["update-index", "-z", "--skip-worktree", "--stdin"];
        // Marking a file in the index runs filters too.
        self.succeeded(&mark, Some(&meant.join(&0)), &self.without_drivers()?)?;
        for file in meant {
            let file = self.directory().join(OsStr::from_bytes(file));
            // A submodule is an empty directory here.
            let is_submodule = file.symlink_metadata().is_ok_and(|found| found.is_dir());
            let removed = if is_submodule {
                std::fs::remove_dir(&file)
            } else {
                std::fs::remove_file(&file)
            };
            removed.map_err(|error| GitError::Unusable {
                what: format!("cannot leave out {}: {error}", file.display()),
            })?;
        }
        Ok(())
    }

    /// Runs git with these settings and returns its output; an error if git fails.
    fn succeeded(
        &self,
        args: &[&str],
        input: Option<&[u8]>,
        settings: &[(String, String)],
    ) -> Result<Vec<u8>, GitError> {
        let output = self.run_with(args, input, settings)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        Err(GitError::Unusable {
            what: format!("git {}: {}", args.join(" "), errors.trim()),
        })
    }

    /// Makes git forget the worktree at this path, if it knows it; other worktrees whose directories are missing stay
    /// known.
    pub fn forget_worktree(&self, tree: &Path) -> Result<(), GitError> {
        let path = tree.to_string_lossy();
        let removed = self.run(&["worktree", "remove", "--force", "--force", &path], None)?;
        if removed.status.success() {
            return Ok(());
        }
        // Its owner or git itself may have pruned it already.
        let listed = self.run(&["worktree", "list", "--porcelain"], None)?.stdout;
        let listed = String::from_utf8_lossy(&listed);
        let is_known = listed
            .lines()
            .any(|line| line.strip_prefix("worktree ") == Some(&path));
        if is_known {
            let what = format!("git cannot forget the worktree {}", tree.display());
            return Err(GitError::Unusable { what });
        }
        Ok(())
    }

    /// Settings that switch off every filter and hook that a config names; `core.hooksPath` does not cover these hooks.
    /// A filter without a command leaves a file as it is.
    fn without_drivers(&self) -> Result<Vec<(String, String)>, GitError> {
        let args = [
            "config",
            "--null",
            "--name-only",
            "--get-regexp",
            r"^(filter|hook)\.",
        ];
        let names = self.run(&args, None)?.stdout;
        let names = String::from_utf8_lossy(&names);
        // A name may contain dots; the part after the last one is the key.
        let sections = names
            .split('\0')
            .filter_map(|name| Some(name.rsplit_once('.')?.0));
        let sections: BTreeSet<&str> = sections.filter(|name| name.contains('.')).collect();
        let off = |section: &str| {
            let values: &[(&str, &str)] = if section.starts_with("filter.") {
                &[
                    ("smudge", ""),
                    ("clean", ""),
                    ("process", ""),
                    ("required", "false"),
                ]
            } else {
                &[("enabled", "false"), ("event", "")]
            };
            let named = |(key, value): &(&str, &str)| (format!("{section}.{key}"), (*value).into());
            values.iter().map(named).collect::<Vec<_>>()
        };
        Ok(sections.into_iter().flat_map(off).collect())
    }
}
