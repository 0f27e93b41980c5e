//! A log whose appends a test answers by a function of its own; everything else goes to the log itself.

use spool::log::{Appended, Head, Log, LogError, Ring, Signed};

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

    fn ring(&mut self, ring: Ring) {
        self.log.ring(ring);
    }

    fn poll_ms(&self) -> u64 {
        self.log.poll_ms()
    }
}
