//! The head of a snapshot's file: a title line, a line for each lane, a line that names the snapshots whose rows it
//! shares, the caller's lines, and a last line with a checksum over everything before it. It is text, so that `head -n
//! 1` and `jq` can read it. The rows follow; `layer` defines those.

use std::io::{self, BufRead, BufReader, Read};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::delivery::{Heads, Lane, LaneHead, Pos};
use crate::ledger::read::LedgerPosition;
use disk::{self, Disk, FileStream, Handle};
use sorted_rows::Hasher;

/// The newest version of the file's form, which this program writes if a lane still needs a record; `form` is the
/// version of the caller's lines.
const VERSION: u32 = 3;
/// The version of a file in which no lane does. A program that knows no other reads and writes it.
const VERSION_AT_REST: u32 = 2;

/// The word that every snapshot begins with.
const KIND: &str = "snapshot";

/// So large that calls cost little.
const BUFFER: usize = 256 * 1024;

/// The read-ahead in bytes: a head may be far shorter than the rows after it, which are not read here.
const READ_AHEAD: usize = 32 * 1024;

/// A longer line, in bytes, is not ours: one review with all its threads is far smaller.
const LINE_MAX: u64 = 64 * 1024 * 1024;

const LANE: &[u8] = b"lane ";
/// Follows the line of a lane that still needs records: the item after which it needs all. A line for each follows.
const AFTER: &[u8] = b"after ";
const OWED: &[u8] = b"owed ";
const BENEATH: &[u8] = b"beneath ";
const END: &[u8] = b"end ";

/// The first line: the position in the ledger at which the snapshot was taken, so that the two can be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Title {
    settled: String,
    v: u32,
    /// The form of the caller's lines.
    pub(super) form: String,
    /// The last record it holds.
    pub(super) seq: u64,
    /// The digest of that record's line.
    pub(super) digest: Digest,
    /// The offset at which that line begins in the last segment.
    pub(super) line_begin: u64,
    /// The first record and the length of each segment up to then; the last one ends with that line.
    pub(super) segments: Vec<(u64, u64)>,
}

impl Title {
    pub(super) fn new(
        form: String,
        place: &LedgerPosition,
        segments: Vec<(u64, u64)>,
        heads: &Heads,
    ) -> Title {
        let is_at_rest = heads.iter().all(|(_, head)| head.owed.is_empty());
        Title {
            settled: KIND.to_owned(),
            v: if is_at_rest { VERSION_AT_REST } else { VERSION },
            form,
            seq: place.seq,
            digest: place.digest,
            line_begin: place.line_begin,
            segments,
        }
    }

    fn read(line: &[u8]) -> Result<Title, String> {
        #[derive(Deserialize)]
        struct Preamble {
            settled: String,
            v: u32,
        }
        let kind: Preamble = serde_json::from_slice(line)
            .map_err(|error| format!("its first line cannot be read: {error}"))?;
        if kind.settled != KIND || !(VERSION_AT_REST..=VERSION).contains(&kind.v) {
            return Err(format!(
                "it has version {}, this program reads {VERSION_AT_REST} to {VERSION}",
                kind.v
            ));
        }
        serde_json::from_slice(line)
            .map_err(|error| format!("its first line cannot be read: {error}"))
    }
}

#[derive(Serialize, Deserialize)]
struct Trailer {
    lines: u64,
    sum: Digest,
}

/// Returns the canonical text of a last line.
fn line_of(end: &Trailer) -> Vec<u8> {
    let mut line = serde_json::to_vec(end).expect("plain values are JSON");
    line.push(b'\n');
    line
}

/// Writes a snapshot's head.
pub(super) struct SnapshotWriter<'a> {
    disk: &'a dyn Disk,
    file: &'a Handle,
    buffer: Vec<u8>,
    offset: u64,
    sum: Hasher,
    lines: u64,
}

impl<'a> SnapshotWriter<'a> {
    pub(super) fn new(disk: &'a dyn Disk, file: &'a Handle) -> SnapshotWriter<'a> {
        SnapshotWriter {
            disk,
            file,
            buffer: Vec::with_capacity(BUFFER),
            offset: 0,
            sum: Hasher::default(),
            lines: 0,
        }
    }

    pub(super) fn title(&mut self, title: &Title) -> io::Result<()> {
        self.line(&[], &serde_json::to_vec(title)?)
    }

    pub(super) fn lanes(&mut self, heads: &Heads) -> io::Result<()> {
        for (
            lane,
            LaneHead {
                last,
                owed_after,
                owed,
            },
        ) in heads.iter()
        {
            let line = serde_json::to_vec(&(lane.to_string(), last.seq, last.n))?;
            self.line(LANE, &line)?;
            if owed.is_empty() {
                continue;
            }
            self.line(AFTER, &serde_json::to_vec(&(owed_after.seq, owed_after.n))?)?;
            for (pos, place) in owed {
                self.line(OWED, &serde_json::to_vec(&(pos.n, place))?)?;
            }
        }
        Ok(())
    }

    /// Names the snapshots whose rows this one shares, the newest first, each by its last record and its checksum.
    pub(super) fn beneath(&mut self, named: &[(u64, Digest)]) -> io::Result<()> {
        self.line(BENEATH, &serde_json::to_vec(named)?)
    }

    /// Adds one of the caller's lines.
    pub(super) fn content(&mut self, line: &[u8]) -> io::Result<()> {
        self.line(&[], line)
    }

    fn line(&mut self, word: &[u8], line: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(word);
        self.buffer.extend_from_slice(line);
        self.buffer.push(b'\n');
        self.lines += 1;
        if self.buffer.len() >= BUFFER {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sum.add(&self.buffer);
        disk::write_all(self.disk, self.file, &self.buffer, self.offset)?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Ends the head and returns its length in bytes and its checksum.
    pub(super) fn finish(mut self) -> io::Result<(u64, Digest)> {
        self.flush()?;
        let sum = self.sum.clone().digest();
        let end = serde_json::to_vec(&Trailer {
            lines: self.lines,
            sum,
        })?;
        self.line(END, &end)?;
        self.flush()?;
        Ok((self.offset, sum))
    }
}

/// Reads what a line says of a lane.
fn of_lane<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    serde_json::from_slice(text).map_err(|error| format!("a lane's line cannot be read: {error}"))
}

