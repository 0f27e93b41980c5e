//! The ledger, its snapshots, and the daemon above them.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use message_schema::id::AgentName;
use spool::{Away, Digest, Entry, FileName, Original, SpoolError, dirs};
use workspace::directory;
use workspace::error::chain;
use workspace::index::LedgerIndex;
use workspace::operator_alerts;
use workspace::regular_file;

use super::{CheckContext, CheckOutcome, Checked};
use crate::status::fix::FixCommands;
use crate::status::problems::{Problem, of_alert};

/// The most entries of one kind that are listed; further ones are only counted.
const LISTED_MAX: usize = 20;

/// Checks that the ledger is readable, undamaged, and ends with a complete batch.
pub(super) fn whole(case: &CheckContext<'_>) -> Checked {
    let verified = match spool::verify(case.root) {
        Ok(verified) => verified,
        Err(error @ SpoolError::Io { .. }) => {
            return unreadable(&error, "only the daemon may read the ledger");
        }
        Err(error) => {
            return Ok(vec![CheckOutcome::wrong(
                chain(&error),
                "docs/operations.md explains how to repair a ledger",
            )]);
        }
    };
    let records = verified.records;
    Ok(vec![match verified.torn {
        Some(torn) if spool::is_served(case.root) == Some(false) => CheckOutcome::note(format!(
            "{records} records, then {} bytes of a batch that was never finished: the next start keeps a copy and cuts them off",
            torn.bytes
        )),
        Some(_) => CheckOutcome::ok(format!(
            "{records} records, and a batch that is being written"
        )),
        None => CheckOutcome::ok(format!("{records} records, chained and whole")),
    }])
}

/// Checks that the files in `sent/` hold the bytes that the daemon judged.
pub(super) fn sent(case: &CheckContext<'_>) -> Checked {
    let mut names = HashMap::new();
    for agent in case.agents {
        let sent = case.root.join(dirs::of_agent(agent.as_str(), dirs::SENT));
        // `access` reports directories that cannot be listed.
        for entry in std::fs::read_dir(sent).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_file())
                && let Ok(name) = FileName::new(entry.file_name().into_encoded_bytes())
            {
                names.insert((agent.to_string(), name), entry.path());
            }
        }
    }
    let (mut count, mut differing) = (0, Vec::new());
    let mut compare = |entry: &Entry| {
        let Some(original) = &entry.original else {
            return Ok(());
        };
        let (Away::Sent(name), Some(_)) = (&original.away, original.digest) else {
            return Ok(());
        };
        let Some(path) = names.remove(&(original.outbox.clone(), name.clone())) else {
            return Ok(());
        };
        match is_as_judged(&path, original) {
            Ok(true) => count += 1,
            Ok(false) => differing.push(path),
            // It was removed meanwhile, or is unreadable, which `access` reports.
            Err(_) => {}
        }
        Ok(())
    };
    if let Err(error) = spool::read_ledger(case.root, &mut compare) {
        return unreadable(&error, "not compared: only the daemon may read the ledger");
    }
    if differing.is_empty() {
        return Ok(vec![CheckOutcome::ok(format!(
            "{count} files in sent/ match what the daemon judged"
        ))]);
    }
    differing.sort_unstable();
    let said = differing.iter().map(|path| {
        CheckOutcome::wrong(
            format!(
                "{} differs from what the daemon judged (sent_differs)",
                path.display()
            ),
            "have its sender send the message again, then remove the file",
        )
    });
    Ok(shortened(said.collect()))
}

/// Returns whether a file has the bytes that were judged. Reads no more than those were: its writer can enlarge it.
fn is_as_judged(path: &Path, original: &Original) -> io::Result<bool> {
    let found = regular_file::read(path, original.size_max())?;
    Ok(found.map(|bytes| Digest::of(&bytes)) == original.digest)
}

/// Checks that a start would continue from the newest snapshot.
pub(super) fn snapshot(case: &CheckContext<'_>) -> Checked {
    let folded = match LedgerIndex::read(case.root) {
        Ok((_, folded)) => folded,
        Err(error @ SpoolError::Contradicted { .. }) => {
            return Ok(vec![CheckOutcome::wrong(
                chain(&error),
                (case.spell)("ledger verify"),
            )]);
        }
        Err(error) => return unreadable(&error, "only the daemon may read snapshots"),
    };
    // A note only: a start reads the records instead.
    let mut said: Vec<CheckOutcome> = folded
        .passed_over
        .iter()
        .map(|passed| {
            CheckOutcome::note(format!(
                "{} is skipped: {}",
                passed.path.display(),
                passed.why
            ))
        })
        .collect();
    said.push(match folded.snapshot {
        Some(seq) => CheckOutcome::ok(format!("the next start reads the snapshot at {seq}")),
        None => CheckOutcome::ok("no snapshot: a start reads every record"),
    });
    Ok(said)
}

