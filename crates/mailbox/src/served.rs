//! Records what `settled diff` printed for a reviewer: a receipt in the reviewer's own archive for each request. A
//! command of the reviewer's user wrote it, and it proves no more than that.

use std::path::{Path, PathBuf};
use std::{fs, io};

use git::changes::FileDiff;
use git::{GitError, Repository};
use message_schema::id::{AgentName, CommitSha, DiffDigest, MessageId, RepoPath};
use message_schema::line::escaped;
use serde::{Deserialize, Serialize};

use crate::compose::ask::Ask;
use crate::receipts::Receipts;

/// A change in the reviewer's own checkout.
#[derive(Debug)]
pub struct OwnChange {
    /// The base commit.
    pub base: String,
    /// The commit under review.
    pub head: String,
    /// The digest, equal to the request's.
    pub digest: DiffDigest,
    /// Each file's part of the diff.
    pub parts: Vec<FileDiff>,
}

/// One file of a change, for JSON output.
#[derive(Debug, Serialize)]
pub struct ServedFile<'a> {
    /// The file.
    pub path: &'a RepoPath,
    /// True if its diff was printed before.
    pub served: bool,
    /// True if its diff shows the changed content.
    pub has_content: bool,
    /// The diff, if the caller wants it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

impl<'a> ServedFile<'a> {
    /// The file of this part, without its diff.
    pub fn of(part: &'a FileDiff, known: Option<&Served>) -> Self {
        Self {
            path: &part.path,
            served: known.is_some_and(|known| known.files.contains(&part.path)),
            has_content: part.has_content,
            diff: None,
        }
    }

    /// The file of this part with its diff.
    pub fn with_diff(part: &'a FileDiff, known: Option<&Served>) -> Self {
        Self {
            diff: Some(String::from_utf8_lossy(&part.text).into_owned()),
            ..Self::of(part, known)
        }
    }

    /// The file and its state on one line.
    pub fn line(&self) -> String {
        let word = match (self.has_content, self.served) {
            (false, _) => "binary",
            (true, true) => "served",
            (true, false) => "-",
        };
        format!("{word:8}{}\n", escaped(self.path.as_str()))
    }
}

/// The reason the diff of a request cannot be printed.
#[derive(Debug, thiserror::Error)]
pub enum NoDiff {
    /// The request does not describe the change.
    #[error(
        "the request names no diff; read the change yourself and list the files in `examined.declared`"
    )]
    NotSaid,
    /// The repository does not have a commit.
    #[error("{commit} is not in the repository of {}", directory.display())]
    Absent {
        /// The commit.
        commit: String,
        /// The directory that was searched.
        directory: PathBuf,
    },
    /// The change here differs from the one in the request.
    #[error("the change here has the digest {found}, but the request names {asked}")]
    Other {
        /// The request's digest.
        asked: DiffDigest,
        /// The digest here.
        found: DiffDigest,
    },
    /// The changed files are not those that the request lists, which decide whether a person has to approve.
    #[error(
        "the {found} files that differ here are not the {listed} that the request lists in `changed_files`"
    )]
    OtherFiles {
        /// The number of files in the request.
        listed: usize,
        /// The number of changed files here.
        found: usize,
    },
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// The change under review, from the repository in this directory.
pub fn change(ask: &Ask, directory: &Path) -> Result<OwnChange, NoDiff> {
    let said = ask.brief.change.as_ref();
    let digest = said.and_then(|change| change.diff_digest.clone());
    let base = said.and_then(|change| change.base_sha.as_ref());
    let (Some(asked), Some(base), Some(head)) = (digest, base, &ask.brief.head) else {
        return Err(NoDiff::NotSaid);
    };
    let repository = Repository::at(directory);
    let find = |commit: &CommitSha| -> Result<String, NoDiff> {
        repository.resolve(commit.as_str())?.ok_or(NoDiff::Absent {
            commit: commit.to_string(),
            directory: directory.to_owned(),
        })
    };
    let (base, head) = (find(base)?, find(head)?);
    let found = repository.changes(&base, &head)?;
    if found.digest != asked {
        let found = found.digest;
        return Err(NoDiff::Other { asked, found });
    }
    let (count, first) = said.map_or((0, &[][..]), |change| {
        (change.count, &*change.changed_files)
    });
    if count > 0 && (count != found.files.len() || !found.files.starts_with(first)) {
        return Err(NoDiff::OtherFiles {
            listed: count,
            found: found.files.len(),
        });
    }
    let parts = repository.diff(&base, &head)?;
    Ok(OwnChange {
        base,
        head,
        digest: asked,
        parts,
    })
}

const PREFIX: &str = ".served-";

/// The printed files of one diff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// The digest of the diff, computed in the reviewer's own checkout.
    pub diff_digest: DiffDigest,
    /// The files whose diff was printed in full, sorted.
    pub files: Vec<RepoPath>,
}

/// The files printed for this request; none if the receipt cannot be read.
pub fn read(root: &Path, me: &AgentName, request: &MessageId) -> Option<Served> {
    let path = Receipts::of(root, me, PREFIX).path(request);
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Adds these files to the receipt, or replaces it if it is for another diff, and removes old receipts.
pub fn note(root: &Path, me: &AgentName, request: &MessageId, served: Served) -> io::Result<()> {
    let mut served = served;
    if let Some(known) = read(root, me, request)
        && known.diff_digest == served.diff_digest
    {
        served.files.extend(known.files);
    }
    served.files.sort();
    served.files.dedup();
    let receipts = Receipts::of(root, me, PREFIX);
    receipts.kept();
    receipts.write(request, &served)
}
