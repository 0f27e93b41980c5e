//! `settled page` through its answers: who is let in, that it agrees with the commands, that its events resume, and
//! that a person's decisions are the commands' orders. `tests/browser` tests it in a real browser.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said, settled};
use settled_tests::{read, seed, wait};
use workspace::operator_alerts::{Alert, AlertKind, Alerts};

/// A running page; dropping the value kills it.
pub(crate) struct Page {
    child: Child,
    log: std::path::PathBuf,
    host: String,
    token: String,
    cookie: String,
}

/// An answer.
pub(crate) struct Answer {
    status: u16,
    head: String,
    pub(crate) body: String,
}

impl Page {
    pub(crate) fn open(mailroom: &Mailroom, args: &[&str]) -> Self {
        let log = mailroom.root().join(".settled/page.log");
        let file = std::fs::File::create(&log).expect("a log");
        let mut command = settled();
        command.arg("page").arg(mailroom.root());
        command.arg("--").args(args);
        let child = command.stdout(Stdio::piped()).stderr(file).spawn();
        let mut child = child.expect("settled can be run");
        let mut line = String::new();
        let out = child.stdout.take().expect("it was piped");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let link = line.trim().strip_prefix("open http://");
        let link = link.unwrap_or_else(|| panic!("{line}{}", read(&log)));
        let (host, token) = link.split_once("/?token=").expect("a link with a token");
        let (host, token) = (host.to_owned(), token.to_owned());
        let mut page = Self {
            child,
            log,
            host,
            token,
            cookie: String::new(),
        };
        let entered = page.get(&format!("/?token={}", page.token));
        assert_eq!(entered.status, 303, "{}", entered.head);
        let cookie = entered
            .head
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.expect("a cookie");
        assert!(
            cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"),
            "{cookie}"
        );
        assert!(!entered.head.contains(&page.token), "{}", entered.head);
        page.cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        page
    }

    fn connect(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.host).expect("it listens");
        let patience = Some(Duration::from_secs(30));
        stream.set_read_timeout(patience).expect("a time-out");
        stream.write_all(request.as_bytes()).expect("it reads");
        stream
    }

    /// Sends a request with exactly these headers.
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let headers: String = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        );
        let mut text = String::new();
        self.connect(&request)
            .read_to_string(&mut text)
            .expect("UTF-8");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Answer {
            status: status.expect("a status"),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask(
            "GET",
            path,
            &[("Host", &self.host), ("Cookie", &self.cookie)],
            "",
        )
    }

    fn post(&self, fields: &[(&str, &str)]) -> Answer {
        let body: Vec<String> = fields
            .iter()
            .map(|(name, value)| format!("{name}={}", encoded(value)))
            .collect();
        let origin = format!("http://{}", self.host);
        let headers = [
            ("Host", self.host.as_str()),
            ("Cookie", &self.cookie),
            ("Origin", &origin),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ];
        self.ask("POST", "/act", &headers, &body.join("&"))
    }

    fn log(&self) -> String {
        read(&self.log)
    }

    /// The numbers of the records that `/events` sends, up to this one.
    fn records(&self, headers: &str, path: &str, last: u64) -> Vec<u64> {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n{headers}\r\n",
            self.host, self.cookie
        );
        let mut records = Vec::new();
        for line in BufReader::new(self.connect(&request)).lines() {
            if let Some(id) = line.expect("an event").strip_prefix("id: ") {
                records.push(id.parse().expect("a number"));
                if records.last() == Some(&last) {
                    break;
                }
            }
        }
        records
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The values of an attribute, in the order of the page.
fn values(html: &str, attribute: &str) -> Vec<String> {
    let start = format!("{attribute}=\"");
    html.split(&start)
        .skip(1)
        .map(|rest| {
            rest.split('"')
                .next()
                .unwrap_or_default()
                .replace("&gt;", ">")
        })
        .collect()
}

/// The rows of the page: review, phase, mover, round.
fn rows(html: &str) -> Vec<[String; 4]> {
    html.split("<tr class=\"row\"")
        .skip(1)
        .map(|row| {
            ["data-review", "data-phase", "data-mover", "data-round"]
                .map(|name| values(row, name).first().cloned().unwrap_or_default())
        })
        .collect()
}

/// The same rows from `settled status --json`.
fn told(status: &Value) -> Vec<[String; 4]> {
    let reviews = status["reviews"].as_array().expect("a list");
    let text = |value: &Value| value.as_str().unwrap_or("nobody").to_owned();
    reviews
        .iter()
        .map(|review| {
            let round = format!("{}/{}", review["round_of_generation"], review["rounds"]);
            [
                text(&review["review"]),
                text(&review["phase"]),
                text(&review["mover"]),
                round,
            ]
        })
        .collect()
}

