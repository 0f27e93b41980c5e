//! The harness of a case: it gives handles of the log under test, restarts it, cuts it off and damages it.

use spool::log::{Log, Signed};

/// A log under test, for one case: empty at first, and nobody else's. A handle stays usable across all of this; what it
/// answers meanwhile is what the cases look at.
pub trait Bench {
    /// Opens the log as one more host does.
    fn connect(&mut self) -> Box<dyn Log>;

    /// Ends whatever holds the log without warning, and starts it again. What was acknowledged is still there.
    fn restart(&mut self);

    /// Cuts every handle off from the log. A call on a handle that is cut off ends within about a second.
    fn cut_off(&mut self);

    /// Joins them again.
    fn join(&mut self);

    /// The largest batch that the log takes, in bytes.
    fn batch_bytes_max(&self) -> usize;

    /// Takes the last `batches` out of the log, which no log may do to what it acknowledged.
    fn lose_tail(&mut self, batches: usize);

    /// Takes one batch out of the middle, counted from 0.
    fn lose_one(&mut self, batch: usize);

    /// Puts another batch in place of the last one.
    fn replace_last(&mut self, with: &Signed);
}
