//! A broker with damaged files, alone or one of three: one bit, or a missing end. A host goes on with the acknowledged
//! bytes, or freezes and says why, and nothing else: a log that stays silent fails a test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use log_suite::Dice;
use settled_host::JetStream;
use settled_tests::broker::Broker;
use settled_tests::mailroom::Mailroom;
use settled_tests::{list, names, wait};
use spool::log::{Appended, Head, Log, LogError, Signed};

use super::jetstream::{make, open};
use super::programs::{Hosts, judged, ledger, question, review};
use super::{batch, follows};

/// The time a host may take to continue, or to find out that it cannot.
const PATIENCE: Duration = Duration::from_secs(15);

/// The outcome of damage for a host that has every record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    GoesOn,
    Frozen,
}

impl Outcome {
    /// The outcome of a handle. An error that may pass, or that says nothing about the records, is none.
    fn of(result: &Result<(), LogError>) -> Outcome {
        match result {
            Ok(()) => Outcome::GoesOn,
            Err(
                LogError::RolledBack { .. } | LogError::Forked { .. } | LogError::Broken { .. },
            ) => Outcome::Frozen,
            Err(error) => panic!("neither goes on nor freezes: {error}"),
        }
    }
}

/// The largest file of messages below a directory.
fn messages(directory: &Path) -> PathBuf {
    let is_messages = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "blk")
            && path.to_string_lossy().contains("SETTLED")
    };
    let found = files(directory).into_iter().filter(is_messages);
    let largest = found.max_by_key(|path| {
        let metadata = path.metadata();
        metadata.map_or(0, |metadata| metadata.len())
    });
    largest.expect("a file of messages")
}

/// All non-empty files below a directory, sorted.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for path in list(directory) {
            if path.is_dir() {
                left.push(path);
            } else if path.metadata().is_ok_and(|data| data.len() > 0) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Appends `next` for a host that has everything before it, or returns the reason why it cannot.
