//! Waiting for another process: the only place in the tests that sleeps, always towards a
//! condition and never longer than a deadline that a working daemon does not come near.

use std::time::{Duration, Instant};

/// The longest wait before the test gives up.
const DEADLINE: Duration = Duration::from_secs(30);

/// The pause between two looks at a condition, at first and at most. It grows with the wait, to an eighth of it: many looks
/// start a process, and would take the processor from what is waited for.
const POLL: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(20)];

/// Waits until `probe` gives something.
pub fn for_some<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(
            start.elapsed() < DEADLINE,
            "waited {DEADLINE:?} in vain for: {what}"
        );
        let [least, most] = POLL;
        std::thread::sleep((start.elapsed() / 8).clamp(least, most));
    }
}

/// Waits until `holds`.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for_some(what, || holds().then_some(()));
}

/// Lets another process run for this long, to meet it somewhere else in its work each time. What
/// a test claims must hold for every length.
pub fn a_moment(length: Duration) {
    std::thread::sleep(length);
}
