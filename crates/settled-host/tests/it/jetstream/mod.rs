//! The ledger in a stream of a broker in memory: the conformance suite, and the tests that need a broker.

mod broker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use log_suite::fixture::batch;
use log_suite::{Bench, Patient};
use serde_json::json;
use settled_host::JetStream;
use settled_host::jetstream::{Founded, LedgerName, found};
use spool::log::{Appended, Head, Log, LogError, Signed};

use crate::{DEADLINE, for_some};

use self::broker::{Broker, Kept, Loss, MESSAGE_BYTES_MAX};

log_suite::conformance!(BrokerBench::default());

struct BrokerBench {
    broker: Broker,
    is_cut: Arc<AtomicBool>,
}

impl Default for BrokerBench {
    fn default() -> BrokerBench {
        let broker = Broker::start();
        make(&broker).expect("a stream");
        let is_cut = Arc::default();
        BrokerBench { broker, is_cut }
    }
}

fn place() -> LedgerName {
    LedgerName {
        workspace: "w".to_owned(),
        shard: "1".to_owned(),
    }
}

fn make(broker: &Broker) -> Result<Founded, LogError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let servers = vec![broker.url().parse().expect("an address")];
    let options = async_nats::ConnectOptions::new();
    runtime.block_on(found(servers, options, &place(), None))
}

fn open(broker: &Broker) -> JetStream {
    let servers = vec![broker.url().parse().expect("an address")];
    let options = async_nats::ConnectOptions::new();
    let log = JetStream::open(servers, options, &place()).expect("a log");
    log.wait_until_connected(DEADLINE).expect("a connection");
    log
}

impl BrokerBench {
    /// Changes the messages while nobody is connected and renumbers them.
    fn change(&self, change: impl FnOnce(&mut Vec<Kept>)) {
        {
            let mut state = self.broker.state();
            change(&mut state.messages);
            for (kept, place) in state.messages.iter_mut().zip(1..) {
                kept.place = place;
            }
        }
        self.broker.restart();
    }
}

impl Bench for BrokerBench {
    fn connect(&mut self) -> Box<dyn Log> {
        Patient::with(open(&self.broker), &self.is_cut)
    }

    fn restart(&mut self) {
        self.broker.restart();
    }

    fn cut_off(&mut self) {
        self.broker.state().is_cut = true;
        self.is_cut.store(true, Ordering::SeqCst);
    }

    fn join(&mut self) {
        self.broker.state().is_cut = false;
        self.broker.restart();
        self.is_cut.store(false, Ordering::SeqCst);
    }

    fn batch_bytes_max(&self) -> usize {
        open(&self.broker).batch_bytes_max()
    }

    fn lose_tail(&mut self, batches: usize) {
        self.change(|kept| kept.truncate(kept.len() - batches));
    }

    fn lose_one(&mut self, batch: usize) {
        self.change(|kept| {
            kept.remove(batch);
        });
    }

    fn replace_last(&mut self, with: &Signed) {
        self.lose_tail(1);
        let appended = open(&self.broker).append(with);
        assert_eq!(appended, Ok(Appended::Committed));
    }
}

/// Three batches of one record.
fn three(log: &mut dyn Log) -> Vec<Signed> {
    let mut put: Vec<Signed> = Vec::new();
    for text in ["one", "two", "three"] {
        let end = put.last().map_or(Head::EMPTY, |last| last.batch.head());
        let next = batch(end, &[text], "tower");
        assert_eq!(log.append(&next), Ok(Appended::Committed));
        put.push(next);
    }
    put
}

#[test]
fn an_append_behind_what_the_log_lost_is_moved() {
    let mut bench = BrokerBench::default();
    let mut log = open(&bench.broker);
    let put = three(&mut log);
    bench.lose_tail(2);
    let next = batch(put[2].batch.head(), &["four"], "tower");
    let appended = for_some("an answer", || match log.append(&next) {
        Ok(Appended::Unknown(_)) | Err(LogError::Unreachable { .. }) => None,
        other => Some(other),
    });
    assert_eq!(appended, Ok(Appended::Moved(put[0].batch.head())));
}

