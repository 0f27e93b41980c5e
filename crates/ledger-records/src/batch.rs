//! One batch: the complete lines that one write appends, chained and numbered.

use std::sync::Arc;

use crate::line::{self, NotALine};
use crate::{Digest, Entry, EntryDraft, HostName};

/// The end of a ledger: its last record's number, and the digest of that line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The last record's number; 0 before the first.
    pub seq: u64,
    /// The digest of its line; [`Digest::ZERO`] before the first.
    pub digest: Digest,
}

impl Head {
    /// The end of an empty ledger.
    pub const EMPTY: Head = Head {
        seq: 0,
        digest: Digest::ZERO,
    };
}

/// The lines of one batch, byte for byte as every mirror keeps them: chained, numbered, and all naming the first record
/// as their `batch`.
#[derive(Debug, Clone)]
pub struct Batch {
    after: Head,
    head: Head,
    bytes: Vec<u8>,
    entries: Vec<Arc<Entry>>,
}

/// Bytes were read where a batch was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotABatch {
    /// It has no line.
    #[error("the batch is empty")]
    Empty,
    /// The last line has no newline.
    #[error("the last line of the batch has no end")]
    Unfinished,
    /// A newer program wrote a record.
    #[error(
        "record {seq} has format version {version}, which this program does not read: upgrade it"
    )]
    TooNew {
        /// The record's number.
        seq: u64,
        /// The version found there.
        version: u32,
    },
    /// A record is unreadable or not written in this program's form.
    #[error("record {seq} cannot be read: {what}")]
    Unreadable {
        /// The record's number.
        seq: u64,
        /// The reader's error, or the difference in form.
        what: String,
    },
    /// A record does not follow the one before.
    #[error("record {seq} does not follow: {what}")]
    Unchained {
        /// The number it must have.
        seq: u64,
        /// The link that was found, and the expected one.
        what: String,
    },
}

impl Batch {
    /// Reads a batch that follows `after`. Checks the chain, the numbers and the exact form of each line, so that two
    /// hosts with the same digest have the same bytes.
    pub fn read(bytes: Vec<u8>, after: Head) -> Result<Batch, NotABatch> {
        if bytes.is_empty() {
            return Err(NotABatch::Empty);
        }
        let mut head = after;
        let mut entries = Vec::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (entry, digest) = read_chained(line, head, after.seq + 1)?;
            head = Head {
                seq: entry.seq,
                digest,
            };
            entries.push(Arc::new(entry));
        }
        Ok(Batch {
            after,
            head,
            bytes,
            entries,
        })
    }

    /// Encodes these drafts for a ledger that ends with `after`, decided by `host` if the workspace has several.
    pub fn write(drafts: Vec<EntryDraft>, after: Head, host: Option<&HostName>) -> Batch {
        let mut bytes = Vec::with_capacity(drafts.len() * 3 * 1024);
        let mut head = after;
        let mut entries = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let entry = line::entry(draft, head, after.seq + 1, host.cloned());
            head = Head {
                seq: entry.seq,
                digest: line::write(&entry, &mut bytes),
            };
            entries.push(Arc::new(entry));
        }
        Batch {
            after,
            head,
            bytes,
            entries,
        }
    }

    /// Returns the end of the ledger that this batch extends.
    pub fn after(&self) -> Head {
        self.after
    }

    /// Returns the end of the ledger once it has this batch.
    pub fn head(&self) -> Head {
        self.head
    }

    /// Returns the lines, newlines included.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the records.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// Returns the part of the batch after `head`, if `head` is its beginning or a record inside it.
    pub fn rest(&self, head: Head) -> Option<Batch> {
        let known = usize::try_from(head.seq.checked_sub(self.after.seq)?).ok()?;
        let entries = self.entries.get(known..).filter(|rest| !rest.is_empty())?;
        if entries[0].prev != head.digest {
            return None;
        }
        let begin: usize = self.lines().take(known).map(|(_, len)| len).sum();
        Some(Batch {
            after: head,
            head: self.head,
            bytes: self.bytes[begin..].to_vec(),
            entries: entries.to_vec(),
        })
    }

    /// Returns the digest and the length of each record's line, newline included.
    pub fn lines(&self) -> impl Iterator<Item = (Digest, usize)> {
        let digests = self.entries.iter().skip(1).map(|next| next.prev);
        let lines = self.bytes.split_inclusive(|byte| *byte == b'\n');
        digests
            .chain([self.head.digest])
            .zip(lines.map(<[u8]>::len))
    }

    /// Returns the records.
    pub fn into_entries(self) -> Vec<Arc<Entry>> {
        self.entries
    }

    /// Returns the end of the ledger with this batch's records up to `seq`, if that is one of them or the record
    /// before.
    pub fn head_at(&self, seq: u64) -> Option<Head> {
        if seq == self.head.seq {
            return Some(self.head);
        }
        // Each record names the digest of the line before it.
        let next = self.entries.iter().find(|entry| entry.seq == seq + 1)?;
        Some(Head {
            seq,
            digest: next.prev,
        })
    }

    /// Splits consecutive records that follow `after` into the batches in which they were written.
    pub fn split(entries: Vec<Arc<Entry>>, after: Head) -> Vec<Batch> {
        let mut batches: Vec<Batch> = Vec::new();
        let mut head = after;
        for entry in entries {
            let is_first = entry.batch == entry.seq || batches.is_empty();
            if is_first {
                batches.push(Batch {
                    after: head,
                    head,
                    bytes: Vec::new(),
                    entries: Vec::new(),
                });
            }
            let batch = batches.last_mut().expect("a batch was just begun");
            head = Head {
                seq: entry.seq,
                digest: line::write(&entry, &mut batch.bytes),
            };
            batch.head = head;
            batch.entries.push(entry);
        }
        batches
    }
}

