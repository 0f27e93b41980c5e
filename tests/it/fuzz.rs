//! A short form of `cargo xtask fuzz daemon`.

use std::time::Duration;

use settled_tests::binaries;
use settled_torture::fuzz::{Plan, fuzz};

#[test]
fn whatever_writers_do_is_delivered_once_or_refused_with_a_report() {
    let plan = Plan {
        seed: 1,
        length: Duration::from_secs(60),
        cases: 12,
        keep: binaries::target().join("fuzz-daemon"),
    };
    let report = fuzz(&plan, &|_| {});
    assert!(
        report.wrong.is_empty(),
        "{report}\n{}",
        report.wrong.join("\n\n")
    );
    // A run without events would prove nothing.
    let counts = report.counts;
    assert!(
        counts.accepted > 50 && counts.refused > 50 && counts.kills > 10 && counts.reviews > 10,
        "{report}"
    );
}
