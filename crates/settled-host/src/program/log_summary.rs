//! Reads a log from its first batch to its end, before this host writes anything: which host began it, and the current
//! hosts and homes. Signatures and rules are checked later, when the batches are taken over.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use fleet::Fleet;
use review::{HostChange, JoinedHost};
use spool::log::{Head, Log, LogError, Signed};
use workspace::index;

use super::wait::Wait;

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// A summary of a log.
pub(super) struct LogSummary {
    /// Its end.
    pub(super) end: Head,
    /// The host that began the log; `None` if the log is empty, or if that host was killed before it recorded its join.
    pub(super) founder: Option<JoinedHost>,
    /// The hosts at the end of the log.
    pub(super) fleet: Fleet,
}

/// Reads a whole log.
pub(super) fn summarize(log: &mut dyn Log, wait: Wait) -> Result<LogSummary, LogError> {
    let end = wait.end_of_new(log)?;
    let mut summary = LogSummary {
        end,
        founder: None,
        fleet: Fleet::default(),
    };
    for_each_batch(log, end, wait, |signed| {
        for entry in signed.batch.entries() {
            summary.note(entry);
        }
        ControlFlow::Continue(())
    })?;
    Ok(summary)
}

/// Visits the batches of a log from the first to `end`, or until `visit` breaks off.
pub(super) fn for_each_batch(
    log: &mut dyn Log,
    end: Head,
    wait: Wait,
    mut visit: impl FnMut(&Signed) -> ControlFlow<()>,
) -> Result<(), LogError> {
    let (mut at, mut since) = (Head::EMPTY, Instant::now());
    while at.seq < end.seq {
        let batches = wait.answer(|| log.follow(at))?;
        if batches.is_empty() {
            if wait.is_over(since) {
                let why = format!("record {} did not arrive in time", at.seq + 1);
                return Err(LogError::Unreachable { why });
            }
            std::thread::sleep(PAUSE);
        }
        for signed in batches {
            (at, since) = (signed.batch.head(), Instant::now());
            if visit(&signed).is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

impl LogSummary {
    fn note(&mut self, entry: &spool::Entry) {
        if entry.original.is_some() {
            // A record about an agent's file changes no host, and parsing those records is most of the work.
            return;
        }
        // The reader reports an unreadable record when it takes it over.
        let Ok((record, at)) = index::decision(entry) else {
            return;
        };
        if let (None, Some(HostChange::Joined(joined))) =
            (&self.founder, index::host_change(&record))
        {
            self.founder = Some(joined.clone());
        }
        let _ = index::fold_hosts(&mut self.fleet, entry, &record, at);
    }

    /// The fleet after the first join: only the host that began the log.
    pub(super) fn beginning(&self) -> Fleet {
        let mut fleet = Fleet::default();
        if let Some(founder) = &self.founder
            && let Ok(host) = founder.host.parse()
        {
            // The mailroom refuses an unfit record when it takes it over.
            let _ = fleet.change(&HostChange::Joined(founder.clone()), &host);
        }
        fleet
    }
}

#[cfg(test)]
mod tests {
    use log_suite::{Shared, Weather, fixture};
    use spool::log::Appended;

    use super::*;

    /// A log of unsigned batches, which are enough for a summary.
    fn log_of(records: &[&[&str]]) -> log_suite::ModelLog {
        let shared = Shared::new(7, Weather::default());
        let mut log = shared.connect();
        let mut end = Head::EMPTY;
        for texts in records {
            let next = fixture::batch(end, texts, "tower");
            assert_eq!(log.append(&next), Ok(Appended::Committed));
            end = next.batch.head();
        }
        shared.set_weather(Weather::STORM);
        log
    }

    #[test]
    fn a_log_is_read_to_its_end_whatever_the_weather() {
        let wait: Wait = "20".parse().expect("seconds");
        let summary = summarize(&mut log_of(&[&["one"], &["two", "three"], &["four"]]), wait);
        let summary = summary.expect("a log");
        assert_eq!(summary.end.seq, 4);
        assert!(summary.founder.is_none());
        assert!(summary.fleet.is_empty() && summary.beginning().is_empty());
        let empty = summarize(&mut log_of(&[]), wait).expect("an empty log");
        assert_eq!(empty.end, Head::EMPTY);
    }
}
