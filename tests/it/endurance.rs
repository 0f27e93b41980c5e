//! The short form of `cargo xtask soak`, with the same judgement, and tests of the judgement on made-up samples.

use std::time::Duration;

use settled_torture::soak::judge::{Bounds, Sample, judge, noticed, with_leak};
use settled_torture::soak::{self, Plan};

/// The bounds of the made-up daemon.
const BOUNDS: Bounds = Bounds::of(6, 2);

/// An hour of a busy daemon, sampled every second: reviews and messages, commands that come and go, and memory that
/// goes up and down.
fn hour() -> Vec<Sample> {
    let look = |n: u64| {
        let keepers = n * 7 % 5;
        Sample {
            at_ms: n * 1000,
            rss_kib: 20_000 + n * 13 % 900 + n / 10,
            handles: 24 + keepers * 2 + n % 2,
            threads: 7 + keepers,
            keepers,
            zombies: u64::from(n.is_multiple_of(11)),
            unwaited_ms: 0,
            own_files: 40,
            runs: n.min(200),
            reviews: n,
            messages: n * 4,
            pulls: n / 10,
        }
    };
    (0..3_600).map(look).collect()
}

#[test]
fn a_daemon_whose_memory_goes_up_and_down_is_judged_well() {
    assert_eq!(judge(&hour(), BOUNDS).wrong, [""; 0]);
    let (kib, handles) = noticed(&hour(), BOUNDS);
    assert!(
        (1..16_000).contains(&kib) && (1..20).contains(&handles),
        "{kib} KiB, {handles} handles"
    );
}

#[test]
fn the_memory_of_an_hour_may_grow_by_a_twentieth_and_that_of_less_by_8_mib() {
    let wrong = |samples: &[Sample], kib| judge(&with_leak(samples, kib, 0), BOUNDS).wrong.len();
    // Half of an even leak comes between the middle of the third sixth and that of the last.
    let hour = hour();
    assert_eq!([wrong(&hour, 1_200), wrong(&hour, 2_400)], [0, 1]);
    let (less, kib) = (&hour[..3_000], 8 * 1_024);
    assert_eq!(
        [wrong(less, 2_400), wrong(less, kib), wrong(less, 3 * kib)],
        [0, 0, 1]
    );
}

#[test]
fn a_leak_is_noticed() {
    let (kib, handles) = noticed(&hour(), BOUNDS);
    let memory = judge(&with_leak(&hour(), kib, 0), BOUNDS).wrong;
    assert!(
        memory.len() == 1 && memory[0].starts_with("resident memory"),
        "{memory:?}"
    );
    let files = judge(&with_leak(&hour(), 0, handles), BOUNDS).wrong;
    assert!(
        files.len() == 1 && files[0].starts_with("handles"),
        "{files:?}"
    );
}

#[test]
fn what_rises_without_reason_is_named() {
    let changed = |change: fn(&mut Sample)| {
        let mut samples = hour();
        samples.iter_mut().for_each(change);
        judge(&samples, BOUNDS).wrong.join("; ")
    };
    let threads = changed(|look| look.threads += look.at_ms / 100_000);
    assert!(threads.starts_with("threads rose from"), "{threads}");
    let files = changed(|look| look.own_files += look.at_ms / 2_000);
    assert!(
        files.starts_with("files below .settled rose from"),
        "{files}"
    );
    let runs = changed(|look| look.runs += 7);
    assert_eq!(runs, "207 folders of runs, at most 206 are kept");
    let zombies = changed(|look| look.unwaited_ms = look.at_ms / 1000 * 10);
    assert_eq!(
        zombies,
        "a child that ended was not waited for within 35990 ms"
    );
}

#[test]
fn every_review_ends_and_nothing_grows_under_mixed_traffic() {
    // So short that only a gross leak shows; the hours of `cargo xtask soak` find the small ones.
    let length = Duration::from_secs(10);
    let plan = Plan {
        length,
        seed: 0x50a4_2026_1122,
        look: Duration::from_millis(100),
    };
    let report = soak::soak(&plan, &|_| {});
    assert_eq!(report.wrong, [""; 0], "{report}");
    let ended = &report.ended;
    for how in [
        "approved",
        "closed",
        "escalated (reviewer_budget_exceeded)",
        "escalated (invocation_failed)",
    ] {
        assert!(
            ended.reviews.keys().any(|name| name.starts_with(how)),
            "nothing ended as {how}: {report}"
        );
    }
    assert!(
        ended.reviews.values().sum::<usize>() >= 12 && ended.starts.len() >= 8,
        "{report}"
    );
}
