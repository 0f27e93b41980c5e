//! A log longer than a broker buffers for one client: it disconnects a client that requests all of it at once.

use std::sync::Arc;

use log_suite::Patient;
use settled_tests::broker::Broker;
use spool::log::{Appended, Head, Log};

use super::jetstream::{make, open};
use super::{batch, follows};

/// Together more than the 64 MiB that may be pending.
const BATCHES: usize = 24;
const BYTES: usize = 3_500_000;

#[test]
fn a_host_that_reads_a_long_log_is_never_too_slow_for_its_broker() {
    let directory = settled_tests::scratch();
    let brokers = [Broker::with(directory.path(), "max_payload: 4MB\n")];
    make(&brokers);
    // A broker on a busy machine answers late, and an unknown outcome is asked for again.
    let mut log = Patient::with(open(&brokers), &Arc::default());
    let mut head = Head::EMPTY;
    for _ in 0..BATCHES {
        let next = batch(head, 1, &"x".repeat(BYTES));
        assert_eq!(log.append(&next), Ok(Appended::Committed));
        head = next.batch.head();
    }
    let all = follows(&mut open(&brokers), Head::EMPTY, BATCHES);
    assert_eq!(all.last().map(|last| last.batch.head()), Some(head));
    let said = settled_tests::read(directory.path().join("n1.log"));
    assert!(!said.contains("Slow Consumer"), "{said}");
}
