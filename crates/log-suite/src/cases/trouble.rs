//! Trouble: too large, cut off, restarted, rolled back, forked, with a gap.

use spool::log::{Appended, Head, LogError};

use super::steps::{committed, history, moved, put, put_all, until};
use crate::Bench;
use crate::fixture::batch;

fn of_size(after: Head, bytes: usize) -> spool::log::Signed {
    let around = batch(after, &[""], "tower").batch.bytes().len();
    batch(after, &[&"x".repeat(bytes - around)], "tower")
}

/// A batch above the limit is refused and leaves nothing.
pub fn a_batch_above_the_limit_is_refused(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let first = put(&mut *log, &["one"]);
    let large = of_size(first.batch.head(), bench.batch_bytes_max() + 1);
    let told = log.append(&large);
    assert!(matches!(told, Err(LogError::TooLarge { .. })), "{told:?}");
    assert_eq!(log.head(), Ok(first.batch.head()));
}

/// A batch at the limit is taken.
pub fn a_batch_at_the_limit_is_taken(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let large = of_size(Head::EMPTY, bench.batch_bytes_max());
    assert_eq!(large.batch.bytes().len(), bench.batch_bytes_max());
    committed(&mut *log, &large);
    assert_eq!(
        until(&mut *log, Head::EMPTY, 1)[0].batch.bytes(),
        large.batch.bytes()
    );
}

/// After refusing a batch for its size, the log takes smaller ones.
pub fn after_one_that_is_too_large_the_log_goes_on(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let large = of_size(Head::EMPTY, bench.batch_bytes_max() + 1);
    assert!(log.append(&large).is_err());
    put_all(&mut *log, 2);
}

/// A log that is restarted before the first batch is empty and takes it.
pub fn a_restart_before_the_first_batch(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    bench.restart();
    put_all(&mut *log, 1);
}

/// Acknowledged batches survive a restart.
pub fn a_restart_keeps_what_was_acknowledged(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let put = put_all(&mut *log, 3);
    bench.restart();
    assert_eq!(until(&mut *log, Head::EMPTY, 3).len(), 3);
    assert_eq!(log.head(), Ok(put[2].batch.head()));
}

/// Appends do not notice a restart between them.
pub fn a_restart_between_appends(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let mut end = Head::EMPTY;
    for _ in 0..4 {
        let next = batch(end, &["next"], "tower");
        committed(&mut *log, &next);
        end = next.batch.head();
        bench.restart();
    }
    assert_eq!(until(&mut *log, Head::EMPTY, 4).len(), 4);
}

/// After a restart between two looks, the second continues where the first ended.
pub fn a_restart_between_looks(bench: &mut dyn Bench) {
    let (mut tower, mut laptop) = (bench.connect(), bench.connect());
    let put = put_all(&mut *tower, 3);
    until(&mut *laptop, Head::EMPTY, 3);
    bench.restart();
    let end = put[2].batch.head();
    committed(&mut *tower, &batch(end, &["next"], "tower"));
    assert_eq!(until(&mut *laptop, end, 1).len(), 1);
}

/// After a restart, a moved batch is moved again.
pub fn a_restart_after_a_batch_was_moved(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let end = put_all(&mut *log, 2)[1].batch.head();
    let late = batch(Head::EMPTY, &["late"], "laptop");
    moved(&mut *log, &late, end);
    bench.restart();
    moved(&mut *log, &late, end);
}

/// A host that is cut off gets neither an acceptance nor a new end; reconnected, it continues.
pub fn cut_off_nothing_is_accepted(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let first = put(&mut *log, &["one"]);
    let next = batch(first.batch.head(), &["two"], "tower");
    bench.cut_off();
    for _ in 0..2 {
        let told = log.append(&next);
        let is_known = matches!(told, Ok(Appended::Committed | Appended::Moved(_)));
        assert!(!is_known, "cut off, and it was told {told:?}");
    }
    bench.join();
    committed(&mut *log, &next);
    assert_eq!(until(&mut *log, Head::EMPTY, 2).len(), 2);
}

/// A host that is cut off does not mistake the log for an empty one.
pub fn cut_off_the_end_is_not_known(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let first = put(&mut *log, &["one"]);
    bench.cut_off();
    let told = log.head();
    assert!(
        matches!(told, Err(LogError::Unreachable { .. })),
        "{told:?}"
    );
    bench.join();
    assert_eq!(log.head(), Ok(first.batch.head()));
}

