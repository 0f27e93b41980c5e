//! Follows the stream from a place on: a task of its own reads the batches as they come and keeps a few ahead.

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
use super::{Bell, wire};

/// So many batches are read ahead of the daemon.
const AHEAD: usize = 64;

/// The most messages of one pull, and their most bytes: a broker disconnects a client for which more than 64 MiB wait. The
/// next pull goes out when half of one has arrived.
const PULL_MESSAGES_MAX: usize = 1_000;
const PULL_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The time after which a server forgets a consumer that nobody pulls from.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// The pause after a consumer could not be made.
const AGAIN: Duration = Duration::from_millis(250);

/// A task that reads batches.
pub(super) struct BatchReader {
    arrived: Receiver<Result<Found, LogError>>,
    task: AbortHandle,
}

impl BatchReader {
    /// Starts to read at this place of the stream.
    pub(super) fn start(runtime: &Handle, link: Link, place: u64, bell: Arc<Bell>) -> BatchReader {
        let (give, arrived) = mpsc::channel(AHEAD);
        let task = runtime.spawn(follow(link, place, give, bell));
        BatchReader {
            arrived,
            task: task.abort_handle(),
        }
    }

    /// The next batch, if it has arrived. The order is the stream's; whether anything is missing is for the caller to see.
    pub(super) fn next(&mut self) -> Option<Result<Found, LogError>> {
        self.arrived.try_recv().ok()
    }

    /// Says whether there is nothing that has arrived and was not taken.
    pub(super) fn is_idle(&self) -> bool {
        self.arrived.is_empty()
    }
}

impl Drop for BatchReader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads from `place` on until nobody listens any more. After an error a new consumer begins behind the last batch.
async fn follow(link: Link, place: u64, give: Sender<Result<Found, LogError>>, bell: Arc<Bell>) {
    let mut next = place;
    loop {
        if let Err(error) = read(&link, &mut next, &give, &bell).await {
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
    bell: &Bell,
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
    // A message that is larger than a pull would never come.
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
            // What the server sent while there was no connection is lost, and it does not send it again.
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
        bell.ring();
    }
    Ok(())
}
