//! A ledger in which somebody changed a record and everything that shows it.

use std::fs;
use std::path::Path;

use spool::Digest;

/// Changes the text of one record and recomputes the chain of digests, as somebody with write access to the ledger
/// could.
pub(crate) fn rewrite(root: &Path, record: usize, from: &str, to: &str) {
    let segment = root.join(".settled/ledger/00000000000000000001.jsonl");
    let text = fs::read_to_string(&segment).expect("a ledger");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let changed = lines[record - 1].replacen(from, to, 1);
    assert_ne!(lines[record - 1], changed, "`{from}` is in record {record}");
    lines[record - 1] = changed;
    for at in record..lines.len() {
        let digest = Digest::of(lines[at - 1].as_bytes()).to_string();
        let prev = lines[at].find("sha256:").expect("a chained record");
        lines[at].replace_range(prev..prev + digest.len(), &digest);
    }
    fs::write(&segment, lines.join("\n") + "\n").expect("written");
}

/// Changes the phase to which a record leads.
#[allow(dead_code, reason = "not every test changes phases")]
pub(crate) fn rewrite_phase(root: &Path, record: usize, phase: &str) {
    let segment = root.join(".settled/ledger/00000000000000000001.jsonl");
    let text = fs::read_to_string(&segment).expect("a ledger");
    let line = text.lines().nth(record - 1).expect("a record");
    let (_, after) = line.split_once("\"phase\":").expect("a phase");
    let mut depth = 0;
    let end = after.find(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0
    });
    let old = &after[..=end.expect("the end of a mapping")];
    rewrite(
        root,
        record,
        &format!("\"phase\":{old}"),
        &format!("\"phase\":{phase}"),
    );
}
