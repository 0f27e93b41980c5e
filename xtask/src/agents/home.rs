//! The world outside a sandbox: the scripted server behind TLS, under a name as a real service has; and a server of the
//! user's own, which an agent must not call.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use settled_tests::repository;

/// Both servers, and the authority that signs the first one's certificate.
pub(super) struct Outside {
    place: PathBuf,
    port: u16,
    friend: String,
    callers: Arc<Mutex<BTreeSet<String>>>,
    front: Child,
    /// Closing this ends the front end, however the bench ends.
    _open: ChildStdin,
}

/// An authority and its certificate for `localhost`: some programs reject self-signed ones.
const CERTIFICATES: &str = "set -e
new='openssl req -x509 -newkey rsa:2048 -nodes -days 7 -config /dev/null'
$new -keyout ca.key -out ca.pem -subj /CN=bench -addext basicConstraints=critical,CA:TRUE
$new -keyout key.pem -out cert.pem -subj /CN=localhost -CA ca.pem -CAkey ca.key \
    -addext subjectAltName=DNS:localhost -addext basicConstraints=CA:FALSE";

impl Outside {
    /// Starts both servers; the first forwards everything to this local port.
    pub(super) fn new(place: &Path, server: u16) -> Result<Self, String> {
        let place = place.join("tls");
        std::fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
        let made = Command::new("sh")
            .args(["-c", CERTIFICATES])
            .current_dir(&place)
            .stdin(Stdio::null())
            .output();
        let made = made.map_err(|error| format!("sh: {error}"))?;
        if !made.status.success() {
            let errors = String::from_utf8_lossy(&made.stderr);
            return Err(format!("no certificate: {errors}"));
        }
        let mut front = Command::new("node")
            .arg(repository().join("tests/agents/tls.mjs"))
            .arg(server.to_string())
            .current_dir(&place)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("node: {error}"))?;
        let mut port = String::new();
        let printed = front.stdout.take().expect("it is a pipe");
        BufReader::new(printed)
            .read_line(&mut port)
            .map_err(|error| format!("node: {error}"))?;
        let port = port.trim().parse();
        let (friend, callers) = friend().map_err(|error| format!("the user's server: {error}"))?;
        Ok(Self {
            place,
            port: port.map_err(|_| "node serves no port".to_owned())?,
            friend,
            callers,
            _open: front.stdin.take().expect("it is a pipe"),
            front,
        })
    }

    /// Returns the host that a sandbox lets its command reach.
    pub(super) fn host(&self) -> String {
        format!("localhost:{}", self.port)
    }

    pub(super) fn address(&self) -> String {
        format!("https://{}", self.host())
    }

    /// Returns the certificate that programs have to trust for that.
    pub(super) fn certificate(&self) -> PathBuf {
        self.place.join("ca.pem")
    }

    /// Returns the variables that make programs trust it.
    pub(super) fn trust(&self) -> [(String, String); 2] {
        let file = self.certificate().display().to_string();
        ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"].map(|name| (name.to_owned(), file.clone()))
    }

    /// Returns the host and port of the user's server.
    pub(super) fn friend(&self) -> &str {
        &self.friend
    }

    /// True if a program requested the page of that name from the user's server.
    pub(super) fn was_called_by(&self, name: &str) -> bool {
        let callers = self.callers.lock().expect("no thread panics with it");
        callers.contains(&format!("/{name}"))
    }

    /// True if a program requested a page with this path prefix from the user's server.
    pub(super) fn was_called_below(&self, path: &str) -> bool {
        let callers = self.callers.lock().expect("no thread panics with it");
        callers.iter().any(|page| page.starts_with(path))
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.front.kill();
        let _ = self.front.wait();
    }
}

/// Starts a server that notes the pages that clients request.
fn friend() -> std::io::Result<(String, Arc<Mutex<BTreeSet<String>>>)> {
    let server = TcpListener::bind(("127.0.0.1", 0))?;
    let address = server.local_addr()?.to_string();
    let callers = Arc::<Mutex<BTreeSet<String>>>::default();
    let noted = Arc::clone(&callers);
    thread::spawn(move || {
        for mut caller in server.incoming().flatten() {
            let mut line = String::new();
            // A client that sends nothing has connected all the same.
            let _ = BufReader::new(&caller).read_line(&mut line);
            let page = line.split(' ').nth(1).unwrap_or_default().to_owned();
            noted.lock().expect("no thread panics with it").insert(page);
            let _ = caller.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    Ok((address, callers))
}
