//! The connection to the broker and the few requests made over it, each with a time limit.

use std::error::Error as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::stream::{RawMessageBuilder, RawMessageErrorKind};
use async_nats::jetstream::{self, Context, ErrorCode};
use async_nats::{ClientError, ConnectOptions, Event, ServerAddr, ServerError, SubscribeError};
use chrono::{DateTime, TimeDelta, Utc};
use spool::chain;
use spool::log::{LogError, Signed};

use super::LedgerName;
use crate::wire;

/// The time limit of a request: a working leader answers within milliseconds.
const ANSWER: Duration = Duration::from_millis(700);

/// The time after which the outcome of an append is unknown. A leader that syncs three disks takes about 10 ms.
const ACKNOWLEDGED: Duration = Duration::from_millis(700);

/// The interval of pings to a silent server; after two unanswered pings the client connects to another one.
const PING: Duration = Duration::from_secs(1);

/// The time limit of one connection attempt, and the longest pause between two attempts.
const CONNECTED: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_millis(250);

/// The pause between two checks of the connection.
const GLANCE: Duration = Duration::from_millis(20);

/// The longest silence of a replica that the leader still counts as a follower: two of the leader's heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// A connection to one workspace's ledger. Cheap to clone.
#[derive(Clone)]
pub(super) struct Link {
    context: Context,
    stream: jetstream::stream::Stream<()>,
    stream_name: String,
    subject: String,
    heartbeats: String,
    failure: Arc<Mutex<Option<LinkFailure>>>,
}

/// The last failure of the connection.
#[derive(Clone, Debug)]
enum LinkFailure {
    /// The server refuses this host the connection or an operation.
    Denied(String),
    /// Anything else.
    Lost(String),
}

/// A batch in the stream, with its place.
pub(super) struct Found {
    /// Its number in the stream, which counts the messages of all workspaces.
    pub(super) place: u64,
    pub(super) signed: Signed,
}

/// The outcome of a sent message.
pub(super) enum SendOutcome {
    /// The stream has it at this place.
    Acknowledged(u64),
    /// Another message is the subject's last one. This one was not taken.
    WrongLast,
    /// An earlier append to the subject is still in flight, or the leader has acknowledged it only now. This one was not
    /// taken.
    Busy,
    /// No server took the message.
    Nobody(LogError),
    /// The server accepts no message of that size.
    TooLarge,
    /// The server may have taken the message.
    Unknown(String),
}

impl Link {
    /// Starts to connect and keeps trying for as long as the link exists: a host that starts without its network still
    /// delivers what it has.
    pub(super) async fn open(
        servers: Vec<ServerAddr>,
        options: ConnectOptions,
        place: &LedgerName,
    ) -> Result<Link, LogError> {
        let failure = Arc::new(Mutex::new(None));
        let told = Arc::clone(&failure);
        let heartbeats = place.heartbeats();
        let options = options
            .retry_on_initial_connect()
            .max_reconnects(None)
            .reconnect_delay_callback(|attempt| {
                // The first attempt at each server is immediate.
                if attempt <= 1 { Duration::ZERO } else { AGAIN }
            })
            .ping_interval(PING)
            .connection_timeout(CONNECTED)
            .request_timeout(Some(ANSWER))
            .event_callback(move |event| {
                // A host that may not send or receive heartbeats still follows the ledger.
                let told = (!event.to_string().contains(&heartbeats)).then(|| Arc::clone(&told));
                async move {
                    if let Some(told) = told {
                        note(&told, &event);
                    }
                }
            });
        let client = options
            .connect(servers)
            .await
            .map_err(|error| LogError::Unreachable {
                why: error.to_string(),
            })?;
        let mut context = jetstream::new(client);
        context.set_timeout(ANSWER);
        let stream_name = place.stream();
        let stream = context
            .get_stream_no_info(&stream_name)
            .await
            .map_err(|error| LogError::Broken {
                what: error.to_string(),
            })?;
        Ok(Link {
            context,
            stream,
            stream_name,
            subject: place.subject(),
            heartbeats: place.heartbeats(),
            failure,
        })
    }

    pub(super) fn stream(&self) -> &jetstream::stream::Stream<()> {
        &self.stream
    }

    pub(super) fn subject(&self) -> &str {
        &self.subject
    }

    /// Fails if there is no connection now.
    pub(super) fn is_up(&self) -> Result<(), LogError> {
        match self.context.client().connection_state() {
            State::Connected => Ok(()),
            State::Pending | State::Disconnected => Err(self.why("not connected")),
        }
    }

    /// Waits until a server lets this host in or refuses it, at most for this time.
    pub(super) async fn until_up(&self, limit: Duration) -> Result<(), LogError> {
        let end = Instant::now() + limit;
        loop {
            match self.is_up() {
                Err(error) if error.is_retryable() && Instant::now() < end => {
                    tokio::time::sleep(GLANCE).await;
                }
                known => return known,
            }
        }
    }