/// Checks that a daemon serves if files wait for one.
pub(super) fn serving(case: &CheckContext<'_>) -> Checked {
    let waiting: usize = case
        .agents
        .iter()
        .map(|agent| directory::waiting(case.root, agent).len())
        .sum();
    Ok(vec![match spool::is_served(case.root) {
        Some(true) => CheckOutcome::ok(format!(
            "a daemon is serving, {waiting} files wait in outboxes"
        )),
        Some(false) if waiting > 0 => CheckOutcome::wrong(
            format!("{waiting} files wait in outboxes and no daemon is serving"),
            (case.spell)("serve"),
        ),
        // The kernel drops the lock with the process, so the file alone never blocks a start.
        Some(false) => {
            CheckOutcome::note("no daemon is serving, and nothing waits for one; no lock is held")
        }
        None => CheckOutcome::note("this user cannot see whether a daemon is serving"),
    }])
}

/// Lists the daemon's alerts, which only an operator can fix.
pub(super) fn alerts(case: &CheckContext<'_>) -> Checked {
    let alerts = operator_alerts::read(case.root);
    if alerts.is_empty() {
        return Ok(vec![CheckOutcome::ok("the daemon reports none")]);
    }
    let spell = |_: Option<&AgentName>, words: &str| (case.spell)(words);
    let said = alerts.iter().map(|alert| {
        let Problem { what, fix, .. } = of_alert(alert, &FixCommands(&spell));
        CheckOutcome::wrong(what, format!("{}   # {}", fix.run, fix.effect))
    });
    Ok(shortened(said.collect()))
}

/// Says that the ledger cannot be read: in this note where its reader lacks the permission, which only the daemon needs.
fn unreadable(error: &SpoolError, note: &str) -> Checked {
    let denied = io::ErrorKind::PermissionDenied;
    if matches!(error, SpoolError::Io { source, .. } if source.kind() == denied) {
        return Ok(vec![CheckOutcome::note(note)]);
    }
    Err(chain(error))
}

/// Keeps the first of many outcomes, and counts the others.
fn shortened(mut said: Vec<CheckOutcome>) -> Vec<CheckOutcome> {
    let more = said.len().saturating_sub(LISTED_MAX);
    if more > 0 {
        said.truncate(LISTED_MAX);
        said.push(CheckOutcome::note(format!("and {more} more")));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use spool::Stamp;

    #[test]
    fn a_file_of_a_terabyte_differs_from_what_was_judged_without_being_read() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("a.yaml");
        std::fs::write(&path, "judged").expect("a file");
        let name = FileName::new(b"a.yaml".to_vec()).expect("a name");
        let mut original = Original {
            outbox: "claude".to_owned(),
            file: name.clone(),
            digest: Some(Digest::of(b"judged")),
            stamp: Some(Stamp {
                ino: 1,
                size: 6,
                mtime_ns: 0,
                fresh: true,
            }),
            away: Away::Sent(name),
            text: None,
        };
        assert!(is_as_judged(&path, &original).expect("an answer"));
        let file = std::fs::File::options().write(true).open(&path);
        file.and_then(|file| file.set_len(1 << 40))
            .expect("a sparse file");
        assert!(!is_as_judged(&path, &original).expect("an answer"));
        original.stamp = None;
        assert!(!is_as_judged(&path, &original).expect("an answer"));
    }

    #[test]
    fn a_ledger_that_only_the_daemon_may_read_is_a_note_and_a_broken_disk_a_failure() {
        let said = |kind: io::ErrorKind| {
            let error = SpoolError::Io {
                operation: "open",
                path: "ledger".into(),
                source: kind.into(),
            };
            let said = unreadable(&error, "only the daemon may read it");
            said.map(|said| said.into_iter().map(|it| it.what).collect::<Vec<_>>())
        };
        let note = vec!["only the daemon may read it".to_owned()];
        assert_eq!(said(io::ErrorKind::PermissionDenied), Ok(note));
        let failed = said(io::ErrorKind::NotADirectory).expect_err("a failure");
        assert!(failed.starts_with("cannot open ledger"), "{failed}");
    }

    #[test]
    fn of_more_than_twenty_outcomes_the_others_are_counted() {
        for (all, kept, last) in [
            (20, 20, "20"),
            (21, 21, "and 1 more"),
            (25, 21, "and 5 more"),
        ] {
            let said = shortened((1..=all).map(|n| CheckOutcome::ok(n.to_string())).collect());
            let found = (said.len(), said.last().map(|it| it.what.as_str()));
            assert_eq!(found, (kept, Some(last)), "{all}");
        }
    }
}
