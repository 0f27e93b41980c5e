//! Measures a daemon from outside, through `/proc`, its metrics and its directories.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use settled_tests::{list, names};

use super::judge::Sample;

/// The socket of the daemon's metrics, relative to the workspace.
pub(super) const SOCKET: &str = ".settled/metrics.sock";

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Takes samples of one daemon.
#[derive(Debug)]
pub(super) struct Looker {
    pid: i32,
    root: PathBuf,
    since: Instant,
    /// Children that had ended and were not waited for at the last sample, each with the time of its first one.
    zombies: RefCell<BTreeMap<String, u64>>,
}

impl Looker {
    pub(super) fn new(root: &Path, pid: i32) -> Self {
        Self {
            pid,
            root: root.to_owned(),
            since: Instant::now(),
            zombies: RefCell::default(),
        }
    }

    /// Takes one sample; `None` if the daemon does not answer in time, as on a busy machine.
    pub(super) fn look(&self) -> Option<Sample> {
        let page = page(&self.root).ok()?;
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let at_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (keepers, zombies) = children(self.pid);
        let mut known = self.zombies.borrow_mut();
        known.retain(|pid, _| zombies.contains(pid));
        let oldest = zombies
            .iter()
            .map(|pid| at_ms - *known.entry(pid.clone()).or_insert(at_ms))
            .max();
        let own = self.root.join(".settled");
        Some(Sample {
            at_ms,
            rss_kib: field(&status, "VmRSS:"),
            handles: names(format!("/proc/{}/fd", self.pid)).len() as u64,
            threads: field(&status, "Threads:"),
            keepers,
            zombies: zombies.len() as u64,
            unwaited_ms: oldest.unwrap_or(0),
            own_files: files(&own),
            runs: names(own.join("runs")).len() as u64,
            reviews: sum(&page, "settled_reviews{"),
            messages: sum(&page, "settled_messages_accepted_total{")
                + sum(&page, "settled_messages_refused_total{"),
            pulls: names(self.root.join("events/pr")).len() as u64,
        })
    }
}

/// Reads the daemon's metrics as Prometheus does.
pub(super) fn page(root: &Path) -> io::Result<String> {
    let mut socket = UnixStream::connect(root.join(SOCKET))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: settled\r\nConnection: close\r\n\r\n")?;
    let mut page = String::new();
    socket.read_to_string(&mut page)?;
    Ok(page)
}

/// Sums all lines of the page with this prefix.
pub(super) fn sum(page: &str, prefix: &str) -> u64 {
    let counts = page.lines().filter(|line| line.starts_with(prefix));
    counts
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum()
}

/// Returns the processes with this workspace's name in their environment. Skips one that ends meanwhile.
pub(super) fn processes_of(root: &Path) -> Vec<String> {
    let word = format!("SETTLED_ROOT={}", root.display());
    let says = |pid: &String| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|pair| pair == word.as_bytes())
    };
    numbers().into_iter().filter(says).collect()
}

fn numbers() -> Vec<String> {
    let is_number = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
    // A process may be gone before its name is read; the listing alone is enough.
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(is_number)
        .collect()
}

/// The number of running children of a process, and the ids of those that ended and were not waited for.
fn children(parent: i32) -> (u64, Vec<String>) {
    let (mut run, mut ended) = (0, Vec::new());
    for pid in numbers() {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name of a program may contain anything; state and parent follow its last parenthesis.
        let Some((_, rest)) = stat.rsplit_once(')') else {
            continue;
        };
        let mut words = rest.split_whitespace();
        let (state, of) = (words.next(), words.next());
        if of.and_then(|word| word.parse().ok()) == Some(parent) {
            match state {
                Some("Z") => ended.push(pid),
                Some(_) | None => run += 1,
            }
        }
    }
    (run, ended)
}

fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// Counts the files below a directory, except those of runs.
fn files(directory: &Path) -> u64 {
    let counted = |path: &PathBuf| if path.is_dir() { files(path) } else { 1 };
    list(directory)
        .iter()
        .filter(|path| !path.ends_with("runs"))
        .map(counted)
        .sum()
}