/// A host that is cut off while others write catches up once it is reconnected.
pub fn joined_again_a_host_catches_up(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let first = put(&mut *log, &["one"]);
    bench.cut_off();
    // A look may answer or fail, but invents nothing.
    assert_eq!(
        log.follow(first.batch.head())
            .map_or(0, |batches| batches.len()),
        0
    );
    bench.join();
    let mut other = bench.connect();
    let next = batch(first.batch.head(), &["two"], "laptop");
    committed(&mut *other, &next);
    assert_eq!(until(&mut *log, first.batch.head(), 1)[0].host, next.host);
}

/// A host that has an acknowledged batch notices when the log loses it.
pub fn a_lost_tail_is_found(bench: &mut dyn Bench) {
    let put = put_all(&mut *bench.connect(), 4);
    bench.lose_tail(2);
    let mut log = bench.connect();
    let (ours, end) = (put[3].batch.head(), put[1].batch.head());
    assert_eq!(
        log.follow(ours).err(),
        Some(LogError::RolledBack { log: end, ours })
    );
}

/// A batch after a lost tail is not accepted.
pub fn behind_a_lost_tail_nothing_is_accepted(bench: &mut dyn Bench) {
    let put = put_all(&mut *bench.connect(), 3);
    bench.lose_tail(1);
    let next = batch(put[2].batch.head(), &["next"], "tower");
    moved(&mut *bench.connect(), &next, put[1].batch.head());
}

/// A lost tail is put back from a mirror: the same bytes, hosts and signatures.
pub fn a_lost_tail_is_put_back(bench: &mut dyn Bench) {
    let put = put_all(&mut *bench.connect(), 4);
    bench.lose_tail(3);
    let mut log = bench.connect();
    for signed in &put[1..] {
        committed(&mut *log, signed);
    }
    let there = history(&mut *log, Head::EMPTY);
    assert_eq!(there.len(), 4);
    for (there, put) in there.iter().zip(&put) {
        assert_eq!(there.batch.bytes(), put.batch.bytes());
        assert_eq!((&there.host, &there.signature), (&put.host, &put.signature));
    }
}

/// A log that was emptied counts as rolled back, not as new.
pub fn a_log_that_was_emptied_is_rolled_back(bench: &mut dyn Bench) {
    let put = put_all(&mut *bench.connect(), 2);
    bench.lose_tail(2);
    let told = bench.connect().follow(put[1].batch.head()).err();
    let (log, ours) = (Head::EMPTY, put[1].batch.head());
    assert_eq!(told, Some(LogError::RolledBack { log, ours }));
}

/// A host that has an acknowledged batch notices when the log holds another in its place.
pub fn a_forked_tail_is_found(bench: &mut dyn Bench) {
    let put = put_all(&mut *bench.connect(), 3);
    let other = batch(put[1].batch.head(), &["other"], "laptop");
    bench.replace_last(&other);
    let (ours, theirs) = (put[2].batch.head(), other.batch.head());
    let told = bench.connect().follow(ours).err();
    let (at, ours, theirs) = (ours.seq, ours.digest, theirs.digest);
    assert_eq!(told, Some(LogError::Forked { at, ours, theirs }));
}

/// A host that saw neither batch follows the new one: it cannot know better.
pub fn a_forked_tail_is_followed_by_whoever_saw_neither(bench: &mut dyn Bench) {
    let put = put_all(&mut *bench.connect(), 2);
    let other = batch(put[0].batch.head(), &["other"], "laptop");
    bench.replace_last(&other);
    let there = until(&mut *bench.connect(), Head::EMPTY, 2);
    assert_eq!(there[1].batch.bytes(), other.batch.bytes());
}

/// A gap is an error, and nothing after it is returned.
pub fn a_gap_is_told(bench: &mut dyn Bench) {
    let put = put_all(&mut *bench.connect(), 4);
    bench.lose_one(1);
    let mut log = bench.connect();
    // The batches before the gap may come first.
    let mut seen = Head::EMPTY;
    let told = loop {
        match log.follow(seen) {
            Ok(batches) => {
                let last = batches.last().map(|signed| signed.batch.head());
                seen = last.expect("neither an error nor a batch, and a gap ahead");
            }
            Err(error) => break error,
        }
        assert!(
            seen.seq <= put[0].batch.head().seq,
            "the host received records from behind the gap"
        );
    };
    assert!(matches!(told, LogError::Broken { .. }), "{told:?}");
}
