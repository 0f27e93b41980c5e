//! Reads the ledger, from its first line or after a known one, and checks the chain; changes nothing.
//!
//! A torn tail is what a kill or a power cut leaves of an unacknowledged batch. Any other break of the chain is damage.
//! Every record names the first record of its batch, and a batch begins only after the one before is durable, so a
//! later batch after the broken line proves that the line had been durable.

use std::io::{self, BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{channel, sync_channel};

use serde::{Deserialize, Serialize};

use crate::layout::{self, Layout};
use crate::{Digest, Entry, FileName, SpoolError, dirs};
use disk::{Disk, FileStream, Handle, OpenMode};
use ledger_records::NotALine;

/// So large that calls cost little, so small that it stays in the cache.
const BUFFER: usize = 256 * 1024;

/// The bytes after the last good record: those of a batch that was never finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The segment's path.
    pub segment: PathBuf,
    /// The offset at which the bytes begin, which is the segment's length without them.
    pub offset: u64,
    /// The number of bytes.
    pub bytes: u64,
}

/// The size and the end of a ledger that was read in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The number of records, which is also the number of the last one.
    pub records: u64,
    /// The number of segments that hold them.
    pub segments: usize,
    /// The size of the records in bytes.
    pub bytes: u64,
    /// The digest of the last line. A copy kept elsewhere proves later that no earlier record changed.
    pub last: Digest,
    /// Bytes after the last record: a batch being written right now, or the torn tail of a daemon that was killed.
    pub torn: Option<TornTail>,
}

/// The place of a record's line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LedgerPosition {
    /// The record's number; 0 before the first.
    pub(crate) seq: u64,
    /// Its line's digest.
    pub(crate) digest: Digest,
    /// The first record of its segment.
    pub(crate) segment: u64,
    /// The offset in that segment at which its line begins.
    pub(crate) line_begin: u64,
    /// The offset at which its line ends, newline included.
    pub(crate) offset: u64,
}

impl Default for LedgerPosition {
    /// Returns the position before the first record.
    fn default() -> LedgerPosition {
        LedgerPosition {
            seq: 0,
            digest: Digest::ZERO,
            segment: 1,
            line_begin: 0,
            offset: 0,
        }
    }
}

impl LedgerPosition {
    /// Returns the length of the record's line.
    pub(crate) fn bytes(&self) -> u64 {
        self.offset.saturating_sub(self.line_begin)
    }

    /// Reads the record from the ledger in `dir`; an error says that it is not there any more, or why not.
    pub(crate) fn entry(&self, disk: &dyn Disk, dir: &Handle) -> Result<Entry, String> {
        let seq = self.seq;
        let text = self.text(disk, dir);
        let text = text.map_err(|error| format!("record {seq} cannot be read: {error}"))?;
        let entry = text.and_then(|text| Entry::from_line(&text).ok());
        entry
            .filter(|entry| entry.seq == seq)
            .ok_or_else(|| format!("record {seq}, which a lane still needs, is not where it was"))
    }

    /// Reads the record's line, without its newline, from the ledger in `dir`; `None` if it is not there any more.
    pub(crate) fn text(&self, disk: &dyn Disk, dir: &Handle) -> io::Result<Option<Vec<u8>>> {
        let name = layout::segment_name(self.segment);
        let Some(file) = disk::if_there(disk.open(dir, name.as_ref(), OpenMode::Read))? else {
            return Ok(None);
        };
        // The numbers may come from a damaged snapshot.
        if disk.stat(&file)?.size < self.offset {
            return Ok(None);
        }
        let len = usize::try_from(self.bytes()).map_err(io::Error::other)?;
        let mut line = disk::read_part(disk, &file, self.line_begin, len)?;
        let is_it = line.pop() == Some(b'\n') && Digest::of(&line) == self.digest;
        Ok(is_it.then_some(line))
    }
}

/// The records to read: those after one position, up to a number.
#[derive(Debug, Clone)]
pub(crate) struct Stretch {
    /// After this known record; segments before its own are only checked for existence.
    pub(crate) from: LedgerPosition,
    /// Up to this record; later ones are not looked at.
    pub(crate) to: u64,
}

