//! Watches accepted originals whose writer may not have been done when they were judged. If one changes in `sent/`, the
//! daemon records it, notifies its sender and alerts the operator.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use message_schema::id::AgentName;
use review::{Event, SentDiffers};
use spool::{Away, Entry, Original, Since, SpoolError, Tail, View};
use workspace::clock::Moment;

/// The time for which an original is watched, in seconds.
const WATCH_S: i64 = 600;

/// The most originals of one outbox that are watched; a newer one replaces the oldest.
const WATCHED_MAX: usize = 256;

/// The pause before the second look at an original, in milliseconds; each further pause is twice as long. A writer that
/// returns to a file does so soon, and 256 files of each outbox in every sweep would cost an idle daemon too much.
const PAUSE_MIN_MS: u64 = 2_000;

/// The number of records before a start to search for originals that the earlier daemon watched.
const RECENT: u64 = 1_000;

/// The watched originals, by outbox.
#[derive(Debug, Default)]
pub(crate) struct GrowingOriginals {
    outboxes: BTreeMap<String, VecDeque<Watched>>,
    /// True once the records before this start are searched.
    knows_recent: bool,
}

#[derive(Debug)]
struct Watched {
    seq: u64,
    /// The original without its text, which nothing here needs.
    original: Original,
    since: DateTime<Utc>,
    /// The time of the next look, on the monotonic clock, and the pause after that.
    next: u64,
    pause_ms: u64,
}

impl Watched {
    /// True if a look is due; the next one is then twice as far away, but not after the last moment of the watch.
    fn is_due(&mut self, moment: Moment) -> bool {
        let is_due = self.next <= moment.mono;
        if is_due {
            let left = TimeDelta::seconds(WATCH_S) - (moment.utc - self.since);
            let left = u64::try_from(left.num_milliseconds()).unwrap_or(0);
            let pause = self.pause_ms.min(left.max(PAUSE_MIN_MS));
            self.next = moment.mono.saturating_add(pause);
            self.pause_ms *= 2;
        }
        is_due
    }
}

impl GrowingOriginals {
    /// Watches the original that a record accepted.
    pub(crate) fn watch(&mut self, entry: &Entry) {
        let (Some(original), Ok(since)) = (&entry.original, entry.at.parse()) else {
            return;
        };
        if !matches!(original.away, Away::Sent(_)) {
            return;
        }
        let watched = self.outboxes.entry(original.outbox.clone()).or_default();
        if watched.len() >= WATCHED_MAX {
            watched.pop_front();
        }
        watched.push_back(Watched {
            seq: entry.seq,
            original: Original {
                text: None,
                ..original.clone()
            },
            since,
            next: 0,
            pause_ms: PAUSE_MIN_MS,
        });
    }

    /// Watches the originals that the last records before this start accepted: the earlier daemon may have ended before
    /// they changed, and `serve --once` may start hours apart. No record says whether the writer was done. An
    /// original whose time is over gets one look.
    fn watch_recent(&mut self, root: &Path, next_seq: u64) -> Result<(), SpoolError> {
        let mut told = Vec::new();
        Tail::open(root, recent(next_seq))?.read(&mut |entry| {
            told.extend(told_of(entry));
            self.watch(entry);
            Ok(())
        })?;
        for watched in self.outboxes.values_mut() {
            watched.retain(|watched| !told.contains(&watched.seq));
        }
        Ok(())
    }

    /// Returns an event for each original that changed. It stays watched until [`Self::forget`]: if its event cannot be
    /// recorded now, a later look finds it again.
    pub(crate) fn changed(
        &mut self,
        root: &Path,
        view: &View<'_>,
        moment: Moment,
    ) -> Result<Vec<SentDiffers>, SpoolError> {
        if !self.knows_recent {
            self.watch_recent(root, view.next_seq())?;
            self.knows_recent = true;
        }
        let mut changed = Vec::new();
        let mut failed = None;
        self.outboxes.retain(|outbox, watched| {
            watched.retain_mut(|watched| {
                if !watched.is_due(moment) {
                    return true;
                }
                let may_change = !is_over(watched.since, moment.utc);
                match view.changed_original(watched.seq, &watched.original) {
                    Ok(None) => may_change,
                    Ok(Some(file)) => {
                        changed.extend(AgentName::new(outbox).ok().map(|agent| SentDiffers {
                            agent,
                            file: file.to_string(),
                            seq: watched.seq,
                        }));
                        true
                    }
                    Err(error) => {
                        failed = Some(error);
                        may_change
                    }
                }
            });
            !watched.is_empty()
        });
        if let Some(error) = failed {
            tracing::warn!(error = %workspace::error::chain(&error), "cannot look at a file in sent/; a later look or start retries");
        }
        Ok(changed)
    }

    /// Stops watching the originals whose changes are recorded.
    pub(crate) fn forget(&mut self, recorded: &[SentDiffers]) {
        let is_recorded = |watched: &Watched| recorded.iter().any(|it| it.seq == watched.seq);
        self.outboxes.retain(|_, watched| {
            watched.retain(|watched| !is_recorded(watched));
            !watched.is_empty()
        });
    }
}

/// Covers the last thousand records before `next_seq`, or all there are.
fn recent(next_seq: u64) -> Since {
    match next_seq.saturating_sub(1 + RECENT) {
        0 => Since::Beginning,
        older => Since::Record(older),
    }
}

fn is_over(since: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    now - since > TimeDelta::seconds(WATCH_S)
}

/// The record of the original that this record reports as changed.
fn told_of(entry: &Entry) -> Option<u64> {
    if entry.kind != "sent_differs" {
        return None;
    }
    let record: review::Record = serde_json::from_str(entry.decision.get()).ok()?;
    if let Event::SentDiffers(differs) = &record.happened()?.event {
        Some(differs.seq)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_looks_after_what_the_last_thousand_records_accepted() {
        assert_eq!(recent(1), Since::Beginning, "an empty ledger");
        assert_eq!(recent(1_001), Since::Beginning, "a thousand records");
        // Record 1 235 is the first of the thousand.
        assert_eq!(recent(2_235), Since::Record(1_234));
    }

    #[test]
    fn an_original_is_looked_after_for_ten_minutes() {
        let since = DateTime::UNIX_EPOCH;
        let after = |seconds| is_over(since, since + TimeDelta::seconds(seconds));
        assert!(!after(0) && !after(600));
        assert!(after(601));
    }
}
