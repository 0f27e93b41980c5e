//! Waits for another process: the only place in the tests that sleeps, always for a condition and with a deadline that
//! a working daemon never comes near.

use std::time::{Duration, Instant};

/// The longest wait before the test gives up.
const DEADLINE: Duration = Duration::from_secs(30);

/// The first and the longest pause between two checks of a condition. It grows with the wait, to an eighth of it: many
/// checks start a process, and would take the processor from what the test waits for.
const POLL: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(20)];

/// Waits until `probe` returns a value, and returns it.
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

/// Waits until `holds` returns true.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for_some(what, || holds().then_some(()));
}

/// Lets another process run for this long, to meet it at a different point of its work each time. A test's claim must
/// hold for every length.
pub fn a_moment(length: Duration) {
    std::thread::sleep(length);
}