impl Default for Stretch {
    /// Returns the whole ledger.
    fn default() -> Stretch {
        Stretch {
            from: LedgerPosition::default(),
            to: u64::MAX,
        }
    }
}

/// The end of the ledger, or the position at which the read stopped.
#[derive(Debug)]
pub(crate) struct LedgerEnd {
    /// The last record.
    pub(crate) place: LedgerPosition,
    /// The first record and the length of each segment; the last length excludes the torn tail.
    pub(crate) segments: Vec<(u64, u64)>,
    /// The bytes to cut off the last segment.
    pub(crate) torn: Option<TornTail>,
}

impl LedgerEnd {
    /// Returns the summary for readers without the lock.
    pub(crate) fn verified(&self) -> Verified {
        let bytes = self.segments.iter().map(|(_, len)| len).sum();
        let (records, last) = (self.place.seq, self.place.digest);
        Verified {
            records,
            segments: self.segments.len(),
            bytes,
            last,
            torn: self.torn.clone(),
        }
    }
}

/// A record as it is read.
pub(crate) struct LedgerRecord {
    pub(crate) entry: Arc<Entry>,
    pub(crate) place: LedgerPosition,
}

/// A visitor of the ledger.
pub(crate) type Visit<'a> = dyn FnMut(&LedgerRecord) -> Result<(), SpoolError> + 'a;

/// The records handed from the reading thread to the visitor at once, and how many such portions may wait. Few, because
/// glibc keeps their memory, several times over, after the threads have ended.
const PORTION: usize = 64;
const PORTIONS: usize = 4;

/// A ledger with more bytes than this to read is read on a thread of its own: about 0.1 s of work. The thread leaves a
/// glibc arena as large as its portions, and a daemon reads what follows its newest snapshot many times a day.
const LONG: u64 = 16 << 20;

/// The name of the thread that reads.
const READER: &str = "ledger-reader";

/// Reads a stretch of the ledger in `dir`, its directory, and hands every record to `visit`. If the stretch is long, a
/// thread of its own reads and checks lines while earlier records are visited. A start is slower if that thread reads the
/// decisions as well.
pub(crate) fn read(
    disk: &dyn Disk,
    layout: &Layout,
    dir: &Handle,
    stretch: &Stretch,
    visit: &mut Visit<'_>,
) -> Result<LedgerEnd, SpoolError> {
    let segments = Segments::list(disk, layout, dir)?;
    let read = |tell: &mut Tell<'_, LedgerRecord>| segments.read(stretch, tell);
    if segments.is_long(&stretch.from) {
        read_ahead(read, visit)
    } else {
        read_one_by_one(read, visit)
    }
}

/// Receives what a thread reads; breaks off when the receiver is gone.
type Tell<'a, T> = dyn FnMut(T) -> ControlFlow<()> + 'a;

