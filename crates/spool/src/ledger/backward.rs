//! Finds a position in the ledger from its end, so that reading from there skips everything before it.
//!
//! Nothing found here is trusted beyond its own digest: the caller reads on from it with `read`, which checks the
//! chain.

use std::io;

use super::read::{LedgerPosition, segments};
use crate::layout::Layout;
use crate::{Digest, Entry, FileName, SpoolError};
use disk::{Disk, Handle, OpenMode};

/// The number of bytes read at first; each further read doubles it.
const BLOCK: u64 = 64 * 1024;

/// A record with more later records than this is looked for from the beginning of its segment.
const NEAR: u64 = 1_000;

/// The ledger's segments, read from the end.
pub(crate) struct Backward<'a> {
    disk: &'a dyn Disk,
    layout: &'a Layout,
    dir: &'a Handle,
    /// The first record of each segment, in order.
    segments: Vec<(u64, FileName)>,
}

impl<'a> Backward<'a> {
    /// Lists the segments in `dir`, the ledger's directory.
    pub(crate) fn new(
        disk: &'a dyn Disk,
        layout: &'a Layout,
        dir: &'a Handle,
    ) -> Result<Self, SpoolError> {
        let segments = segments(disk, dir, &layout.ledger())?;
        Ok(Self {
            disk,
            layout,
            dir,
            segments,
        })
    }

    /// Returns the record before the last visible batch. That batch may be torn; since a batch begins only after the
    /// one before is durable, this record cannot be.
    pub(crate) fn before_last_batch(&self) -> Result<LedgerPosition, SpoolError> {
        let mut batch = None;
        for segment in self.segments.iter().rev() {
            let found = self.last_where(segment, &mut |entry| {
                entry.seq < *batch.get_or_insert(entry.batch)
            })?;
            if let Some(place) = found {
                return Ok(place);
            }
        }
        Ok(LedgerPosition::default())
    }

    /// Returns a record at or before this one from which reading to it takes at most one segment.
    pub(crate) fn at_or_before(&self, seq: u64) -> Result<LedgerPosition, SpoolError> {
        if let Some(place) = self.near_the_end(seq)? {
            return Ok(place);
        }
        let later = self.segments.partition_point(|(first, _)| *first <= seq);
        let before = later.checked_sub(2).and_then(|at| self.segments.get(at));
        let found = before
            .map(|segment| self.last_where(segment, &mut |_| true))
            .transpose()?;
        Ok(found.flatten().unwrap_or_default())
    }

    /// Returns this record if it is near the end.
    fn near_the_end(&self, seq: u64) -> Result<Option<LedgerPosition>, SpoolError> {
        let Some(segment) = self.segments.last() else {
            return Ok(None);
        };
        let mut last = None;
        let found = self.last_where(segment, &mut |entry| {
            entry.seq <= seq || *last.get_or_insert(entry.seq) > entry.seq + NEAR
        })?;
        Ok(found.filter(|place| place.seq <= seq))
    }

    /// Returns the last record of a segment for which `is_it` holds. Skips lines that are no records: reading forward
    /// tells what is wrong with them.
    fn last_where(
        &self,
        (first, name): &(u64, FileName),
        is_it: &mut dyn FnMut(&Entry) -> bool,
    ) -> Result<Option<LedgerPosition>, SpoolError> {
        let path = self.layout.ledger().join(name);
        let file = self
            .disk
            .open(self.dir, name.as_ref(), OpenMode::Read)
            .map_err(SpoolError::io("open", &path))?;
        let mut lines =
            LinesBackward::new(self.disk, &file).map_err(SpoolError::io("read", &path))?;
        while let Some((line_begin, text)) =
            lines.previous().map_err(SpoolError::io("read", &path))?
        {
            let Ok(entry) = Entry::from_line(text) else {
                continue;
            };
            if is_it(&entry) {
                let (digest, offset) = (Digest::of(text), line_begin + text.len() as u64 + 1);
                return Ok(Some(LedgerPosition {
                    seq: entry.seq,
                    digest,
                    segment: *first,
                    line_begin,
                    offset,
                }));
            }
        }
        Ok(None)
    }
}

/// The whole lines of a file, the last one first.
struct LinesBackward<'a> {
    disk: &'a dyn Disk,
    file: &'a Handle,
    /// The bytes read so far: from `start` to where the file ended when it was opened.
    bytes: Vec<u8>,
    start: u64,
    /// The offset at which the last returned line begins.
    end: u64,
}

