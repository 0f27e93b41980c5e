//! A ledger in a real stream: tests that need a broker, which the conformance suite does not know.

use settled_host::jetstream::{JetStream, LedgerName, found};
use settled_tests::broker::Broker;
use settled_tests::wait;
use spool::log::{Appended, Head, Log, LogError};

use super::{batch, follows};

pub(crate) fn place() -> LedgerName {
    LedgerName {
        workspace: "w".to_owned(),
        shard: "1".to_owned(),
    }
}

fn servers(brokers: &[Broker]) -> Vec<async_nats::ServerAddr> {
    let urls = brokers.iter().map(Broker::url);
    urls.map(|url| url.parse().expect("a server's address"))
        .collect()
}

pub(crate) fn make(brokers: &[Broker]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let options = async_nats::ConnectOptions::new();
    let made = runtime.block_on(found(servers(brokers), options, &place(), None));
    let made = made.expect("a stream");
    assert_eq!(made.replicas, if brokers.len() == 1 { 1 } else { 3 });
    assert!(made.wrong.is_empty(), "{made:?}");
}

pub(crate) fn open(brokers: &[Broker]) -> JetStream {
    let options = async_nats::ConnectOptions::new();
    let log = JetStream::open(servers(brokers), options, &place()).expect("a log");
    wait::until("a connection", || {
        log.wait_until_connected(std::time::Duration::from_millis(100))
            .is_ok()
    });
    log
}

#[test]
fn a_ledger_goes_through_a_real_broker_and_comes_back_byte_for_byte() {
    let directory = settled_tests::scratch();
    let brokers = [Broker::alone(directory.path())];
    make(&brokers);
    let (mut one, mut other) = (open(&brokers), open(&brokers));
    assert_eq!(one.head(), Ok(Head::EMPTY));
    wait::until("word from the leader", || {
        one.follow(Head::EMPTY).is_ok_and(|all| all.is_empty())
    });
    let first = batch(Head::EMPTY, 3, "a");
    assert_eq!(one.append(&first), Ok(Appended::Committed));
    assert_eq!(one.append(&first), Ok(Appended::Committed));
    let second = batch(first.batch.head(), 1, "b");
    let late = batch(first.batch.head(), 1, "c");
    assert_eq!(other.append(&second), Ok(Appended::Committed));
    assert_eq!(one.append(&late), Ok(Appended::Moved(second.batch.head())));
    let all = follows(&mut other, Head::EMPTY, 2);
    for (given, put) in all.iter().zip([&first, &second]) {
        assert_eq!(given.batch.bytes(), put.batch.bytes());
        assert_eq!(given.host, put.host);
        assert_eq!(given.signature, put.signature);
    }
}

#[test]
fn a_cluster_loses_one_of_three_and_goes_on() {
    let directory = settled_tests::scratch();
    let mut brokers = Broker::cluster(directory.path());
    make(&brokers);
    let mut log = open(&brokers);
    let first = batch(Head::EMPTY, 1, "a");
    wait::until("the first append", || {
        matches!(log.append(&first), Ok(Appended::Committed))
    });
    brokers[1].kill();
    let second = batch(first.batch.head(), 1, "b");
    wait::until("an append without one broker", || {
        match log.append(&second) {
            Ok(Appended::Committed) => true,
            Ok(Appended::Unknown(_)) | Err(LogError::Unreachable { .. }) => false,
            other => panic!("{other:?}"),
        }
    });
    brokers[2].kill();
    let third = batch(second.batch.head(), 1, "c");
    let lost = log.append(&third);
    assert!(
        matches!(
            lost,
            Ok(Appended::Unknown(_)) | Err(LogError::Unreachable { .. })
        ),
        "{lost:?}"
    );
    wait::until("a majority is missed", || {
        log.follow(second.batch.head()).is_err()
    });
    brokers[1].start();
    brokers[2].start();
    wait::until("an append with all again", || {
        matches!(log.append(&third), Ok(Appended::Committed))
    });
    let all = follows(&mut log, Head::EMPTY, 3);
    assert_eq!(all[2].batch.head(), third.batch.head());
}
