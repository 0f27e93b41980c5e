//! The difference between two commits: the files, the digest over them (`docs/protocol.md`, section 11), and the
//! diff.

use std::collections::BTreeSet;

use message_schema::id::{DiffDigest, RepoPath};
use sha2::{Digest as _, Sha256};

use crate::repository::{GitError, Repository};

/// The difference between two commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// The digest over modes, object ids and paths.
    pub digest: DiffDigest,
    /// The changed files, sorted. A name with control characters or invalid UTF-8 is quoted the way git quotes it.
    pub files: Vec<RepoPath>,
    /// The changed files that are or were a link or a submodule.
    pub links: BTreeSet<RepoPath>,
}

/// One file's part of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    /// The file.
    pub path: RepoPath,
    /// Its part of the diff, from `diff --git` on.
    pub text: Vec<u8>,
    /// True if the diff shows the content. For a file that is binary, or that attributes call binary, git only says
    /// that it differs.
    pub has_content: bool,
}

/// Options for the raw form, whatever the caller's settings.
const RAW: [&str; 8] = [
    "diff-tree",
    "-r",
    "-z",
    "--no-renames",
    "--full-index",
    "--no-ext-diff",
    "--no-relative",
    // The commits' own `.gitmodules` can hide submodules.
    "--ignore-submodules=none",
];

