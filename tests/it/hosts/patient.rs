//! A handle that waits: the cases of the suite ask a log that is there, and a real one may take a moment to notice that it
//! is there again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use spool::log::{Appended, Head, Log, LogError, Ring, Signed};

/// How long a log may take that is not cut off.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Asks again while the log is not cut off and its answer may become another one.
pub(crate) struct Patient<L> {
    log: L,
    is_cut: Arc<AtomicBool>,
}

impl<L: Log> Patient<L> {
    pub(crate) fn with(log: L, is_cut: &Arc<AtomicBool>) -> Box<Self> {
        let is_cut = Arc::clone(is_cut);
        Box::new(Self { log, is_cut })
    }

    fn ask<T>(
        &mut self,
        mut ask: impl FnMut(&mut L) -> Result<T, LogError>,
        is_final: impl Fn(&T) -> bool,
    ) -> Result<T, LogError> {
        let began = Instant::now();
        loop {
            let answer = ask(&mut self.log);
            let is_final = match &answer {
                Ok(answer) => is_final(answer),
                Err(error) => !error.is_retryable(),
            };
            let is_cut = self.is_cut.load(Ordering::SeqCst);
            if is_final || is_cut || began.elapsed() > PATIENCE {
                return answer;
            }
            settled_tests::wait::a_moment(Duration::from_millis(2));
        }
    }
}

impl<L: Log> Log for Patient<L> {
    fn head(&mut self) -> Result<Head, LogError> {
        self.ask(L::head, |_| true)
    }

    fn append(&mut self, batch: &Signed) -> Result<Appended, LogError> {
        self.ask(
            |log| log.append(batch),
            |appended| !matches!(appended, Appended::Unknown(_)),
        )
    }

    fn follow(&mut self, from: Head) -> Result<Vec<Signed>, LogError> {
        let end = self.head().map_or(from, |end| end);
        // What the leader has arrives.
        self.ask(
            |log| log.follow(from),
            |given| !given.is_empty() || end.seq <= from.seq,
        )
    }

    fn ring(&mut self, ring: Ring) {
        self.log.ring(ring);
    }

    fn poll_ms(&self) -> u64 {
        self.log.poll_ms()
    }
}
