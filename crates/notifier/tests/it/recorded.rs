//! A workspace with a recorded ledger, and a channel that keeps what it is told.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Seven records: the fifth escalates two threads of one review to a person, the seventh escalates another review.
const LEDGER: &str = include_str!("../ledger.jsonl");

/// A program that keeps every notice.
pub(crate) const KEEP: &str = "cat >> told";

/// A workspace with the ledger, and a channel that has sent everything up to record `seq`, or is new.
pub(crate) fn workspace(seq: Option<u64>) -> TempDir {
    let root = tempfile::tempdir().expect("a directory");
    let own = root.path().join(".settled");
    for directory in ["ledger", "notify"] {
        std::fs::create_dir_all(own.join(directory)).expect("a directory");
    }
    let segment = own.join("ledger/00000000000000000001.jsonl");
    std::fs::write(segment, LEDGER).expect("a ledger");
    if let Some(seq) = seq {
        let cursor = json!({"seq": seq}).to_string();
        std::fs::write(own.join("notify/command.json"), cursor).expect("a cursor");
    }
    root
}

/// The notices of a channel that keeps each one.
pub(crate) fn told(root: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(root.join("told")).unwrap_or_default();
    let notices = text.lines();
    let notices = notices.map(|line| serde_json::from_str(line).expect("a notice is JSON"));
    notices.collect()
}
