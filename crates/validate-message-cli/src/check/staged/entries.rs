//! The entries of git's index, by path, with mode and object id.

use std::collections::BTreeMap;
use std::io;
use std::process::{Command, Stdio};

/// The index entry at a path.
pub(crate) struct IndexEntry {
    pub(crate) is_file: bool,
    pub(crate) is_symlink: bool,
    /// True if the next commit removes it.
    pub(crate) is_removed: bool,
    /// The object id of the blob.
    pub(crate) id: String,
}

impl IndexEntry {
    fn new(mode: &str, id: &str) -> Self {
        Self {
            is_file: mode.starts_with("100"),
            is_symlink: mode == "120000",
            is_removed: mode == "000000",
            id: id.to_owned(),
        }
    }
}

/// Lists the files that the next commit adds, changes or removes, in git's order.
pub(super) fn changed() -> io::Result<Vec<(String, IndexEntry)>> {
    // Raw output contains the ids: asked for by id, no file name can be mistaken for anything else.
    let listed = git(&[
        "diff",
        "--cached",
        "--raw",
        "-z",
        "--no-abbrev",
        "--no-renames",
        "--no-ext-diff",
        "--diff-filter=ACDMRT",
    ])?;
    // `:<old mode> <mode> <old id> <id> <status>`, then the path, each ended by a NUL.
    let words: Vec<&[u8]> = listed.split(|byte| *byte == 0).collect();
    let entry = |pair: &[&[u8]]| {
        let [about, path] = pair else { return None };
        let about = String::from_utf8_lossy(about);
        let mut about = about.split(' ').skip(1);
        let (mode, id) = (about.next()?, about.nth(1)?);
        Some((
            String::from_utf8_lossy(path).into_owned(),
            IndexEntry::new(mode, id),
        ))
    };
    Ok(words.chunks_exact(2).filter_map(entry).collect())
}

/// Lists the whole index below a directory named `packets`.
pub(super) fn packets() -> io::Result<BTreeMap<String, IndexEntry>> {
    listed(&[":(top,glob)**/packets/**", ":(top)packets"])
}

/// Lists the whole index below a directory of an agent.
pub(super) fn of_agents() -> io::Result<BTreeMap<String, IndexEntry>> {
    listed(&[":(top,glob)**/agents/*/*/**"])
}

/// Lists the index entries that match the patterns.
fn listed(patterns: &[&str]) -> io::Result<BTreeMap<String, IndexEntry>> {
    let ask = ["ls-files", "--stage", "-z", "--full-name", "--"];
    let listed = git(&[&ask, patterns].concat())?;
    // `<mode> <id> <stage>`, a tab, the path, ended by a NUL.
    let entry = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        let (about, path) = line.split_once('\t')?;
        let mut about = about.split(' ');
        Some((
            path.to_owned(),
            IndexEntry::new(about.next()?, about.next()?),
        ))
    };
    Ok(listed.split(|byte| *byte == 0).filter_map(entry).collect())
}

/// Runs git and waits until it ends; the error holds its message.
pub(super) fn git(args: &[&str]) -> io::Result<Vec<u8>> {
    let output = command()
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| not_run(&error))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(
        said.lines().next().unwrap_or("git failed").to_owned(),
    ))
}

/// Returns a git command that reads patterns as written here, whatever the environment sets, and each object itself,
/// not what `git replace` shows in its place: the commit has the object.
pub(super) fn command() -> Command {
    let mut command = Command::new("git");
    command.arg("--no-replace-objects");
    for variable in ["LITERAL", "GLOB", "NOGLOB", "ICASE"] {
        command.env_remove(format!("GIT_{variable}_PATHSPECS"));
    }
    command
}

/// Adds to an error that git could not be run.
pub(super) fn not_run(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot run git: {error}"))
}
