//! The program as a browser meets it: the printed link leads to the page, and a form may have 16 KiB.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
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
        let mut command = Command::new(env!("CARGO_BIN_EXE_settled-page"));
        let child = command.arg("--root").arg(root).stdout(Stdio::piped());
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
