//! Reads the ledger from its first line to its last and checks the chain; changes nothing.
//!
//! A torn tail is what a kill or a power cut leaves of a batch nobody was told about. Anything else that does not fit
//! the chain is damage. Telling them apart: every record names the first record of its batch, and a batch is begun only
//! after the one before is durable. So a later batch behind the broken line proves that the line had been durable.

use std::io::{self, BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;

use super::line::{self, NotARecord};
use crate::disk::{Disk, Handle, Open};
use crate::layout::{self, Layout};
use crate::{Digest, Entry, FileName, SpoolError};

/// Large enough that the calls do not count, small enough to stay in the cache.
const BUFFER: usize = 256 * 1024;

/// What was found behind the last good record: bytes of a batch that was never finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The segment's path.
    pub segment: PathBuf,
    /// Where the bytes begin, and how long the segment is without them.
    pub offset: u64,
    /// How many bytes there are.
    pub bytes: u64,
}

/// Where the ledger ends.
#[derive(Debug)]
pub(crate) struct End {
    /// The last record's number; 0 if there is none.
    pub(crate) head: u64,
    /// The last line's digest.
    pub(crate) digest: Digest,
    /// How many segments there are.
    pub(crate) segments: usize,
    /// The last segment and its length without the torn tail.
    pub(crate) last: Option<(FileName, u64)>,
    /// What is to be cut off the last segment.
    pub(crate) torn: Option<TornTail>,
}

/// What a visitor of the ledger is.
pub(crate) type Visit<'a> = dyn FnMut(Entry) -> Result<(), SpoolError> + 'a;

/// Records that go from the reading thread to the visitor at once, and how many such portions may wait.
const PORTION: usize = 256;
const PORTIONS: usize = 4;

