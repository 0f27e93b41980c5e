//! Heartbeats over the brokers: plain messages that no stream stores.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use spool::log::Heartbeat;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio_stream::StreamExt as _;

use super::link::Link;

/// The number of heartbeats kept for the daemon (the newest ones), and the most bytes of each.
const KEPT_MAX: usize = 256;
const BYTES_MAX: usize = 4096;

/// The pause after a failed subscription.
const AGAIN: Duration = Duration::from_secs(5);

/// Heartbeats with the time of their arrival.
type Arrived = Mutex<VecDeque<(Instant, Vec<u8>)>>;

/// A task that receives heartbeats.
pub(super) struct Listener {
    arrived: Arc<Arrived>,
    task: AbortHandle,
}

impl Listener {
    pub(super) fn start(runtime: &Handle, link: Link) -> Listener {
        let arrived = Arc::new(Arrived::default());
        let task = runtime.spawn(listen(link, Arc::clone(&arrived)));
        let task = task.abort_handle();
        Listener { arrived, task }
    }

    /// The heartbeats that arrived since the last call.
    pub(super) fn take(&self) -> Vec<Heartbeat> {
        let arrived = std::mem::take(&mut *locked(&self.arrived)).into_iter();
        let beat = |(at, bytes): (Instant, Vec<u8>)| Heartbeat {
            bytes,
            waited_ms: u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        arrived.map(beat).collect()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(link: Link, arrived: Arc<Arrived>) {
    loop {
        // The client subscribes again by itself after a reconnect.
        if let Ok(mut messages) = link.listen().await {
            while let Some(message) = messages.next().await {
                if message.payload.len() > BYTES_MAX {
                    continue;
                }
                let mut arrived = locked(&arrived);
                if arrived.len() == KEPT_MAX {
                    arrived.pop_front();
                }
                arrived.push_back((Instant::now(), message.payload.to_vec()));
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

fn locked(arrived: &Arrived) -> std::sync::MutexGuard<'_, VecDeque<(Instant, Vec<u8>)>> {
    arrived.lock().unwrap_or_else(PoisonError::into_inner)
}
