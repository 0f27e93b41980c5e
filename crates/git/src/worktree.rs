//! A detached worktree for a commit, separate from those that people use. Makes it without running anything that the
//! repository names, and removes it so that the repository forgets this worktree and no other.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use message_schema::id::CommitSha;

use crate::repository::{GitError, Repository};

/// The time limit for each part of a checkout that copies files: a large one takes minutes.
const COPYING: Duration = Duration::from_secs(600);

impl Repository {
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
    /// Fails if an object is missing, as in a partial clone, since it never fetches, or if an object has other bytes
    /// than its name says.
    ///
    /// The files come from a copy of the commit, in which neither the repository's config nor what
    /// somebody wrote over its objects counts. Only then does the worktree belong to this repository.
    pub fn add_worktree(&self, tree: &Path, commit: &CommitSha) -> Result<(), GitError> {
        let path = tree.to_str().ok_or_else(|| GitError::Unusable {
            what: format!("the path {} is not UTF-8", tree.display()),
        })?;
        let copy = copy_of(tree);
        let made = self.copy_commit(&copy, commit).and_then(|()| {
            let add = ["worktree", "add", "--no-checkout", "--detach", path];
            let add = [&add[..], &[commit.as_str()]].concat();
            self.succeeded(&add, None, &self.without_drivers()?)?;
            fill(tree, &copy, commit)
        });
        // The tree's own removal removes a copy that is left here.
        let _ = std::fs::remove_dir_all(&copy);
        made.map_err(|error| match error {
            GitError::Unusable { what } => GitError::Unusable {
                what: format!("git cannot check out {commit}: {}", last_line(&what)),
            },
            not_run @ GitError::NotRun { .. } => not_run,
        })
    }

    /// Copies a commit with its files, without its history, to a bare repository that this makes. Git computes the name
    /// of each object that it receives, so the copy holds what the commit names, or this call fails.
    pub(crate) fn copy_commit(&self, copy: &Path, commit: &CommitSha) -> Result<(), GitError> {
        let asked = ["rev-parse", "--show-object-format", "--git-common-dir"];
        let asked = [&asked[..1], &["--path-format=absolute"], &asked[1..]].concat();
        let known = self.succeeded(&asked, None, &[])?;
        let known = String::from_utf8_lossy(&known);
        let [format, source] = known.lines().collect::<Vec<_>>()[..] else {
            return Err(GitError::Unusable {
                what: format!(
                    "git does not say how {} is stored",
                    self.directory().display()
                ),
            });
        };
        let to = copy.to_string_lossy();
        let format = format!("--object-format={format}");
        let init = ["init", "--quiet", "--bare", "--template=", &format, &to];
        self.succeeded(&init, None, &[])?;
        let fetch = [
            "-c",
            "protocol.version=2",
            "-c",
            "protocol.file.allow=always",
            "-c",
            "maintenance.auto=false",
            "fetch",
            "--quiet",
            "--depth=1",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            // `rev-parse` above has already checked the repository's owner, with the settings of git's user.
            "--upload-pack=git -c 'safe.directory=*' upload-pack",
            source,
            commit.as_str(),
        ];
        let copy = Repository::at(copy).within(COPYING);
        copy.succeeded(&fetch, None, &[])?;
        Ok(())
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

    /// The call of git in this worktree that has a copy of a commit as its repository, and the copy's config alone.
    pub(crate) fn by_copy(&self, copy: &Path, args: &[&str]) -> Command {
        let mut git = self.command(args);
        git.env("GIT_DIR", copy)
            .env("GIT_WORK_TREE", self.directory())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env_remove("GIT_CONFIG_COUNT")
            .env_remove("GIT_CONFIG_PARAMETERS");
        git
    }

    /// Runs git with these settings and returns its output; an error if git fails.
    pub(crate) fn succeeded(
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
    pub(crate) fn without_drivers(&self) -> Result<Vec<(String, String)>, GitError> {
        let args = [
            "config",
            "--null",
            "--name-only",
            "--get-regexp",
            r"^(filter|hook)\.",
        ];
        let names = String::from_utf8(self.run(&args, None)?.stdout);
        let names = names.map_err(|_| GitError::Unusable {
            what: "the repository's config has a filter or hook whose name is not UTF-8".to_owned(),
        })?;
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

/// The place for the copy of a commit on its way to a worktree.
pub fn copy_of(tree: &Path) -> PathBuf {
    tree.with_extension("git")
}

/// Writes the files of a commit into an empty worktree, from a copy of the commit and by the copy's config alone.
fn fill(tree: &Path, copy: &Path, commit: &CommitSha) -> Result<(), GitError> {
    let tree = Repository::at(tree).within(COPYING);
    let asked = ["rev-parse", "--path-format=absolute", "--git-path", "index"];
    let index = tree.succeeded(&asked, None, &[])?;
    let mut git = tree.by_copy(copy, &["read-tree", "--reset", "-u", commit.as_str()]);
    git.env("GIT_INDEX_FILE", OsStr::from_bytes(index.trim_ascii_end()));
    let output = tree.finish(git, None)?;
    if output.status.success() {
        return Ok(());
    }
    let what = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(GitError::Unusable { what })
}

fn last_line(text: &str) -> &str {
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.unwrap_or("it says no more").trim()
}
