//! The line between a host and a log, which can lose requests or answers.

use spool::log::{Appended, Head, Log, LogError, OnChange, Signed};

/// A log at the end of a line.
pub struct Line {
    log: Box<dyn Log>,
    loses: Option<Loss>,
}

#[derive(Clone, Copy, Debug)]
enum Loss {
    Request,
    Answer,
}

impl Line {
    /// Returns a line that loses nothing yet.
    pub fn to(log: Box<dyn Log>) -> Line {
        Line { log, loses: None }
    }

    /// Loses the next append before it reaches the log.
    pub fn lose_request(&mut self) {
        self.loses = Some(Loss::Request);
    }

    /// Loses the answer to the next append, which the log does execute.
    pub fn lose_answer(&mut self) {
        self.loses = Some(Loss::Answer);
    }
}

impl Log for Line {
    fn head(&mut self) -> Result<Head, LogError> {
        self.log.head()
    }

    fn append(&mut self, batch: &Signed) -> Result<Appended, LogError> {
        let unknown = |what: &str| Ok(Appended::Unknown(format!("the line lost the {what}")));
        match self.loses.take() {
            None => self.log.append(batch),
            Some(Loss::Request) => unknown("request"),
            Some(Loss::Answer) => {
                self.log.append(batch)?;
                unknown("answer")
            }
        }
    }

    fn follow(&mut self, from: Head) -> Result<Vec<Signed>, LogError> {
        self.log.follow(from)
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::fixture::batch;
    use crate::{Shared, Weather};

    fn line() -> (Shared, Line) {
        let shared = Shared::new(0, Weather::default());
        let line = Line::to(Box::new(shared.connect()));
        (shared, line)
    }

    #[test]
    fn a_line_loses_one_append_or_its_answer_and_then_nothing() {
        let first = batch(Head::EMPTY, &["one"], "tower");
        for (lose, arrived) in [
            (Line::lose_request as fn(&mut Line), 0),
            (Line::lose_answer, 1),
        ] {
            let (shared, mut line) = line();
            lose(&mut line);
            let told = line.append(&first);
            assert!(matches!(told, Ok(Appended::Unknown(_))), "{told:?}");
            assert_eq!(shared.batches().len(), arrived);
            assert_eq!(line.append(&first), Ok(Appended::Committed));
            assert_eq!(line.head(), Ok(first.batch.head()));
            assert_eq!(line.follow(Head::EMPTY).map(|all| all.len()), Ok(1));
        }
    }

    #[test]
    fn a_line_rings_and_rests_as_its_log_does() {
        let (_shared, mut line) = line();
        let changes = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&changes);
        line.on_change(Box::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        }));
        let first = batch(Head::EMPTY, &["one"], "tower");
        assert_eq!(line.append(&first), Ok(Appended::Committed));
        assert_eq!(changes.load(Ordering::SeqCst), 1);
        assert_eq!(line.poll_ms(), 1_000);
    }
}
