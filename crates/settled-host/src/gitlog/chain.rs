//! The batches of a ref: one commit each, with the lines in one file and the judging host in the message.

use message_schema::hex;
use spool::Digest;
use spool::log::{Batch, Head, LogError, Signed};

use super::command::Store;
use crate::wire;

/// The file with the lines.
const FILE: &str = "batch.jsonl";

const HOST: &str = "Settled-Host: ";
const SIGNATURE: &str = "Settled-Signature: ";
const RECORDS: &str = "Settled-Head: ";

/// The author of every commit. It names no host, because the same batch must give the same commit.
const WHO: &str = "settled";
const MAIL: &str = "settled@localhost";

/// One batch of the ref.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) commit: String,
    /// The end of the ledger after this batch, as the commit message says.
    pub(super) head: Head,
    host: String,
    signature: String,
}

/// The batches behind `known` up to `tip`, first to last.
pub(super) fn links(store: &Store, known: Option<&str>, tip: &str) -> Result<Vec<Link>, LogError> {
    let range = known.map_or_else(|| tip.to_owned(), |known| format!("{known}..{tip}"));
    let args = [
        "log",
        "--reverse",
        "--first-parent",
        "-z",
        "--format=%H%n%B",
        &range,
    ];
    let out = store.bytes(&args, None).map_err(here)?;
    let text = String::from_utf8_lossy(&out);
    let commits = text.split('\0').filter(|text| !text.trim().is_empty());
    commits.map(link).collect()
}

fn link(text: &str) -> Result<Link, LogError> {
    let commit = text.lines().next().unwrap_or_default().to_owned();
    let value = |name: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(name));
        found.map(str::to_owned).ok_or_else(|| LogError::Broken {
            what: format!("commit {commit} has no trailer `{}`", name.trim_end()),
        })
    };
    let (host, signature, head) = (value(HOST)?, value(SIGNATURE)?, value(RECORDS)?);
    let head = head.split_once(' ').and_then(|(seq, digest)| {
        let digest: Digest = digest.parse().ok()?;
        let seq = seq.parse().ok()?;
        Some(Head { seq, digest })
    });
    let head = head.ok_or_else(|| LogError::Broken {
        what: format!(
            "commit {commit}: `{}` is not a record's number and digest",
            RECORDS.trim_end()
        ),
    })?;
    Ok(Link {
        commit,
        head,
        host,
        signature,
    })
}

impl Link {
    /// Reads the batch, which must follow `after`.
    pub(super) fn read(&self, store: &Store, after: Head) -> Result<Signed, LogError> {
        let commit = &self.commit;
        let broken = |what: String| LogError::Broken {
            what: format!("commit {commit}: {what}"),
        };
        let args = ["cat-file", "blob", &format!("{commit}:{FILE}")];
        let bytes = store.bytes(&args, None).map_err(broken)?;
        let place = format!("commit {commit}");
        let batch = Batch::read(bytes, after);
        let batch = batch.map_err(|error| wire::in_place(error.into(), &place))?;
        if batch.head() != self.head {
            let what = format!(
                "its message names record {}, its file another end",
                self.head.seq
            );
            return Err(broken(what));
        }
        let host = self
            .host
            .parse()
            .map_err(|error| broken(format!("{error}")))?;
        let signature = hex::read(&self.signature)
            .ok_or_else(|| broken("its signature is not hexadecimal".to_owned()))?;
        Ok(Signed {
            batch,
            host,
            signature,
        })
    }
}

/// Writes a batch as a commit behind `parent`. The same batch gives the same commit, so a push is idempotent.
pub(super) fn write(store: &Store, signed: &Signed, parent: Option<&str>) -> Result<Link, String> {
    let batch = &signed.batch;
    let (after, head) = (batch.after(), batch.head());
    let blob = store.text(
        &["hash-object", "-w", "--stdin", "--no-filters"],
        Some(batch.bytes()),
    )?;
    let tree = format!("100644 blob {blob}\t{FILE}\n");
    let tree = store.text(&["mktree"], Some(tree.as_bytes()))?;
    let (host, signature) = (
        signed.host.as_str().to_owned(),
        hex::write(&signed.signature),
    );
    let message = format!(
        "records {} to {}\n\n{HOST}{host}\n{SIGNATURE}{signature}\n{RECORDS}{} {}\n",
        after.seq + 1,
        head.seq,
        head.seq,
        head.digest
    );
    let at = batch
        .entries()
        .first()
        .map_or("", |entry| entry.at.as_str());
    let parent = parent.map_or_else(String::new, |parent| format!("parent {parent}\n"));
    let who = format!("{WHO} <{MAIL}> {} +0000", seconds(at));
    let commit = format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\n{message}");
    let args = ["hash-object", "-w", "-t", "commit", "--stdin"];
    let commit = store.text(&args, Some(commit.as_bytes()))?;
    Ok(Link {
        commit,
        head,
        host,
        signature,
    })
}

/// The seconds since 1970 of a record's time, for people who read the ref with git; 0 for another format.
fn seconds(at: &str) -> i64 {
    chrono::DateTime::parse_from_rfc3339(at).map_or(0, |at| at.timestamp().max(0))
}

/// The error for a git that fails on this machine.
pub(super) fn here(why: String) -> LogError {
    LogError::Unreachable { why }
}