/// Reads a snapshot's head.
pub(super) struct SnapshotReader<'a> {
    bytes: BufReader<FileStream<'a>>,
    sum: Hasher,
    lines: u64,
    /// A line that was read and not returned yet.
    ahead: Option<Vec<u8>>,
}

impl<'a> SnapshotReader<'a> {
    /// Begins with the first line.
    pub(super) fn new(
        disk: &'a dyn Disk,
        file: &'a Handle,
    ) -> Result<(SnapshotReader<'a>, Title), String> {
        let bytes = BufReader::with_capacity(READ_AHEAD, FileStream::new(disk, file, 0));
        let mut reader = SnapshotReader {
            bytes,
            sum: Hasher::default(),
            lines: 0,
            ahead: None,
        };
        let line = reader.next()?;
        let title = Title::read(&line)?;
        reader.count(&line);
        Ok((reader, title))
    }

    /// Reads the lines of the lanes.
    pub(super) fn lanes(&mut self) -> Result<Heads, String> {
        let mut heads = Heads::default();
        while let Some(text) = self.line_of(LANE)? {
            let (lane, seq, n): (String, u64, u32) = of_lane(&text)?;
            let lane = Lane::read(&lane).ok_or_else(|| format!("`{lane}` is not a lane"))?;
            let last = Pos { seq, n };
            let Some(text) = self.line_of(AFTER)? else {
                heads.insert(lane, last, last);
                continue;
            };
            let (seq, n) = of_lane(&text)?;
            heads.insert(lane.clone(), last, Pos { seq, n });
            while let Some(text) = self.line_of(OWED)? {
                let (n, place): (u32, LedgerPosition) = of_lane(&text)?;
                heads.owe(&lane, Pos { seq: place.seq, n }, place);
            }
        }
        Ok(heads)
    }

    /// Returns what follows this word if the next line begins with it.
    fn line_of(&mut self, word: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let line = self.line()?;
        let Some(text) = line.strip_prefix(word) else {
            self.ahead = Some(line);
            return Ok(None);
        };
        let text = text.to_vec();
        self.count(&line);
        Ok(Some(text))
    }

    /// Reads the line that names the snapshots beneath this one.
    pub(super) fn beneath(&mut self) -> Result<Vec<(u64, Digest)>, String> {
        let named = self.line_of(BENEATH)?;
        let named = named.ok_or("it does not say whose rows it has")?;
        serde_json::from_slice(&named).map_err(|error| {
            format!("cannot read the line that names the snapshots beneath: {error}")
        })
    }

    /// Returns the next of the caller's lines; after the last one, checks that the head is complete.
    pub(super) fn content(&mut self) -> Result<Option<Vec<u8>>, String> {
        let mut line = self.line()?;
        let Some(text) = line.strip_prefix(END) else {
            self.count(&line);
            line.pop();
            return Ok(Some(line));
        };
        let end: Trailer = serde_json::from_slice(text)
            .map_err(|error| format!("its end cannot be read: {error}"))?;
        if end.lines == self.lines && end.sum == self.sum() && text == line_of(&end) {
            Ok(None)
        } else {
            Err("its checksum does not match its bytes".to_owned())
        }
    }

    /// Returns the checksum of the lines so far.
    pub(super) fn sum(&self) -> Digest {
        self.sum.clone().digest()
    }

    fn line(&mut self) -> Result<Vec<u8>, String> {
        self.ahead.take().map_or_else(|| self.next(), Ok)
    }

    /// Reads a line with its newline.
    fn next(&mut self) -> Result<Vec<u8>, String> {
        let mut line = Vec::new();
        let read = self
            .bytes
            .by_ref()
            .take(LINE_MAX)
            .read_until(b'\n', &mut line);
        read.map_err(|error| format!("it cannot be read: {error}"))?;
        if line.last() == Some(&b'\n') {
            Ok(line)
        } else {
            Err("it breaks off".to_owned())
        }
    }

    fn count(&mut self, line: &[u8]) {
        self.sum.add(line);
        self.lines += 1;
    }
}
