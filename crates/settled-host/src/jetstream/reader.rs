//! Follows the stream from a place on: a task reads the batches as they come and keeps a few ahead.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, ReplayPolicy, pull};
use spool::chain;
use spool::log::LogError;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::AbortHandle;
use tokio_stream::StreamExt as _;

use super::link::{Found, Link};
use super::{ChangeSignal, wire};

/// The most batches read ahead of the daemon.
const AHEAD: usize = 64;

/// The most messages and bytes of one pull: a broker disconnects a client for which more than 64 MiB wait. The next
/// pull goes out when half of one has arrived.
const PULL_MESSAGES_MAX: usize = 1_000;
const PULL_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The time after which a server drops a consumer that nobody pulls from.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// The pause after a consumer could not be created.
const AGAIN: Duration = Duration::from_millis(250);

/// A task that reads batches.
pub(super) struct BatchReader {
    arrived: Receiver<Result<Found, LogError>>,
    task: AbortHandle,
}

impl BatchReader {
    pub(super) fn start(
        runtime: &Handle,
        link: Link,
        place: u64,
        signal: Arc<ChangeSignal>,
    ) -> BatchReader {
        let (give, arrived) = mpsc::channel(AHEAD);
        let task = runtime.spawn(follow(link, place, give, signal));
        BatchReader {
            arrived,
            task: task.abort_handle(),
        }
    }

    /// The next batch, if it has arrived, in the stream's order. The caller checks for gaps.
    pub(super) fn next(&mut self) -> Option<Result<Found, LogError>> {
        self.arrived.try_recv().ok()
    }

    /// Returns true if no batch is waiting to be taken.
    pub(super) fn is_idle(&self) -> bool {
        self.arrived.is_empty()
    }
}

impl Drop for BatchReader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads from `place` on until the receiver is dropped. After an error a new consumer begins behind the last batch.
async fn follow(
    link: Link,
    place: u64,
    give: Sender<Result<Found, LogError>>,
    signal: Arc<ChangeSignal>,
) {
    let mut next = place;
    loop {
        if let Err(error) = read(&link, &mut next, &give, &signal).await {
            tracing::debug!("following the ledger: {error}");
        }
        if give.is_closed() {
            return;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn read(
    link: &Link,
    next: &mut u64,
    give: &Sender<Result<Found, LogError>>,
    signal: &ChangeSignal,
) -> Result<(), LogError> {
    let config = pull::Config {
        filter_subject: link.subject().to_owned(),
        deliver_policy: DeliverPolicy::ByStartSequence {
            start_sequence: (*next).max(1),
        },
        ack_policy: AckPolicy::None,
        replay_policy: ReplayPolicy::Instant,
        num_replicas: 1,
        memory_storage: true,
        inactive_threshold: FORGOTTEN,
        ..pull::Config::default()
    };
    let consumer = link.stream().create_consumer(config).await;
    let consumer = consumer.map_err(|error| link.why(&chain(&error)))?;
    // A message larger than a pull would never arrive.
    let bytes_max = PULL_BYTES_MAX.max(2 * link.message_bytes_max());
    let messages = consumer
        .stream()
        .max_messages_per_batch(PULL_MESSAGES_MAX)
        .max_bytes_per_batch(bytes_max)
        .messages();
    let mut messages = messages.await.map_err(|error| link.why(&chain(&error)))?;
    let mut count = 0;
    while let Some(message) = messages.next().await {
        let message = message.map_err(|error| link.why(&chain(&error)))?;
        let info = message
            .info()
            .map_err(|error| link.why(&error.to_string()))?;
        count += 1;
        if info.consumer_sequence != count {
            // The server does not repeat what it sent while the connection was down.
            return Err(link.why("messages were lost on the way"));
        }
        let place = info.stream_sequence;
        let headers = message.headers.clone().unwrap_or_default();
        let found = wire::read(&headers, &message.payload, place);
        let found = found.map(|signed| Found { place, signed });
        if give.send(found).await.is_err() {
            return Ok(());
        }
        *next = place + 1;
        signal.wake();
    }
    Ok(())
}
