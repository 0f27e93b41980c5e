//! `settled notify`, a separate process: the notices it sends through a program and a webhook, their survival of a
//! kill, and when it sends none.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use chrono::DateTime;
use notifier::{Channel, Lane, Step};
use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said, settled};
use settled_tests::{read, seed, wait, write};
use workspace::config::Config;

/// A mailroom with an open request, whose notices go through a shell script.
fn reviewing(script: &str, more: &str) -> Mailroom {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let program = mailroom.root().join("tell");
    write(&program, script);
    mailroom.put(
        "settled.toml",
        &format!("[notify]\ncommand = [\"sh\", \"tell\"]\n{more}"),
    );
    seed::lay_packet(mailroom.root());
    let [request, ..] = seed::review();
    mailroom.post(request.from, request.file, &request.text);
    assert!(mailroom.once().status.success());
    mailroom
}

/// Uses up the reviewer's turns, which escalates the review.
fn escalate(mailroom: &Mailroom) {
    let output = mailroom.run(&["turn", "86", "--count", "8"]);
    assert!(output.status.success(), "{}", said(&output));
}

const KEEP: &str = "cat >> told\n";

fn told(mailroom: &Mailroom) -> Vec<Value> {
    lines(&mailroom.root().join("told"))
}

fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).expect("a notice is JSON on a line"))
        .collect()
}

/// A running notifier; dropping the value kills it.
struct Notifier(Child, PathBuf);

impl Notifier {
    fn start(mailroom: &Mailroom) -> Self {
        let log = mailroom.root().join(".settled/notify.log");
        let file = std::fs::File::create(&log).expect("a log");
        let mut command = settled();
        command.arg("notify").arg(mailroom.root());
        let child = command.stdout(Stdio::null()).stderr(file).spawn();
        let notifier = Self(child.expect("settled can be run"), log);
        wait::until("the notifier to run", || {
            read(&notifier.1).contains("notifying")
        });
        notifier
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_program_is_told_of_an_escalation_once_and_not_of_what_was_before() {
    let mailroom = reviewing(KEEP, "");
    escalate(&mailroom);
    // The first start begins at the end of the ledger.
    assert!(mailroom.run(&["notify", "--once"]).status.success());
    assert_eq!(told(&mailroom), Vec::<Value>::new());
    let reopened = mailroom.at_terminal(&["review", "reopen", "86", "--by", "ann"], "once more");
    assert!(reopened.status.success(), "{}", said(&reopened));
    let [request, ..] = seed::review();
    let again = request.text.replacen(seed::id(&request.text), "again-1", 1);
    mailroom.post(
        "claude",
        "again.yaml",
        &again.replace("round: 1", "round: 2"),
    );
    mailroom.once();
    escalate(&mailroom);
    for _ in 0..2 {
        let output = mailroom.run(&["notify", "--once"]);
        assert!(output.status.success(), "{}", said(&output));
    }
    let told = told(&mailroom);
    assert_eq!(told.len(), 1, "{told:?}");
    let notice = &told[0];
    assert_eq!(
        [
            &notice["kind"],
            &notice["pr"],
            &notice["reviewer"],
            &notice["reason"]
        ],
        ["escalated", "86", "codex", "reviewer_budget_exceeded"]
    );
    // The command it names works.
    let shown = mailroom.shell(notice["command"].as_str().expect("a command"));
    assert!(
        said(&shown).contains("reviewer_budget_exceeded"),
        "{}",
        said(&shown)
    );
}

#[test]
fn a_kill_between_the_program_and_the_cursor_tells_the_same_under_the_same_id() {
    // The notifier is this script's parent.
    let script = "cat >> told\n[ -e killed ] || { touch killed; kill -9 $PPID; sleep 1; }\n";
    let mailroom = reviewing(script, "");
    assert!(mailroom.run(&["notify", "--once"]).status.success());
    escalate(&mailroom);
    assert!(!mailroom.run(&["notify", "--once"]).status.success());
    assert_eq!(told(&mailroom).len(), 1);
    assert!(mailroom.run(&["notify", "--once"]).status.success());
    let told = told(&mailroom);
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0], told[1]);
    assert!(mailroom.run(&["notify", "--once"]).status.success());
    assert_eq!(lines(&mailroom.root().join("told")).len(), 2);
}

