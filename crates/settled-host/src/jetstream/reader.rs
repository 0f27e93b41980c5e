//! Follows the stream from a place on: a task of its own reads the batches as they come and keeps a few ahead.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::{DeliverPolicy, ReplayPolicy, pull};
use spool::log::LogError;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::AbortHandle;
use tokio_stream::StreamExt as _;

use super::link::{Found, Link, chain};
use super::{Bell, wire};

/// So many batches are read ahead of the daemon.
const AHEAD: usize = 256;

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
    let config = pull::OrderedConfig {
        filter_subject: link.subject().to_owned(),
        deliver_policy: DeliverPolicy::ByStartSequence {
            start_sequence: (*next).max(1),
        },
        replay_policy: ReplayPolicy::Instant,
        ..pull::OrderedConfig::default()
    };
    let consumer = link.stream().create_consumer(config).await;
    let consumer = consumer.map_err(|error| link.why(&chain(&error)))?;
    let messages = consumer.messages().await;
    let mut messages = messages.map_err(|error| link.why(&chain(&error)))?;
    while let Some(message) = messages.next().await {
        let message = message.map_err(|error| link.why(&chain(&error)))?;
        let place = match message.info() {
            Ok(info) => info.stream_sequence,
            Err(error) => return Err(link.why(&error.to_string())),
        };
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
