//! Serves the metrics over HTTP on threads that touch nothing of the mailroom: `/metrics` is the latest page that the
//! main loop left, `/health` reports whether that loop still turns. It implements only as much of HTTP/1.1 as that
//! needs: one `GET` per connection, of bounded length and time, at most four at once.

use std::io::{self, Read as _, Write as _};
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use workspace::clock::Clock;
use workspace::config::Listen;

use super::Meter;

/// The number of connections served at once; others wait in the kernel's queue.
const WORKERS: usize = 4;

/// The time limit for reading a request, and for writing its answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest request, in bytes.
const REQUEST_MAX: usize = 4096;

/// The shortest time between two pages, in milliseconds, however often the loop turns.
const PAGE_MS: u64 = 250;

/// The milliseconds without a turn after which the loop counts as hanging: well beyond the 2 s between two sweeps and
/// the time of a large batch.
const HANGS_MS: u64 = 30_000;

/// The current page and the threads that serve it, which end with this value.
#[derive(Debug)]
pub(crate) struct Exporter {
    shared: Arc<Shared>,
    socket: Option<PathBuf>,
}

#[derive(Debug)]
struct Shared {
    clock: Clock,
    page: Mutex<String>,
    /// The time at which the page was made.
    paged_at: AtomicU64,
    /// The time at which the loop last turned.
    turned_at: AtomicU64,
    is_over: AtomicBool,
}

