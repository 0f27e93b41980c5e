//! Describes the change of a request if its author works in a git repository: full commit ids, the digest of the diff,
//! the files. Keeps what the author gave.

use std::path::Path;

use git::{Changes, GitError, MergeBase, Repository};
use message_schema::body::CHANGED_FILES_MAX;
use message_schema::id::RepoPath;
use message_schema::line::escaped;
use message_schema::render_document;
use serde_json::{Value, json};

use super::message::Fields;

/// The default branches to compare a change with: the first that exists.
const BASES: [&str; 5] = [
    "refs/remotes/origin/HEAD",
    "refs/remotes/origin/main",
    "refs/remotes/origin/master",
    "refs/heads/main",
    "refs/heads/master",
];

/// The most characters of file names in a body; a longer list goes into a packet.
const NAMES_MAX: usize = 8_000;

/// The result of describing a change: what is too long for the body, and why something is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// The text of a packet with the files, if they are too many for the body.
    pub packet: Option<String>,
    /// The reason the request does not describe the change, if it does not.
    pub missing: Option<String>,
}

/// Adds to the body of a request what git knows about the change in this directory. Outside a repository it adds
/// nothing and reports nothing missing.
pub fn describe(body: &mut Fields, directory: &Path) -> Described {
    let repository = Repository::at(directory);
    let is_said = ["diff_digest", "changed_files", "changed_files_packet"]
        .iter()
        .any(|name| body.get(name).is_some());
    if is_said || !repository.exists() {
        return Described::default();
    }
    match change(body, &repository) {
        Ok(Ok(change)) => add(body, &change),
        Ok(Err(missing)) => Described {
            missing: Some(missing),
            ..Described::default()
        },
        Err(error) => Described {
            missing: Some(error.to_string()),
            ..Described::default()
        },
    }
}

/// A change with the full ids of its two commits.
struct Change {
    base: String,
    head: String,
    changes: Changes,
}

fn add(body: &mut Fields, change: &Change) -> Described {
    let Change {
        base,
        head,
        changes,
    } = change;
    body.put("base_sha", base.as_str());
    body.put("declared_head", head.as_str());
    body.put("diff_digest", changes.digest.as_str());
    let files = &changes.files;
    let characters: usize = files.iter().map(|file| file.as_str().len() + 4).sum();
    if files.len() <= CHANGED_FILES_MAX && characters <= NAMES_MAX {
        body.put("changed_files", names(files));
        return Described::default();
    }
    Described {
        packet: Some(render_document(&json!({ "changed_files": names(files) }))),
        missing: None,
    }
}

fn names(files: &[RepoPath]) -> Value {
    files.iter().map(RepoPath::as_str).collect()
}

/// Returns the change, or the reason git cannot determine it.
fn change(body: &mut Fields, repository: &Repository) -> Result<Result<Change, String>, GitError> {
    let said = |name: &str| body.get(name).and_then(Value::as_str);
    let (head, named) = match (said("declared_head"), said("branch")) {
        (Some(head), _) => (repository.resolve(head)?, format!("commit {head}")),
        (None, Some(branch)) => {
            let local = repository.resolve(&format!("refs/heads/{branch}"))?;
            let head = match local {
                Some(head) => Some(head),
                None => repository.resolve(&format!("refs/remotes/origin/{branch}"))?,
            };
            (head, format!("branch {branch}"))
        }
        (None, None) => return Ok(Err("the request names no branch".to_owned())),
    };
    let place = escaped(&repository.directory().display().to_string());
    let Some(head) = head else {
        let named = escaped(&named);
        return Ok(Err(format!("{named} is not in the repository of {place}")));
    };
    let (base, is_said) = match said("base_sha") {
        Some(base) => (repository.resolve(base)?, true),
        None => (first(repository, &BASES)?, false),
    };
    body.put("declared_head", head.as_str());
    if is_said {
        body.put_given("base_sha", base.as_deref());
    }
    let Some(base) = base else {
        let why = "cannot find the branch to merge into; name it with --base";
        return Ok(Err(why.to_owned()));
    };
    let base = match repository.merge_base(&base, &head)? {
        MergeBase::One(base) => base,
        MergeBase::None => {
            return Ok(Err(format!("{head} and {base} have no common commit")));
        }
        MergeBase::Several => {
            return Ok(Err(format!(
                "{head} and {base} have several merge bases; name one with --base"
            )));
        }
    };
    if base == head {
        return Ok(Err(format!(
            "{head} adds nothing to its base; name another with --base"
        )));
    }
    let changes = repository.changes(&base, &head)?;
    Ok(Ok(Change {
        base,
        head,
        changes,
    }))
}

fn first(repository: &Repository, names: &[&str]) -> Result<Option<String>, GitError> {
    for name in names {
        if let Some(commit) = repository.resolve(name)? {
            return Ok(Some(commit));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn without_a_base_the_branch_is_compared_with_the_first_known_one_to_merge_into() {
        let directory = tempfile::tempdir().expect("a directory");
        let git = |words: &[&str]| {
            let user = ["-c", "user.name=a", "-c", "user.email=a@b"];
            let mut git = Command::new("git");
            git.args(user).args(words).current_dir(directory.path());
            assert!(
                git.output().expect("git can be run").status.success(),
                "{words:?}"
            );
        };
        git(&["init", "--quiet", "--initial-branch=master"]);
        let commit = ["commit", "--quiet", "--allow-empty", "--message=a"];
        git(&commit);
        let repository = Repository::at(directory.path());
        let known = || first(&repository, &BASES).expect("git answers");
        let head = |name: &str| repository.resolve(name).expect("git answers");
        assert_eq!(known(), head("master"));
        assert!(known().is_some());
        git(&["checkout", "--quiet", "-b", "main"]);
        git(&commit);
        assert_eq!(known(), head("main"), "it comes first");
        assert_ne!(known(), head("master"));
    }
}