    /// The lead of the clock of the stream's leader over this host's, in milliseconds. Assumes that the answer
    /// took half of the request's time.
    pub(super) async fn clock_ahead_ms(&self) -> Option<i64> {
        #[derive(serde::Deserialize)]
        struct Told {
            ts: DateTime<Utc>,
        }
        self.is_up().ok()?;
        let (asked, began) = (Utc::now(), Instant::now());
        let subject = format!("STREAM.INFO.{}", self.stream_name);
        let asking = self.context.request(subject, &());
        let answer = tokio::time::timeout(ANSWER, asking).await.ok()?;
        let told: Told = answer.ok()?;
        let way = TimeDelta::from_std(began.elapsed() / 2).ok()?;
        Some((told.ts - asked - way).num_milliseconds())
    }

    /// The most bytes of a batch: what the server allows in a message, less the headers.
    pub(super) fn bytes_max(&self) -> usize {
        let message_max = self.message_bytes_max();
        message_max.saturating_sub(wire::HEADERS_BYTES_MAX)
    }

    /// The most bytes of a message, as announced by the server.
    pub(super) fn message_bytes_max(&self) -> usize {
        self.context.client().max_payload()
    }

    /// The last batch of the workspace, from the stream's leader. A deposed leader that does not know it yet may answer
    /// with an older batch, but never with one that was not appended.
    pub(super) async fn last(&self) -> Result<Option<Found>, LogError> {
        self.ask(
            self.stream
                .raw_message_builder()
                .last_by_subject(&self.subject),
        )
        .await
    }

    /// The first batch of the workspace at or behind this place of the stream, from the stream's leader.
    pub(super) async fn next(&self, place: u64) -> Result<Option<Found>, LogError> {
        let asked = self.stream.raw_message_builder();
        self.ask(asked.sequence(place).next_by_subject(&self.subject))
            .await
    }

    async fn ask(&self, asked: RawMessageBuilder) -> Result<Option<Found>, LogError> {
        self.is_up()?;
        let answer = tokio::time::timeout(ANSWER, asked.send()).await;
        let answer = answer.map_err(|_| self.why("the stream's leader does not answer"))?;
        match answer {
            Ok(message) => self.found(&message).map(Some),
            Err(error) => match error.kind() {
                RawMessageErrorKind::NoMessageFound => Ok(None),
                RawMessageErrorKind::JetStream(refused) => Err(self.why(&refused.to_string())),
                RawMessageErrorKind::Other | RawMessageErrorKind::InvalidSubject => {
                    Err(self.why(&chain(&error)))
                }
            },
        }
    }

    fn found(&self, message: &StreamMessage) -> Result<Found, LogError> {
        let place = message.sequence;
        let signed = wire::read(&message.headers, &message.payload, place)?;
        Ok(Found { place, signed })
    }

    /// Sends a batch that must follow the batch at place `behind`, 0 for the first one.
    pub(super) async fn send(&self, batch: &Signed, behind: u64) -> SendOutcome {
        let message = PublishMessage::build()
            .payload(batch.batch.bytes().to_vec().into())
            .headers(wire::headers(batch))
            .expected_stream(&self.stream_name)
            .expected_last_subject_sequence(behind);
        let sent = tokio::time::timeout(ACKNOWLEDGED, async {
            self.context
                .send_publish(self.subject.clone(), message)
                .await?
                .await
        });
        match sent.await {
            Ok(Ok(acknowledged)) => SendOutcome::Acknowledged(acknowledged.sequence),
            Ok(Err(error)) => match error.kind() {
                PublishErrorKind::WrongLastSequence => SendOutcome::WrongLast,
                PublishErrorKind::StreamNotFound => SendOutcome::Nobody(
                    self.why("no server has the stream, or it has no leader now"),
                ),
                PublishErrorKind::MaxPayloadExceeded => SendOutcome::TooLarge,
                PublishErrorKind::Other if is_busy(&error) => SendOutcome::Busy,
                PublishErrorKind::WrongLastMessageId
                | PublishErrorKind::TimedOut
                | PublishErrorKind::BrokenPipe
                | PublishErrorKind::MaxAckPending
                | PublishErrorKind::Other => SendOutcome::Unknown(chain(&error)),
            },
            Err(_) => SendOutcome::Unknown("no acknowledgement in time".to_owned()),
        }
    }

    /// Subscribes to the heartbeats of this workspace's hosts.
    pub(super) async fn listen(&self) -> Result<async_nats::Subscriber, SubscribeError> {
        let client = self.context.client();
        client.subscribe(self.heartbeats.clone()).await
    }

    /// Sends a heartbeat to the hosts that listen. Drops it without a connection: sent later, its time would be wrong.
    pub(super) async fn send_heartbeat(&self, bytes: Vec<u8>) {
        if self.is_up().is_ok() {
            let client = self.context.client();
            let sent = client.publish(self.heartbeats.clone(), bytes.into()).await;
            if let Err(error) = sent {
                tracing::debug!("sending a heartbeat: {error}");
            }
        }
    }

