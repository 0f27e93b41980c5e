//! Removes or counts the files that agents have finished with and that are older than the config allows.

use std::path::Path;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use spool::{Count, Cutoff, FolderReport, Old, Removal, SpoolError};
use workspace::config::RetentionSection;

/// The files in all agents' folders, with those that were removed or would be.
#[derive(Clone, Debug)]
pub struct RetentionReport {
    /// A report for each agent and directory.
    pub folders: Vec<FolderReport>,
    /// Copies of torn batches, which the daemon never removes.
    pub torn: Count,
}

/// Removes, or counts, the files that are older than the config allows at `now`. Fails if the ledger cannot be read.
pub fn tidy(
    root: &Path,
    keep: &RetentionSection,
    now: DateTime<Utc>,
    removal: Removal,
) -> Result<RetentionReport, SpoolError> {
    let cutoff = |days: Option<u64>| days.and_then(|days| before(now, days));
    let old = Old {
        sent: cutoff(keep.sent_days),
        archive: cutoff(keep.archive_days),
        dead_letter: cutoff(keep.dead_letter_days),
    };
    Ok(RetentionReport {
        folders: spool::tidy(root, &old, removal)?,
        torn: spool::torn_copies(root)?,
    })
}

/// The instant `days` days before `now`; none if that is before the calendar begins.
fn before(now: DateTime<Utc>, days: u64) -> Option<Cutoff> {
    let instant = now.checked_sub_signed(TimeDelta::days(i64::try_from(days).ok()?))?;
    let at = instant.to_rfc3339_opts(SecondsFormat::Millis, true);
    Some(Cutoff {
        wall_ns: instant.timestamp_nanos_opt()?,
        at,
    })
}

impl RetentionReport {
    /// Sums one count over all folders.
    pub fn sum(&self, of: impl Fn(&FolderReport) -> Count) -> Count {
        self.folders
            .iter()
            .map(of)
            .fold(Count::default(), |sum, count| Count {
                files: sum.files + count.files,
                bytes: sum.bytes + count.bytes,
            })
    }

    /// Names the files that could not be read or removed.
    pub fn failed(&self) -> impl Iterator<Item = &str> {
        self.folders
            .iter()
            .flat_map(|folder| folder.failed.iter().map(String::as_str))
    }

    /// Logs the removal in one line.
    pub fn log(&self) {
        let gone = self.sum(|folder| folder.gone);
        let uncertain = self.sum(|folder| folder.uncertain).files;
        let unknown = self.sum(|folder| folder.unknown).files;
        match self.failed().next() {
            Some(why) => {
                let failed = self.failed().count();
                tracing::warn!(
                    files = gone.files,
                    bytes = gone.bytes,
                    uncertain,
                    unknown,
                    failed,
                    why,
                    "old files were removed, but not all"
                );
            }
            None => {
                tracing::info!(
                    files = gone.files,
                    bytes = gone.bytes,
                    uncertain,
                    unknown,
                    "old files were removed"
                );
            }
        }
    }
}
