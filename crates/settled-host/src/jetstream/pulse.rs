//! Asks the stream's leader more than once a second where the ledger ends. So the host notices that it is cut off, that
//! a consumer lags, or that a broker lost what it acknowledged. Asks for the leader's time now and then.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use spool::log::{Head, LogError};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::ChangeSignal;
use super::link::Link;

/// The pause after an answered request, and after an unanswered one. Together with the time limit of a request, they let a
/// host that is cut off report it within 2 s.
const EVERY: Duration = Duration::from_millis(700);
const AGAIN: Duration = Duration::from_millis(200);

/// The time after which a connection that was never up counts as failed: the first request of a host that is just
/// connecting would fail.
const CONNECTING: Duration = Duration::from_secs(1);

/// The pause between two questions for the time, and the age up to which an answer counts.
const CLOCK_EVERY: Duration = Duration::from_secs(10);
const CLOCK_OLD: Duration = Duration::from_secs(35);

/// The change of this host's clock, in milliseconds, after which the leader is asked at once.
const SET_MS: u64 = 1_000;

/// The answers in a row, each from a leader with a majority, after which a log that ends too early counts as certain. A
/// deposed leader has no majority: by then its followers have been silent for longer than two heartbeats.
const SAID: u32 = 3;

/// The last answer of the leader.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    /// The leader's end, or the reason it did not answer.
    pub(super) end: Result<Head, LogError>,
    /// The newest end that this host knew when it asked.
    pub(super) known: Head,
    /// The number of answers in a row with an earlier end than `known`, from a leader with a majority.
    said: u32,
}

impl Heard {
    /// Returns true if the early end cannot be the mistake of a deposed leader.
    pub(super) fn is_certain(&self) -> bool {
        self.said >= SAID
    }
}

/// A task that asks repeatedly.
pub(super) struct Pulse {
    shared: Arc<Mutex<Beats>>,
    task: AbortHandle,
}

struct Beats {
    known: Head,
    heard: Option<Heard>,
    clock: Option<LeaderClock>,
}

/// The leader's clock, as of its last answer.
#[derive(Clone, Copy)]
struct LeaderClock {
    /// Its lead over this host's clock, in milliseconds.
    ahead_ms: i64,
    /// The time of the answer, by the monotonic clock and by the clock that people set.
    at: Instant,
    utc: DateTime<Utc>,
}

impl LeaderClock {
    fn ahead_by(ahead_ms: i64) -> LeaderClock {
        let (at, utc) = (Instant::now(), Utc::now());
        LeaderClock { ahead_ms, at, utc }
    }

    /// The time by which this host's clock was set forward since, in milliseconds. Sleep looks the same.
    fn set_forward_ms(&self, at: Instant, utc: DateTime<Utc>) -> i64 {
        let passed = at.saturating_duration_since(self.at).as_millis();
        (utc - self.utc).num_milliseconds() - i64::try_from(passed).unwrap_or(i64::MAX)
    }

    /// Its lead over this host's clock now, in milliseconds.
    fn ahead_ms(&self, at: Instant, utc: DateTime<Utc>) -> i64 {
        self.ahead_ms - self.set_forward_ms(at, utc)
    }

    /// True if this host's clock was set since, or the machine slept.
    fn is_past(&self) -> bool {
        let set_ms = self.set_forward_ms(Instant::now(), Utc::now());
        set_ms.unsigned_abs() > SET_MS
    }
}

impl Pulse {
    pub(super) fn start(runtime: &Handle, link: Link, signal: Arc<ChangeSignal>) -> Pulse {
        let shared = Arc::new(Mutex::new(Beats {
            known: Head::EMPTY,
            heard: None,
            clock: None,
        }));
        let task = runtime.spawn(beat(link, Arc::clone(&shared), signal));
        let task = task.abort_handle();
        Pulse { shared, task }
    }

    /// Tells the pulse that `head` is in the log.
    pub(super) fn know(&self, head: Head) {
        let mut shared = locked(&self.shared);
        if head.seq > shared.known.seq {
            shared.known = head;
        }
    }

    /// Notes that the leader answered another request, which ends a failure of the pulse's last one.
    pub(super) fn answered(&self) {
        let mut shared = locked(&self.shared);
        if shared
            .heard
            .as_ref()
            .is_some_and(|heard| heard.end.is_err())
        {
            shared.heard = None;
        }
    }

    /// Notes the lead of the leader's clock over this host's in milliseconds, as the leader has just told it.
    pub(super) fn tell_clock(&self, ahead_ms: i64) {
        locked(&self.shared).clock = Some(LeaderClock::ahead_by(ahead_ms));
    }

    /// The lead of the leader's clock over this host's in milliseconds, if it told the time lately.
    pub(super) fn clock_ahead_ms(&self) -> Option<i64> {
        let clock = locked(&self.shared).clock?;
        let is_recent = clock.at.elapsed() <= CLOCK_OLD;
        is_recent.then(|| clock.ahead_ms(Instant::now(), Utc::now()))
    }

