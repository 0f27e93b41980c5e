//! A consumer that leaves out batches of the stream: its first ones are lost between broker and host, and the following
//! ones are numbered as if they were the first.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use settled_host::jetstream::JetStream;
use settled_tests::broker::Broker;
use settled_tests::wait;
use spool::log::{Appended, Head, Log};

use super::jetstream::{make, open, place};
use super::{batch, follows};

/// The number of lost batches of the first consumer.
const LOST: usize = 2;

#[test]
fn a_gap_that_only_a_consumer_has_is_healed() {
    let directory = settled_tests::scratch();
    let brokers = [Broker::alone(directory.path())];
    make(&brokers);
    let mut log = open(&brokers);
    let (mut put, mut head) = (Vec::new(), Head::EMPTY);
    for text in ["a", "b", "c", "d"] {
        let next = batch(head, 2, text);
        assert_eq!(log.append(&next), Ok(Appended::Committed));
        head = next.batch.head();
        put.push(next);
    }
    let lost = Arc::new(AtomicUsize::new(0));
    let port = lose(brokers[0].port, Arc::clone(&lost));
    let server = format!("nats://127.0.0.1:{port}").parse();
    let options = async_nats::ConnectOptions::new();
    let server = server.expect("a server's address");
    let mut log = JetStream::open(vec![server], options, &place()).expect("a log");
    wait::until("a connection", || log.head().is_ok());
    // An error would end it.
    let all = follows(&mut log, Head::EMPTY, put.len());
    assert_eq!(lost.load(Ordering::SeqCst), LOST, "nothing was lost");
    for (given, put) in all.iter().zip(&put) {
        assert_eq!(given.batch.bytes(), put.batch.bytes());
    }
}

/// Starts the proxy between host and broker, and returns its port.
fn lose(broker: u16, lost: Arc<AtomicUsize>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(("127.0.0.1", broker)).expect("the broker answers");
            let (mut from, mut to) = (clone(&client), clone(&server));
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            let lost = Arc::clone(&lost);
            std::thread::spawn(move || pass_on(server, client, &lost));
        }
    });
    port
}

fn clone(stream: &TcpStream) -> TcpStream {
    stream.try_clone().expect("a second handle")
}

/// Forwards the server's messages, except for the first batches of the first consumer.
fn pass_on(server: TcpStream, mut client: TcpStream, lost: &AtomicUsize) -> Option<()> {
    let mut server = BufReader::new(server);
    let mut first: Option<String> = None;
    loop {
        let mut line = String::new();
        server.read_line(&mut line).ok().filter(|len| *len > 0)?;
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let is_message = words
            .first()
            .is_some_and(|word| word == "HMSG" || word == "MSG");
        if !is_message {
            client.write_all(line.as_bytes()).ok()?;
            continue;
        }
        let size: usize = words.last()?.parse().ok()?;
        let mut payload = vec![0; size + 2];
        server.read_exact(&mut payload).ok()?;
        if let Some(reply) = words.iter_mut().find(|word| word.starts_with("$JS.ACK.")) {
            let mut parts: Vec<String> = reply.split('.').map(str::to_owned).collect();
            // Newer servers name the domain and the account first.
            let base = if parts.len() > 9 { 4 } else { 2 };
            let consumer = first.get_or_insert_with(|| parts[base + 1].clone());
            let number: usize = parts[base + 4].parse().ok()?;
            if *consumer == parts[base + 1] && number <= LOST {
                lost.fetch_add(1, Ordering::SeqCst);
                continue;
            }
            if *consumer == parts[base + 1] {
                parts[base + 4] = (number - LOST).to_string();
                *reply = parts.join(".");
            }
        }
        let line = words.join(" ") + "\r\n";
        client
            .write_all(&[line.as_bytes(), &payload].concat())
            .ok()?;
    }
}
