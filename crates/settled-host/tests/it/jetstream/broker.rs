//! A broker in memory that speaks as much of the NATS protocol as a ledger needs: one stream, its consumers, and plain
//! messages. Tests can cut it off, restart it, and make it lose messages; `tests/it` has a real one.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

/// The time of every message.
const AT: &str = "2026-02-13T10:00:00Z";

/// The largest message: small, because even a busy machine must send it within the time limit of a request.
pub(crate) const MESSAGE_BYTES_MAX: usize = 128 * 1024;

/// The header with the expected number of the subject's last message.
const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence: ";

/// A message of the stream with its place and its unparsed headers.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) place: u64,
    pub(crate) headers: String,
    pub(crate) payload: Vec<u8>,
}

/// The part of the next append that gets lost.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    Request,
    Answer,
}

/// The state of the broker.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) messages: Vec<Kept>,
    /// The stream's settings; `None` before it is made.
    pub(crate) stream: Option<Value>,
    /// The codes with which the next requests to create the stream fail, last element first.
    pub(crate) refuses_stream: Vec<u16>,
    /// The version it reports; none for the oldest one that is enough.
    pub(crate) version: Option<&'static str>,
    /// The servers of a cluster besides the leader; `None` without a cluster.
    pub(crate) followers: Option<Value>,
    /// The number of messages that the leader shows, to act as a deposed leader.
    pub(crate) shown: Option<usize>,
    /// The places that consumers skip.
    pub(crate) left_out: Vec<u64>,
    pub(crate) loses: Option<Loss>,
    /// The number of next appends that it refuses because of one in flight.
    pub(crate) busy: usize,
    /// The append that is in flight until it has refused these.
    pub(crate) in_flight: Option<Kept>,
    /// True if the broker accepts connections but answers nothing.
    pub(crate) is_cut: bool,
    /// The refusal that a client gets instead of a connection.
    pub(crate) refuses: Option<&'static str>,
    /// The number of consumers created so far.
    pub(crate) made: u64,
    /// The number of times that somebody asked for the next message from a place on.
    pub(crate) sought: usize,
    /// The lead of its clock, in seconds.
    pub(crate) ahead_s: i64,
    consumers: BTreeMap<String, Consumer>,
    connections: BTreeMap<u64, Connection>,
    connected: u64,
}

struct Consumer {
    next: u64,
    given: u64,
    inbox: Option<String>,
}

struct Connection {
    socket: TcpStream,
    subscriptions: Vec<(String, String)>,
}

/// A broker on its own port until the test ends.
#[derive(Clone)]
pub(crate) struct Broker {
    state: Arc<Mutex<State>>,
    port: u16,
}

