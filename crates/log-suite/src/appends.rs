//! A log whose appends a test answers by a function of its own; everything else goes to the log itself.

use spool::log::{Appended, Head, Log, LogError, OnChange, Signed};

/// A log behind such a function.
pub struct Appends<F> {
    log: Box<dyn Log>,
    append: F,
}

impl<F> Appends<F>
where
    F: FnMut(&mut dyn Log, &Signed) -> Result<Appended, LogError> + Send,
{
    /// Answers the appends to this log by `append`, which may pass them on to it.
    pub fn by(log: Box<dyn Log>, append: F) -> Self {
        Self { log, append }
    }
}

impl<F> Log for Appends<F>
where
    F: FnMut(&mut dyn Log, &Signed) -> Result<Appended, LogError> + Send,
{
    fn head(&mut self) -> Result<Head, LogError> {
        self.log.head()
    }

    fn append(&mut self, batch: &Signed) -> Result<Appended, LogError> {
        (self.append)(&mut *self.log, batch)
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
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;
    use crate::fixture::batch;
    use crate::{Patient, Shared, Weather};

    /// Checks that a log behind a wrapper reports changes and is read like the log itself.
    fn is_passed_on(shared: &Shared, mut wrapped: Box<dyn Log>) {
        let changes = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&changes);
        wrapped.on_change(Box::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        }));
        let first = batch(Head::EMPTY, &["one"], "tower");
        let told = shared.connect().append(&first);
        assert_eq!(told, Ok(Appended::Committed));
        assert_eq!(
            changes.load(Ordering::SeqCst),
            1,
            "the log reports a change"
        );
        assert_eq!(wrapped.head(), Ok(first.batch.head()));
        let given = wrapped.follow(Head::EMPTY).expect("batches");
        assert_eq!(given.len(), 1);
        assert_eq!(wrapped.poll_ms(), 1_000);
    }

    #[test]
    fn a_wrapped_log_rings_and_is_read_like_the_log_itself() {
        let shared = Shared::new(7, Weather::default());
        let is_cut = Arc::new(AtomicBool::new(false));
        is_passed_on(&shared, Patient::with(shared.connect(), &is_cut));

        let shared = Shared::new(7, Weather::default());
        let mut ours = Appends::by(Box::new(shared.connect()), |_, _| Ok(Appended::Committed));
        let unsent = batch(Head::EMPTY, &["unsent"], "laptop");
        assert_eq!(ours.append(&unsent), Ok(Appended::Committed));
        assert!(shared.batches().is_empty(), "the function alone answers");
        is_passed_on(&shared, Box::new(ours));
    }
}