/// Reads all segments in `dir`, the ledger's directory, and hands every record to `visit`. Lines are read and checked
/// on a thread of their own while earlier ones are visited: each takes about half of the time.
pub(crate) fn read(
    disk: &dyn Disk,
    layout: &Layout,
    dir: &Handle,
    visit: &mut Visit<'_>,
) -> Result<End, SpoolError> {
    std::thread::scope(|scope| {
        let (send, receive) = sync_channel::<Vec<Entry>>(PORTIONS);
        let reading = std::thread::Builder::new().spawn_scoped(scope, move || {
            let mut portion = Vec::with_capacity(PORTION);
            let end = read_here(disk, layout, dir, &mut |entry| {
                portion.push(entry);
                let is_heard = portion.len() < PORTION || send.send(std::mem::take(&mut portion)).is_ok();
                if is_heard { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            // Whoever does not listen any more has an error of its own to tell.
            let _ = send.send(portion);
            end
        });
        // Where no thread is to be had, this one does both.
        let Ok(reading) = reading else { return read_alone(disk, layout, dir, visit) };
        // The receiver goes with the first error, and the reader stops at its next portion.
        let visited = receive.into_iter().flatten().try_for_each(visit);
        let end = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        visited.and(end)
    })
}

/// Reads and visits in one thread.
fn read_alone(
    disk: &dyn Disk,
    layout: &Layout,
    dir: &Handle,
    visit: &mut Visit<'_>,
) -> Result<End, SpoolError> {
    let mut visited = Ok(());
    let end = read_here(disk, layout, dir, &mut |entry| {
        visited = visit(entry);
        if visited.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    visited.and(end)
}

/// Reads until the end or until nobody listens.
fn read_here(
    disk: &dyn Disk,
    layout: &Layout,
    dir: &Handle,
    tell: &mut dyn FnMut(Entry) -> ControlFlow<()>,
) -> Result<End, SpoolError> {
    let path = layout.root().join(layout::LEDGER);
    let names = disk.list(dir).map_err(SpoolError::io("list", &path))?;
    let mut segments: Vec<(u64, FileName)> = names
        .into_iter()
        .filter_map(|name| layout::segment_first(&name).map(|first| (first, name)))
        .collect();
    segments.sort_unstable();
    let mut end = End { head: 0, digest: Digest::ZERO, segments: segments.len(), last: None, torn: None };
    let count = segments.len();
    for (at, (first, name)) in segments.into_iter().enumerate() {
        let path = path.join(&name);
        if first != end.head + 1 {
            let what = format!("the segment begins with record {first}, expected {}", end.head + 1);
            return Err(SpoolError::Damaged { segment: path, line: 1, what });
        }
        let file = disk.open(dir, name.as_ref(), Open::Read).map_err(SpoolError::io("open", &path))?;
        let from = Segment { disk, file: &file, offset: 0 };
        let reader = BufReader::with_capacity(BUFFER, from);
        let len =
            Reading { reader, path, line: 0, offset: 0, is_last: at + 1 == count }.run(&mut end, tell)?;
        let ControlFlow::Continue(len) = len else { break };
        end.last = Some((name, len));
    }
    Ok(end)
}

/// One segment being read.
struct Reading<R> {
    reader: R,
    path: PathBuf,
    line: u64,
    offset: u64,
    is_last: bool,
}

impl<R: BufRead> Reading<R> {
    /// Reads to the end and gives the length of what is good, unless nobody listens any more.
    fn run(
        mut self,
        end: &mut End,
        tell: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<ControlFlow<(), u64>, SpoolError> {
        let mut bytes = Vec::with_capacity(8 * 1024);
        while self.next(&mut bytes)? {
            match self.check(&bytes, end) {
                Ok((entry, digest)) => {
                    self.offset += bytes.len() as u64;
                    end.head = entry.seq;
                    end.digest = digest;
                    if tell(entry).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Err(Broken::TooNew(version)) => {
                    return Err(SpoolError::TooNew { segment: self.path, line: self.line, version });
                }
                Err(Broken::Chain(what)) => return Err(self.damaged(self.line, what)),
                Err(Broken::Torn(what)) => {
                    end.torn = Some(self.torn(&mut bytes, end.head + 1, &what)?);
                    return Ok(ControlFlow::Continue(end.torn.as_ref().map_or(0, |torn| torn.offset)));
                }
            }
        }
        Ok(ControlFlow::Continue(self.offset))
    }

    fn next(&mut self, bytes: &mut Vec<u8>) -> Result<bool, SpoolError> {
        bytes.clear();
        self.line += 1;
        let taken = self.reader.read_until(b'\n', bytes).map_err(SpoolError::io("read", &self.path))?;
        Ok(taken > 0)
    }

    fn check(&self, bytes: &[u8], end: &End) -> Result<(Entry, Digest), Broken> {
        let Some((b'\n', text)) = bytes.split_last() else {
            return Err(Broken::Torn("the line has no end".to_owned()));
        };
        let entry = line::read(text).map_err(|error| match error {
            NotARecord::TooNew(version) => Broken::TooNew(version),
            NotARecord::Unreadable(what) => Broken::Torn(what),
        })?;
        // No torn write makes a whole record that does not fit the line before it.
        if entry.seq != end.head + 1 {
            return Err(Broken::Chain(format!("record {} follows record {}", entry.seq, end.head)));
        }
        if entry.prev != end.digest {
            return Err(Broken::Chain(format!(
                "`prev` is {}, the line before has {}",
                entry.prev, end.digest
            )));
        }
        Ok((entry, Digest::of(text)))
    }

    /// Looks at all that follows the broken line and decides whether it may be cut off.
    fn torn(mut self, bytes: &mut Vec<u8>, missing: u64, what: &str) -> Result<TornTail, SpoolError> {
        let broken = self.line;
        if !self.is_last {
            return Err(self.damaged(broken, format!("{what}, and a later segment follows")));
        }
        let mut torn = bytes.len() as u64;
        while self.next(bytes)? {
            torn += bytes.len() as u64;
            let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
            let proof = match line::read(text) {
                Ok(entry) => entry.batch > missing,
                Err(NotARecord::TooNew(_)) => true,
                Err(NotARecord::Unreadable(_)) => false,
            };
            if proof {
                let what = format!("{what}, but line {} belongs to a later batch", self.line);
                return Err(self.damaged(broken, what));
            }
        }
        Ok(TornTail { segment: self.path, offset: self.offset, bytes: torn })
    }

    fn damaged(&self, line: u64, what: String) -> SpoolError {
        SpoolError::Damaged { segment: self.path.clone(), line, what }
    }
}

enum Broken {
    TooNew(u32),
    Chain(String),
    Torn(String),
}

/// A segment as a stream.
struct Segment<'a> {
    disk: &'a dyn Disk,
    file: &'a Handle,
    offset: u64,
}

impl Read for Segment<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let taken = self.disk.read_at(self.file, buffer, self.offset)?;
        self.offset += taken as u64;
        Ok(taken)
    }
}