/// A message of the first review, for another pull request.
fn post_of(pr: u64, step: usize) -> (&'static str, String, String) {
    let post = &seed::review()[step];
    let id = seed::id(&post.text).to_owned();
    let text = post
        .text
        .replace(&id, &format!("{id}-{pr}"))
        .replace("related_pr: \"86\"", &format!("related_pr: \"{pr}\""))
        .replace("\n  pr: 86\n", &format!("\n  pr: {pr}\n"));
    (post.from, format!("{pr}-{}", post.file), text)
}

#[test]
fn the_page_says_what_status_says_of_many_ledgers() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    seed::lay_packet(mailroom.root());
    let page = Page::open(&mailroom, &[]);
    // The same numbers on every machine (Knuth's generator).
    let mut chance = 0x2545_f491_u64;
    for _ in 0..40 {
        chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let (pr, step) = (86 + (chance >> 33) % 6, (chance >> 50) as usize % 5);
        let (from, file, text) = post_of(pr, step);
        mailroom.post(from, &file, &text);
        mailroom.once();
        if chance.is_multiple_of(7) {
            mailroom.run(&["turn", &pr.to_string(), "--count", "8"]);
        }
        let status = mailroom.status();
        let answer = page.get("/");
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(
            values(&answer.body, "data-seq")[0],
            status["ledger"]["records"].to_string()
        );
        assert_eq!(rows(&answer.body), told(&status), "after {file} of {from}");
        for row in told(&status) {
            let one = page.get(&format!("/review?key={}", encoded(&row[0])));
            assert_eq!(one.status, 200, "{}", row[0]);
            let shown = ["data-review", "data-phase", "data-mover", "data-round"]
                .map(|name| values(&one.body, name)[0].clone());
            assert_eq!(shown, row);
        }
    }
    let status = mailroom.status();
    let phases: std::collections::BTreeSet<_> = told(&status)
        .into_iter()
        .map(|row| row[1].clone())
        .collect();
    assert!(
        phases.len() >= 3,
        "the ledgers differ too little: {phases:?}"
    );
}

#[test]
fn nobody_is_let_in_by_another_host_origin_or_token() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let page = Page::open(&mailroom, &[]);
    let (host, cookie) = (page.host.as_str(), page.cookie.as_str());
    let name = cookie.split('=').next().unwrap_or_default();
    let wrong = format!("{name}={}", "0".repeat(64));
    let with_token = format!("/?token={}", page.token);
    let wrong_token = format!("/?token={}", "0".repeat(64));
    for (path, headers, says) in [
        (
            "/",
            vec![("Host", "evil.example"), ("Cookie", cookie)],
            "another host was asked for",
        ),
        (
            "/",
            vec![("Host", "127.0.0.1"), ("Cookie", cookie)],
            "another host was asked for",
        ),
        (
            with_token.as_str(),
            vec![("Host", "evil.example")],
            "another host was asked for",
        ),
        (
            "/",
            vec![
                ("Host", host),
                ("Cookie", cookie),
                ("Origin", "http://evil.example"),
            ],
            "it comes from another page",
        ),
        (
            "/",
            vec![("Host", host), ("Cookie", cookie), ("Origin", "null")],
            "it comes from another page",
        ),
        (
            wrong_token.as_str(),
            vec![("Host", host), ("Cookie", cookie)],
            "the token is wrong",
        ),
        ("/?token=", vec![("Host", host)], "the token is wrong"),
        ("/", vec![("Host", host)], "there is no session"),
        (
            "/events",
            vec![("Host", host), ("Cookie", wrong.as_str())],
            "there is no session",
        ),
        ("/page.js", vec![("Host", host)], "there is no session"),
    ] {
        let before = page.log().matches(says).count();
        let answer = page.ask("GET", path, &headers, "");
        assert_eq!(answer.status, 403, "{path} {headers:?}");
        assert!(!answer.body.contains("claude"), "{}", answer.body);
        wait::until(&format!("a line about {says}"), || {
            page.log().matches(says).count() > before
        });
    }
    let answer = page.get("/no-such-page");
    assert_eq!(answer.status, 404);
    assert!(
        answer.body.contains("no such page or review"),
        "{}",
        answer.body
    );
    let answer = page.get("/");
    assert!(
        answer
            .head
            .contains("content-security-policy: default-src 'none'; script-src 'self'"),
        "{}",
        answer.head
    );
    assert!(
        !answer.body.contains("style=") && !answer.body.contains("onclick"),
        "{}",
        answer.body
    );
    assert!(!page.log().contains(&page.token), "the token is in the log");
}