#[test]
fn a_program_that_fails_is_tried_again() {
    let script = "[ -e failed ] || { touch failed; exit 1; }\ncat >> told\n";
    let mailroom = reviewing(script, "");
    let notifier = Notifier::start(&mailroom);
    escalate(&mailroom);
    wait::until("the second try", || told(&mailroom).len() == 1);
    assert!(
        read(&notifier.1).contains("cannot send the notice; will retry: `sh` ended with"),
        "{}",
        read(&notifier.1)
    );
}

#[test]
fn a_daemon_that_was_killed_is_told_and_one_that_comes_back_soon_is_not() {
    let mailroom = reviewing(KEEP, "stopped_after_s = 3\n");
    let _notifier = Notifier::start(&mailroom);
    let daemon = mailroom.serve();
    let cursor = || read(mailroom.root().join(".settled/notify/command.json"));
    let is_seen = || cursor().contains("\"has_served\":true,\"gone\":null");
    wait::until("the notifier to see the daemon", is_seen);
    daemon.kill();
    wait::until("the notifier to see it gone", || {
        cursor().contains("\"since\"")
    });
    let daemon = mailroom.serve();
    wait::until("the notifier to see the next", is_seen);
    assert_eq!(told(&mailroom), Vec::<Value>::new());
    daemon.kill();
    wait::until("the notice of its end", || !told(&mailroom).is_empty());
    let told = told(&mailroom);
    assert_eq!(told[0]["kind"], "daemon_stopped");
    assert_eq!(told[0]["seq"], mailroom.status()["ledger"]["records"]);
    // A command that judges without a daemon does not count as a daemon.
    mailroom.once();
    wait::a_moment(std::time::Duration::from_secs(1));
    assert_eq!(lines(&mailroom.root().join("told")).len(), 1);
}

#[test]
fn quiet_hours_hold_until_they_end() {
    let mailroom = reviewing(KEEP, "quiet_hours = \"22:00-07:00\"\n");
    let config = Config::load(mailroom.root()).expect("a config");
    let channel = Channel::Command(config.notify.command.clone());
    let mut lane = Lane::open(mailroom.root(), channel, &config.notify).expect("a lane");
    escalate(&mailroom);
    let at = |time: &str, mono| Step {
        mono,
        // Only the operator's time zone counts.
        at: DateTime::parse_from_rfc3339(&format!("2026-02-13T{time}:00+09:00")).expect("a time"),
        serving: None,
    };
    for (n, time) in ["22:00", "23:59", "00:00", "06:59"].into_iter().enumerate() {
        let sent = lane.step(at(time, n as u64)).expect("a step");
        assert!(!sent && !lane.is_idle(), "sent at {time}");
    }
    assert_eq!(told(&mailroom), Vec::<Value>::new());
    assert!(lane.step(at("07:00", 10)).expect("a step"));
    assert!(lane.is_idle());
    assert_eq!(told(&mailroom).len(), 1);
}

/// A receiver that answers each post with the next status.
fn receiver(statuses: &'static [u16]) -> (String, std::thread::JoinHandle<Vec<(String, String)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/hook", listener.local_addr().expect("an address"));
    let posts = std::thread::spawn(move || {
        let answer = |status: &u16| {
            let (mut stream, _) = listener.accept().expect("a post");
            let (mut text, mut buffer) = (String::new(), [0; 4096]);
            loop {
                let count = stream.read(&mut buffer).expect("a request");
                text += &String::from_utf8_lossy(&buffer[..count]);
                if let Some((head, body)) = text.split_once("\r\n\r\n") {
                    let length = head
                        .lines()
                        .find_map(|line| line.strip_prefix("Content-Length: "))
                        .map_or(0, |length| length.parse().expect("a length"));
                    if body.len() >= length || count == 0 {
                        break;
                    }
                }
            }
            let answer =
                format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).expect("an answer");
            let (head, body) = text.split_once("\r\n\r\n").expect("a whole request");
            (head.to_owned(), body.to_owned())
        };
        statuses.iter().map(answer).collect()
    });
    (address, posts)
}