impl<'a> LinesBackward<'a> {
    fn new(disk: &'a dyn Disk, file: &'a Handle) -> io::Result<Self> {
        let size = disk.stat(file)?.size;
        let mut lines = Self {
            disk,
            file,
            bytes: Vec::new(),
            start: size,
            end: size,
        };
        // The bytes after the last newline are no line yet.
        lines.end = lines.behind_newline_before(size)?;
        Ok(lines)
    }

    /// Returns the offset and the text, without the newline, of the line before the last returned one.
    fn previous(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        let Some(newline) = self.end.checked_sub(1) else {
            return Ok(None);
        };
        let begin = self.behind_newline_before(newline)?;
        self.end = begin;
        Ok(Some((
            begin,
            &self.bytes[self.index(begin)..self.index(newline)],
        )))
    }

    fn index(&self, offset: u64) -> usize {
        usize::try_from(offset - self.start).expect("what was read fits memory")
    }

    /// Returns the offset just after the last newline before `offset`; 0 without one.
    fn behind_newline_before(&mut self, offset: u64) -> io::Result<u64> {
        loop {
            if offset > self.start {
                let before = &self.bytes[..self.index(offset)];
                if let Some(at) = before.iter().rposition(|byte| *byte == b'\n') {
                    return Ok(self.start + at as u64 + 1);
                }
            }
            if self.start == 0 {
                return Ok(0);
            }
            self.read_more()?;
        }
    }

    /// Reads backward as many bytes as were read so far, but at least one block.
    fn read_more(&mut self) -> io::Result<()> {
        let start = self
            .start
            .saturating_sub((self.bytes.len() as u64).max(BLOCK));
        let len = usize::try_from(self.start - start).expect("a block fits memory");
        let mut bytes = disk::read_part(self.disk, self.file, start, len)?;
        if bytes.len() < len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.append(&mut self.bytes);
        (self.bytes, self.start) = (bytes, start);
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use disk::Os;
    use ledger_records::{Batch, Head};
    use serde_json::value::RawValue;

    use super::*;
    use crate::ledger::read::{LedgerRecord, Stretch, read};
    use crate::{EntryDraft, layout};

    fn draft() -> EntryDraft {
        EntryDraft {
            at: "2026-02-13T10:00:00.000Z".to_owned(),
            kind: "notice".to_owned(),
            rules: 1,
            review: None,
            id: None,
            original: None,
            deliveries: Vec::new(),
            decision: RawValue::NULL.to_owned(),
        }
    }

    /// Writes a segment with batches of so many records after `head`, and returns its last record.
    pub(crate) fn write_segment(layout: &Layout, mut head: Head, batches: &[usize]) -> Head {
        let path = layout.ledger().join(layout::segment_name(head.seq + 1));
        let mut bytes = Vec::new();
        for count in batches {
            let batch = Batch::write(vec![draft(); *count], head, None);
            bytes.extend_from_slice(batch.bytes());
            head = batch.head();
        }
        std::fs::write(path, bytes).expect("a segment");
        head
    }

    #[test]
    fn what_is_found_from_the_end_is_where_it_is_found_from_the_beginning() {
        let root = tempfile::tempdir().expect("a directory");
        let layout = Layout::new(root.path());
        std::fs::create_dir_all(layout.ledger()).expect("a directory");
        // Segments with batches of one and two records, of one, and of one and two.
        let segments = [&[1, 2][..], &[1], &[1, 2]];
        let heads = segments.iter().scan(Head::EMPTY, |head, batches| {
            *head = write_segment(&layout, *head, batches);
            Some(head.seq)
        });
        assert_eq!(heads.collect::<Vec<u64>>(), [3, 4, 7]);

        let dir = Os.open_root(&layout.ledger()).expect("the ledger");
        let mut places = vec![LedgerPosition::default()];
        let visit = &mut |record: &LedgerRecord| {
            places.push(record.place.clone());
            Ok(())
        };
        read(&Os, &layout, &dir, &Stretch::default(), visit).expect("a ledger");
        let segments: Vec<u64> = places.iter().map(|place| place.segment).collect();
        assert_eq!(segments, [1, 1, 1, 1, 4, 5, 5, 5]);

        let backward = Backward::new(&Os, &layout, &dir).expect("segments");
        let before = backward.before_last_batch().expect("a position");
        assert_eq!(before, places[5]);
        // In the last segment this finds the record itself; for an earlier record, reading starts one segment before it.
        for (seq, from) in [(8, 7), (7, 7), (6, 6), (5, 5), (4, 3), (3, 0), (0, 0)] {
            let found = backward.at_or_before(seq).expect("a position");
            assert_eq!(found, places[from], "record {seq}");
        }
    }
}