impl Broker {
    pub(crate) fn start() -> Broker {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(Mutex::new(State::default()));
        let broker = Broker { state, port };
        let serving = broker.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let serving = serving.clone();
                std::thread::spawn(move || serving.serve(socket));
            }
        });
        broker
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends every connection; the messages stay.
    pub(crate) fn restart(&self) {
        let mut state = self.state();
        state.consumers.clear();
        for (_, connection) in std::mem::take(&mut state.connections) {
            // The client may have closed it already.
            let _ = connection.socket.shutdown(Shutdown::Both);
        }
    }

    fn serve(&self, socket: TcpStream) {
        let reader = BufReader::new(socket.try_clone().expect("a socket"));
        let number = {
            let mut state = self.state();
            state.connected += 1;
            let number = state.connected;
            let connection = Connection {
                socket,
                subscriptions: Vec::new(),
            };
            state.connections.insert(number, connection);
            let cluster = state.followers.as_ref().map(|_| "three");
            let version = state.version.unwrap_or("2.12.0");
            let info = json!({
                "server_id": "S", "server_name": "one", "version": version, "headers": true, "proto": 1,
                "jetstream": true, "max_payload": MESSAGE_BYTES_MAX, "cluster": cluster,
            });
            state.write(number, format!("INFO {info}\r\n").as_bytes());
            number
        };
        // Ends when the client disconnects or sends something else.
        let _ = self.hear(number, reader);
        self.state().connections.remove(&number);
    }

    fn hear(&self, number: u64, mut reader: BufReader<TcpStream>) -> std::io::Result<()> {
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let mut message = None;
            if let Some(("PUB" | "HPUB", args)) =
                words.split_first().map(|(word, args)| (*word, args))
            {
                let size = |at: usize| -> usize { args[at].parse().expect("a size") };
                let total = size(args.len() - 1);
                let mut bytes = vec![0; total + 2];
                reader.read_exact(&mut bytes)?;
                bytes.truncate(total);
                let has_headers = words[0] == "HPUB";
                let head = if has_headers { size(args.len() - 2) } else { 0 };
                let reply = (args.len() > 2 + usize::from(has_headers)).then(|| args[1].to_owned());
                let payload = bytes.split_off(head);
                let headers = String::from_utf8(bytes).expect("headers are text");
                message = Some((args[0].to_owned(), reply, headers, payload));
            }
            let mut state = self.state();
            if state.is_cut {
                continue;
            }
            match (words.as_slice(), message) {
                (_, Some((subject, reply, headers, payload))) => {
                    state.take(&subject, reply.as_deref(), headers, payload);
                }
                (["CONNECT", ..], _) => {
                    if let Some(why) = state.refuses {
                        state.write(number, format!("-ERR '{why}'\r\n").as_bytes());
                        return Ok(());
                    }
                }
                (["PING"], _) => state.write(number, b"PONG\r\n"),
                (["SUB", subject, .., id], _) => {
                    let subscription = ((*subject).to_owned(), (*id).to_owned());
                    if let Some(connection) = state.connections.get_mut(&number) {
                        connection.subscriptions.push(subscription);
                    }
                }
                _ => {}
            }
        }
    }
}

impl State {
    fn write(&mut self, connection: u64, bytes: &[u8]) {
        if let Some(connection) = self.connections.get_mut(&connection) {
            // A client that has gone receives nothing.
            let _ = connection.socket.write_all(bytes);
        }
    }

    fn shown(&self) -> &[Kept] {
        &self.messages[..self
            .shown
            .unwrap_or(self.messages.len())
            .min(self.messages.len())]
    }

    /// Sends a message to all subscribers.
    fn send(&mut self, subject: &str, reply: &str, headers: &str, payload: &[u8]) {
        let fits = |pattern: &str| match pattern.strip_suffix('*') {
            Some(begin) => subject.starts_with(begin),
            None => subject == pattern,
        };
        let mut to = Vec::new();
        for (number, connection) in &self.connections {
            let fit = connection
                .subscriptions
                .iter()
                .filter(|(pattern, _)| fits(pattern));
            to.extend(fit.map(|(_, id)| (*number, id.clone())));
        }
        for (number, id) in to {
            let (head, total) = (headers.len(), headers.len() + payload.len());
            let mut bytes = match head {
                0 => format!("MSG {subject} {id} {reply} {total}\r\n"),
                _ => format!("HMSG {subject} {id} {reply} {head} {total}\r\n{headers}"),
            }
            .into_bytes();
            bytes.extend_from_slice(payload);
            bytes.extend_from_slice(b"\r\n");
            self.write(number, &bytes);
        }
    }

    fn take(&mut self, subject: &str, reply: Option<&str>, headers: String, payload: Vec<u8>) {
        let Some(inbox) = reply else {
            return self.send(subject, "", &headers, &payload);
        };
        let asked: Value = serde_json::from_slice(&payload).unwrap_or(Value::Null);
        let answer = if let Some(api) = subject.strip_prefix("$JS.API.") {
            if let Some(name) = api.strip_prefix("CONSUMER.MSG.NEXT.SETTLED_1.") {
                if let Some(consumer) = self.consumers.get_mut(name) {
                    consumer.inbox = Some(inbox.to_owned());
                }
                return self.give();
            }
            self.answer(api, &asked)
        } else {
            match self.loses.take() {
                Some(Loss::Request) => return,
                Some(Loss::Answer) => {
                    self.keep(headers, payload);
                    return;
                }
                None => self.keep(headers, payload),
            }
        };
        self.send(inbox, "", "", answer.to_string().as_bytes());
    }

