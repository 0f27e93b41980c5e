//! The harness of a case: it returns handles of the log under test, restarts it, cuts it off and damages it.

use spool::log::{Log, Signed};

/// A log under test, for one case alone: empty at first. A handle stays usable throughout; the cases check its answers
/// meanwhile.
pub trait Bench {
    /// Opens the log like another host.
    fn connect(&mut self) -> Box<dyn Log>;

    /// Kills the log's server without warning, and restarts it. Acknowledged batches survive.
    fn restart(&mut self);

    /// Cuts every handle off from the log. A call on such a handle ends within about a second.
    fn cut_off(&mut self);

    /// Reconnects the handles.
    fn join(&mut self);

    /// Returns the size of the largest batch that the log takes, in bytes.
    fn batch_bytes_max(&self) -> usize;

    /// Removes the last `batches` from the log, which no log may do to acknowledged ones.
    fn lose_tail(&mut self, batches: usize);

    /// Removes one batch from the middle, counted from 0.
    fn lose_one(&mut self, batch: usize);

    /// Replaces the last batch with another one.
    fn replace_last(&mut self, with: &Signed);
}
