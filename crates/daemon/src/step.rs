//! A step through many mailboxes: when it ends, and who is called before an outbox is listed.

use std::path::Path;
use std::time::{Duration, Instant};

use message_schema::id::AgentName;

/// Called with each agent and its outbox before the outbox is listed, so that a watch set then misses nothing.
pub type BeforeListing<'a> = dyn FnMut(&AgentName, &Path) + 'a;

/// The time at which a step ends.
#[derive(Clone, Copy)]
pub(crate) struct StepEnd(pub(crate) Option<Instant>);

impl StepEnd {
    /// The end of a slice of the step that begins now; without a limit on the step there is none on the slice.
    pub(crate) fn of_slice(self, most: Duration) -> Self {
        Self(self.0.map(|end| end.min(Instant::now() + most)))
    }

    /// True if the step ends at some time, however late.
    pub(crate) fn is_limited(self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn has_come(self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }
}
