//! An independent reader of the ledger: lines, JSON and SHA-256, without a line of the daemon's code.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Reads every record and checks that each names the digest of the line before. Only for a workspace without a daemon:
/// a batch in progress would look like damage.
pub fn records(root: &Path) -> Vec<Value> {
    let mut records = Vec::new();
    let mut prev = format!("sha256:{}", "0".repeat(64));
    for segment in crate::list(root.join(".settled/ledger")) {
        let text = crate::read(&segment);
        assert!(
            text.is_empty() || text.ends_with('\n'),
            "{} ends in half a line",
            segment.display()
        );
        for line in text.lines() {
            let record: Value =
                serde_json::from_str(line).expect("every line is one JSON document");
            assert_eq!(
                record["prev"],
                prev.as_str(),
                "the chain is broken before {line}"
            );
            assert_eq!(
                record["seq"],
                records.len() as u64 + 1,
                "a record is missing before {line}"
            );
            prev = format!("sha256:{}", digest(line.as_bytes()));
            records.push(record);
        }
    }
    records
}

/// Counts how often each message id was accepted.
pub fn accepted(records: &[Value]) -> BTreeMap<String, usize> {
    let mut ids = BTreeMap::new();
    for record in records.iter().filter(|record| record["kind"] == "accepted") {
        let id = record["id"]
            .as_str()
            .expect("an accepted message has an id");
        *ids.entry(id.to_owned()).or_default() += 1;
    }
    ids
}

/// Rewrites every record's line and recomputes the chain of digests, as somebody would to hide the change.
pub fn rewrite(root: &Path, change: impl Fn(&Value, &str) -> String) {
    let mut prev = [0; 2].map(|_| format!("sha256:{}", "0".repeat(64)));
    for segment in crate::list(root.join(".settled/ledger")) {
        let mut text = String::new();
        for line in crate::read(&segment).lines() {
            let record: Value = serde_json::from_str(line).expect("one JSON document");
            let changed = change(&record, &line.replacen(&prev[0], &prev[1], 1));
            prev = [line, &changed].map(|line| format!("sha256:{}", digest(line.as_bytes())));
            text += &(changed + "\n");
        }
        crate::write(&segment, &text);
    }
}

/// Returns the line of a record with a word of its message replaced, and with the digests of the new text.
pub fn reworded(record: &Value, line: &str, from: &str, to: &str) -> String {
    let Some(text) = record["original"]["text"].as_str() else {
        return line.to_owned();
    };
    let other = text.replace(from, to);
    let [text, other] =
        [text, &other].map(|text| (Value::from(text).to_string(), digest(text.as_bytes())));
    line.replace(&text.0, &other.0).replace(&text.1, &other.1)
}

/// Returns the SHA-256 in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
