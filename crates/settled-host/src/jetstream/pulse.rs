//! Asks the stream's leader more than once a second where the ledger ends. So a host that is cut off knows it, a consumer that was
//! left behind is noticed, and so is a broker that lost what it acknowledged.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use spool::log::{Head, LogError};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::Bell;
use super::link::Link;

/// The pause between two questions, and the one after a question without an answer. With the time an answer may take, a
/// host that is cut off says so within 2 s.
const EVERY: Duration = Duration::from_millis(700);
const AGAIN: Duration = Duration::from_millis(200);

/// A log that ends too early has to say so this many times, each time with a majority behind its leader. A leader that
/// was cut off and does not know it yet has none: its followers have been silent for longer than two heartbeats by then.
const SAID: u32 = 3;

/// The last answer of the leader.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    /// The end it has, or why it did not answer.
    pub(super) end: Result<Head, LogError>,
    /// The newest end that this host knew at the time of the request.
    pub(super) known: Head,
    /// The number of times in a row that it had another end, although a majority follows it.
    said: u32,
}

impl Heard {
    /// Says whether the end it has is no mistake of a leader that was cut off.
    pub(super) fn is_certain(&self) -> bool {
        self.said >= SAID
    }
}

/// A task that asks.
pub(super) struct Pulse {
    shared: Arc<Mutex<Beats>>,
    task: AbortHandle,
}

struct Beats {
    known: Head,
    heard: Option<Heard>,
}

impl Pulse {
    /// Starts to ask.
    pub(super) fn start(runtime: &Handle, link: Link, bell: Arc<Bell>) -> Pulse {
        let shared = Arc::new(Mutex::new(Beats {
            known: Head::EMPTY,
            heard: None,
        }));
        let task = runtime.spawn(beat(link, Arc::clone(&shared), bell));
        let task = task.abort_handle();
        Pulse { shared, task }
    }

    /// Tells what this host knows to be in the log.
    pub(super) fn know(&self, head: Head) {
        let mut shared = locked(&self.shared);
        if head.seq > shared.known.seq {
            shared.known = head;
        }
    }

    /// Notes that the leader answered another question: that it did not answer the last one of the pulse is over.
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

    /// The last answer of the leader; none before its first answer or failure.
    pub(super) fn heard(&self) -> Option<Heard> {
        locked(&self.shared).heard.clone()
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn beat(link: Link, shared: Arc<Mutex<Beats>>, bell: Arc<Bell>) {
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
            bell.ring();
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
        let shared = Arc::new(Mutex::new(Beats { known, heard }));
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
        assert!(silent.heard().is_some_and(|heard| heard.end.is_err()));
        silent.answered();
        assert!(silent.heard().is_none());
        let answering = pulse(&runtime, Some(heard(Ok(at(1)), 2)));
        answering.answered();
        assert_eq!(
            answering.heard().map(|heard| (heard.end, heard.known)),
            Some((Ok(at(1)), at(2)))
        );
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