fn goes_on(log: &mut JetStream, next: &Signed, patience: Duration) -> Result<(), LogError> {
    let ours = next.batch.after();
    let began = Instant::now();
    loop {
        let told = match log.follow(ours) {
            Ok(given) => {
                // An append with an unknown outcome may have succeeded.
                let is_next = |given: &Signed| given.batch.bytes() == next.batch.bytes();
                assert!(given.iter().all(is_next), "the log invented records");
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
        if began.elapsed() > patience {
            return Err(told);
        }
        wait::a_moment(Duration::from_millis(20));
    }
}

/// Everything that a host without a ledger receives, up to the log's end or an error.
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

/// Appends twelve batches.
fn filled(log: &mut JetStream) -> Vec<Signed> {
    let mut put: Vec<Signed> = Vec::new();
    for number in 0..12 {
        let after = put.last().map_or(Head::EMPTY, |last| last.batch.head());
        let next = batch(after, 1 + number % 3, &format!("batch {number}"));
        wait::until("an append", || log.append(&next) == Ok(Appended::Committed));
        put.push(next);
    }
    put
}

/// Checks that a host without a ledger receives the original bytes, up to the log's end or to an error that freezes it.
fn is_whole_or_told(
    put: &[Signed],
    next: &Signed,
    with_all: &Result<(), LogError>,
    fresh: &mut JetStream,
) {
    let (given, wrong) = history(fresh);
    if let Some(wrong) = &wrong {
        assert!(!wrong.is_retryable(), "it waits forever: {wrong}");
    }
    let expected = put.iter().chain(with_all.is_ok().then_some(next));
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
}

/// Flips one bit.
fn flip(bytes: &mut [u8], dice: &mut Dice) {
    let at = dice.below(bytes.len());
    bytes[at] ^= 1 << dice.below(8);
}

/// Cuts off the end, at most half.
fn cut(bytes: &mut Vec<u8>, dice: &mut Dice) {
    bytes.truncate(bytes.len() - 1 - dice.below(bytes.len().div_ceil(2)));
}

/// Changes the largest file of messages of a killed broker.
fn damage_messages(directory: &Path, damage: impl FnOnce(&mut Vec<u8>)) {
    let file = messages(directory);
    let mut bytes = std::fs::read(&file).expect("messages");
    damage(&mut bytes);
    std::fs::write(&file, bytes).expect("messages");
}

/// Damages the files of a killed broker, and checks how an up-to-date host and an empty one continue.
fn damaged(damage: impl FnOnce(&mut Vec<u8>)) -> Outcome {
    let directory = settled_tests::scratch();
    let mut brokers = [Broker::alone(directory.path())];
    make(&brokers);
    let mut log = open(&brokers);
    let put = filled(&mut log);
    assert_eq!(follows(&mut log, Head::EMPTY, 12).len(), 12);
    brokers[0].kill();
    damage_messages(directory.path(), damage);
    brokers[0].start();

    let next = batch(put[11].batch.head(), 1, "next");
    let with_all = goes_on(&mut log, &next, PATIENCE);
    is_whole_or_told(&put, &next, &with_all, &mut open(&brokers));
    Outcome::of(&with_all)
}

#[test]
fn a_flipped_bit_in_a_brokers_file_is_harmless_or_told() {
    for seed in 0..8 {
        let mut dice = Dice::new(seed);
        // Either outcome is correct: a bit may be one that no record needs.
        damaged(|bytes| flip(bytes, &mut dice));
    }
}

#[test]
fn a_tail_cut_off_a_brokers_file_is_harmless_or_told() {
    for seed in 0..6 {
        let mut dice = Dice::new(seed);
        let outcome = damaged(|bytes| cut(bytes, &mut dice));
        // The up-to-date host may not continue without the missing end.
        assert_eq!(outcome, Outcome::Frozen, "seed {seed}");
    }
}

/// Damages the files of the broker of two hosts that serve, and checks what each of them has, judges and says.
fn daemons_after(damage: impl FnOnce(&mut Vec<u8>)) -> Outcome {
    let mut hosts = Hosts::on_a_broker();
    let _daemons = (hosts.tower.serve(), hosts.laptop.serve());
    for pr in ["86", "87"] {
        review(&hosts, pr);
    }
    hosts.have_the_same_ledger();
    let before = ledger(hosts.tower.root());
    hosts.broker().kill();
    damage_messages(hosts.directory.path(), damage);
    hosts.broker().start();

    let Hosts { tower, laptop, .. } = &hosts;
    tower.post("claude", "next.yaml", &question("claude", "codex", "next"));
    let outcome = wait::for_some("the hosts to go on or to freeze", || {
        let has_come = !laptop.with_id("codex", "inbox", "next").is_empty();
        let are_frozen = || {
            [tower, laptop]
                .into_iter()
                .all(|host| frozen(host).is_some())
        };
        let goes_on = has_come.then_some(Outcome::GoesOn);
        goes_on.or_else(|| are_frozen().then_some(Outcome::Frozen))
    });
    match outcome {
        Outcome::GoesOn => {
            hosts.have_the_same_ledger();
            let after = ledger(tower.root());
            assert!(after.starts_with(&before), "a mirror lost its beginning");
            let mut files = judged(&after);
            let count = files.len();
            files.sort();
            files.dedup();
            // Two requests, two approvals, and the question.
            assert_eq!((files.len(), count), (5, 5), "{after}");
            tower.cleared("claude");
            assert_eq!([tower, laptop].map(frozen), [None, None]);
        }
        Outcome::Frozen => {
            for host in [tower, laptop] {
                assert_eq!(ledger(host.root()), before);
                let told = frozen(host).expect("it stays frozen");
                let (_, why) = told.split_once(": ").expect("a reason");
                let is_named = [
                    "the log ends with record ",
                    " of the log is ",
                    "the log is damaged: ",
                ];
                assert!(is_named.iter().any(|words| why.contains(words)), "{told}");
            }
            assert_eq!(names(tower.agent("claude", "outbox")), ["next.yaml"]);
        }
    }
    outcome
}

/// The alert of a host that is frozen.
fn frozen(host: &Mailroom) -> Option<String> {
    let status = host.status();
    let mut alerts = status["alerts"].as_array()?.iter();
    let told = alerts.find_map(|alert| alert["what"].as_str()?.strip_prefix("frozen at record "));
    told.map(str::to_owned)
}

#[test]
fn daemons_go_on_or_freeze_after_damage_to_their_broker() {
    for seed in 0..4 {
        let mut dice = Dice::new(100 + seed);
        daemons_after(|bytes| flip(bytes, &mut dice));
    }
    for seed in 0..3 {
        let mut dice = Dice::new(200 + seed);
        let outcome = daemons_after(|bytes| cut(bytes, &mut dice));
        assert_eq!(outcome, Outcome::Frozen, "seed {seed}");
    }
}

/// Damages a file of one broker of three while it is down. Then stops another one, so that the damaged one is needed
/// for a majority and may become the leader; finally starts that again.
fn one_of_three_damaged(seed: u64) -> Outcome {
    let mut dice = Dice::new(seed);
    let directory = settled_tests::scratch();
    let mut brokers = Broker::cluster(directory.path());
    make(&brokers);
    let mut log = open(&brokers);
    let put = filled(&mut log);
    assert_eq!(follows(&mut log, Head::EMPTY, 12).len(), 12);
    let (damaged, stopped) = (dice.below(3), 1 + dice.below(2));
    brokers[damaged].kill();
    let of_broker = directory.path().join(format!("n{}", damaged + 1));
    let all = files(&of_broker);
    // Half of the time the messages, else any file: of the vote, of the terms, of consumers.
    let file = match dice.below(2) {
        0 => messages(&of_broker),
        _ => all[dice.below(all.len())].clone(),
    };
    let mut bytes = std::fs::read(&file).expect("a file");
    if dice.below(2) == 0 {
        flip(&mut bytes, &mut dice);
    } else {
        cut(&mut bytes, &mut dice);
    }
    std::fs::write(&file, bytes).expect("a file");
    // It may refuse to start, which counts as down.
    brokers[damaged].spawn();
    let stopped = (damaged + stopped) % 3;
    brokers[stopped].kill();

    let next = batch(put[11].batch.head(), 1, "next");
    let with_one_less = goes_on(&mut log, &next, PATIENCE);
    brokers[stopped].spawn();
    // A record that was unreachable is reachable now, or never.
    let with_all = if is_final(&with_one_less) {
        with_one_less
    } else {
        goes_on(&mut log, &next, 4 * PATIENCE)
    };
    is_whole_or_told(&put, &next, &with_all, &mut open(&brokers));
    Outcome::of(&with_all)
}

fn is_final(result: &Result<(), LogError>) -> bool {
    result
        .as_ref()
        .err()
        .is_none_or(|error| !error.is_retryable())
}

/// `DAMAGE_SEEDS` tries more of them.
#[test]
#[expect(
    clippy::print_stdout,
    reason = "a figure for a developer who runs this with --nocapture"
)]
fn damage_to_one_broker_of_three_is_harmless_or_told() {
    let seeds = std::env::var("DAMAGE_SEEDS").ok();
    let seeds: u64 = seeds.map_or(3, |seeds| seeds.parse().expect("a number"));
    let mut outcomes = BTreeMap::new();
    for seed in 0..seeds {
        *outcomes.entry(one_of_three_damaged(seed)).or_insert(0) += 1;
    }
    println!("{outcomes:?}");
}
