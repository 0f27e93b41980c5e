//! The only way out of a sandbox without a network: a proxy outside connects to the allowed hosts, and our own program
//! inside carries the command's connections to it, through a socket in the run's folder.
//!
//! The proxy checks only the host. The traffic is encrypted, and it does not read it.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The hosts that a command may reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hosts {
    /// These hosts; no network if the list is empty.
    These(Vec<Host>),
    /// Everything that this machine reaches.
    Any,
}

impl Default for Hosts {
    fn default() -> Self {
        Self::These(Vec::new())
    }
}

/// A host, or all hosts below a domain, with a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Host {
    name: String,
    port: u16,
    /// True if it means the hosts below that name, but not the name itself.
    below: bool,
}

/// The error for text that names no host.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is not a host, expected a name such as `api.example.com`, `*.example.com` or `localhost:8080`"
)]
pub struct InvalidHost(String);

/// The default port, that of HTTPS.
const PORT: u16 = 443;

/// The longest `CONNECT` request, in bytes.
const REQUEST_MAX: u64 = 8192;

/// The most connections at a time; more are closed at once.
const CONNECTIONS_MAX: usize = 256;

/// The time a command has to send its request.
const PATIENCE: Duration = Duration::from_secs(30);

impl TryFrom<String> for Host {
    type Error = InvalidHost;

    fn try_from(text: String) -> Result<Self, InvalidHost> {
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) => (name, port.parse().ok().filter(|port| *port > 0)),
            None => (&*text, Some(PORT)),
        };
        let (name, below) = match name.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (name, false),
        };
        let is_label = |label: &str| {
            !label.is_empty()
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        match port {
            Some(port) if name.split('.').all(is_label) => Ok(Self {
                name: name.to_ascii_lowercase(),
                port,
                below,
            }),
            Some(_) | None => Err(InvalidHost(text)),
        }
    }
}

impl From<Host> for String {
    fn from(host: Host) -> Self {
        host.to_string()
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let below = if self.below { "*." } else { "" };
        write!(f, "{below}{}:{}", self.name, self.port)
    }
}

impl Host {
    /// True if the command asked for this host and port.
    fn is(&self, name: &str, port: u16) -> bool {
        let name = name.to_ascii_lowercase();
        let name = name.strip_suffix('.').unwrap_or(&name);
        let is_named = match self.below {
            true => name
                .strip_suffix(&self.name)
                .is_some_and(|left| left.len() > 1 && left.ends_with('.')),
            false => name == self.name,
        };
        is_named && port == self.port
    }
}