#[derive(Debug)]
enum Door {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Exporter {
    /// Listens at the configured place, if there is one. Replaces a socket that a killed daemon left, but not one at
    /// which somebody answers.
    pub(crate) fn open(listen: &Listen, root: &Path) -> io::Result<Option<Self>> {
        let (door, socket) = match listen {
            Listen::Off => return Ok(None),
            Listen::Unix(path) => {
                let path = root.join(path);
                if path
                    .symlink_metadata()
                    .is_ok_and(|data| data.file_type().is_socket())
                {
                    if UnixStream::connect(&path).is_ok() {
                        return Err(io::ErrorKind::AddrInUse.into());
                    }
                    std::fs::remove_file(&path)?;
                }
                let door = UnixListener::bind(&path)?;
                // Admits the owner and the group. Until this call only the umask decides.
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o660))?;
                door.set_nonblocking(true)?;
                (Door::Unix(door), Some(path))
            }
            Listen::Loopback(at) => {
                let door = TcpListener::bind(at)?;
                door.set_nonblocking(true)?;
                tracing::info!(at = %door.local_addr()?, "serving metrics");
                (Door::Tcp(door), None)
            }
        };
        let shared = Arc::new(Shared {
            clock: Clock::start(),
            page: Mutex::default(),
            paged_at: AtomicU64::new(0),
            turned_at: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let exporter = Self {
            shared: Arc::clone(&shared),
            socket,
        };
        let door = Arc::new(door);
        for _ in 0..WORKERS {
            let (door, shared) = (Arc::clone(&door), Arc::clone(&shared));
            std::thread::Builder::new()
                .name("metrics".to_owned())
                .spawn(move || answer(&door, &shared))?;
        }
        Ok(Some(exporter))
    }

    /// Makes a new page after a turn of the loop, unless the last one is recent.
    pub(crate) fn turned(&self, meter: &Meter) {
        let now = self.shared.clock.read().mono;
        self.shared.turned_at.store(now, Ordering::Relaxed);
        let paged_at = self.shared.paged_at.load(Ordering::Relaxed);
        if paged_at == 0 || now >= paged_at + PAGE_MS {
            *self
                .shared
                .page
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = meter.page();
            self.shared.paged_at.store(now.max(1), Ordering::Relaxed);
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(socket) = &self.socket {
            // The next start replaces a socket that cannot be removed.
            let _ = std::fs::remove_file(socket);
        }
    }
}

fn answer(door: &Door, shared: &Shared) {
    while !shared.is_over.load(Ordering::Relaxed) {
        // A slow or broken client loses only its own answer.
        let _ = match door {
            Door::Unix(door) => answer_one(door, shared, || Ok(door.accept()?.0)),
            // Once it is connected, a socket of either kind is read, written and limited by the same calls.
            Door::Tcp(door) => {
                answer_one(door, shared, || Ok(OwnedFd::from(door.accept()?.0).into()))
            }
        };
    }
}

/// Answers one connection. Waits at most half a second for it, to notice the end; another worker may have taken it.
fn answer_one(
    door: &impl AsFd,
    shared: &Shared,
    accept: impl FnOnce() -> io::Result<UnixStream>,
) -> io::Result<()> {
    let mut polled = [PollFd::new(door, PollFlags::IN)];
    let half_a_second = Timespec {
        tv_sec: 0,
        tv_nsec: 500_000_000,
    };
    if poll(&mut polled, Some(&half_a_second))? == 0 {
        return Ok(());
    }
    converse(accept()?, shared)
}

fn converse(mut stream: UnixStream, shared: &Shared) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let began = shared.clock.passed();
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_MAX {
        let left = PATIENCE.saturating_sub(shared.clock.passed().saturating_sub(began));
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let mut piece = [0; 1024];
        match stream.read(&mut piece)? {
            0 => break,
            length => request.extend_from_slice(&piece[..length]),
        }
    }
    stream.write_all(response(&request, shared).as_bytes())
}

fn response(request: &[u8], shared: &Shared) -> String {
    let line = request
        .split(|byte| *byte == b'\r')
        .next()
        .unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let path = target
        .split(|byte| *byte == b'?')
        .next()
        .unwrap_or_default();
    let (status, kind, body) = match (method, path) {
        (b"GET", b"/metrics") => {
            let page = shared
                .page
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            ("200 OK", "text/plain; version=0.0.4; charset=utf-8", page)
        }
        (b"GET", b"/health") => {
            let turned_at = shared.turned_at.load(Ordering::Relaxed);
            health(shared.clock.read().mono.saturating_sub(turned_at))
        }
        (b"GET", _) => ("404 Not Found", PLAIN, "/metrics or /health\n".to_owned()),
        _ => ("405 Method Not Allowed", PLAIN, "GET\n".to_owned()),
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

const PLAIN: &str = "text/plain; charset=utf-8";

/// Returns the health response for a loop that last completed a turn this many milliseconds ago.
fn health(ago: u64) -> (&'static str, &'static str, String) {
    if ago <= HANGS_MS {
        ("200 OK", PLAIN, "ok\n".to_owned())
    } else {
        (
            "503 Service Unavailable",
            PLAIN,
            format!("the main loop last completed a turn {} s ago\n", ago / 1000),
        )
    }
}

#[cfg(test)]
mod tests {
    use message_schema::Code;
    use message_schema::id::PrNumber;
    use review::{DeclinedEvent, Event, EventRecord, Record, ReviewKey, Which};

    use super::*;

    /// Sends a request to the socket and returns the answer.
    fn asked(socket: &Path, request: &str) -> String {
        let mut stream = UnixStream::connect(socket).expect("somebody listens");
        stream.write_all(request.as_bytes()).expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    #[test]
    fn a_socket_answers_with_the_page_of_the_last_turn_and_is_nobody_else_s() {
        let root = tempfile::tempdir().expect("a directory");
        let open = |listen| Exporter::open(&listen, root.path());
        assert!(open(Listen::Off).expect("nothing to open").is_none());

        // A killed daemon left it.
        let socket = root.path().join("metrics");
        drop(UnixListener::bind(&socket).expect("a socket"));
        let listen = Listen::Unix("metrics".into());
        let exporter = open(listen.clone()).expect("a server").expect("a place");
        let mode = socket.metadata().map(|data| data.permissions().mode());
        assert_eq!(mode.expect("the socket") & 0o777, 0o660);
        let error = open(listen).expect_err("somebody answers there");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);

        let mut meter = Meter::start();
        let pr = PrNumber::new("86").expect("a number");
        let [author, reviewer] = ["claude", "codex"].map(|name| name.parse().expect("a name"));
        let review = ReviewKey::new(None, &pr, author, reviewer);
        let declined = Record::Event(EventRecord::Declined(DeclinedEvent {
            event: Box::new(Event::Taken(Which::of(&review))),
            order: None,
            code: Code::DecisionInvalid,
            why: "it is over".to_owned(),
        }));
        (0..2).for_each(|_| meter.committed(&declined));
        exporter.turned(&meter);
        let page = asked(&socket, "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        assert!(page.contains("\nsettled_info{version="), "{page}");
        assert!(page.contains("\nsettled_events_total 2\n"), "{page}");
        let health = asked(&socket, "GET /health?x HTTP/1.1\r\n\r\n");
        assert!(health.starts_with("HTTP/1.1 200 OK\r\n") && health.ends_with("\r\n\r\nok\n"));
        let nowhere = asked(&socket, "GET / HTTP/1.1\r\n\r\n");
        assert!(
            nowhere.starts_with("HTTP/1.1 404 Not Found\r\n"),
            "{nowhere}"
        );
        // A request without an end is answered once it is as long as one may be.
        let endless = asked(&socket, &format!("PUT /{}", "x".repeat(REQUEST_MAX - 5)));
        assert!(
            endless.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"),
            "{endless}"
        );
        drop(exporter);
        assert!(!socket.exists());
    }

    #[test]
    fn a_loop_that_has_not_turned_for_half_a_minute_is_not_healthy() {
        assert_eq!(health(0).0, "200 OK");
        assert_eq!(health(HANGS_MS).0, "200 OK");
        let (status, _, said) = health(HANGS_MS + 1);
        assert_eq!(
            (status, said.as_str()),
            (
                "503 Service Unavailable",
                "the main loop last completed a turn 30 s ago\n"
            )
        );
    }
}