    fn keep(&mut self, headers: String, payload: Vec<u8>) -> Value {
        if self.busy > 0 {
            self.busy -= 1;
            if self.busy == 0 {
                self.messages.extend(self.in_flight.take());
                self.give();
            }
            return failure(400, 10_164, "wrong last sequence");
        }
        let expected = headers.lines().find_map(|line| line.strip_prefix(EXPECTED));
        let last = self.messages.last().map_or(0, |last| last.place);
        if expected.is_some_and(|expected| expected.trim() != last.to_string()) {
            return failure(400, 10_071, "wrong last sequence");
        }
        let place = last + 1;
        self.messages.push(Kept {
            place,
            headers,
            payload,
        });
        self.give();
        json!({"stream": "SETTLED_1", "seq": place})
    }

    fn answer(&mut self, api: &str, asked: &Value) -> Value {
        let Some(config) = self.stream.clone() else {
            if api.starts_with("STREAM.CREATE.") {
                if let Some(error) = self.refuses_stream.pop() {
                    return failure(503, error, "no stream");
                }
                self.stream = Some(asked.clone());
                return self.answer("STREAM.INFO.", asked);
            }
            return failure(404, 10_059, "stream not found");
        };
        if api.starts_with("STREAM.MSG.GET.") {
            let from = asked["seq"].as_u64().unwrap_or(0);
            self.sought += usize::from(from > 0);
            let shown = self.shown();
            let found = match asked["last_by_subj"].is_string() {
                true => shown.last(),
                false => shown.iter().find(|kept| kept.place >= from),
            };
            let Some(kept) = found else {
                return failure(404, 10_037, "no message found");
            };
            return json!({"message": {
                "subject": "led.1.w", "seq": kept.place, "time": AT,
                "hdrs": base64(kept.headers.as_bytes()), "data": base64(&kept.payload),
            }});
        }
        if api.starts_with("CONSUMER.CREATE.") {
            self.made += 1;
            let name = format!("c{}", self.made);
            let next = asked["config"]["opt_start_seq"].as_u64().unwrap_or(1);
            let consumer = Consumer {
                next,
                given: 0,
                inbox: None,
            };
            self.consumers.insert(name.clone(), consumer);
            let none = json!({"consumer_seq": 0, "stream_seq": 0});
            return json!({
                "stream_name": "SETTLED_1", "name": name, "created": AT, "config": asked["config"],
                "delivered": none, "ack_floor": none, "num_ack_pending": 0, "num_redelivered": 0,
                "num_waiting": 0, "num_pending": 0,
            });
        }
        let count = self.messages.len();
        let now = chrono::Utc::now() + chrono::TimeDelta::seconds(self.ahead_s);
        json!({
            "config": config, "created": AT, "ts": now.to_rfc3339(), "cluster": self.followers,
            "state": {
                "messages": count, "bytes": 0, "first_seq": 1, "first_ts": AT, "last_seq": count,
                "last_ts": AT, "consumer_count": 0,
            },
        })
    }

    /// Sends each consumer the messages it has not received.
    fn give(&mut self) {
        let mut given = Vec::new();
        for (name, consumer) in &mut self.consumers {
            let Some(inbox) = &consumer.inbox else {
                continue;
            };
            for kept in &self.messages {
                if kept.place < consumer.next || self.left_out.contains(&kept.place) {
                    continue;
                }
                consumer.given += 1;
                consumer.next = kept.place + 1;
                let (place, count) = (kept.place, consumer.given);
                let reply =
                    format!("$JS.ACK.SETTLED_1.{name}.1.{place}.{count}.1770976800000000000.0");
                given.push((inbox.clone(), reply, kept.clone()));
            }
        }
        for (inbox, reply, kept) in given {
            self.send(&inbox, &reply, &kept.headers, &kept.payload);
        }
    }
}

fn failure(code: u16, error: u16, why: &str) -> Value {
    json!({"error": {"code": code, "err_code": error, "description": why}})
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let all = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = (all >> (18 - 6 * at)) & 63;
            text.push(if at > three.len() {
                '='
            } else {
                char::from(DIGITS[digit as usize])
            });
        }
    }
    text
}
