//! Asks git whether two commits make the same change, each against its merge base with a branch. Only what git can show
//! counts as the same; every doubt has its own sentence.

use std::collections::BTreeMap;
use std::path::PathBuf;

use git::{Changes, GitError, MergeBase, Repository};
use message_schema::id::CommitSha;
use message_schema::line::escaped;
use spool::Digest;

/// A clone and the branch that both commits are to be merged into.
#[derive(Clone, Debug)]
pub struct Patches {
    /// The directory of the clone.
    pub directory: PathBuf,
    /// The branch, or any other name that git resolves to a commit.
    pub base: String,
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Both are the same commit; the commit in the question may be abbreviated.
    Itself,
    /// Both make the same change.
    Same {
        /// The patch id of both, from `git patch-id --stable`.
        patch_id: String,
    },
    /// They make different changes, or git cannot tell.
    Void {
        /// The reason.
        why: String,
        /// The words after `git` that fetch what was missing.
        fetch: Option<String>,
    },
}

/// The whole change of one commit.
struct CommitChange {
    patch_id: String,
    /// Each file's part, by the line with which git opens it.
    files: BTreeMap<Vec<u8>, Part>,
}

/// The change of one file.
struct Part {
    /// The digest of every line, blanks included, without its position in the file.
    lines: Digest,
    /// Git's object names of the content before and after; empty if only the mode changes.
    before: String,
    after: String,
}

impl Part {
    /// True if both add and remove the same lines and end in the same place: equal lines may have landed where they mean
    /// something else, which neither a patch id nor the lines show. If the content was the same before, it must be the
    /// same after. Otherwise git has to get the other's content when it carries this change over.
    fn is_same(&self, other: &Self, repository: &Repository) -> Result<bool, GitError> {
        if self.lines != other.lines {
            return Ok(false);
        }
        if self.before == other.before {
            return Ok(self.after == other.after);
        }
        repository.carries(&self.before, &self.after, &other.before, &other.after)
    }
}

/// The reason why a commit has no change to compare.
struct Missing {
    why: String,
    fetch: Option<String>,
}

impl Patches {
    fn repository(&self) -> Repository {
        Repository::at(&self.directory)
    }

    /// Compares the change of an approved commit with that of another.
    pub fn compare(&self, approved: &CommitSha, head: &CommitSha) -> Result<Comparison, GitError> {
        let base = self.base_commit()?;
        if let (Some(was), Some(is)) = (self.expand(approved)?, self.expand(head)?)
            && was == is
        {
            return Ok(Comparison::Itself);
        }
        let (was, is) = match (self.change(approved, &base)?, self.change(head, &base)?) {
            (Ok(was), Ok(is)) => (was, is),
            (Err(Missing { why, fetch }), _) | (_, Err(Missing { why, fetch })) => {
                return Ok(Comparison::Void { why, fetch });
            }
        };
        let repository = self.repository();
        let mut others = Vec::new();
        for file in names(&was, &is) {
            if !is_same(&was, &is, file, &repository)? {
                others.push(file);
            }
        }
        // A patch id ignores blanks; the files' parts do not.
        if was.patch_id == is.patch_id && others.is_empty() {
            return Ok(Comparison::Same {
                patch_id: is.patch_id,
            });
        }
        Ok(Comparison::Void {
            why: different(&others, approved, head),
            fetch: None,
        })
    }

    /// Tells why the change that a reviewer was shown, from `shown_from` on, is not what merging the approved commit
    /// brings; `None` if it is.
    pub fn hidden(
        &self,
        shown_from: &CommitSha,
        approved: &CommitSha,
    ) -> Result<Option<String>, GitError> {
        let repository = self.repository();
        let (Some(from), Some(commit)) = (self.expand(shown_from)?, self.expand(approved)?) else {
            let why = format!(
                "the change from {shown_from} to {approved}, which the request names, is not in the clone"
            );
            return Ok(Some(why));
        };
        let MergeBase::One(base) = repository.merge_base(&self.base_commit()?, &commit)? else {
            return Err(self.no_merge_base(approved));
        };
        if base == from {
            return Ok(None);
        }
        let (whole, shown) = (
            repository.changes(&base, &commit)?,
            repository.changes(&from, &commit)?,
        );
        Ok((whole.digest != shown.digest).then(|| {
            format!(
                "the request shows the change since {from} ({} files), but merging into {} brings the one since {base} ({} files)",
                shown.files.len(),
                escaped(&self.base),
                whole.files.len()
            )
        }))
    }

    /// Returns what a commit changes since it left the branch; `None` if the branch already has the commit, so that
    /// nothing shows what it changed. Fails if git cannot tell.
    pub fn changes(&self, head: &CommitSha) -> Result<Option<Changes>, GitError> {
        let (repository, base) = (self.repository(), self.base_commit()?);
        let Some(commit) = self.expand(head)? else {
            return Err(self.unusable(head.as_str()));
        };
        match repository.merge_base(&base, &commit)? {
            MergeBase::One(from) if from == commit => Ok(None),
            MergeBase::One(from) => repository.changes(&from, &commit).map(Some),
            MergeBase::None | MergeBase::Several => Err(self.no_merge_base(head)),
        }
    }

    fn no_merge_base(&self, commit: &CommitSha) -> GitError {
        let base = escaped(&self.base);
        GitError::Unusable {
            what: format!("{commit} and {base} have no single merge base"),
        }
    }

    fn base_commit(&self) -> Result<String, GitError> {
        self.repository()
            .branch(&self.base)?
            .ok_or_else(|| self.unusable(&self.base))
    }

    fn unusable(&self, name: &str) -> GitError {
        let directory = self.directory.display();
        GitError::Unusable {
            what: format!(
                "{} is not a commit of the repository in {directory}",
                escaped(name)
            ),
        }
    }

