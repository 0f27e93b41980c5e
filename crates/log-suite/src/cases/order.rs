//! The order of a log: a batch appended after its end is there, and nothing else.

use spool::log::{Appended, Head};

use super::steps::{committed, history, moved, put, put_all};
use crate::Bench;
use crate::fixture::{batch, nowhere};

/// An empty log ends before the first record.
pub fn an_empty_log_ends_before_the_first_record(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    assert_eq!(log.head(), Ok(Head::EMPTY));
    assert!(history(&mut *log, Head::EMPTY).is_empty());
}

/// The first batch is committed and becomes the end.
pub fn the_first_batch_becomes_the_end(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let first = batch(Head::EMPTY, &["one"], "tower");
    committed(&mut *log, &first);
    assert_eq!(log.head(), Ok(first.batch.head()));
}

/// A batch of many records ends with its last one.
pub fn a_batch_of_many_ends_with_its_last_record(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let many = batch(Head::EMPTY, &["one", "two", "three"], "tower");
    committed(&mut *log, &many);
    assert_eq!(log.head().map(|head| head.seq), Ok(3));
}

/// Ten batches in a row are one chain.
pub fn batches_in_a_row_are_one_chain(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let put = put_all(&mut *log, 10);
    assert_eq!(log.head(), Ok(put[9].batch.head()));
    assert_eq!(history(&mut *log, Head::EMPTY).len(), 10);
}

/// A batch for a past end is moved, and the host gets the current end.
pub fn a_batch_for_a_past_end_is_moved(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let put = put_all(&mut *log, 3);
    let late = batch(put[0].batch.head(), &["late"], "laptop");
    moved(&mut *log, &late, put[2].batch.head());
}

/// A batch for an end that the log does not have yet is moved.
pub fn a_batch_for_a_future_end_is_moved(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let put = put_all(&mut *log, 1);
    let early = batch(nowhere(9), &["early"], "laptop");
    moved(&mut *log, &early, put[0].batch.head());
}

/// The number of the last record is not enough: its digest must match as well.
pub fn a_batch_behind_another_record_of_the_same_number_is_moved(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let put = put_all(&mut *log, 2);
    let other = batch(nowhere(put[1].batch.head().seq), &["other"], "laptop");
    moved(&mut *log, &other, put[1].batch.head());
}

/// A first batch is moved once there is another first batch.
pub fn a_second_first_batch_is_moved(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let put = put_all(&mut *log, 1);
    moved(
        &mut *log,
        &batch(Head::EMPTY, &["mine"], "laptop"),
        put[0].batch.head(),
    );
}

/// A moved batch leaves nothing in the log.
pub fn a_moved_batch_leaves_nothing(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let put = put_all(&mut *log, 2);
    moved(
        &mut *log,
        &batch(Head::EMPTY, &["mine"], "laptop"),
        put[1].batch.head(),
    );
    let there = history(&mut *log, Head::EMPTY);
    assert_eq!(there.len(), 2);
    assert_eq!(there[1].batch.head(), put[1].batch.head());
}

/// A moved batch is committed once it is judged on the current end.
pub fn a_moved_batch_that_is_judged_again_is_committed(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let put = put_all(&mut *log, 2);
    let Ok(Appended::Moved(end)) = log.append(&batch(Head::EMPTY, &["mine"], "laptop")) else {
        panic!("it was not moved");
    };
    assert_eq!(end, put[1].batch.head());
    committed(&mut *log, &batch(end, &["mine"], "laptop"));
}

/// Of two hosts that append after the same end, one is committed and one is moved.
pub fn of_two_hosts_one_wins(bench: &mut dyn Bench) {
    let (mut tower, mut laptop) = (bench.connect(), bench.connect());
    let won = batch(Head::EMPTY, &["tower's"], "tower");
    committed(&mut *tower, &won);
    moved(
        &mut *laptop,
        &batch(Head::EMPTY, &["laptop's"], "laptop"),
        won.batch.head(),
    );
}

/// Two hosts that lose in turn make one chain of everything committed.
pub fn two_hosts_in_many_rounds_make_one_chain(bench: &mut dyn Bench) {
    let mut hosts = [bench.connect(), bench.connect()];
    let mut end = Head::EMPTY;
    for (wins, loses) in [(0, 1), (1, 0)].into_iter().cycle().take(20) {
        let won = batch(end, &["won"], ["tower", "laptop"][wins]);
        committed(&mut *hosts[wins], &won);
        let lost = batch(end, &["lost"], ["tower", "laptop"][loses]);
        moved(&mut *hosts[loses], &lost, won.batch.head());
        end = won.batch.head();
    }
    for host in &mut hosts {
        let there = history(&mut **host, Head::EMPTY);
        assert_eq!(there.len(), 20);
        assert_eq!(there[19].batch.head(), end);
    }
}

/// The same bytes again are committed, and the log holds them once.
pub fn the_same_batch_again_is_there_once(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let first = batch(Head::EMPTY, &["one"], "tower");
    for _ in 0..3 {
        committed(&mut *log, &first);
    }
    assert_eq!(history(&mut *log, Head::EMPTY).len(), 1);
}

/// The same holds after others have appended.
pub fn the_same_batch_again_behind_others_is_there_once(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    let put = put_all(&mut *log, 5);
    committed(&mut *log, &put[1]);
    assert_eq!(history(&mut *log, Head::EMPTY).len(), 5);
}

/// The same holds for a host that was restarted.
pub fn the_same_batch_from_a_new_handle_is_there_once(bench: &mut dyn Bench) {
    let put = put_all(&mut *bench.connect(), 3);
    let mut log = bench.connect();
    committed(&mut *log, &put[2]);
    committed(&mut *log, &put[0]);
    assert_eq!(history(&mut *log, Head::EMPTY).len(), 3);
}

/// Another batch at a taken position is moved, however much it resembles the batch there.
pub fn another_batch_at_a_taken_place_is_moved(bench: &mut dyn Bench) {
    let mut log = bench.connect();
    committed(&mut *log, &batch(Head::EMPTY, &["one", "two"], "tower"));
    let end = put(&mut *log, &["three"]).batch.head();
    moved(&mut *log, &batch(Head::EMPTY, &["one"], "tower"), end);
    moved(&mut *log, &batch(Head::EMPTY, &["one", "2"], "tower"), end);
    moved(
        &mut *log,
        &batch(Head::EMPTY, &["one", "two"], "laptop"),
        end,
    );
}