#[test]
fn a_stream_is_made_once_with_as_many_replicas_as_there_are_servers() {
    for (followers, replicas) in [(None, 1), (Some(json!({"replicas": []})), 3)] {
        let broker = Broker::start();
        broker.state().followers = followers;
        let made = make(&broker).expect("a stream");
        assert_eq!(
            (made.replicas, made.message_bytes_max),
            (replicas, MESSAGE_BYTES_MAX)
        );
        assert_eq!(made.wrong, [""; 0]);
        let config = broker.state().stream.clone().expect("a stream");
        assert_eq!(config["name"], "SETTLED_1");
        assert_eq!(
            (&config["deny_delete"], &config["deny_purge"]),
            (&json!(true), &json!(true))
        );
        // An existing stream stays unchanged.
        if let Some(stream) = &mut broker.state().stream {
            stream["deny_purge"] = json!(false);
        }
        let there = make(&broker).expect("a stream");
        assert_eq!(there.wrong, ["it can be emptied"]);
    }
}

#[test]
fn a_cluster_that_was_just_started_is_asked_again_and_a_full_one_is_not() {
    let broker = Broker::start();
    // The codes for no peers yet and no leader yet.
    broker.state().refuses_stream = vec![10_005, 10_008];
    assert_eq!(make(&broker).map(|made| made.replicas), Ok(1));
    assert_eq!(broker.state().refuses_stream, [0; 0]);

    let full = Broker::start();
    full.state().refuses_stream = vec![10_047; 2];
    let told = make(&full);
    assert!(
        matches!(told, Err(LogError::Unreachable { .. })),
        "{told:?}"
    );
    assert_eq!(full.state().refuses_stream, [10_047], "asked once");
}

#[test]
fn a_batch_whose_answer_is_lost_is_found_where_it_is_and_one_that_is_lost_is_unknown() {
    let bench = BrokerBench::default();
    let mut log = open(&bench.broker);
    let put = three(&mut log);
    let next = batch(put[2].batch.head(), &["next"], "tower");
    bench.broker.state().loses = Some(Loss::Answer);
    assert_eq!(log.append(&next), Ok(Appended::Committed));
    let after = batch(next.batch.head(), &["after"], "tower");
    bench.broker.state().loses = Some(Loss::Request);
    let told = log.append(&after);
    assert!(matches!(told, Ok(Appended::Unknown(_))), "{told:?}");
    // Once the append may have landed, no failure excludes that.
    bench.broker.state().is_cut = true;
    let told = log.append(&after);
    assert!(matches!(told, Ok(Appended::Unknown(_))), "{told:?}");
    bench.broker.state().is_cut = false;
    assert_eq!(bench.broker.state().messages.len(), 4);
}

#[test]
fn a_batch_that_is_refused_because_of_one_in_flight_is_sent_again() {
    let bench = BrokerBench::default();
    let mut log = open(&bench.broker);
    let put = three(&mut log);
    let next = batch(put[2].batch.head(), &["next"], "tower");
    bench.broker.state().busy = 3;
    assert_eq!(log.append(&next), Ok(Appended::Committed));
    assert_eq!(bench.broker.state().messages.len(), 4);

    // The one in flight is another host's.
    let [ours, theirs] = ["ours", "theirs"].map(|text| batch(next.batch.head(), &[text], "laptop"));
    assert_eq!(log.append(&theirs), Ok(Appended::Committed));
    {
        let mut state = bench.broker.state();
        state.in_flight = state.messages.pop();
        state.busy = 3;
    }
    let mut tower = open(&bench.broker);
    assert_eq!(
        tower.append(&ours),
        Ok(Appended::Moved(theirs.batch.head()))
    );

    // A leader that stays busy proves nothing.
    let last = batch(theirs.batch.head(), &["last"], "tower");
    bench.broker.state().busy = usize::MAX;
    let told = log.append(&last);
    assert!(matches!(told, Ok(Appended::Unknown(_))), "{told:?}");
    bench.broker.state().busy = 0;
    assert_eq!(log.append(&last), Ok(Appended::Committed));
}