/// Visits on this thread what another thread reads, portion by portion.
fn read_ahead<T: Send>(
    read: impl Fn(&mut Tell<'_, T>) -> Result<LedgerEnd, SpoolError> + Sync,
    visit: &mut dyn FnMut(&T) -> Result<(), SpoolError>,
) -> Result<LedgerEnd, SpoolError> {
    std::thread::scope(|scope| {
        let (send, receive) = sync_channel::<Vec<T>>(PORTIONS);
        let (give_back, visited) = channel::<Vec<T>>();
        let read = &read;
        let thread = std::thread::Builder::new().name(READER.to_owned());
        let reading = thread.spawn_scoped(scope, move || {
            let mut portion = Vec::with_capacity(PORTION);
            let mut spent = Vec::new();
            let end = read(&mut |item| {
                // For each new item this thread frees one that it allocated before. So the next record reuses the little
                // memory that glibc keeps ready for each thread, and waits for no lock.
                if spent.is_empty() {
                    spent = visited.try_recv().unwrap_or_default();
                }
                drop(spent.pop());
                portion.push(item);
                if portion.len() < PORTION {
                    return ControlFlow::Continue(());
                }
                let full = std::mem::replace(&mut portion, Vec::with_capacity(PORTION));
                match send.send(full) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            });
            // A receiver that has ended reports its own error.
            let _ = send.send(portion);
            end
        });
        let Ok(reading) = reading else {
            // No thread can be started.
            return read_one_by_one(read, visit);
        };
        // The first error drops the receiver, and the reader stops at its next portion.
        let visited = receive.into_iter().try_for_each(|portion| {
            portion.iter().try_for_each(&mut *visit)?;
            // A reader that has ended frees nothing any more.
            let _ = give_back.send(portion);
            Ok(())
        });
        let end = reading
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        visited.and(end)
    })
}

/// Reads and visits on this thread.
fn read_one_by_one<T>(
    read: impl Fn(&mut Tell<'_, T>) -> Result<LedgerEnd, SpoolError>,
    visit: &mut dyn FnMut(&T) -> Result<(), SpoolError>,
) -> Result<LedgerEnd, SpoolError> {
    let mut visited = Ok(());
    let end = read(&mut |item| {
        visited = visit(&item);
        match visited {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    visited.and(end)
}

/// Lists the segments in `dir`, the ledger's directory, each with the number of its first record, in order.
pub(super) fn segments(
    disk: &dyn Disk,
    dir: &Handle,
    path: &Path,
) -> Result<Vec<(u64, FileName)>, SpoolError> {
    let names = disk.list(dir).map_err(SpoolError::io("list", path))?;
    let mut segments: Vec<(u64, FileName)> = names
        .into_iter()
        .filter_map(|name| layout::segment_first(&name).map(|first| (first, name)))
        .collect();
    segments.sort_unstable();
    Ok(segments)
}

/// Returns the size of all segments in bytes.
pub(super) fn bytes(disk: &dyn Disk, layout: &Layout, dir: &Handle) -> Result<u64, SpoolError> {
    let segments = Segments::list(disk, layout, dir)?;
    Ok(segments.all.iter().map(|(.., len)| len).sum())
}

/// Returns the first record and the length of each segment up to a record; the last one ends with it.
pub(crate) fn segments_up_to(
    disk: &dyn Disk,
    layout: &Layout,
    dir: &Handle,
    place: &LedgerPosition,
) -> Result<Vec<(u64, u64)>, SpoolError> {
    let all = Segments::list(disk, layout, dir)?.all.into_iter();
    let earlier = all.take_while(|(first, ..)| *first < place.segment);
    let earlier = earlier.map(|(first, _, len)| (first, len));
    Ok(earlier.chain([(place.segment, place.offset)]).collect())
}

/// The segments of a ledger. The last one may grow while it is read.
struct Segments<'a> {
    disk: &'a dyn Disk,
    dir: &'a Handle,
    path: PathBuf,
    /// The first record, the name and the length of each, in order.
    all: Vec<(u64, FileName, u64)>,
}

impl<'a> Segments<'a> {
    fn list(disk: &'a dyn Disk, layout: &Layout, dir: &'a Handle) -> Result<Self, SpoolError> {
        let path = layout.root().join(dirs::LEDGER);
        let sized = |(first, name): (u64, FileName)| {
            let stat = disk.stat_at(dir, name.as_ref());
            let stat = stat.map_err(SpoolError::io("look at", &path.join(&name)))?;
            Ok((first, name, stat.size))
        };
        let all = segments(disk, dir, &path)?.into_iter();
        let all = all.map(sized).collect::<Result<_, _>>()?;
        Ok(Self {
            disk,
            dir,
            path,
            all,
        })
    }

    /// Returns true if it takes long to read all that follows `from`.
    fn is_long(&self, from: &LedgerPosition) -> bool {
        let lengths = self.all.iter().filter(|(first, ..)| *first >= from.segment);
        let bytes: u64 = lengths.map(|(.., len)| len).sum();
        bytes.saturating_sub(from.offset) > LONG
    }

    /// Reads until the end or until the receiver is gone.
    fn read(
        &self,
        stretch: &Stretch,
        tell: &mut Tell<'_, LedgerRecord>,
    ) -> Result<LedgerEnd, SpoolError> {
        let (all, from) = (&self.all, &stretch.from);
        let mut end = LedgerEnd {
            place: from.clone(),
            segments: Vec::with_capacity(all.len()),
            torn: None,
        };
        for (at, (first, name, len)) in all.iter().enumerate() {
            let (first, path) = (*first, self.path.join(name));
            if first < from.segment {
                end.segments.push((first, *len));
                continue;
            }
            let (expected, offset) = if at == 0 || first == from.segment {
                (from.segment, from.offset)
            } else {
                (end.place.seq + 1, 0)
            };
            if first != expected {
                let what = format!("the segment begins with record {first}, expected {expected}");
                return Err(SpoolError::Damaged {
                    segment: path,
                    line: 1,
                    what,
                });
            }
            let opened = self.disk.open(self.dir, name.as_ref(), OpenMode::Read);
            let file = opened.map_err(SpoolError::io("open", &path))?;
            let segment = FileStream::new(self.disk, &file, offset);
            let len = Reading {
                reader: BufReader::with_capacity(BUFFER, segment),
                path,
                first,
                // Each record is one line.
                line: end.place.seq + 1 - first,
                offset,
                is_last: at + 1 == all.len(),
                to: stretch.to,
            }
            .run(&mut end, tell)?;
            if let ControlFlow::Continue(len) = len {
                end.segments.push((first, len));
            }
            if len.is_break() || end.place.seq >= stretch.to {
                break;
            }
        }
        Ok(end)
    }
}

/// One segment being read.
struct Reading<R> {
    reader: R,
    path: PathBuf,
    /// Its first record, from its name; a kill may leave a segment without any.
    first: u64,
    line: u64,
    offset: u64,
    is_last: bool,
    to: u64,
}

impl<R: BufRead> Reading<R> {
    /// Reads the wanted records and returns the length of the good part, or breaks if the receiver is gone.
    fn run(
        mut self,
        end: &mut LedgerEnd,
        tell: &mut Tell<'_, LedgerRecord>,
    ) -> Result<ControlFlow<(), u64>, SpoolError> {
        let mut bytes = Vec::with_capacity(8 * 1024);
        while end.place.seq < self.to && self.next(&mut bytes)? {
            match self.check(&bytes, end) {
                Ok((entry, digest)) => {
                    let line_begin = self.offset;
                    self.offset += bytes.len() as u64;
                    let (seq, segment, offset) = (entry.seq, self.first, self.offset);
                    end.place = LedgerPosition {
                        seq,
                        digest,
                        segment,
                        line_begin,
                        offset,
                    };
                    let place = end.place.clone();
                    let entry = Arc::new(entry);
                    if tell(LedgerRecord { entry, place }).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Err(LineFault::TooNew(version)) => {
                    return Err(SpoolError::TooNew {
                        segment: self.path,
                        line: self.line,
                        version,
                    });
                }
                Err(LineFault::Chain(what)) => return Err(self.damaged(self.line, what)),
                Err(LineFault::Torn(what)) => {
                    end.torn = Some(self.torn(&mut bytes, end.place.seq + 1, &what)?);
                    return Ok(ControlFlow::Continue(
                        end.torn.as_ref().map_or(0, |torn| torn.offset),
                    ));
                }
            }
        }
        Ok(ControlFlow::Continue(self.offset))
    }

    fn next(&mut self, bytes: &mut Vec<u8>) -> Result<bool, SpoolError> {
        bytes.clear();
        self.line += 1;
        let taken = self
            .reader
            .read_until(b'\n', bytes)
            .map_err(SpoolError::io("read", &self.path))?;
        Ok(taken > 0)
    }

    fn check(&self, bytes: &[u8], end: &LedgerEnd) -> Result<(Entry, Digest), LineFault> {
        let Some((b'\n', text)) = bytes.split_last() else {
            return Err(LineFault::Torn("the line has no end".to_owned()));
        };
        let entry = Entry::from_line(text).map_err(|error| match error {
            NotALine::TooNew(version) => LineFault::TooNew(version),
            NotALine::Unreadable(what) => LineFault::Torn(what),
        })?;
        // A torn write cannot leave a complete record that breaks the chain.
        let LedgerPosition { seq, digest, .. } = &end.place;
        if entry.seq != seq + 1 {
            return Err(LineFault::Chain(format!(
                "record {} follows record {seq}",
                entry.seq
            )));
        }
        if entry.prev != *digest {
            return Err(LineFault::Chain(format!(
                "`prev` is {}, the line before has {digest}",
                entry.prev
            )));
        }
        Ok((entry, Digest::of(text)))
    }

    /// Reads everything after the broken line and decides whether it may be cut off.
    fn torn(
        mut self,
        bytes: &mut Vec<u8>,
        missing: u64,
        what: &str,
    ) -> Result<TornTail, SpoolError> {
        let broken = self.line;
        if !self.is_last {
            return Err(self.damaged(broken, format!("{what}, and a later segment follows")));
        }
        let mut torn = bytes.len() as u64;
        while self.next(bytes)? {
            torn += bytes.len() as u64;
            let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
            let proof = match Entry::from_line(text) {
                Ok(entry) => entry.batch > missing,
                Err(NotALine::TooNew(_)) => true,
                Err(NotALine::Unreadable(_)) => false,
            };
            if proof {
                let what = format!("{what}, but line {} belongs to a later batch", self.line);
                return Err(self.damaged(broken, what));
            }
        }
        Ok(TornTail {
            segment: self.path,
            offset: self.offset,
            bytes: torn,
        })
    }

    fn damaged(&self, line: u64, what: String) -> SpoolError {
        SpoolError::Damaged {
            segment: self.path.clone(),
            line,
            what,
        }
    }
}

enum LineFault {
    TooNew(u32),
    Chain(String),
    Torn(String),
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::{self, ThreadId};

    use super::*;

    /// Names the thread that made it.
    struct Item(ThreadId);

    /// The items that another thread has freed.
    static FREED_ELSEWHERE: AtomicUsize = AtomicUsize::new(0);

    impl Drop for Item {
        fn drop(&mut self) {
            if thread::current().id() != self.0 {
                FREED_ELSEWHERE.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn a_stretch_is_long_by_the_bytes_that_follow_its_beginning() {
        let directory = tempfile::tempdir().expect("a directory");
        let dir = disk::Os.open_root(directory.path()).expect("it");
        let sized = |(first, len)| (first, layout::segment_name(first), len);
        let segments = Segments {
            disk: &disk::Os,
            dir: &dir,
            path: directory.path().to_owned(),
            all: [(1, 5 * LONG), (100, LONG), (200, 10)].map(sized).into(),
        };
        for (segment, offset, is_long) in [
            (1, 5 * LONG, true),
            (100, 0, true),
            (100, 9, true),
            (100, 10, false),
            (200, 0, false),
        ] {
            let from = LedgerPosition {
                segment,
                offset,
                ..LedgerPosition::default()
            };
            assert_eq!(segments.is_long(&from), is_long, "{segment} {offset}");
        }
    }

    #[test]
    fn the_reading_thread_frees_what_it_allocated() {
        let read = |tell: &mut Tell<'_, Item>| {
            let items = std::iter::repeat_with(|| Item(thread::current().id()));
            let _ = items.take(100 * PORTION).try_for_each(tell);
            Ok(LedgerEnd {
                place: LedgerPosition::default(),
                segments: Vec::new(),
                torn: None,
            })
        };
        let mut visited = 0;
        let mut visit = |_: &Item| {
            visited += 1;
            Ok(())
        };
        read_ahead(read, &mut visit).expect("nothing fails");
        assert_eq!(visited, 100 * PORTION);
        // Only the last portions may come back after the receiver is gone.
        let elsewhere = FREED_ELSEWHERE.load(Ordering::Relaxed);
        assert!(elsewhere <= (PORTIONS + 2) * PORTION, "{elsewhere}");
    }
}
