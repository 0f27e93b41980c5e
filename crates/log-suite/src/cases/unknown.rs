//! An append with an unknown outcome, and the same bytes again until the outcome is known.

use spool::log::{Appended, Head, Log};

use super::steps::{committed, history, moved};
use crate::Bench;
use crate::Line;
use crate::fixture::batch;

fn unknown(log: &mut dyn Log, signed: &spool::log::Signed) {
    let appended = log.append(signed);
    assert!(matches!(appended, Ok(Appended::Unknown(_))), "{appended:?}");
}

/// It had arrived: the same bytes are committed and there once.
pub fn unknown_that_landed_is_committed_once(bench: &mut dyn Bench) {
    let mut line = Line::to(bench.connect());
    let first = batch(Head::EMPTY, &["one"], "tower");
    line.lose_answer();
    unknown(&mut line, &first);
    committed(&mut line, &first);
    assert_eq!(history(&mut line, Head::EMPTY).len(), 1);
}

/// It had not arrived: the same bytes are committed and there once.
pub fn unknown_that_did_not_land_is_committed_once(bench: &mut dyn Bench) {
    let mut line = Line::to(bench.connect());
    let first = batch(Head::EMPTY, &["one"], "tower");
    line.lose_request();
    unknown(&mut line, &first);
    committed(&mut line, &first);
    assert_eq!(history(&mut line, Head::EMPTY).len(), 1);
}

/// It had arrived and others appended after it: it is committed.
pub fn unknown_that_landed_before_others_is_committed(bench: &mut dyn Bench) {
    let (mut line, mut other) = (Line::to(bench.connect()), bench.connect());
    let first = batch(Head::EMPTY, &["one"], "tower");
    line.lose_answer();
    unknown(&mut line, &first);
    committed(&mut *other, &batch(first.batch.head(), &["two"], "laptop"));
    committed(&mut line, &first);
    assert_eq!(history(&mut line, Head::EMPTY).len(), 2);
}

/// It had not arrived and others appended in its place: it is moved.
pub fn unknown_that_did_not_land_before_others_is_moved(bench: &mut dyn Bench) {
    let (mut line, mut other) = (Line::to(bench.connect()), bench.connect());
    let first = batch(Head::EMPTY, &["one"], "tower");
    line.lose_request();
    unknown(&mut line, &first);
    let theirs = batch(Head::EMPTY, &["theirs"], "laptop");
    committed(&mut *other, &theirs);
    moved(&mut line, &first, theirs.batch.head());
}

/// Its outcome is unknown five times: it is still there only once.
pub fn unknown_many_times_is_there_once(bench: &mut dyn Bench) {
    let mut line = Line::to(bench.connect());
    let first = batch(Head::EMPTY, &["one"], "tower");
    let losses = [Line::lose_request, Line::lose_answer];
    for lose in losses.into_iter().cycle().take(5) {
        lose(&mut line);
        unknown(&mut line, &first);
    }
    committed(&mut line, &first);
    assert_eq!(history(&mut line, Head::EMPTY).len(), 1);
}

/// The end shows whether it arrived.
pub fn the_end_tells_whether_an_unknown_batch_landed(bench: &mut dyn Bench) {
    let mut line = Line::to(bench.connect());
    let first = batch(Head::EMPTY, &["one"], "tower");
    line.lose_request();
    unknown(&mut line, &first);
    assert_eq!(line.head(), Ok(Head::EMPTY));
    line.lose_answer();
    unknown(&mut line, &first);
    assert_eq!(line.head(), Ok(first.batch.head()));
}

/// A follower sees it as it was sent.
pub fn an_unknown_batch_that_landed_is_followed(bench: &mut dyn Bench) {
    let mut line = Line::to(bench.connect());
    let first = batch(Head::EMPTY, &["one"], "tower");
    line.lose_answer();
    unknown(&mut line, &first);
    let there = history(&mut line, Head::EMPTY);
    assert_eq!(there.len(), 1);
    assert_eq!(there[0].batch.bytes(), first.batch.bytes());
}

/// An append that the network held back arrives after other batches: it changes nothing.
pub fn an_append_that_arrives_late_changes_nothing(bench: &mut dyn Bench) {
    let (mut tower, mut network) = (bench.connect(), bench.connect());
    let held_back = batch(Head::EMPTY, &["held back"], "tower");
    let won = batch(Head::EMPTY, &["won"], "laptop");
    committed(&mut *tower, &won);
    moved(&mut *network, &held_back, won.batch.head());
    assert_eq!(history(&mut *tower, Head::EMPTY).len(), 1);
}

/// The duplicate of an append arrives after other batches: the batch is there once.
pub fn a_twin_that_arrives_late_changes_nothing(bench: &mut dyn Bench) {
    let (mut tower, mut network) = (bench.connect(), bench.connect());
    let first = batch(Head::EMPTY, &["one"], "tower");
    committed(&mut *tower, &first);
    committed(&mut *tower, &batch(first.batch.head(), &["two"], "tower"));
    committed(&mut *network, &first);
    assert_eq!(history(&mut *tower, Head::EMPTY).len(), 2);
}

/// The log restarts before the answer: a batch that had arrived is committed once.
pub fn unknown_that_landed_before_a_restart_is_committed_once(bench: &mut dyn Bench) {
    let mut line = Line::to(bench.connect());
    let first = batch(Head::EMPTY, &["one"], "tower");
    line.lose_answer();
    unknown(&mut line, &first);
    bench.restart();
    committed(&mut line, &first);
    assert_eq!(history(&mut line, Head::EMPTY).len(), 1);
}

/// The log restarts before the request: the batch is committed once.
pub fn unknown_that_did_not_land_before_a_restart_is_committed_once(bench: &mut dyn Bench) {
    let mut line = Line::to(bench.connect());
    let first = batch(Head::EMPTY, &["one"], "tower");
    line.lose_request();
    unknown(&mut line, &first);
    bench.restart();
    committed(&mut line, &first);
    assert_eq!(history(&mut line, Head::EMPTY).len(), 1);
}
