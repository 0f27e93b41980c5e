//! A ledger on a disk passes the suite.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use log_suite::Bench;
use spool::Os;
use spool::log::{Appended, Head, Local, Log, LogError, OnChange, Signed};
use tempfile::TempDir;

log_suite::conformance!(LocalBench::default());

/// One ledger; its lock admits one process, so the handles of a test share it.
#[derive(Clone)]
struct Ledger(Arc<Mutex<Held>>);

struct Held {
    dir: TempDir,
    /// An error while it is down, and if its ledger cannot be read.
    log: Result<Local, LogError>,
    is_cut: bool,
}

struct LocalBench(Ledger);

impl Default for LocalBench {
    fn default() -> LocalBench {
        // Hundreds of syncs: memory is faster.
        let memory = std::path::Path::new("/dev/shm");
        let dir = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        let dir = dir.expect("a directory");
        spool::Layout::init(dir.path(), &["codex"]).expect("a tree");
        let log = open(&dir);
        let is_cut = false;
        LocalBench(Ledger(Arc::new(Mutex::new(Held { dir, log, is_cut }))))
    }
}

fn open(dir: &TempDir) -> Result<Local, LogError> {
    let host = "here".parse().expect("a host's name");
    Local::open(dir.path(), Arc::new(Os), host).map_err(LogError::from)
}

fn no_route() -> LogError {
    let why = "no route".to_owned();
    LogError::Unreachable { why }
}

impl Ledger {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, call: impl FnOnce(&mut Local) -> Result<T, LogError>) -> Result<T, LogError> {
        let mut held = self.held();
        if held.is_cut {
            return Err(no_route());
        }
        call(held.log.as_mut().map_err(|error| error.clone())?)
    }

    /// Changes the lines of the ledger while it is closed.
    fn change(&self, change: impl FnOnce(&mut Vec<String>)) {
        let mut held = self.held();
        held.log = Err(no_route());
        let segment: PathBuf = held
            .dir
            .path()
            .join(".settled/ledger/00000000000000000001.jsonl");
        let text = fs::read_to_string(&segment).expect("a segment");
        let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        change(&mut lines);
        fs::write(&segment, lines.concat()).expect("a segment to write");
        held.log = open(&held.dir);
    }
}

/// Returns the number of lines before batch number `batch`, and of that batch.
fn lines_of(lines: &[String], batch: usize) -> (usize, usize) {
    let first_of = |line: &str| {
        let entry = spool::Entry::from_line(line.trim_end().as_bytes()).expect("a record");
        entry.batch
    };
    let mut firsts: Vec<u64> = lines.iter().map(|line| first_of(line)).collect();
    let all = firsts.clone();
    firsts.dedup();
    let begin = usize::try_from(firsts[batch]).expect("a small number") - 1;
    (
        begin,
        all.iter().filter(|first| **first == firsts[batch]).count(),
    )
}

fn batches(lines: &[String]) -> usize {
    let mut at = 0;
    let mut count = 0;
    while at < lines.len() {
        at += lines_of(lines, count).1;
        count += 1;
    }
    count
}

impl Log for Ledger {
    fn head(&mut self) -> Result<Head, LogError> {
        self.with(Local::head)
    }

    fn append(&mut self, batch: &Signed) -> Result<Appended, LogError> {
        self.with(|log| log.append(batch))
    }

    fn follow(&mut self, from: Head) -> Result<Vec<Signed>, LogError> {
        self.with(|log| log.follow(from))
    }

    fn on_change(&mut self, _on_change: OnChange) {}

    fn poll_ms(&self) -> u64 {
        self.held().log.as_ref().map_or(1_000, Log::poll_ms)
    }
}

impl Bench for LocalBench {
    fn connect(&mut self) -> Box<dyn Log> {
        Box::new(self.0.clone())
    }

    fn restart(&mut self) {
        let mut held = self.0.held();
        held.log = Err(no_route());
        held.log = open(&held.dir);
    }

    fn cut_off(&mut self) {
        self.0.held().is_cut = true;
    }

    fn join(&mut self) {
        self.0.held().is_cut = false;
    }

    fn batch_bytes_max(&self) -> usize {
        Local::BATCH_BYTES_MAX
    }

    fn lose_tail(&mut self, lost: usize) {
        self.0.change(|lines| {
            for _ in 0..lost {
                let (begin, _) = lines_of(lines, batches(lines) - 1);
                lines.truncate(begin);
            }
        });
    }

    fn lose_one(&mut self, batch: usize) {
        self.0.change(|lines| {
            let (begin, count) = lines_of(lines, batch);
            lines.drain(begin..begin + count);
        });
    }

    fn replace_last(&mut self, with: &Signed) {
        self.lose_tail(1);
        self.0.change(|lines| {
            lines.push(String::from_utf8(with.batch.bytes().to_vec()).expect("text"));
        });
    }
}
