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
use std::time::Duration;

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
    }
}