/// Reads one line, newline included, and checks that it follows `head` in the batch that begins with record `batch`.
fn read_chained(line: &[u8], head: Head, batch: u64) -> Result<(Entry, Digest), NotABatch> {
    let seq = head.seq + 1;
    let text = line.strip_suffix(b"\n").ok_or(NotABatch::Unfinished)?;
    let entry = Entry::from_line(text).map_err(|error| match error {
        NotALine::TooNew(version) => NotABatch::TooNew { seq, version },
        NotALine::Unreadable(what) => NotABatch::Unreadable { seq, what },
    })?;
    let unchained = |what| Err(NotABatch::Unchained { seq, what });
    if entry.seq != seq {
        return unchained(format!("its number is {}", entry.seq));
    }
    if entry.prev != head.digest {
        let (prev, digest) = (entry.prev, head.digest);
        return unchained(format!("`prev` is {prev}, the line before has {digest}"));
    }
    if entry.batch != batch {
        let found = entry.batch;
        return unchained(format!("`batch` is {found}, the first record is {batch}"));
    }
    let mut form = Vec::with_capacity(line.len());
    let digest = line::write(&entry, &mut form);
    if form != line {
        let what = "it is not written in the form of this version".to_owned();
        return Err(NotABatch::Unreadable { seq, what });
    }
    Ok((entry, digest))
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    /// The end of a ledger of six records.
    fn six() -> Head {
        Head {
            seq: 6,
            digest: Digest::of(b"the sixth line"),
        }
    }

    fn draft(kind: &str) -> EntryDraft {
        EntryDraft {
            at: "2026-02-13T10:00:00.000Z".to_owned(),
            kind: kind.to_owned(),
            rules: 1,
            review: None,
            id: None,
            original: None,
            deliveries: Vec::new(),
            decision: RawValue::from_string("{}".to_owned()).expect("JSON"),
        }
    }

    /// Records 7, 8 and 9, written at once.
    fn three() -> Batch {
        let drafts = ["one", "two", "three"].map(draft);
        Batch::write(drafts.into(), six(), None)
    }

    fn seqs(batch: &Batch) -> Vec<u64> {
        batch.entries().iter().map(|entry| entry.seq).collect()
    }

    #[test]
    fn a_batch_numbers_and_chains_its_lines_and_is_read_back_the_same() {
        let host: HostName = "tower".parse().expect("a name");
        let drafts = ["one", "two", "three"].map(draft);
        let written = Batch::write(drafts.into(), six(), Some(&host));
        let read = Batch::read(written.bytes().to_vec(), six()).expect("a batch");
        for batch in [&written, &read] {
            assert_eq!((batch.after(), batch.head()), (six(), written.head()));
            assert_eq!(batch.bytes(), written.bytes());
            assert_eq!(seqs(batch), [7, 8, 9]);
            let lines: Vec<&[u8]> = batch
                .bytes()
                .split_inclusive(|byte| *byte == b'\n')
                .collect();
            let of_line = |line: &&[u8]| (Digest::of(&line[..line.len() - 1]), line.len());
            let expected: Vec<(Digest, usize)> = lines.iter().map(of_line).collect();
            assert_eq!(batch.lines().collect::<Vec<_>>(), expected);
            let mut prev = six().digest;
            for (entry, (digest, _)) in batch.entries().iter().zip(expected) {
                assert_eq!((entry.prev, entry.batch), (prev, 7));
                assert_eq!(entry.host, Some(host.clone()));
                prev = digest;
            }
            assert_eq!(
                batch.head(),
                Head {
                    seq: 9,
                    digest: prev
                }
            );
        }
        let kinds = read.into_entries();
        let kinds: Vec<&str> = kinds.iter().map(|entry| entry.kind.as_str()).collect();
        assert_eq!(kinds, ["one", "two", "three"]);
    }

    #[test]
    fn lines_that_do_not_continue_this_ledger_are_refused_with_the_record() {
        let text = String::from_utf8(three().bytes().to_vec()).expect("text");
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let changed = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        };
        for (bytes, why) in [
            (String::new(), "the batch is empty"),
            (
                text.trim_end().to_owned(),
                "the last line of the batch has no end",
            ),
            (
                changed("{\"v\":1,\"seq\":8", "{\"v\":2,\"seq\":8"),
                "record 8 has format version 2",
            ),
            (format!("{}nonsense\n", lines[0]), "record 8 cannot be read"),
            (
                lines[1..].concat(),
                "record 7 does not follow: its number is 8",
            ),
            (
                changed("\"kind\":\"one\"", "\"kind\":\"won\""),
                "record 8 does not follow: `prev` is sha256:",
            ),
            (
                changed(
                    "\"batch\":7,\"kind\":\"three\"",
                    "\"batch\":9,\"kind\":\"three\"",
                ),
                "record 9 does not follow: `batch` is 9, the first record is 7",
            ),
            (
                changed("\"kind\":\"one\"", "\"kind\": \"one\""),
                "record 7 cannot be read: it is not written in the form of this version",
            ),
        ] {
            let error = Batch::read(bytes.into_bytes(), six())
                .expect_err(why)
                .to_string();
            assert!(error.starts_with(why), "{error}");
        }
        let other = Head {
            digest: Digest::ZERO,
            ..six()
        };
        let error = Batch::read(text.into_bytes(), other).expect_err("another ledger");
        assert!(
            matches!(error, NotABatch::Unchained { seq: 7, .. }),
            "{error}"
        );
    }

    #[test]
    fn the_end_of_a_ledger_inside_a_batch_is_known() {
        let batch = three();
        let lines: Vec<(Digest, usize)> = batch.lines().collect();
        let at = |seq, digest| Some(Head { seq, digest });
        for (seq, head) in [
            (5, None),
            (6, Some(six())),
            (7, at(7, lines[0].0)),
            (8, at(8, lines[1].0)),
            (9, Some(batch.head())),
            (10, None),
        ] {
            assert_eq!(batch.head_at(seq), head, "record {seq}");
        }
    }

    #[test]
    fn the_rest_of_a_batch_follows_each_of_its_records() {
        let batch = three();
        for (seq, left) in [(6, &[7, 8, 9][..]), (7, &[8, 9]), (8, &[9])] {
            let head = batch.head_at(seq).expect("a record of the batch");
            let rest = batch.rest(head).expect("more records");
            assert_eq!(seqs(&rest), left);
            assert_eq!((rest.after(), rest.head()), (head, batch.head()));
            let lengths = batch.lines().skip(3 - left.len()).map(|(_, length)| length);
            assert_eq!(rest.bytes().len(), lengths.sum::<usize>());
            assert!(batch.bytes().ends_with(rest.bytes()));
        }
        let of_another = |seq| Head {
            seq,
            digest: Digest::ZERO,
        };
        for head in [
            of_another(5),
            of_another(6),
            of_another(7),
            batch.head(),
            of_another(10),
        ] {
            assert!(batch.rest(head).is_none(), "{head:?}");
        }
    }

    #[test]
    fn records_are_split_into_the_batches_in_which_they_were_written() {
        let first = three();
        let second = Batch::write(vec![draft("four"), draft("five")], first.head(), None);
        let all = [first.clone().into_entries(), second.clone().into_entries()].concat();
        // A reader that has record 7 gets the rest of its batch.
        let known = first.head_at(7).expect("a record of the batch");
        let rest = first.rest(known).expect("two records");
        for (entries, after, expected) in [
            (&all[..], six(), [&first, &second]),
            (&all[1..], known, [&rest, &second]),
        ] {
            let split = Batch::split(entries.to_vec(), after);
            let shape = |batch: &Batch| {
                (
                    batch.after(),
                    batch.head(),
                    batch.bytes().to_vec(),
                    seqs(batch),
                )
            };
            let shapes: Vec<_> = split.iter().map(shape).collect();
            assert_eq!(shapes, expected.map(shape));
        }
        assert!(Batch::split(Vec::new(), six()).is_empty());
    }
}
