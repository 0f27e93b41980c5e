//! The program as a browser meets it: the printed link leads to the page, a form may have 16 KiB, and gives one order.

#[expect(
    dead_code,
    reason = "shared with the tests of the drawing, which use all of it"
)]
#[path = "../../../tests/recorded_workspace.rs"]
mod recorded_workspace;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running `settled-page`; dropping the value kills it.
struct Page {
    child: Child,
    host: String,
    token: String,
}

impl Page {
    fn open() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/recorded");
        Self::open_at(&root, &[])
    }

    fn open_at(root: &Path, options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_settled-page"));
        command.arg("--root").arg(root).args(options);
        let child = command.stdout(Stdio::piped());
        let mut child = child.spawn().expect("a program");
        let mut line = String::new();
        let out = child.stdout.take().expect("it is piped");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let link = line.trim().strip_prefix("open http://");
        let link = link.and_then(|link| link.split_once("/?token="));
        let (host, token) = link.unwrap_or_else(|| panic!("no link: {line:?}"));
        Self {
            child,
            host: host.to_owned(),
            token: token.to_owned(),
        }
    }

    /// Sends a request and returns the whole response.
    fn ask(&self, line: &str, headers: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.host).expect("a listener");
        let patience = Some(Duration::from_secs(30));
        stream.set_read_timeout(patience).expect("a time-out");
        let (host, length) = (&self.host, body.len());
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("a reader");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("a response");
        response
    }

    /// Opens a stream of events and returns its status line and what follows.
    fn events(&self, after: u64, headers: &str) -> (String, BufReader<TcpStream>) {
        let mut stream = TcpStream::connect(&self.host).expect("a listener");
        let patience = Some(Duration::from_secs(30));
        stream.set_read_timeout(patience).expect("a time-out");
        let host = &self.host;
        let request =
            format!("GET /events?after={after} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).expect("a reader");
        let (mut stream, mut status) = (BufReader::new(stream), String::new());
        stream.read_line(&mut status).expect("a status");
        (status, stream)
    }

    /// Follows the printed link and returns the cookie it sets.
    fn enter(&self) -> String {
        let entered = self.ask(&format!("GET /?token={}", self.token), "", "");
        assert!(entered.starts_with("HTTP/1.1 303 "), "{entered}");
        let cookie = entered
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.and_then(|cookie| cookie.split(';').next());
        cookie.expect("a cookie").to_owned()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_link_leads_to_the_page_with_a_cookie_of_its_port() {
    let page = Page::open();
    let (_, port) = page.host.rsplit_once(':').expect("a port");
    let cookie = page.enter();
    let named = cookie.strip_prefix(&format!("settled_page_{port}="));
    assert_eq!(named.map(str::len), Some(64), "port {port}: {cookie}");
    let shown = page.ask("GET /", &format!("Cookie: {cookie}\r\n"), "");
    assert!(shown.starts_with("HTTP/1.1 200 "), "{shown}");
    assert!(shown.contains("#88 codex -&gt; claude"), "{shown}");
}

#[test]
fn each_address_gives_its_kind_of_document_and_any_other_404() {
    const HTML: &str = "text/html; charset=utf-8";
    let page = Page::open();
    let cookie = format!("Cookie: {}\r\n", page.enter());
    let review = "/review?key=%2386%20claude%20-%3E%20codex";
    for (path, status, kind, words) in [
        ("/", 200, HTML, "Needs somebody"),
        (review, 200, HTML, "Everything that happened"),
        ("/history", 200, HTML, "Reviewers compared"),
        ("/page.css", 200, "text/css; charset=utf-8", "color-scheme"),
        (
            "/page.js",
            200,
            "text/javascript; charset=utf-8",
            "EventSource",
        ),
        ("/page.svg", 200, "image/svg+xml", "<svg"),
        ("/review?key=%231", 404, HTML, "There is no such review"),
        ("/nothing", 404, HTML, "there is no such page or review"),
    ] {
        let response = page.ask(&format!("GET {path}"), &cookie, "");
        let (head, body) = response.split_once("\r\n\r\n").expect("a body");
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        let kind = format!("\r\ncontent-type: {kind}\r\n");
        assert!(head.contains(&kind), "{path}: {head}");
        assert!(body.contains(words), "{path}: {body}");
    }
}

#[test]
fn an_open_page_gets_the_records_that_it_lacks_and_how_the_daemon_is() {
    let root = recorded_workspace::workspace();
    let page = Page::open_at(root.path(), &[]);
    let cookie = format!("Cookie: {}\r\n", page.enter());
    let told = |after, headers: &str| {
        let (status, stream) = page.events(after, &format!("{cookie}{headers}"));
        assert!(status.starts_with("HTTP/1.1 200 "), "{status}");
        let mut told = Vec::new();
        for line in stream.lines().map(|line| line.expect("a line")) {
            if ["id: ", "event: ", "data: "]
                .iter()
                .any(|name| line.starts_with(name))
            {
                told.push(line);
            }
            if told.iter().any(|line| line == "event: alerts") && told.len() % 2 == 1 {
                break;
            }
        }
        told
    };
    let last = [
        "id: 12",
        "event: record",
        concat!(
            r#"data: {"seq":12,"at":"2026-11-23T08:01:30.649Z","text":"    12  2026-11-23T08:01:30.649Z  taken      -  "#,
            r#"request of pull request 87 taken -> reviewing round 1, 8 turns left  "#,
            r##"[#87 claude -> gemini, run reviewing]\n"}"##
        ),
        "event: daemon",
        "data: stopped",
        "event: alerts",
        "data: 0",
    ];
    assert_eq!(told(11, ""), last);
    // What the browser has got counts more than what the page showed when it was loaded.
    assert_eq!(told(0, "Last-Event-ID: 11\r\n"), last);
    let ids = told(0, "");
    let ids: Vec<&str> = ids
        .iter()
        .filter_map(|line| line.strip_prefix("id: "))
        .collect();
    assert_eq!(ids.join(" "), "1 2 3 4 5 6 7 8 9 10 11 12");
}

#[test]
fn only_32_pages_are_kept_up_to_date_and_a_closed_one_makes_room() {
    let page = Page::open();
    let cookie = format!("Cookie: {}\r\n", page.enter());
    let mut open = Vec::new();
    for n in 1..=32 {
        let (status, stream) = page.events(12, &cookie);
        assert!(status.starts_with("HTTP/1.1 200 "), "page {n}: {status}");
        open.push(stream);
    }
    let (status, _) = page.events(12, &cookie);
    assert!(status.starts_with("HTTP/1.1 503 "), "{status}");
    open.pop();
    let began = Instant::now();
    while !page.events(12, &cookie).0.starts_with("HTTP/1.1 200 ") {
        assert!(began.elapsed() < Duration::from_secs(30), "no room");
    }
}

#[test]
fn a_ledger_that_breaks_while_the_page_is_open_is_reported_with_the_command_to_run() {
    let root = recorded_workspace::workspace();
    let page = Page::open_at(root.path(), &[]);
    let cookie = format!("Cookie: {}\r\n", page.enter());
    let ledger = root
        .path()
        .join(".settled/ledger/00000000000000000001.jsonl");
    let text = std::fs::read_to_string(&ledger).expect("a ledger");
    let mut lines: Vec<&str> = text.lines().take(5).collect();
    lines[1] = "no record";
    std::fs::write(&ledger, lines.join("\n") + "\n").expect("a ledger");
    let broken = page.ask("GET /", &cookie, "");
    assert!(broken.starts_with("HTTP/1.1 503 "), "{broken}");
    let command = format!(
        "<code>settled doctor --root {}</code>",
        root.path().display()
    );
    for words in ["<h1>The ledger cannot be read</h1>", &command] {
        assert!(broken.contains(words), "{words}: {broken}");
    }
}

#[test]
fn a_page_that_may_not_be_served_says_why_and_in_its_exit_code_who_must_act() {
    let root = recorded_workspace::workspace();
    let empty = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(empty.path().join("agents")).expect("a directory");
    let socket = format!("unix:{}", empty.path().join("s").display());
    for (root, options, code, why) in [
        (
            root.path(),
            &["--listen", &*socket][..],
            1,
            "a socket needs --host",
        ),
        (root.path(), &["--act"], 5, "runs as the same user"),
        (
            empty.path(),
            &["--act", "--by", " "],
            1,
            "the name of who decides has to be 1 to",
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_settled-page"));
        command.arg("--root").arg(root).args(options);
        let output = command.output().expect("a program");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{options:?}: {said}");
        assert!(said.contains(why), "{options:?}: {said}");
        assert!(output.stdout.is_empty(), "{options:?}: {output:?}");
    }
}

/// The value of the first hidden field of that name.
fn hidden<'p>(page: &'p str, name: &str) -> &'p str {
    let field = format!("name=\"{name}\" value=\"");
    let rest = page
        .split_once(&field)
        .unwrap_or_else(|| panic!("no {name}: {page}"))
        .1;
    rest.split('"').next().expect("a value")
}

#[test]
fn a_form_that_is_sent_twice_gives_one_order() {
    let root = recorded_workspace::workspace();
    // No agent may run as the user who decides.
    for agent in ["claude", "codex", "gemini"] {
        let outbox = root.path().join("agents").join(agent).join("outbox");
        std::fs::create_dir_all(&outbox).expect("a directory");
        chown(&outbox, Some(61_001), None).expect("run this test as root: it gives outboxes away");
    }
    let records = || {
        let ledger = root
            .path()
            .join(".settled/ledger/00000000000000000001.jsonl");
        let ledger = std::fs::read_to_string(ledger).expect("a ledger");
        ledger.lines().count()
    };
    let page = Page::open_at(root.path(), &["--act", "--by", "ann"]);
    let cookie = page.enter();
    let headers = format!(
        "Cookie: {cookie}\r\nOrigin: http://{}\r\nContent-Type: application/x-www-form-urlencoded\r\n",
        page.host
    );
    let review = "%2386%20claude%20-%3E%20codex";
    let shown = page.ask(
        &format!("GET /review?key={review}"),
        &format!("Cookie: {cookie}\r\n"),
        "",
    );
    let (form, order) = (hidden(&shown, "form"), hidden(&shown, "order"));
    let sent = |order: &str| {
        let form = format!("form={form}&order={order}&key={review}&act=hold&thread=F-1&reason=r");
        page.ask("POST /act", &headers, &form)
    };
    let first = sent(order);
    assert!(first.starts_with("HTTP/1.1 303 "), "{first}");
    let before = records();
    let second = sent(order);
    assert!(second.starts_with("HTTP/1.1 409 "), "{second}");
    assert!(second.contains("this form was sent before"), "{second}");
    assert_eq!(records(), before);
    // The answer has forms of its own, and a form without an order is none of the page's.
    assert_ne!(hidden(&second, "order"), order);
    let none = sent("");
    assert!(none.starts_with("HTTP/1.1 403 "), "{none}");
    assert!(
        none.contains("the form is not one that this page drew"),
        "{none}"
    );
}

#[test]
fn a_form_of_16_kib_is_read_and_a_longer_one_is_refused() {
    let page = Page::open();
    let headers = format!(
        "Cookie: {}\r\nOrigin: http://{}\r\nContent-Type: application/x-www-form-urlencoded\r\n",
        page.enter(),
        page.host
    );
    // The page reads the whole form before it refuses a read-only viewer.
    for (length, expected) in [(16_384, "HTTP/1.1 403 "), (16_385, "HTTP/1.1 413 ")] {
        let form = format!("{:a<length$}", "form=f&key=k&act=cancel&reason=");
        let response = page.ask("POST /act", &headers, &form);
        assert!(response.starts_with(expected), "{length} bytes: {response}");
        let is_told = response.contains("this page is for looking only");
        assert_eq!(is_told, length == 16_384, "{response}");
    }
}
