//! The conformance suite on a real broker, one per case: killed with SIGKILL, cut off with SIGSTOP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_nats::jetstream::stream::Stream;
use log_suite::{Bench, PATIENCE, Patient};
use rustix::process::Signal;
use settled_host::JetStream;
use settled_host::jetstream::{LedgerName, found};
use settled_tests::broker::Broker;
use settled_tests::wait;
use spool::log::{Head, Log, Signed};
use tempfile::TempDir;
use tokio::runtime::Runtime;

log_suite::conformance!(BrokerBench::default());

struct BrokerBench {
    broker: Broker,
    place: LedgerName,
    is_cut: Arc<AtomicBool>,
    runtime: Runtime,
    /// Kept until the broker has ended.
    _directory: TempDir,
}

impl Default for BrokerBench {
    fn default() -> Self {
        let directory = settled_tests::scratch();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let bench = BrokerBench {
            broker: Broker::alone(directory.path()),
            place: LedgerName {
                workspace: "w".to_owned(),
                shard: "1".to_owned(),
            },
            is_cut: Arc::default(),
            runtime,
            _directory: directory,
        };
        bench.make();
        bench
    }
}

/// A message in the stream.
struct Kept {
    headers: async_nats::HeaderMap,
    payload: Vec<u8>,
}

impl BrokerBench {
    fn make(&self) {
        let servers = vec![self.broker.url().parse().expect("an address")];
        let options = async_nats::ConnectOptions::new();
        let made = self
            .runtime
            .block_on(found(servers, options, &self.place, None));
        made.expect("a stream");
    }

    fn open(&self) -> JetStream {
        let servers = vec![self.broker.url().parse().expect("an address")];
        let options = async_nats::ConnectOptions::new();
        let log = JetStream::open(servers, options, &self.place).expect("a log");
        wait::until("a connection", || {
            log.wait_until_connected(std::time::Duration::from_millis(100))
                .is_ok()
        });
        log
    }

    /// Recreates the stream with its messages after `change`.
    fn change(&self, change: impl FnOnce(&mut Vec<Kept>)) {
        self.runtime.block_on(async {
            let client = async_nats::connect(self.broker.url()).await;
            let mut context = async_nats::jetstream::new(client.expect("a connection"));
            // Eight brokers that sync each message share a disk with everything else that runs here.
            context.set_timeout(PATIENCE);
            let stream = context.get_stream(self.place.stream()).await;
            let stream: Stream = stream.expect("the stream");
            let config = stream.cached_info().config.clone();
            let count = stream.cached_info().state.messages;
            let mut kept = Vec::new();
            for place in 1..=count {
                let message = stream.get_raw_message(place).await.expect("a message");
                let (mut headers, payload) =
                    (async_nats::HeaderMap::new(), message.payload.to_vec());
                for name in ["Settled-Host", "Settled-Signature"] {
                    let value = message.headers.get(name).expect("a header");
                    headers.insert(name, value.clone());
                }
                kept.push(Kept { headers, payload });
            }
            change(&mut kept);
            let deleted = context.delete_stream(self.place.stream()).await;
            deleted.expect("a stream to delete");
            context.create_stream(config).await.expect("a stream");
            for Kept { headers, payload } in kept {
                let subject = self.place.subject();
                let sent = context.publish_with_headers(subject, headers, payload.into());
                sent.await
                    .expect("a message to send")
                    .await
                    .expect("a message to keep");
            }
        });
    }
}

impl Bench for BrokerBench {
    fn connect(&mut self) -> Box<dyn Log> {
        Patient::with(self.open(), &self.is_cut)
    }

    fn restart(&mut self) {
        self.broker.kill();
        self.broker.start();
    }

    fn cut_off(&mut self) {
        self.broker.signal(Signal::STOP);
        self.is_cut.store(true, Ordering::SeqCst);
    }

    fn join(&mut self) {
        self.broker.signal(Signal::CONT);
        self.is_cut.store(false, Ordering::SeqCst);
    }

    fn batch_bytes_max(&self) -> usize {
        self.open().batch_bytes_max()
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
        let appended = self.open().append(with);
        assert_eq!(appended, Ok(spool::log::Appended::Committed));
        assert_ne!(with.batch.head(), Head::EMPTY);
    }
}