/// HMAC-SHA256, by Python's own library.
fn hmac(secret: &str, text: &str) -> String {
    let script = "import hmac,sys; print(hmac.new(sys.argv[1].encode(), sys.argv[2].encode(), 'sha256').hexdigest())";
    let output = Command::new("python3")
        .args(["-c", script, secret, text])
        .output();
    let output = output.expect("python3 can be run");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_webhook_is_signed_and_posted_again_until_it_is_taken() {
    let (address, posts) = receiver(&[500, 302, 204]);
    let mailroom = reviewing("", "");
    mailroom.put("hook.key", "s3cret\n");
    mailroom.put(
        "settled.toml",
        &format!("[notify]\nwebhook = \"{address}\"\nwebhook_secret_file = \"hook.key\"\n"),
    );
    let notifier = Notifier::start(&mailroom);
    escalate(&mailroom);
    let posts = posts.join().expect("the receiver ends");
    let header = |head: &str, name: &str| {
        let value = head
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name}: ")));
        value
            .unwrap_or_else(|| panic!("no {name} in {head}"))
            .to_owned()
    };
    for (head, body) in &posts {
        assert!(head.starts_with("POST /hook HTTP/1.1\r\n"), "{head}");
        let notice: Value = serde_json::from_str(body).expect("JSON");
        let [id, seconds] = ["Idempotency-Key", "Settled-Timestamp"].map(|name| header(head, name));
        assert_eq!(notice["id"], id.as_str());
        let expected = hmac("s3cret", &format!("{id}.{seconds}.{body}"));
        assert_eq!(
            header(head, "Settled-Signature"),
            format!("sha256={expected}")
        );
        assert_eq!(body, &posts[0].1);
    }
    let log = read(&notifier.1);
    assert!(
        log.contains("status 500") && log.contains("status 302"),
        "{log}"
    );
    assert!(!log.contains(&address) && !log.contains("s3cret"), "{log}");
    // The cursor is written once the receiver has taken the notice.
    let cursor = mailroom.root().join(".settled/notify/webhook.json");
    let records = mailroom.status()["ledger"]["records"].to_string();
    wait::until("the cursor", || {
        read(&cursor).contains(&format!("\"seq\":{records}"))
    });
}

#[test]
fn a_channel_that_cannot_work_is_named_before_anybody_relies_on_it() {
    let mailroom = reviewing("exit 3", "");
    let failed = mailroom.run(&["notify", "--test"]);
    assert_eq!(failed.status.code(), Some(9), "{}", said(&failed));
    assert!(
        said(&failed).contains("command: `sh` ended with"),
        "{}",
        said(&failed)
    );
    mailroom.put("settled.toml", "");
    let none = mailroom.run(&["notify", "--test"]);
    assert_eq!(none.status.code(), Some(2), "{}", said(&none));
    mailroom.put("settled.toml", "[notify]\nwebhook = \"ftp://x\"\n");
    let bad = mailroom.run(&["notify"]);
    assert_eq!(bad.status.code(), Some(2), "{}", said(&bad));
}

#[test]
fn the_ids_of_two_ledgers_differ() {
    let ids = [0, 1].map(|_| {
        let mailroom = reviewing(KEEP, "");
        assert!(mailroom.run(&["notify", "--once"]).status.success());
        escalate(&mailroom);
        mailroom.run(&["notify", "--once"]);
        told(&mailroom)[0]["id"].to_string()
    });
    assert_ne!(ids[0], ids[1]);
}
