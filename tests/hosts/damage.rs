//! A broker whose files are damaged: one bit, or the end. Each host gets the bytes that were acknowledged, or it is told that
//! it cannot: nothing else.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use log_suite::Dice;
use settled_host::JetStream;
use settled_tests::broker::Broker;
use settled_tests::{list, wait};
use spool::log::{Appended, Head, Log, LogError, Signed};

use crate::jetstream::{make, open};
use crate::{batch, follows};

/// How long a host may take to go on, or to find out that it cannot.
const PATIENCE: Duration = Duration::from_secs(15);

/// The largest file of messages below a directory.
fn messages(directory: &Path) -> PathBuf {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for path in list(directory) {
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|end| end == "blk")
                && path.to_string_lossy().contains("SETTLED")
            {
                found.push(path);
            }
        }
    }
    let largest = found.into_iter().max_by_key(|path| {
        let metadata = path.metadata();
        metadata.map_or(0, |metadata| metadata.len())
    });
    largest.expect("a file of messages")
}

/// Appends `next` for a host that has everything up to its predecessor, or gives what keeps it from that.
fn goes_on(log: &mut JetStream, next: &Signed) -> Result<(), LogError> {
    let ours = next.batch.after();
    let began = Instant::now();
    loop {
        let told = match log.follow(ours) {
            Ok(given) => {
                assert!(given.is_empty(), "the log invented records");
                match log.append(next) {
                    Ok(Appended::Committed) => return Ok(()),
                    Ok(Appended::Moved(end)) => LogError::RolledBack { log: end, ours },
                    Ok(Appended::Unknown(why)) => LogError::Unreachable { why },
                    Err(error) => error,
                }
            }
            Err(error) if !error.is_retryable() => return Err(error),
            Err(error) => error,
        };
        if began.elapsed() > PATIENCE {
            assert!(told.is_retryable(), "a host is not told: {told}");
            return Err(told);
        }
        wait::a_moment(Duration::from_millis(20));
    }
}

/// Everything that a host without a ledger is given, until the log's end or until it is told that something is wrong.
fn history(log: &mut JetStream) -> (Vec<Signed>, Option<LogError>) {
    let mut all: Vec<Signed> = Vec::new();
    let began = Instant::now();
    loop {
        let from = all.last().map_or(Head::EMPTY, |signed| signed.batch.head());
        match log.follow(from) {
            Ok(given) => all.extend(given),
            Err(error) if !error.is_retryable() => return (all, Some(error)),
            Err(_) => {}
        }
        let seen = all.last().map_or(Head::EMPTY, |last| last.batch.head());
        if log.head().is_ok_and(|end| end == seen) {
            return (all, None);
        }
        if began.elapsed() > PATIENCE {
            let why = "its records do not arrive".to_owned();
            return (all, Some(LogError::Unreachable { why }));
        }
        wait::a_moment(Duration::from_millis(20));
    }
}

/// Damages the files of a broker that was killed, and looks how a host goes on that has everything, and one that has nothing.
/// Gives what keeps the first one from going on.
fn damaged(damage: impl FnOnce(&mut Vec<u8>)) -> Option<LogError> {
    let directory = tempfile::tempdir().expect("a directory");
    let mut brokers = [Broker::alone(directory.path())];
    make(&brokers);
    let mut log = open(&brokers);
    let mut put: Vec<Signed> = Vec::new();
    for number in 0..12 {
        let after = put.last().map_or(Head::EMPTY, |last| last.batch.head());
        let next = batch(after, 1 + number % 3, &format!("batch {number}"));
        wait::until("an append", || log.append(&next) == Ok(Appended::Committed));
        put.push(next);
    }
    assert_eq!(follows(&mut log, Head::EMPTY, 12).len(), 12);
    brokers[0].kill();
    let file = messages(directory.path());
    let mut bytes = std::fs::read(&file).expect("messages");
    damage(&mut bytes);
    std::fs::write(&file, bytes).expect("messages");
    brokers[0].start();

    let next = batch(put[11].batch.head(), 1, "next");
    let with_all = goes_on(&mut log, &next);
    let (given, wrong) = history(&mut open(&brokers));
    let expected = put.iter().chain(with_all.is_ok().then_some(&next));
    for (given, put) in given.iter().zip(expected.clone()) {
        assert_eq!(given.batch.bytes(), put.batch.bytes());
        assert_eq!((&given.host, &given.signature), (&put.host, &put.signature));
    }
    if with_all.is_ok() && wrong.is_none() {
        assert_eq!(
            given.len(),
            expected.count(),
            "a host is not told that records are missing"
        );
    }
    with_all.err()
}

#[test]
fn a_flipped_bit_in_a_brokers_file_is_harmless_or_told() {
    for seed in 0..8 {
        let mut dice = Dice::new(seed);
        // What each host says is looked at where it is said.
        damaged(|bytes| {
            let at = dice.below(bytes.len());
            bytes[at] ^= 1 << dice.below(8);
        });
    }
}

#[test]
fn a_tail_cut_off_a_brokers_file_is_harmless_or_told() {
    for seed in 0..6 {
        let mut dice = Dice::new(seed);
        let said = damaged(|bytes| {
            let left = bytes.len() - 1 - dice.below(bytes.len() / 2);
            bytes.truncate(left);
        });
        // The host that has everything may not go on without what was cut off.
        assert_ne!(said, None, "seed {seed}");
    }
}
