//! The notifier as a whole: the channels that a config names, what a webhook gets, and that only one notifier follows a
//! workspace.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use notifier::{Channel, RunError, SendError};
use serde_json::Value;
use tempfile::TempDir;
use workspace::config::NotifySection;

use super::recorded::{KEEP, told, workspace};

/// The longest wait before a test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A workspace whose channels have told everything up to record `seq`, with lines for `[notify]`.
fn configured(seq: u64, lines: &str) -> TempDir {
    let root = workspace(Some(seq));
    let cursors = root.path().join(".settled/notify");
    std::fs::copy(cursors.join("command.json"), cursors.join("webhook.json")).expect("a cursor");
    std::fs::write(
        root.path().join("settled.toml"),
        format!("[notify]\n{lines}"),
    )
    .expect("a file");
    std::fs::write(root.path().join("hook.key"), " s3cret\n").expect("a file");
    root
}

fn command(script: &str) -> String {
    format!("command = [\"sh\", \"-c\", \"{script}\"]\n")
}

/// A receiver on this machine that passes each request on and then answers with the next of these statuses. Returns the
/// lines for `[notify]`.
fn receiver(statuses: &'static [u16], requests: Sender<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for status in statuses {
            let (mut stream, _) = listener.accept().expect("a sender");
            let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
            let mut request = String::new();
            while !request.ends_with("\r\n\r\n") {
                reader.read_line(&mut request).expect("a head");
            }
            let length = header(&request, "Content-Length").parse();
            let mut body = vec![0; length.expect("a number")];
            reader.read_exact(&mut body).expect("a body");
            request += &String::from_utf8(body).expect("a text");
            requests.send(request).expect("a test");
            let answer =
                format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).expect("a sender");
        }
    });
    format!("webhook = \"http://{address}/hook\"\nwebhook_secret_file = \"hook.key\"\n")
}

fn header<'a>(request: &'a str, name: &str) -> &'a str {
    let value = request
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    value.unwrap_or_else(|| panic!("no {name} in {request}"))
}

/// Sends once. A program that another test starts meanwhile has a copy of the last run's lock until it runs.
fn once(root: &Path) -> bool {
    let began = Instant::now();
    loop {
        match notifier::once(root) {
            Err(RunError::Running) if began.elapsed() < PATIENCE => std::thread::yield_now(),
            ended => return ended.expect("a run"),
        }
    }
}

#[test]
fn a_config_names_its_channels_by_what_it_sets() {
    let root = Path::new("/mailroom");
    assert_eq!(notifier::channels(root, &NotifySection::default()), []);
    let section = NotifySection {
        command: vec!["tell".to_owned()],
        webhook: Some("https://example.org".to_owned()),
        webhook_secret_file: "hook.key".into(),
        desktop: true,
        ..NotifySection::default()
    };
    assert_eq!(
        notifier::channels(root, &section),
        [
            Channel::Command(vec!["tell".to_owned()]),
            Channel::Webhook {
                address: "https://example.org".to_owned(),
                secret: "/mailroom/hook.key".into(),
            },
            Channel::Desktop,
        ]
    );
}

#[test]
fn what_can_be_sent_now_is_sent_at_once_and_what_cannot_is_left() {
    let root = configured(0, &command(KEEP));
    assert!(once(root.path()), "nothing is left");
    assert_eq!(told(root.path()).len(), 3);
    assert!(once(root.path()), "nothing is new");
    assert_eq!(told(root.path()).len(), 3);
    let root = configured(0, &command("false"));
    assert!(!once(root.path()), "all are left");
}

#[test]
fn a_test_goes_through_every_channel_and_names_one_that_fails() {
    let (sender, requests) = channel();
    let hook = receiver(&[204, 302], sender);
    let root = configured(0, &(command(KEEP) + &hook));
    let channels = notifier::test(root.path()).expect("two channels");
    assert_eq!(channels, ["command", "webhook"]);
    let told = told(root.path());
    assert_eq!(told.len(), 1, "the test alone");
    assert_eq!(told[0]["kind"], "test");

    let request = requests.try_recv().expect("what was answered");
    assert!(request.starts_with("POST /hook HTTP/1.1\r\n"), "{request}");
    let (_, body) = request.split_once("\r\n\r\n").expect("a body");
    let notice: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(notice, told[0]);
    let id = header(&request, "Idempotency-Key");
    assert_eq!(notice["id"], id);
    let seconds = header(&request, "Settled-Timestamp").parse();
    let expected = notifier::signature(b"s3cret", id, seconds.expect("a number"), body);
    assert_eq!(header(&request, "Settled-Signature"), expected);

    let moved = notifier::test(root.path());
    assert!(
        matches!(
            &moved,
            Err(RunError::Send { channel: "webhook", source: SendError::Answer(status) })
                if status == "302"
        ),
        "{moved:?}"
    );
}

#[test]
fn without_a_channel_nothing_runs() {
    let root = configured(0, "");
    let results = [
        notifier::run(root.path()),
        notifier::once(root.path()).map(drop),
        notifier::test(root.path()).map(drop),
    ];
    for result in results {
        assert!(matches!(result, Err(RunError::NoChannel)), "{result:?}");
    }
}

#[test]
fn a_notifier_follows_the_ledger_and_is_the_only_one_of_its_workspace() {
    let (sender, requests) = channel();
    // The receiver refuses the notices, so the cursor stays, and nothing is written once the test is over.
    let root = configured(6, &receiver(&[500], sender.clone()));
    let path = root.path().to_owned();
    std::thread::spawn(move || {
        let ended = notifier::run(&path);
        let _ = sender.send(format!("it ended: {ended:?}"));
    });
    let request = requests.recv_timeout(PATIENCE).expect("a request");
    assert!(request.contains("\"kind\":\"escalated\""), "{request}");
    let second = notifier::once(root.path());
    assert!(matches!(second, Err(RunError::Running)), "{second:?}");
}