/// Starts a proxy at a socket in this folder, which connects to these hosts until this process ends.
pub(super) fn serve(folder: &Path, hosts: &[Host]) -> io::Result<()> {
    let socket = UnixListener::bind(Socket::of(folder)?.path())?;
    let hosts: Arc<[Host]> = hosts.into();
    let open = Arc::new(AtomicUsize::new(0));
    thread::spawn(move || {
        for asking in socket.incoming().map_while(Result::ok) {
            if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
                open.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (hosts, open) = (Arc::clone(&hosts), Arc::clone(&open));
            thread::spawn(move || {
                let _ = connect(&asking, &hosts);
                open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    Ok(())
}

/// The socket, reached by a path that is short however deep the folder is.
struct Socket(std::fs::File);

impl Socket {
    fn of(folder: &Path) -> io::Result<Self> {
        std::fs::File::open(folder).map(Self)
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/network", self.0.as_raw_fd()))
    }
}

/// Answers one `CONNECT`, and copies the bytes both ways.
fn connect(asking: &UnixStream, hosts: &[Host]) -> io::Result<()> {
    asking.set_read_timeout(Some(PATIENCE))?;
    let mut heard = BufReader::new(asking);
    let request = request(&mut heard)?;
    let refuse = |status: &str, why: &str| {
        let length = why.len();
        write!(
            &mut &*asking,
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{why}"
        )
    };
    let mut words = request.split_ascii_whitespace();
    let (Some("CONNECT"), Some(place)) = (words.next(), words.next()) else {
        let why = "settled: only CONNECT leads out of this sandbox\n";
        return refuse("405 Method Not Allowed", why);
    };
    let place = place.rsplit_once(':');
    let place = place.and_then(|(name, port)| Some((name, port.parse::<u16>().ok()?)));
    let is_named = |(name, port): &(&str, u16)| hosts.iter().any(|host| host.is(name, *port));
    let Some(place) = place.filter(is_named) else {
        let why = "settled: this host is not in `network` of the agent's sandbox\n";
        return refuse("403 Forbidden", why);
    };
    let there = match TcpStream::connect(place) {
        Ok(there) => there,
        Err(error) => return refuse("502 Bad Gateway", &format!("settled: {error}\n")),
    };
    (&mut &*asking).write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    asking.set_read_timeout(None)?;
    carry(&there, asking, heard);
    Ok(())
}

/// Reads up to the empty line that ends the request, and returns the first line.
fn request(asking: &mut impl BufRead) -> io::Result<String> {
    let (mut first, mut line) = (String::new(), String::new());
    let mut asking = asking.take(REQUEST_MAX);
    while asking.read_line(&mut line)? > 0 {
        if line.trim_end().is_empty() {
            return Ok(first);
        }
        if first.is_empty() {
            first.clone_from(&line);
        }
        line.clear();
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// Copies bytes both ways until both sides are done.
fn carry(there: &TcpStream, here: &UnixStream, mut from_here: impl io::Read + Send) {
    // Both ends notice a broken connection themselves.
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = io::copy(&mut from_here, &mut &*there);
            let _ = there.shutdown(Shutdown::Write);
        });
        let _ = io::copy(&mut &*there, &mut &*here);
        let _ = here.shutdown(Shutdown::Write);
    });
}

/// Runs a command inside the walls, with a proxy that forwards to the socket in this folder; returns its exit code.
pub fn inside(folder: &Path, command: &[OsString]) -> io::Result<u8> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| io::Error::other("the command is empty"))?;
    let door = TcpListener::bind(("127.0.0.1", 0))?;
    let proxy = format!("http://{}", door.local_addr()?);
    let socket = Arc::new(Socket::of(folder)?);
    thread::spawn(move || {
        for asking in door.incoming().map_while(Result::ok) {
            let socket = Arc::clone(&socket);
            thread::spawn(move || pass_on(&asking, &socket));
        }
    });
    let variables = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"];
    let status = Command::new(program)
        .args(arguments)
        .envs(variables.map(|name| (name, &proxy)))
        // Node uses a proxy only with this variable.
        .env("NODE_USE_ENV_PROXY", "1")
        .status()?;
    // A signal becomes 128 plus its number, as in a shell and `bwrap`.
    let code = status.code().or_else(|| {
        use std::os::unix::process::ExitStatusExt as _;
        status.signal().map(|signal| 128 + signal)
    });
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

fn pass_on(asking: &TcpStream, socket: &Socket) -> io::Result<()> {
    let proxy = UnixStream::connect(socket.path())?;
    carry(asking, &proxy, &proxy);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Host {
        Host::try_from(text.to_owned()).expect("a host")
    }

    #[test]
    fn a_host_is_met_by_its_name_and_port_and_a_domain_by_what_is_below_it() {
        let one = host("API.example.com");
        assert!(one.is("api.example.com", 443) && one.is("Api.Example.com.", 443));
        for (name, port) in [
            ("api.example.com", 80),
            ("example.com", 443),
            ("evil-api.example.com", 443),
            ("api.example.com.evil.org", 443),
        ] {
            assert!(!one.is(name, port), "{name}:{port}");
        }
        let all = host("*.example.com:8443");
        assert!(all.is("a.b.example.com", 8443));
        assert!(!all.is("example.com", 8443) && !all.is("evilexample.com", 8443));
        assert!(!all.is(".example.com", 8443));
    }

    #[test]
    fn what_names_no_host_is_refused_and_a_host_is_written_as_it_is_read() {
        for text in [
            "",
            "*",
            "*.",
            "a b",
            "https://a.b",
            "a.b:0",
            "a.b:99999",
            "a..b",
            "[::1]:443",
            "a/b",
        ] {
            assert!(Host::try_from(text.to_owned()).is_err(), "{text}");
        }
        for text in ["*.example.com:8443", "localhost:80"] {
            assert_eq!(host(text).to_string(), text);
        }
    }

    /// A service that answers each connection with the bytes it was sent, once these have ended; returns its port.
    fn echo() -> u16 {
        let service = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = service.local_addr().expect("an address").port();
        thread::spawn(move || {
            for mut asking in service.incoming().map_while(Result::ok) {
                let mut bytes = Vec::new();
                let _ = asking.read_to_end(&mut bytes);
                let _ = asking.write_all(&bytes);
            }
        });
        port
    }

    #[test]
    fn the_proxy_connects_to_the_hosts_of_the_section_and_says_why_to_no_other() {
        let folder = tempfile::tempdir().expect("a directory");
        let port = echo();
        let gone = TcpListener::bind(("127.0.0.1", 0)).and_then(|it| it.local_addr());
        let gone = gone.expect("an address").port();
        let hosts = [port, gone].map(|port| host(&format!("127.0.0.1:{port}")));
        serve(folder.path(), &hosts).expect("a socket");
        let answer = |request: &str| {
            let socket = folder.path().join("network");
            let mut proxy = UnixStream::connect(socket).expect("a proxy");
            proxy.write_all(request.as_bytes()).expect("it reads");
            proxy.shutdown(Shutdown::Write).expect("it is open");
            let mut answer = String::new();
            proxy.read_to_string(&mut answer).expect("an answer");
            answer
        };
        let asked =
            |place: &str| answer(&format!("CONNECT {place} HTTP/1.1\r\nHost: x\r\n\r\nping"));
        let connected = asked(&format!("127.0.0.1:{port}"));
        assert_eq!(connected, "HTTP/1.1 200 Connection established\r\n\r\nping");
        for (place, status) in [
            (format!("127.0.0.1:{gone}"), "HTTP/1.1 502 "),
            (format!("localhost:{port}"), "HTTP/1.1 403 "),
            ("127.0.0.1:1".to_owned(), "HTTP/1.1 403 "),
            ("127.0.0.1".to_owned(), "HTTP/1.1 403 "),
        ] {
            let refused = asked(&place);
            assert!(refused.starts_with(status), "{place}: {refused}");
        }
        let refused = answer("GET http://127.0.0.1/ HTTP/1.1\r\n\r\n");
        assert!(refused.starts_with("HTTP/1.1 405 "), "{refused}");
        assert_eq!(answer("CONNECT 127.0.0.1"), "", "a request without an end");
        let flood = "x".repeat(usize::try_from(REQUEST_MAX).expect("small"));
        assert!(request(&mut flood.as_bytes()).is_err());
    }

    #[test]
    fn a_command_inside_reaches_the_proxy_and_its_code_is_passed_on() {
        let folder = tempfile::tempdir().expect("a directory");
        let port = echo();
        serve(folder.path(), &[host(&format!("127.0.0.1:{port}"))]).expect("a socket");
        let said = folder.path().join("said");
        let asks = format!(
            r#"exec 3<>/dev/tcp/127.0.0.1/${{HTTPS_PROXY##*:}}
               printf 'CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n' >&3
               IFS= read -r line <&3; echo "$line" > '{}'"#,
            said.display()
        );
        for (shell, script, code) in [
            ("sh", "exit 7", 7),
            ("sh", "kill -9 $$", 137),
            ("bash", asks.as_str(), 0),
        ] {
            let command = [shell, "-c", script].map(OsString::from);
            let found = inside(folder.path(), &command).expect("a shell");
            assert_eq!(found, code, "{script}");
        }
        let said = std::fs::read_to_string(said).expect("an answer");
        assert_eq!(said, "HTTP/1.1 200 Connection established\r\n");
        assert!(inside(folder.path(), &[]).is_err(), "no command");
        assert_eq!(String::from(host("*.a.b")), "*.a.b:443");
    }
}
