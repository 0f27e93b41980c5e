//! Following: everything after a position, in order, byte for byte, or the reason why not.

use spool::log::{Head, LogError};

use super::steps::{committed, history, put, put_all, until};
use crate::Bench;
use crate::fixture::{batch, nowhere};

/// From the beginning, all batches come in order.
pub fn from_the_beginning_everything_comes_in_order(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let put = put_all(&mut *log, 7);
    let there = history(&mut *log, Head::EMPTY);
    let heads = |batches: &[spool::log::Signed]| -> Vec<Head> {
        batches.iter().map(|signed| signed.batch.head()).collect()
    };
    assert_eq!(heads(&there), heads(&put));
}

/// From the end nothing comes.
pub fn from_the_end_nothing_comes(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let put = put_all(&mut *log, 3);
    let there = log.follow(put[2].batch.head()).map(|batches| batches.len());
    assert_eq!(there, Ok(0));
}

/// From each position, the rest comes.
pub fn from_each_place_the_rest_comes(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let put = put_all(&mut *log, 5);
    for (at, signed) in put.iter().enumerate() {
        let there = history(&mut *log, signed.batch.head());
        assert_eq!(there.len(), 4 - at);
    }
}

/// From inside a batch, that batch comes whole.
pub fn from_inside_of_a_batch_it_comes_whole(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let first = put(&mut *log, &["one"]);
    let whole = batch(first.batch.head(), &["two", "three", "four"], "tower");
    committed(&mut *log, &whole);
    for seq in [2, 3] {
        let inside = whole.batch.head_at(seq).expect("a record of the batch");
        let there = until(&mut *log, inside, 1);
        assert_eq!(there[0].batch.bytes(), whole.batch.bytes());
    }
}

/// Every byte comes as it was written.
pub fn every_byte_comes_as_it_was_written(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let long = "x".repeat(60_000);
    let texts = [
        "",
        "\u{0}\u{1f}\u{7f}",
        "ä\u{202e}\u{1f600}",
        "a\nb\r\n\t\"\\",
        &long,
    ];
    let sent = batch(Head::EMPTY, &texts, "tower");
    committed(&mut *log, &sent);
    let there = history(&mut *log, Head::EMPTY);
    assert_eq!(there[0].batch.bytes(), sent.batch.bytes());
}

/// Host and signature come as they were given.
pub fn host_and_signature_come_as_they_were_given(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let mut sent = batch(Head::EMPTY, &["one"], "a-host.with_9");
    sent.signature = (0..=255).collect();
    committed(&mut *log, &sent);
    bench.restart();
    let there = until(&mut *log, Head::EMPTY, 1);
    assert_eq!(there[0].host, sent.host);
    assert_eq!(there[0].signature, sent.signature);
}

/// A position after the end is an error: the log was rolled back.
pub fn a_place_behind_the_end_is_a_rollback(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let end = put_all(&mut *log, 2)[1].batch.head();
    let ours = nowhere(7);
    let told = log.follow(ours).err();
    assert_eq!(told, Some(LogError::RolledBack { log: end, ours }));
}

/// Another record at a position is an error: a fork, with both digests.
pub fn another_record_at_a_place_is_a_fork(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let put = put_all(&mut *log, 3);
    for signed in &put {
        let head = signed.batch.head();
        let ours = nowhere(head.seq);
        let told = log.follow(ours).err();
        let (at, ours, theirs) = (head.seq, ours.digest, head.digest);
        assert_eq!(told, Some(LogError::Forked { at, ours, theirs }));
    }
}

/// Another record inside a batch is a fork, too.
pub fn another_record_inside_of_a_batch_is_a_fork(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let whole = batch(Head::EMPTY, &["one", "two", "three"], "tower");
    committed(&mut *log, &whole);
    let told = log.follow(nowhere(2)).err();
    let theirs = whole.batch.head_at(2).expect("a record of it").digest;
    let (at, ours) = (2, nowhere(2).digest);
    assert_eq!(told, Some(LogError::Forked { at, ours, theirs }));
}

/// The number of batches that a sleeping host misses. Readers of our backends keep at most 64 ready.
const BEHIND: usize = 100;

/// A host that slept gets all batches, even more than a reader keeps ready.
pub fn a_slow_follower_catches_up(bench: &mut dyn Bench) {
    let (mut tower, mut sleeper) = (bench.connect(), bench.connect());
    let put = put_all(&mut *tower, BEHIND);
    let there = until(&mut *sleeper, Head::EMPTY, BEHIND);
    assert_eq!(there[BEHIND - 1].batch.head(), put[BEHIND - 1].batch.head());
}

/// A follower gets the batches appended between its looks, without gaps or repetitions.
pub fn a_follower_keeps_up_with_a_writer(bench: &mut dyn Bench) {
    let (mut tower, mut laptop) = (bench.connect(), bench.connect());
    let mut seen = Head::EMPTY;
    let mut end = Head::EMPTY;
    for _ in 0..20 {
        let next = batch(end, &["next"], "tower");
        committed(&mut *tower, &next);
        end = next.batch.head();
        for signed in laptop.follow(seen).expect("batches") {
            assert_eq!(signed.batch.after(), seen);
            seen = signed.batch.head();
        }
    }
    if seen != end {
        let rest = history(&mut *laptop, seen);
        assert_eq!(rest.last().map(|signed| signed.batch.head()), Some(end));
    }
}

/// Two followers see the same bytes.
pub fn two_followers_see_the_same_bytes(bench: &mut dyn Bench) {
    let (mut tower, mut laptop) = (bench.connect(), bench.connect());
    put_all(&mut *tower, 12);
    let [ours, theirs] = [&mut tower, &mut laptop].map(|log| -> Vec<u8> {
        let there = until(&mut **log, Head::EMPTY, 12);
        there
            .iter()
            .flat_map(|signed| signed.batch.bytes().to_vec())
            .collect()
    });
    assert_eq!(ours, theirs);
}

/// A look that finds nothing does not wait.
pub fn a_look_that_finds_nothing_ends(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let end = put(&mut *log, &["one"]).batch.head();
    for _ in 0..5 {
        assert_eq!(log.follow(end).map(|batches| batches.len()), Ok(0));
    }
    assert!(log.poll_ms() > 0, "a loop without a pause would never rest");
}
