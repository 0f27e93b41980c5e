//! The steps that the cases consist of: append, look, wait. Each fails the case when the log does something else.

use std::time::{Duration, Instant};

use spool::log::{Appended, Head, Log, Signed};

use crate::fixture::batch;

/// The time a follower may take to get what the log acknowledged to another host.
const ARRIVES: Duration = Duration::from_secs(20);

/// Appends a batch, which must be committed. A log that has just come back may answer unknown first.
pub(super) fn committed(log: &mut dyn Log, signed: &Signed) {
    let began = Instant::now();
    loop {
        match log.append(signed) {
            Ok(Appended::Committed) => return,
            Ok(Appended::Moved(end)) => panic!("expected a commit, and the end is {end:?}"),
            Ok(Appended::Unknown(why)) => assert!(began.elapsed() < ARRIVES, "{why}"),
            Err(error) => {
                assert!(error.is_retryable() && began.elapsed() < ARRIVES, "{error}");
            }
        }
    }
}

/// Appends a batch, which must be moved to this end.
pub(super) fn moved(log: &mut dyn Log, signed: &Signed, end: Head) {
    let began = Instant::now();
    loop {
        match log.append(signed) {
            Ok(Appended::Moved(told)) => return assert_eq!(told, end),
            Ok(Appended::Committed) => panic!("expected to be moved, and it was committed"),
            Ok(Appended::Unknown(why)) => assert!(began.elapsed() < ARRIVES, "{why}"),
            Err(error) => {
                assert!(error.is_retryable() && began.elapsed() < ARRIVES, "{error}");
            }
        }
    }
}

/// Appends one batch after the end.
pub(super) fn put(log: &mut dyn Log, texts: &[&str]) -> Signed {
    let end = log.head().expect("the end of a log that can be reached");
    let signed = batch(end, texts, "tower");
    committed(log, &signed);
    signed
}

/// Appends this many batches of one or two records after the end.
pub(super) fn put_all(log: &mut dyn Log, batches: usize) -> Vec<Signed> {
    let mut end = log.head().expect("the end of a log that can be reached");
    let mut put = Vec::new();
    for count in 0..batches {
        let text = format!("batch {count}");
        let texts = [text.as_str(), "and more"];
        let signed = batch(end, &texts[..1 + count % 2], "tower");
        committed(log, &signed);
        end = signed.batch.head();
        put.push(signed);
    }
    put
}

/// Returns everything after a position, up to the log's current end.
pub(super) fn history(log: &mut dyn Log, from: Head) -> Vec<Signed> {
    let end = log.head().expect("the end of a log that can be reached");
    gather(log, from, &|_, seen| seen == end)
}

/// Returns this many batches after a position; all of them were acknowledged.
pub(super) fn until(log: &mut dyn Log, from: Head, batches: usize) -> Vec<Signed> {
    gather(log, from, &|count, _| count >= batches)
}

fn gather(log: &mut dyn Log, from: Head, is_all: &dyn Fn(usize, Head) -> bool) -> Vec<Signed> {
    let began = Instant::now();
    let (mut gathered, mut seen) = (Vec::new(), from);
    while !is_all(gathered.len(), seen) {
        match log.follow(seen) {
            Ok(batches) => {
                for signed in batches {
                    let is_next = signed.batch.after() == seen || gathered.is_empty();
                    assert!(is_next, "a gap behind {seen:?}, or a batch twice");
                    seen = signed.batch.head();
                    gathered.push(signed);
                }
            }
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
        assert!(
            began.elapsed() < ARRIVES,
            "only {} batches arrived",
            gathered.len()
        );
    }
    gathered
}