/// Starts a page that has to refuse to serve.
fn page_of(mailroom: &Mailroom, options: &[&str]) -> Output {
    let mut command = settled();
    command.arg("page").arg(mailroom.root()).arg("--");
    command.args(options).output().expect("settled can be run")
}

#[test]
fn only_this_machine_is_listened_to() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    for address in ["0.0.0.0:0", "192.168.0.1:80", "unix:"] {
        let output = page_of(&mailroom, &["--listen", address]);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    }
    // A socket without a host name would refuse every request.
    let listen = format!("unix:{}", mailroom.root().join("page.sock").display());
    let output = page_of(&mailroom, &["--listen", &listen]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("--host"), "{}", said(&output));
}

#[test]
fn a_browser_names_its_origin_and_the_link_leads_nowhere_else() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let page = Page::open(&mailroom, &[]);
    // With `no-referrer` a browser sends `Origin: null` with every form, and nobody could decide anything.
    let head = page.get("/").head;
    assert!(head.contains("referrer-policy: same-origin"), "{head}");
    let path = format!("//evil.example/?token={}", page.token);
    let entered = page.ask("GET", &path, &[("Host", &page.host)], "");
    assert!(
        entered.head.contains("location: /evil.example/\r\n"),
        "{}",
        entered.head
    );
}

#[test]
fn events_go_on_behind_the_last_one_that_arrived() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    for n in 0..10 {
        mailroom.post(
            "claude",
            &format!("{n}.yaml"),
            &seed::note("question", &format!("q-{n}"), "claude", "codex", "hello"),
        );
    }
    mailroom.once();
    let page = Page::open(&mailroom, &[]);
    assert_eq!(
        page.records("", "/events?after=0", 10),
        (1..=10).collect::<Vec<u64>>()
    );
    // The browser's `Last-Event-ID` overrides the number in the loaded page.
    assert_eq!(
        page.records("Last-Event-ID: 7\r\n", "/events?after=0", 10),
        vec![8, 9, 10]
    );
}

#[test]
fn an_open_page_hears_of_an_alert_without_a_record() {
    let mailroom = Mailroom::new(&["claude"]);
    let page = Page::open(&mailroom, &[]);
    let request = format!(
        "GET /events HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n\r\n",
        page.host, page.cookie
    );
    let mut lines = BufReader::new(page.connect(&request)).lines();
    // While there is no record, a comment keeps the connection open.
    let mut told = |what: &str| loop {
        let line = lines.next().expect("the stream goes on").expect("a line");
        assert!(!line.starts_with(':'), "nothing was told: {what}");
        if line == "event: alerts" {
            let data = lines.next().expect("its data").expect("a line");
            break assert_eq!(data, format!("data: {what}"));
        }
    };
    told("0");
    let mut alerts = Alerts::open(mailroom.root());
    alerts.raise(Alert {
        kind: AlertKind::SharedLedger,
        path: mailroom.root().to_owned(),
        what: "waiting".to_owned(),
    });
    alerts.save();
    told("1");
    alerts.clear(|_| true);
    alerts.save();
    told("0");
}

#[test]
fn the_page_is_for_looking_unless_it_is_asked_to_act_and_never_beside_an_agent_of_the_same_user() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let page = Page::open(&mailroom, &[]);
    let answer = page.post(&[
        ("form", "x"),
        ("key", "#86 claude -> codex"),
        ("act", "reopen"),
        ("reason", "because"),
    ]);
    assert_eq!(answer.status, 403);
    assert!(!page.get("/").body.contains("<form method=\"post\""));
    // The agents of this mailroom run as this very user.
    let output = page_of(&mailroom, &["--act"]);
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    assert!(
        said(&output).contains("runs as the same user"),
        "{}",
        said(&output)
    );
}

/// Gives every outbox to its own user, as `--separate-users` does; needs root.
fn separated() -> Mailroom {
    assert!(
        rustix::process::geteuid().is_root(),
        "this test gives files to other users: run it as root"
    );
    let mailroom = Mailroom::new(&["claude", "codex"]);
    seed::lay_packet(mailroom.root());
    let (from, file, text) = post_of(86, 0);
    mailroom.post(from, &file, &text);
    mailroom.once();
    for (agent, uid) in [("claude", 61_001), ("codex", 61_002)] {
        std::os::unix::fs::chown(mailroom.agent(agent, "outbox"), Some(uid), None)
            .expect("root may");
    }
    mailroom
}

