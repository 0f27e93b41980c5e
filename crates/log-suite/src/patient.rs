//! A handle that waits: the cases expect a log that answers, and a real one may take a moment to notice that it is
//! back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use spool::log::{Appended, Head, Log, LogError, OnChange, Signed};

/// The time that a log which is not cut off may take.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The pause before a repeated question.
const AGAIN: Duration = Duration::from_millis(2);

/// Repeats a question while the log is not cut off and its answer may still change.
pub struct Patient<L> {
    log: L,
    is_cut: Arc<AtomicBool>,
}

impl<L: Log> Patient<L> {
    /// Returns a handle that answers at once while the log is cut off.
    pub fn with(log: L, is_cut: &Arc<AtomicBool>) -> Box<Self> {
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
            std::thread::sleep(AGAIN);
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
        // Wait for everything that the leader has.
        self.ask(
            |log| log.follow(from),
            |given| !given.is_empty() || end.seq <= from.seq,
        )
    }

    fn on_change(&mut self, on_change: OnChange) {
        self.log.on_change(on_change);
    }

    fn poll_ms(&self) -> u64 {
        self.log.poll_ms()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::batch;
    use crate::{ModelLog, Shared, Weather};

    fn patient(weather: Weather) -> (Shared, Arc<AtomicBool>, Box<Patient<ModelLog>>) {
        let (shared, is_cut) = (Shared::new(7, weather), Arc::default());
        let log = Patient::with(shared.connect(), &is_cut);
        (shared, is_cut, log)
    }

    #[test]
    fn a_patient_handle_asks_until_it_is_told() {
        let (shared, _, mut log) = patient(Weather::STORM);
        let mut end = Head::EMPTY;
        for _ in 0..100 {
            let next = batch(end, &["next"], "tower");
            assert_eq!(log.append(&next), Ok(Appended::Committed));
            assert_eq!(log.head(), Ok(next.batch.head()));
            let given = log.follow(end).expect("batches");
            assert_eq!(given.len(), 1, "what the log has comes");
            end = next.batch.head();
        }
        assert_eq!(log.follow(end).map(|given| given.len()), Ok(0));
        assert_eq!(shared.batches().len(), 100);
        let late = batch(Head::EMPTY, &["late"], "laptop");
        assert_eq!(log.append(&late), Ok(Appended::Moved(end)));
    }

    #[test]
    fn a_patient_handle_that_is_cut_off_gives_the_first_answer() {
        let (_, is_cut, mut log) = patient(Weather {
            unreachable: 100,
            ..Weather::default()
        });
        is_cut.store(true, Ordering::SeqCst);
        let began = Instant::now();
        let told = log.head();
        assert!(
            matches!(told, Err(LogError::Unreachable { .. })),
            "{told:?}"
        );
        assert!(log.follow(Head::EMPTY).is_err());
        assert!(began.elapsed() < PATIENCE);
        assert_eq!(log.poll_ms(), 1_000);
    }

    #[test]
    fn a_patient_handle_takes_an_error_that_stays_for_the_answer() {
        let (shared, _, mut log) = patient(Weather::default());
        let first = batch(Head::EMPTY, &["one"], "tower");
        assert_eq!(log.append(&first), Ok(Appended::Committed));
        shared.lose_tail(1);
        let (began, ours) = (Instant::now(), first.batch.head());
        let told = log.follow(ours).err();
        let log = Head::EMPTY;
        assert_eq!(told, Some(LogError::RolledBack { log, ours }));
        assert!(began.elapsed() < PATIENCE);
    }
}