#[test]
fn a_follower_is_woken_by_what_others_append() {
    let bench = BrokerBench::default();
    let (mut tower, mut laptop) = (open(&bench.broker), open(&bench.broker));
    assert_eq!(laptop.follow(Head::EMPTY).map(|all| all.len()), Ok(0));
    let changes = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&changes);
    laptop.on_change(Box::new(move || {
        counter.fetch_add(1, Ordering::SeqCst);
    }));
    let put = three(&mut tower);
    for_some("three changes", || {
        (changes.load(Ordering::SeqCst) >= 3).then_some(())
    });
    let given = laptop.follow(Head::EMPTY).expect("batches");
    assert_eq!(given.len(), 3, "one call gives all that has come");
    assert_eq!(given[2].batch.head(), put[2].batch.head());
    assert_eq!(bench.broker.state().made, 1, "one consumer for all of it");
    assert_eq!(laptop.poll_ms(), 500);
}

#[test]
fn a_consumer_that_leaves_a_batch_out_is_made_again() {
    let bench = BrokerBench::default();
    three(&mut open(&bench.broker));
    bench.broker.state().left_out = vec![2];
    let mut log = open(&bench.broker);
    let mut seen = Head::EMPTY;
    for_some("the batch before the gap and a second consumer", || {
        for signed in log.follow(seen).expect("it is no damage") {
            seen = signed.batch.head();
        }
        (seen.seq == 1 && bench.broker.state().made >= 2).then_some(())
    });
    bench.broker.state().left_out.clear();
    for_some("the rest", || {
        for signed in log.follow(seen).unwrap_or_default() {
            seen = signed.batch.head();
        }
        (seen.seq == 3).then_some(())
    });
}

#[test]
fn a_consumer_that_falls_silent_is_made_again() {
    let bench = BrokerBench::default();
    let put = three(&mut open(&bench.broker));
    bench.broker.state().left_out = vec![3];
    let mut log = open(&bench.broker);
    let seen = put[1].batch.head();
    let began = Instant::now();
    for_some("a second consumer", || {
        assert_eq!(log.follow(seen).map(|all| all.len()), Ok(0));
        (bench.broker.state().made >= 2).then_some(())
    });
    assert!(
        began.elapsed() >= Duration::from_secs(2),
        "the first one had no time"
    );
}