#[test]
fn a_decision_on_the_page_is_the_order_of_the_command() {
    let mailroom = separated();
    assert!(
        mailroom
            .run(&["turn", "86", "--count", "8"])
            .status
            .success()
    );
    let page = Page::open(&mailroom, &["--act", "--by", "ann"]);
    let key = "#86 claude -> codex";
    let place = format!("/review?key={}", encoded(key));
    let drawn = page.get(&place).body;
    let form = values(&drawn, "name=\"form\" value")[0].clone();
    let order_of = |html: &str| values(html, "name=\"order\" value")[0].clone();
    let order = order_of(&drawn);
    let decide = |form: &str, order: &str, act: &str, reason: &str| {
        page.post(&[
            ("form", form),
            ("order", order),
            ("key", key),
            ("act", act),
            ("reason", reason),
        ])
    };
    // A form of another page, no reason, and a decision that the rules decline.
    assert_eq!(decide("0", &order, "reopen", "because").status, 403);
    assert_eq!(decide(&form, &order, "reopen", " ").status, 409);
    assert_eq!(decide(&form, &order, "approve", "because").status, 409);
    let declined = decide(&form, &order, "cancel", "because");
    assert_eq!(declined.status, 409);
    let code = mailroom.run(&["review", "cancel", "86", "--reason", "because"]);
    let code = said(&code);
    let line = code.lines().find(|line| line.contains("decision_invalid"));
    let sentence = line.and_then(|line| line.rsplit(": ").next());
    let sentence = sentence.unwrap_or_default();
    assert!(
        !sentence.is_empty() && declined.body.contains(sentence),
        "{code}\n{}",
        declined.body
    );
    // Without an origin nobody can decide, not even with the cookie.
    let body = format!("form={form}&key={}&act=reopen&reason=x", encoded(key));
    let headers = [
        ("Host", page.host.as_str()),
        ("Cookie", &page.cookie),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ];
    assert_eq!(page.ask("POST", "/act", &headers, &body).status, 403);
    assert_eq!(mailroom.status()["reviews"][0]["phase"], "escalated");
    // The refusal is on the review's own page, which a reload requests again without interrupting anybody who types.
    let home = "data-home=\"/review?key=%2386%20claude%20-%3E%20codex\"";
    assert!(declined.body.contains(home), "{}", declined.body);
    for body in [&declined.body, &page.get(&place).body] {
        assert!(!body.contains("http-equiv=\"refresh\""), "{body}");
    }
    let again = order_of(&declined.body);
    let done = decide(&form, &again, "reopen", "the reviewer was cut off");
    assert_eq!(done.status, 303, "{}", done.body);
    assert_eq!(mailroom.status()["reviews"][0]["phase"], "awaiting");
    let log = mailroom.run(&["log"]);
    assert!(said(&log).contains("ann"), "{}", said(&log));
    assert!(
        page.get(&place).body.contains("the reviewer was cut off"),
        "the timeline has the reason"
    );
}

#[test]
fn a_socket_answers_to_the_names_of_its_proxy() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let socket = mailroom.root().join(".settled/page.sock");
    let listen = format!("unix:{}", socket.display());
    let page = Page::open_at_socket(&mailroom, &listen);
    let curl = |host: &str| {
        let output = Command::new("curl")
            .args([
                "-q",
                "-s",
                "-o",
                "/dev/null",
                "-w",
                "%{http_code}",
                "--unix-socket",
            ])
            .arg(&socket)
            .arg(format!("http://{host}/?token={}", page.token))
            .output();
        String::from_utf8_lossy(&output.expect("curl can be run").stdout).into_owned()
    };
    assert_eq!(curl("reviews.example.org"), "303");
    assert_eq!(curl("localhost"), "403");
    use std::os::unix::fs::PermissionsExt as _;
    let mode = socket.metadata().expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

impl Page {
    fn open_at_socket(mailroom: &Mailroom, listen: &str) -> Self {
        let log = mailroom.root().join(".settled/page.log");
        let mut command = settled();
        command.arg("page").arg(mailroom.root()).args([
            "--",
            "--listen",
            listen,
            "--host",
            "reviews.example.org",
        ]);
        let file = std::fs::File::create(&log).expect("a log");
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .expect("settled can be run");
        let mut line = String::new();
        let out = child.stdout.take().expect("it was piped");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let (_, token) = line
            .trim()
            .split_once("token=")
            .unwrap_or_else(|| panic!("{line}{}", read(&log)));
        Self {
            child,
            token: token.to_owned(),
            log,
            host: String::new(),
            cookie: String::new(),
        }
    }
}
