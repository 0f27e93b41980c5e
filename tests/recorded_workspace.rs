//! A recorded workspace for the tests of the rooms that read one: `fixtures/recorded`, with its ledger.
//!
//! Three agents; a review in its second round, a taken one and an approved one; a refusal that was corrected, one that
//! cost an attempt and one without a recipient; and a waiting message. Rooms include this file by its path, because no
//! room depends on the tests of the whole.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, TimeDelta, Utc};
use tempfile::TempDir;

/// The instant `after` later than nine minutes after the last record.
pub(crate) fn at(after: TimeDelta) -> DateTime<Utc> {
    let soon = "2026-11-23T08:10:00Z".parse::<DateTime<Utc>>();
    soon.expect("an instant") + after
}

/// A copy, whose files all have the same time.
pub(crate) fn workspace() -> TempDir {
    let to = tempfile::tempdir().expect("a directory");
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/recorded");
    copy(&recorded, to.path());
    for agent in ["claude", "codex", "gemini"] {
        for mailbox in ["inbox", "outbox", "sent", "dead_letter", "archive"] {
            let directory = to.path().join("agents").join(agent).join(mailbox);
            fs::create_dir_all(directory).expect("a mailbox");
        }
    }
    to
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("a readable entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).expect("a file");
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_420_000);
            let file = File::options().write(true).open(&target).expect("a file");
            file.set_modified(time).expect("a time");
        }
    }
}

/// Compares a text about the copy with the stored one in a folder; `UPDATE=1` rewrites that.
pub(crate) fn check(folder: &str, name: &str, root: &Path, text: &str) {
    let text = text.replace(&root.display().to_string(), "ROOT");
    let path = Path::new(folder).join(name);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).expect("a place for it");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "{name} differs; UPDATE=1 rewrites it\n--- kept\n{kept}\n--- now\n{text}"
    );
}
