//! The size of a commit's files, without making them: a small pack can hold a tree that fills a disk.

use std::io::{BufRead as _, BufReader};
use std::process::ChildStdout;

use message_schema::id::CommitSha;

use crate::repository::{GitError, Repository};

/// The bytes that a disk allots at a time, even to an empty file.
const BLOCK: u64 = 4096;

impl Repository {
    /// Returns the bytes that the files of a commit take on a disk; `None` if they take more than `max`. Ends git
    /// there, because a few trees can name billions of files.
    pub fn size_up_to(&self, commit: &CommitSha, max: u64) -> Result<Option<u64>, GitError> {
        let args = ["ls-tree", "-r", "-l", "-z", "--full-tree", commit.as_str()];
        let sum_up = |listed: ChildStdout| {
            let mut sum: u64 = 0;
            for entry in BufReader::new(listed).split(0) {
                sum = sum.saturating_add(size(&entry?));
                if sum > max {
                    return Ok(None);
                }
            }
            Ok(Some(sum))
        };
        let (sum, ended) = self.read(self.command(&args), None, sum_up)?;
        match sum {
            // Nobody reads the rest, so git fails.
            None => Ok(None),
            Some(sum) if ended.status.success() => Ok(Some(sum)),
            Some(_) => Err(GitError::Unusable {
                what: format!(
                    "git cannot list the files of {commit}: {}",
                    String::from_utf8_lossy(&ended.stderr).trim()
                ),
            }),
        }
    }
}

/// The size of one entry: `<mode> <type> <id> <size>`, a tab, and the path. A submodule has `-`.
fn size(entry: &[u8]) -> u64 {
    let about = entry.split(|byte| *byte == b'\t').next();
    let about = String::from_utf8_lossy(about.unwrap_or_default()).into_owned();
    let size = about.split_ascii_whitespace().nth(3);
    let size = size.and_then(|size| size.parse::<u64>().ok()).unwrap_or(0);
    // Each entry takes a block, also if it is empty.
    size.div_ceil(BLOCK).max(1).saturating_mul(BLOCK)
}
