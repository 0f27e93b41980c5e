//! The logs of this room and its program, in one binary: most of these tests wait for each other's timers, not for a core.
//!
//! The longest waits are those of `cli`, which start first.

mod cli;
#[path = "../../../../tests/executable.rs"]
mod executable;
mod git;
mod jetstream;
#[path = "../../../../tests/sh.rs"]
mod sh;

use std::time::{Duration, Instant};

/// The longest wait before a test gives up.
const DEADLINE: Duration = Duration::from_secs(30);

/// The pause between two looks at a condition.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until the probe finds something.
fn for_some<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(began.elapsed() < DEADLINE, "waited in vain for: {what}");
        std::thread::sleep(PAUSE);
    }
}