    /// The last answer of the leader; `None` before the first answer or failure.
    pub(super) fn last_answer(&self) -> Option<Heard> {
        locked(&self.shared).heard.clone()
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn beat(link: Link, shared: Arc<Mutex<Beats>>, signal: Arc<ChangeSignal>) {
    // The first beat already reports a failure. It may fetch a large batch, so let the start's own requests go first.
    let _ = link.until_up(CONNECTING).await;
    tokio::time::sleep(AGAIN).await;
    let mut clock_at = Instant::now();
    loop {
        let (known, said) = {
            let shared = locked(&shared);
            (
                shared.known,
                shared.heard.as_ref().map_or(0, |heard| heard.said),
            )
        };
        let end = link.last().await;
        let end = end.map(|found| found.map_or(Head::EMPTY, |found| found.signed.batch.head()));
        let said = match &end {
            Ok(end) if end.seq < known.seq && matches!(link.is_led().await, Ok(true)) => said + 1,
            Ok(_) | Err(_) => 0,
        };
        let is_up = end.is_ok();
        let is_news = {
            let mut shared = locked(&shared);
            let was_up = shared.heard.as_ref().is_none_or(|heard| heard.end.is_ok());
            let is_news = was_up != is_up || said >= SAID;
            shared.heard = Some(Heard { end, known, said });
            is_news
        };
        if is_news {
            signal.wake();
        }
        let clock = locked(&shared).clock;
        let is_due = Instant::now() >= clock_at || clock.is_some_and(|clock| clock.is_past());
        if is_up && is_due {
            clock_at = Instant::now() + CLOCK_EVERY;
            let Some(ahead) = link.clock_ahead_ms().await else {
                // If the leader fell silent, the next request notices in time.
                tokio::time::sleep(AGAIN).await;
                continue;
            };
            locked(&shared).clock = Some(LeaderClock::ahead_by(ahead));
        }
        tokio::time::sleep(if is_up { EVERY } else { AGAIN }).await;
    }
}

fn locked(shared: &Mutex<Beats>) -> std::sync::MutexGuard<'_, Beats> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use spool::Digest;

    use super::*;

    fn at(seq: u64) -> Head {
        let digest = Digest::of(&seq.to_le_bytes());
        Head { seq, digest }
    }

    fn pulse(runtime: &tokio::runtime::Runtime, heard: Option<Heard>) -> Pulse {
        let task = runtime.spawn(std::future::pending::<()>()).abort_handle();
        let known = at(2);
        let clock = None;
        let shared = Arc::new(Mutex::new(Beats {
            known,
            heard,
            clock,
        }));
        Pulse { shared, task }
    }

    fn heard(end: Result<Head, LogError>, said: u32) -> Heard {
        let known = at(2);
        Heard { end, known, said }
    }

    #[test]
    fn the_newest_end_that_is_known_counts() {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let pulse = pulse(&runtime, None);
        let known = |seq| {
            pulse.know(at(seq));
            locked(&pulse.shared).known.seq
        };
        assert_eq!([known(1), known(3), known(2), known(3)], [2, 3, 3, 3]);
    }

    #[test]
    fn an_answer_to_another_question_ends_a_silence_and_nothing_else() {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let why = "no route".to_owned();
        let silent = pulse(&runtime, Some(heard(Err(LogError::Unreachable { why }), 0)));
        assert!(silent.last_answer().is_some_and(|heard| heard.end.is_err()));
        silent.answered();
        assert!(silent.last_answer().is_none());
        let answering = pulse(&runtime, Some(heard(Ok(at(1)), 2)));
        answering.answered();
        assert_eq!(
            answering
                .last_answer()
                .map(|heard| (heard.end, heard.known)),
            Some((Ok(at(1)), at(2)))
        );
    }

    #[test]
    fn the_leaders_clock_stays_where_it_is_when_this_hosts_is_set() {
        let clock = LeaderClock::ahead_by(300);
        let later = clock.at + Duration::from_secs(5);
        let ahead = |set_s: i64| {
            let utc = clock.utc + chrono::TimeDelta::seconds(5 + set_s);
            clock.ahead_ms(later, utc)
        };
        assert_eq!([ahead(0), ahead(60), ahead(-60)], [300, -59_700, 60_300]);
    }

    #[test]
    fn a_leader_is_believed_when_it_says_the_same_for_the_third_time() {
        let certain = [0, 1, 2, 3, 4].map(|said| heard(Ok(at(1)), said).is_certain());
        assert_eq!(certain, [false, false, false, true, true]);
    }

    #[test]
    fn a_pulse_that_is_dropped_asks_no_more() {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let pulse = pulse(&runtime, None);
        let task = pulse.task.clone();
        assert!(!task.is_finished());
        drop(pulse);
        let began = std::time::Instant::now();
        while !task.is_finished() {
            assert!(began.elapsed() < Duration::from_secs(20), "it goes on");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