    fn expand(&self, commit: &CommitSha) -> Result<Option<String>, GitError> {
        let found = self.repository().commit(commit)?;
        Ok(found.map(|whole| whole.as_str().to_ascii_lowercase()))
    }

    /// The change of a commit since it left the branch.
    fn change(
        &self,
        commit: &CommitSha,
        base: &str,
    ) -> Result<Result<CommitChange, Missing>, GitError> {
        let repository = self.repository();
        let fetch = |what: &str| Some(format!("fetch {what}"));
        let Some(full) = self.expand(commit)? else {
            let several = if commit.is_whole() {
                ""
            } else {
                ", or several commits begin so"
            };
            let why =
                format!("{commit} is not in the clone{several}, so its change cannot be compared");
            return Ok(Err(Missing {
                why,
                fetch: fetch(&format!("origin {commit}")),
            }));
        };
        let before = match repository.merge_base(base, &full)? {
            MergeBase::One(before) => before,
            MergeBase::None => {
                let why = format!(
                    "{commit} and {} have no common commit in the clone",
                    escaped(&self.base)
                );
                return Ok(Err(Missing {
                    why,
                    fetch: fetch("--unshallow origin"),
                }));
            }
            MergeBase::Several => {
                let why = format!(
                    "{commit} and {} have several merge bases",
                    escaped(&self.base)
                );
                return Ok(Err(Missing { why, fetch: None }));
            }
        };
        let patch = repository.run(&[DIFF, &[&before, &full, "--"]].concat(), None)?;
        if !patch.status.success() {
            let why = format!("what {commit} changes cannot be read from the clone");
            return Ok(Err(Missing {
                why,
                fetch: fetch("--unshallow origin"),
            }));
        }
        let id = repository.run(&["patch-id", "--stable"], Some(&patch.stdout))?;
        let id = String::from_utf8_lossy(&id.stdout).into_owned();
        match id.split_whitespace().next() {
            Some(patch_id) => Ok(Ok(CommitChange {
                patch_id: patch_id.to_owned(),
                files: files(&patch.stdout),
            })),
            None => {
                let why = format!("{commit} changes nothing against {}", escaped(&self.base));
                Ok(Err(Missing { why, fetch: None }))
            }
        }
    }
}

/// Options for the whole change, whatever the caller's settings.
const DIFF: &[&str] = &[
    "diff-tree",
    "-p",
    "-r",
    "--full-index",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-relative",
    "--unified=3",
    "--inter-hunk-context=0",
    "--diff-algorithm=myers",
    "--no-indent-heuristic",
    "--submodule=short",
    // The commits' own `.gitmodules` can hide submodules.
    "--ignore-submodules=none",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

/// Each file's part of a patch. For a binary file the patch holds both object names, which count as lines.
fn files(patch: &[u8]) -> BTreeMap<Vec<u8>, Part> {
    let mut files = BTreeMap::new();
    let mut lines: Vec<u8> = Vec::new();
    let mut index: &[u8] = &[];
    let mut opened: Option<&[u8]> = None;
    let mut is_head = true;
    for line in patch.split_inclusive(|byte| *byte == b'\n') {
        // Within a hunk every line begins with a blank, `+`, `-` or `\`.
        if line.starts_with(b"diff --git ") {
            files.extend(opened.map(|name| (name.to_vec(), part(&lines, index))));
            lines.clear();
            (opened, index, is_head) = (Some(line), &[], true);
        } else if is_head && line.starts_with(b"index ") {
            index = line;
        } else if line.starts_with(b"@@ ") {
            is_head = false;
            lines.extend_from_slice(b"@@\n");
        } else {
            if is_head && line.starts_with(b"Binary files ") {
                lines.extend_from_slice(index);
            }
            lines.extend_from_slice(line);
        }
    }
    files.extend(opened.map(|name| (name.to_vec(), part(&lines, index))));
    files
}

/// One file's part, from its lines and git's index line, such as `1f3e..90ab 100644`.
fn part(lines: &[u8], index: &[u8]) -> Part {
    let index = String::from_utf8_lossy(index);
    let names = index
        .split_whitespace()
        .nth(1)
        .and_then(|names| names.split_once(".."));
    let (before, after) = names.unwrap_or_default();
    Part {
        lines: Digest::of(lines),
        before: before.into(),
        after: after.into(),
    }
}

/// The files that either commit changes.
fn names<'c>(was: &'c CommitChange, is: &'c CommitChange) -> impl Iterator<Item = &'c Vec<u8>> {
    was.files.keys().chain(
        is.files
            .keys()
            .filter(|file| !was.files.contains_key(*file)),
    )
}

fn is_same(
    was: &CommitChange,
    is: &CommitChange,
    file: &Vec<u8>,
    repository: &Repository,
) -> Result<bool, GitError> {
    match (was.files.get(file), is.files.get(file)) {
        (Some(was), Some(is)) => was.is_same(is, repository),
        (Some(_) | None, _) => Ok(false),
    }
}

/// Names the files whose changes differ: the first three, and the number of the others.
fn different(others: &[&Vec<u8>], approved: &CommitSha, head: &CommitSha) -> String {
    let names: Vec<String> = others
        .iter()
        .map(|opening| {
            let opening = String::from_utf8_lossy(opening);
            let name = opening.trim_end().trim_start_matches("diff --git ");
            escaped(name.split_once(" b/").map_or(name, |(_, name)| name))
        })
        .collect();
    let more = match names.len().saturating_sub(3) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown = names[..names.len().min(3)].join(", ");
    format!("{head} does not make the change of {approved}: they differ in {shown}{more}")
}