    /// Returns true if only one server has the stream, so that no other server can have more records.
    pub(super) async fn is_alone(&self) -> Result<bool, LogError> {
        let info = self.stream.get_info().await;
        let info = info.map_err(|error| self.why(&chain(&error)))?;
        Ok(info.config.num_replicas <= 1)
    }

    /// Returns true if a majority follows the leader that answers, so that its answers are not stale.
    pub(super) async fn is_led(&self) -> Result<bool, LogError> {
        let info = self.stream.get_info().await;
        let info = info.map_err(|error| self.why(&chain(&error)))?;
        let Some(cluster) = info.cluster else {
            return Ok(true);
        };
        let heard = |active: &Duration| *active < HEARTBEAT;
        let followers = cluster.replicas.iter();
        let following = followers
            .filter(|peer| !peer.offline && heard(&peer.active))
            .count();
        Ok(2 * (following + 1) > cluster.replicas.len() + 1)
    }

    /// The reason this host cannot reach the log: the server's refusal if there is one, else the failure seen here.
    pub(super) fn why(&self, seen: &str) -> LogError {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        match &*failure {
            Some(LinkFailure::Denied(why)) => denied(why),
            Some(LinkFailure::Lost(why)) => LogError::Unreachable {
                why: format!("{seen} ({why})"),
            },
            None => LogError::Unreachable {
                why: seen.to_owned(),
            },
        }
    }
}

/// The error of a host that the server refuses, with the options that give it another credential.
pub(super) fn denied(why: &str) -> LogError {
    let why = format!(
        "{why}; stop the daemon and run `settled host join` again with --token, --nkey or --credentials, or with --certificate if the \
         brokers know hosts by theirs"
    );
    LogError::Denied { why }
}

/// True if the leader refused a message because of another one in flight, which the client counts among other errors.
fn is_busy(error: &PublishError) -> bool {
    let refused = error.source().and_then(|source| source.downcast_ref());
    refused.is_some_and(|refused: &jetstream::Error| {
        refused.error_code() == ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT
    })
}

/// Notes an event of the connection. A restored connection clears the failure.
fn note(told: &Mutex<Option<LinkFailure>>, event: &Event) {
    let failure = match event {
        Event::Connected => None,
        Event::ServerError(ServerError::AuthorizationViolation) => {
            Some(LinkFailure::Denied("authorization violation".to_owned()))
        }
        Event::ServerError(ServerError::Other(said))
        | Event::ClientError(ClientError::Other(said)) => {
            let said = said.trim_matches('\'').to_owned();
            let lower = said.to_lowercase();
            let is_denied = ["authori", "authentic", "permission", "signing nonce"];
            if is_denied.iter().any(|word| lower.contains(word)) {
                Some(LinkFailure::Denied(said))
            } else {
                Some(LinkFailure::Lost(said))
            }
        }
        Event::Disconnected
        | Event::LameDuckMode
        | Event::Draining
        | Event::Closed
        | Event::SlowConsumer(_)
        | Event::ServerError(ServerError::SlowConsumer(_))
        | Event::ClientError(ClientError::MaxReconnects | ClientError::ServerNotInPool) => return,
    };
    *told.lock().unwrap_or_else(PoisonError::into_inner) = failure;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The failure that remains after an event: true for a server's refusal, and its text.
    fn after(before: Option<LinkFailure>, event: &Event) -> Option<(bool, String)> {
        let told = Mutex::new(before);
        note(&told, event);
        let failure = told.into_inner().expect("nobody panicked");
        failure.map(|failure| match failure {
            LinkFailure::Denied(why) => (true, why),
            LinkFailure::Lost(why) => (false, why),
        })
    }

    #[test]
    fn a_refusal_by_the_server_is_told_from_a_lost_connection() {
        let server = |said: &str| Event::ServerError(ServerError::Other(said.to_owned()));
        let client = |said: &str| Event::ClientError(ClientError::Other(said.to_owned()));
        let denied = |why: &str| Some((true, why.to_owned()));
        let lost = |why: &str| Some((false, why.to_owned()));
        assert_eq!(
            after(
                None,
                &Event::ServerError(ServerError::AuthorizationViolation)
            ),
            denied("authorization violation")
        );
        for said in [
            "'Authentication Timeout'",
            "User is not Authorized",
            "Permissions Violation for Publish",
            "Signing nonce failed",
        ] {
            let why = said.trim_matches('\'');
            assert_eq!(after(None, &server(said)), denied(why));
            assert_eq!(after(None, &client(said)), denied(why));
        }
        assert_eq!(after(None, &server("'Stale'")), lost("Stale"));
        assert_eq!(after(None, &client("no route")), lost("no route"));
    }

    #[test]
    fn a_failure_is_over_when_the_connection_is_there_again() {
        let failure = || Some(LinkFailure::Lost("no route".to_owned()));
        assert_eq!(after(failure(), &Event::Connected), None);
        for event in [Event::Disconnected, Event::Draining, Event::Closed] {
            let left = after(failure(), &event);
            assert_eq!(left, Some((false, "no route".to_owned())));
        }
    }
}