/// Options for the diff that people see, the same on every machine.
const PATCH: [&str; 13] = [
    "diff-tree",
    "-p",
    "-r",
    "--no-renames",
    "--full-index",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-relative",
    "--ignore-submodules=none",
    "--submodule=short",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

impl Repository {
    /// Returns the difference between two commits, given by their full names.
    pub fn changes(&self, base: &str, head: &str) -> Result<Changes, GitError> {
        let raw = self.raw(base, head)?;
        let files = raw.iter().map(Entry::path);
        let links = raw.iter().filter(|entry| entry.is_link());
        Ok(Changes {
            digest: digest(&raw),
            links: links.map(Entry::path).collect::<Result<_, _>>()?,
            files: files
                .collect::<Result<BTreeSet<_>, _>>()?
                .into_iter()
                .collect(),
        })
    }

    /// Returns the diff of each file that differs between two commits, sorted by the bytes of the path.
    pub fn diff(&self, base: &str, head: &str) -> Result<Vec<FileDiff>, GitError> {
        let raw = self.raw(base, head)?;
        let patch = self.checked(&[&PATCH[..], &[base, head]].concat())?;
        let mut parts = parts(&patch).into_iter();
        let diffs = raw.iter().map(|entry| {
            // A file that becomes a link, for example, is printed as removed and as added.
            let count = if entry.status == b'T' { 2 } else { 1 };
            let of_file: Vec<&[u8]> = parts.by_ref().take(count).collect();
            if of_file.len() < count {
                return Err(unreadable(base, head));
            }
            Ok(FileDiff {
                path: entry.path()?,
                has_content: of_file.iter().all(|part| has_content(part)),
                text: of_file.concat(),
            })
        });
        let diffs = diffs.collect::<Result<_, _>>()?;
        match parts.next() {
            None => Ok(diffs),
            Some(_) => Err(unreadable(base, head)),
        }
    }

    /// True if the change of a file from `before` to `after`, carried over to `onto`, gives `result`, all four git's
    /// names of contents. Fails if git is older than 2.43, which cannot merge contents by their names.
    pub fn carries(
        &self,
        before: &str,
        after: &str,
        onto: &str,
        result: &str,
    ) -> Result<bool, GitError> {
        let merge = ["merge-file", "-p", "--object-id", onto, before, after];
        let merged = self.run(&merge, None)?;
        // Git's usage goes with this code; up to 127 are conflicts.
        if merged.status.code() == Some(129) {
            let what =
                "git 2.43 or newer is needed to compare a change with the same one on another base";
            return Err(GitError::Unusable { what: what.into() });
        }
        let is_clean = merged.status.success();
        Ok(is_clean && merged.stdout == self.checked(&["cat-file", "blob", result])?)
    }

    fn raw(&self, base: &str, head: &str) -> Result<Vec<Entry>, GitError> {
        let output = self.checked(&[&RAW[..], &[base, head]].concat())?;
        entries(&output).ok_or_else(|| unreadable(base, head))
    }

    /// Runs git and returns its output; fails if git fails.
    fn checked(&self, args: &[&str]) -> Result<Vec<u8>, GitError> {
        let output = self.run(args, None)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let what = format!(
            "git cannot tell what differs in {}: a commit or one of its files is missing",
            self.directory().display()
        );
        Err(GitError::Unusable { what })
    }
}

/// Splits a patch at its headings. Within a hunk every line begins with a blank, `+`, `-` or `\`.
fn parts(patch: &[u8]) -> Vec<&[u8]> {
    let mut starts = Vec::new();
    let mut at = 0;
    for line in patch.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b"diff --git ") {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([patch.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(start, end)| &patch[*start..end])
        .collect()
}

/// False if git only says that the binary files differ.
fn has_content(part: &[u8]) -> bool {
    !part
        .split(|byte| *byte == b'\n')
        .take_while(|line| !line.starts_with(b"@@ "))
        .any(|line| line.starts_with(b"Binary files "))
}

fn unreadable(base: &str, head: &str) -> GitError {
    GitError::Unusable {
        what: format!("cannot read the diff between {base} and {head}"),
    }
}

/// One file that differs: modes and object ids as git prints them, and the path.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    /// `<mode> <mode> <id> <id>`: before and after.
    before_and_after: Vec<u8>,
    status: u8,
    path: Vec<u8>,
}

/// Reads `:<mode> <mode> <id> <id> <status>`, NUL, path, NUL.
fn entries(raw: &[u8]) -> Option<Vec<Entry>> {
    let Some(raw) = raw.strip_suffix(b"\0") else {
        return raw.is_empty().then(Vec::new);
    };
    let parts: Vec<&[u8]> = raw.split(|byte| *byte == 0).collect();
    let pairs = parts.chunks(2).map(|pair| match pair {
        [head, path] => {
            let head = head.strip_prefix(b":")?;
            let at = head.iter().rposition(|byte| *byte == b' ')?;
            Some(Entry {
                before_and_after: head[..at].to_vec(),
                status: *head.get(at + 1)?,
                path: path.to_vec(),
            })
        }
        _ => None,
    });
    pairs.collect()
}

/// SHA-256 over `<mode> <mode> <id> <id> <path>`, NUL for each file, sorted as bytes.
fn digest(entries: &[Entry]) -> DiffDigest {
    let mut lines: Vec<Vec<u8>> = entries
        .iter()
        .map(|entry| [&entry.before_and_after[..], b" ", &entry.path, b"\0"].concat())
        .collect();
    lines.sort_unstable();
    let mut hasher = Sha256::new();
    lines.iter().for_each(|line| hasher.update(line));
    let hex = message_schema::hex::write(&hasher.finalize());
    DiffDigest::new(format!("sha256:{hex}")).expect("64 digits")
}

impl Entry {
    fn is_link(&self) -> bool {
        let modes = self.before_and_after.split(|byte| *byte == b' ').take(2);
        modes
            .into_iter()
            .any(|mode| matches!(mode, b"120000" | b"160000"))
    }

    fn path(&self) -> Result<RepoPath, GitError> {
        let plain = std::str::from_utf8(&self.path).map(RepoPath::new);
        match plain {
            Ok(Ok(path)) => Ok(path),
            Ok(Err(_)) | Err(_) => RepoPath::new(c_quoted(&self.path)).map_err(|error| {
                let what = format!("cannot name the path {}: {error}", c_quoted(&self.path));
                GitError::Unusable { what }
            }),
        }
    }
}

/// The path as git prints it if it is not plain: in double quotes, with odd bytes as `\ooo`.
fn c_quoted(path: &[u8]) -> String {
    let mut text = String::from("\"");
    for byte in path {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
            0x07..=0x0d => text.extend(['\\', char::from(b"abtnvfr"[usize::from(byte - 7)])]),
            0x20..=0x7e => text.push(char::from(*byte)),
            _ => text.push_str(&format!("\\{byte:03o}")),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_prints_is_read_whole_or_not_at_all() {
        let one = b":100644 100755 aa bb M\0a b\0".as_slice();
        let read = entries(one).expect("one entry");
        assert_eq!(read[0].before_and_after, b"100644 100755 aa bb");
        assert_eq!(read[0].path, b"a b");
        assert_eq!(entries(b""), Some(Vec::new()));
        for broken in [&one[..one.len() - 1], b"x\0".as_slice(), b"x\0y\0"] {
            assert_eq!(entries(broken), None, "{}", String::from_utf8_lossy(broken));
        }
    }

    #[test]
    fn an_odd_path_is_named_as_git_quotes_it() {
        let entry = |path: &[u8]| Entry {
            before_and_after: Vec::new(),
            status: b'M',
            path: path.to_vec(),
        };
        let named = |path: &[u8]| entry(path).path().expect("a name").as_str().to_owned();
        assert_eq!(named("grün.rs".as_bytes()), "grün.rs");
        assert_eq!(named(b"a\tb\n\"\xff"), r#""a\tb\n\"\377""#);
        let odd: Vec<u8> = (0x06..=0x0e).chain(*b" ~\\\x1f\x7f").collect();
        assert_eq!(named(&odd), r#""\006\a\b\t\n\v\f\r\016 ~\\\037\177""#);
    }
}