#[test]
fn a_leader_of_three_that_has_too_little_is_believed_only_with_a_majority_behind_it() {
    let bench = BrokerBench::default();
    let peer = |is_offline: bool| json!({"name": "p", "current": true, "active": 1, "offline": is_offline});
    {
        let mut state = bench.broker.state();
        state.followers = Some(json!({"replicas": [peer(true), peer(true)]}));
        if let Some(stream) = &mut state.stream {
            stream["num_replicas"] = json!(3);
        }
    }
    let mut log = open(&bench.broker);
    let put = three(&mut log);
    let ours = put[2].batch.head();
    bench.broker.state().shown = Some(2);
    // Without followers it may be a deposed leader.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(4) {
        let told = log.follow(ours);
        let is_held = matches!(&told, Ok(given) if given.is_empty())
            || matches!(&told, Err(error) if error.is_retryable());
        assert!(is_held, "{told:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    bench.broker.state().followers = Some(json!({"replicas": [peer(false), peer(true)]}));
    let back = LogError::RolledBack {
        log: put[1].batch.head(),
        ours,
    };
    for_some("the lost record to be told", || {
        (log.follow(ours).err() == Some(back.clone())).then_some(())
    });
}

#[test]
fn a_host_in_step_hears_that_the_log_lost_its_end() {
    let bench = BrokerBench::default();
    let mut log = open(&bench.broker);
    let put = three(&mut log);
    let ours = put[2].batch.head();
    let mut follow = || log.follow(ours).map(|given| given.len());
    assert_eq!(follow(), Ok(0));
    bench.broker.state().shown = Some(2);
    let told = for_some("the loss to be told", || match follow() {
        Ok(0) => None,
        other => Some(other),
    });
    let log = put[1].batch.head();
    assert_eq!(told, Err(LogError::RolledBack { log, ours }));
}

#[test]
fn a_batch_among_many_is_found_with_few_questions() {
    let bench = BrokerBench::default();
    let mut log = open(&bench.broker);
    let mut heads = vec![Head::EMPTY];
    for n in 0..64 {
        let next = batch(heads[n], &[&n.to_string()], "tower");
        assert_eq!(log.append(&next), Ok(Appended::Committed));
        heads.push(next.batch.head());
    }
    for place in [1, 32, 63] {
        let mut log = open(&bench.broker);
        let before = bench.broker.state().sought;
        let late = batch(heads[place], &["late"], "laptop");
        assert_eq!(log.append(&late), Ok(Appended::Moved(heads[64])));
        let sought = bench.broker.state().sought - before;
        // Six halve the 63 places before the last one, and another one looks behind the batch.
        assert!(sought <= 7, "place {place}: {sought} questions");
    }
}

#[test]
fn a_heartbeat_is_heard_by_the_hosts_that_listen() {
    let bench = BrokerBench::default();
    let (mut tower, mut laptop) = (open(&bench.broker), open(&bench.broker));
    let large = vec![b'x'; 5_000];
    let heard = for_some("a heartbeat", || {
        tower.send_heartbeat(large.clone());
        tower.send_heartbeat(b"beat".to_vec());
        let heard = laptop.heartbeats();
        (!heard.is_empty()).then_some(heard)
    });
    for beat in heard {
        assert_eq!(beat.bytes, b"beat");
        assert!(beat.waited_ms < 30_000);
    }
}

#[test]
fn a_broker_that_lets_nobody_in_is_told_from_one_that_is_away() {
    let broker = Broker::start();
    broker.state().refuses = Some("Authorization Violation");
    let servers = vec![broker.url().parse().expect("an address")];
    let options = async_nats::ConnectOptions::new();
    let log = JetStream::open(servers, options, &place()).expect("a log");
    let told = log.wait_until_connected(DEADLINE);
    for told in [told, make(&broker).map(drop)] {
        let Err(LogError::Denied { why }) = &told else {
            panic!("{told:?}");
        };
        assert!(why.contains("--token, --nkey or --credentials"), "{why}");
    }
}

#[test]
fn a_log_is_used_and_dropped_inside_the_runtime_of_somebody_else() {
    let bench = BrokerBench::default();
    let mut log = open(&bench.broker);
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(async move {
        assert_eq!(log.head(), Ok(Head::EMPTY));
        drop(log);
    });
}

#[test]
fn a_server_that_is_too_old_is_named_with_what_is_needed() {
    let broker = Broker::start();
    broker.state().version = Some("2.11.9");
    let why = "server one is nats-server 2.11.9, and a ledger needs 2.12 or newer".to_owned();
    assert_eq!(make(&broker), Err(LogError::Unreachable { why }));
    assert_eq!(broker.state().stream, None, "nothing was made");
}

#[test]
fn the_leader_tells_how_far_its_clock_is_ahead() {
    for ahead_s in [0, 90, -90] {
        let bench = BrokerBench::default();
        bench.broker.state().ahead_s = ahead_s;
        let mut log = open(&bench.broker);
        // It is known before this host can record anything.
        assert_eq!(log.head(), Ok(Head::EMPTY));
        let told = log.clock_ahead_ms().expect("the time");
        assert!((told - 1_000 * ahead_s).abs() < 1_000, "{ahead_s}: {told}");
    }
}

/// A start is no failure: the pulse does not report that there was no connection before there was one.
#[test]
fn a_host_that_starts_hears_of_no_failure() {
    let bench = BrokerBench::default();
    let end = three(&mut open(&bench.broker))[2].batch.head();
    for _ in 0..10 {
        let mut log = open(&bench.broker);
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(150) {
            let followed = log.follow(end).map(|batches| batches.len());
            assert_eq!(followed, Ok(0), "after {:?}", began.elapsed());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_host_that_is_cut_off_hears_it_within_ten_seconds_and_when_it_is_over() {
    let bench = BrokerBench::default();
    let mut log = open(&bench.broker);
    let end = three(&mut log)[2].batch.head();
    for_some("the pulse", || log.follow(end).is_ok().then_some(()));
    bench.broker.state().is_cut = true;
    let began = Instant::now();
    for_some("the silence to be told", || {
        log.follow(end).is_err().then_some(())
    });
    assert!(began.elapsed() < Duration::from_secs(10));
    bench.broker.state().is_cut = false;
    bench.broker.restart();
    for_some("its end", || log.follow(end).is_ok().then_some(()));
    assert_eq!(log.head(), Ok(end));
}
