//! Does two things at once.

use std::panic::resume_unwind;
use std::thread::{Builder, scope};

/// Calls `there` on a thread of its own and `here` on this one, and returns both results. If no thread can start, this
/// one does both.
pub fn join<A: Send, B>(mut there: impl FnMut() -> A + Send, here: impl FnOnce() -> B) -> (A, B) {
    let (elsewhere, here) = scope(|scope| {
        let thread = Builder::new().spawn_scoped(scope, &mut there).ok();
        let here = here();
        let elsewhere =
            thread.map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        (elsewhere, here)
    });
    (elsewhere.unwrap_or_else(there), here)
}
