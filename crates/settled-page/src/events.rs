//! Server-sent events for one open page: every record of the ledger once and in order, under its number, so that a
//! browser that lost the connection continues where it was.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use inspect::log::LogLine;
use serde::{Deserialize, Serialize};
use spool::{Since, SpoolError, Tail};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use workspace::{index, operator_alerts};

use crate::state::Site;

/// The most pages that may be open at once; each costs a thread.
const PAGES_MAX: usize = 32;

/// The time between two polls of the ledger while a page is open. Without a new record a poll only reads a file's size.
const POLL: Duration = Duration::from_millis(40);

/// The time between two polls of everything besides records: whether a daemon serves, and the operator's alerts.
const BESIDE: Duration = Duration::from_millis(500);

/// The most records that may be queued for a browser that reads slowly.
const AHEAD: usize = 256;

/// A record as a page gets it.
#[derive(Serialize)]
struct RecordEvent<'a> {
    seq: u64,
    at: &'a str,
    text: String,
}

/// The slot of a thread that follows the ledger; dropping it frees the slot.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The starting point of a page that was just loaded: after the records it shows.
#[derive(Deserialize)]
pub(crate) struct Begin {
    after: Option<u64>,
}

/// Handles `/events`.
pub(crate) async fn events(
    State(site): State<Site>,
    Query(begin): Query<Begin>,
    headers: HeaderMap,
) -> Response {
    let place = Place(Arc::clone(&site.followers));
    if place.0.fetch_add(1, Ordering::Relaxed) >= PAGES_MAX {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let last = headers
        .get("last-event-id")
        .and_then(|value| value.to_str().ok()?.parse().ok())
        .or(begin.after);
    let since = last.map_or(Since::End, Since::Record);
    let (to_page, events) = mpsc::channel(AHEAD);
    let root = site.root;
    std::thread::spawn(move || {
        let _place = place;
        if let Err(error) = follow(&root, since, &to_page) {
            // A ledger restored to an older state lacks that record, so the page reloads.
            tracing::warn!("cannot follow the ledger for a page: {error}");
            let _ = to_page.blocking_send(Ok(Event::default().event("reload").data("")));
        }
    });
    Sse::new(ReceiverStream::new(events))
        .keep_alive(KeepAlive::default())
        .into_response()
}

fn follow(
    root: &Path,
    since: Since,
    to_page: &mpsc::Sender<Result<Event, Infallible>>,
) -> Result<(), SpoolError> {
    let mut tail = Tail::open(root, since)?;
    let (mut serving, mut alerts, mut looked) = (None, None, None::<Instant>);
    while !to_page.is_closed() {
        let mut is_open = true;
        tail.read(&mut |entry| {
            if is_open {
                let (record, _) = index::decision(entry)?;
                let line = LogLine::of(entry, record);
                let record = RecordEvent {
                    seq: entry.seq,
                    at: &entry.at,
                    text: line.text(),
                };
                let event = Event::default()
                    .id(entry.seq.to_string())
                    .event("record")
                    .data(serde_json::to_string(&record)?);
                is_open = to_page.blocking_send(Ok(event)).is_ok();
            }
            Ok(())
        })?;
        if looked.is_none_or(|at| at.elapsed() >= BESIDE) {
            looked = Some(Instant::now());
            let now = spool::is_served(root);
            if serving != Some(now) {
                serving = Some(now);
                let word = match now {
                    Some(true) => "serving",
                    Some(false) => "stopped",
                    None => "unknown",
                };
                let event = Event::default().event("daemon").data(word);
                let _ = to_page.blocking_send(Ok(event));
            }
            // A host that is cut off gets no records, and its open pages have to say so.
            let now = operator_alerts::read(root);
            if alerts.as_ref() != Some(&now) {
                let event = Event::default().event("alerts").data(now.len().to_string());
                let _ = to_page.blocking_send(Ok(event));
                alerts = Some(now);
            }
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}
