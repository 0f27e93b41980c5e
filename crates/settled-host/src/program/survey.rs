//! Looks at a log from its first batch to its end, before this host writes anything: who began it, and which hosts and homes
//! there are now. Signatures and rules are checked later, when the batches are taken over.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use fleet::Fleet;
use review::{HostChange, JoinedHost};
use spool::log::{Head, Log, LogError, Signed};
use workspace::index;

/// The time a log may take to answer while a person waits.
const PATIENCE: Duration = Duration::from_secs(20);

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// The contents of a log.
pub(super) struct Survey {
    /// Its end.
    pub(super) end: Head,
    /// The host that began it; none if it is empty, or if that host did not come to its own record.
    pub(super) founder: Option<JoinedHost>,
    /// The hosts as of its end.
    pub(super) fleet: Fleet,
}

/// Reads all of a log.
pub(super) fn survey(log: &mut dyn Log) -> Result<Survey, LogError> {
    let end = patiently(|| log.head())?;
    let mut survey = Survey {
        end,
        founder: None,
        fleet: Fleet::default(),
    };
    for_each_batch(log, end, |signed| {
        for entry in signed.batch.entries() {
            survey.note(entry);
        }
        ControlFlow::Continue(())
    })?;
    Ok(survey)
}

/// Reads a log from its first batch to `end`, or until `visit` breaks off.
pub(super) fn for_each_batch(
    log: &mut dyn Log,
    end: Head,
    mut visit: impl FnMut(&Signed) -> ControlFlow<()>,
) -> Result<(), LogError> {
    let (mut at, mut since) = (Head::EMPTY, Instant::now());
    while at.seq < end.seq {
        let batches = patiently(|| log.follow(at))?;
        if batches.is_empty() {
            if since.elapsed() > PATIENCE {
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

impl Survey {
    fn note(&mut self, entry: &spool::Entry) {
        if entry.original.is_some() {
            // What was judged of an agent's file changes no host, and to read it is most of the work.
            return;
        }
        // An unreadable record is an error when it is taken over.
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

    /// The hosts before the first record that says so: the one that began the log.
    pub(super) fn beginning(&self) -> Fleet {
        let mut fleet = Fleet::default();
        if let Some(founder) = &self.founder
            && let Ok(host) = founder.host.parse()
        {
            // An unfit record is refused when it is taken over.
            let _ = fleet.change(&HostChange::Joined(founder.clone()), &host);
        }
        fleet
    }
}

/// Asks again while the log cannot be reached, but not for long.
pub(super) fn patiently<T>(mut ask: impl FnMut() -> Result<T, LogError>) -> Result<T, LogError> {
    let since = Instant::now();
    loop {
        match ask() {
            Err(error) if error.is_retryable() && since.elapsed() < PATIENCE => {
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use log_suite::{Shared, Weather, fixture};
    use spool::log::Appended;

    use super::*;

    /// A log whose batches nobody signs: a look at it reads only what they say.
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
        let survey = survey(&mut log_of(&[&["one"], &["two", "three"], &["four"]]));
        let survey = survey.expect("a log");
        assert_eq!(survey.end.seq, 4);
        assert!(survey.founder.is_none());
        assert!(survey.fleet.is_empty() && survey.beginning().is_empty());
        let empty = super::survey(&mut log_of(&[])).expect("an empty log");
        assert_eq!(empty.end, Head::EMPTY);
    }

    #[test]
    fn what_may_pass_is_asked_again_and_what_stays_is_told() {
        let mut asked = 0;
        let told = patiently(|| {
            asked += 1;
            match asked {
                3 => Ok(asked),
                _ => Err(LogError::Unreachable {
                    why: "x".to_owned(),
                }),
            }
        });
        assert_eq!(told, Ok(3));
        let mut asked = 0;
        let denied = || LogError::Denied {
            why: "x".to_owned(),
        };
        let told: Result<(), _> = patiently(|| {
            asked += 1;
            Err(denied())
        });
        assert_eq!((told, asked), (Err(denied()), 1));
    }
}
