//! The file of a verdict: one line for its subject, then lines of the ledger byte for byte, each behind its digest and
//! chained to all lines before. Knows nothing of reviews.
//!
//! ```text
//! settled verdict 1
//! header {"pr":"86",…}
//! judged sha256:<of the record> sha256:<of the chain> {"v":1,"seq":1,…}
//! end 1 sha256:<of the chain>
//! ```

use std::collections::BTreeMap;

use message_schema::id::{AgentName, PrNumber, Repo};
use message_schema::line;
use serde::{Deserialize, Serialize};
use spool::{Digest, Entry};

use super::summary::EvidenceSummary;

const OPENING: &str = "settled verdict 1";

/// The subject of a file, and the conditions of its export.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The pull request, without leading zeros.
    pub pr: PrNumber,
    /// Its repository, if it was named.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub repo: Option<Repo>,
    /// The reviewers whose approval counts; empty means all.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub reviewers: Vec<AgentName>,
    /// The time of the export: RFC 3339, UTC.
    pub exported_at: String,
    /// The program and version that wrote it.
    pub by: String,
    /// The end of the ledger.
    pub ledger: Anchor,
    /// The policy under which the records are judged.
    pub policy: PolicyThen,
    /// The agents that had a mailbox.
    pub agents: Vec<AgentName>,
    /// The evidence of each review that counts, by its key; judging the records again has to yield the same. Empty if
    /// the records do not follow, or an older program wrote the file.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub evidence: BTreeMap<String, EvidenceSummary>,
}

/// The last record of a ledger.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Anchor {
    /// Its number.
    pub records: u64,
    /// Its digest, as `settled ledger verify` prints it.
    pub last: Digest,
}

/// The `settled.toml` at the time of the export; the ledger does not keep it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyThen {
    /// Always `at_export`.
    pub taken: String,
    /// Its text; absent if there was no file, which means the defaults.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub toml: Option<String>,
}

/// The use that a verifier makes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordUse {
    /// Judges it again.
    Judged,
    /// Takes only its tasks, unchanged: it hands off what this pull request fixes.
    Given,
}

impl RecordUse {
    fn word(self) -> &'static str {
        match self {
            Self::Judged => "judged",
            Self::Given => "given",
        }
    }
}

/// A file whose lines are undamaged and chained.
#[derive(Clone, Debug)]
pub struct VerdictFile {
    /// The subject of the file, and the policy under which its records are judged.
    pub header: Header,
    /// Its records in the order of the ledger.
    pub records: Vec<(RecordUse, Entry)>,
    /// The digest of the whole file. Received through another channel, it proves that this is the exported file.
    pub seal: Digest,
}

/// A damaged line.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: found {found}, expected {expected}")]
pub struct Damaged {
    /// The line, from 1.
    pub line: usize,
    /// The content found.
    pub found: String,
    /// The content that would have been accepted.
    pub expected: String,
}

/// Writes a file and returns its seal.
pub(super) fn write(header: &Header, records: &[(RecordUse, Entry)]) -> (Vec<u8>, Digest) {
    let header = serde_json::to_string(header).expect("text keys and plain values are JSON");
    let mut bytes = format!("{OPENING}\nheader {header}\n").into_bytes();
    let mut chain = Digest::of(&bytes);
    for (role, entry) in records {
        let line = entry.to_line();
        let digest = Digest::of(&line);
        chain = link(chain, *role, digest);
        bytes.extend(format!("{} {digest} {chain} ", role.word()).into_bytes());
        bytes.extend(line);
        bytes.push(b'\n');
    }
    let seal = end(chain, records.len());
    bytes.extend(format!("end {} {seal}\n", records.len()).into_bytes());
    (bytes, seal)
}

fn link(chain: Digest, role: RecordUse, digest: Digest) -> Digest {
    Digest::of(format!("{chain} {} {digest}\n", role.word()).as_bytes())
}

fn end(chain: Digest, count: usize) -> Digest {
    Digest::of(format!("{chain} end {count}\n").as_bytes())
}

impl VerdictFile {
    /// Reads a file; stops at the first damaged line.
    pub fn read(bytes: &[u8]) -> Result<Self, Damaged> {
        let damaged = |line, found: &str, expected: &str| Damaged {
            line,
            found: found.to_owned(),
            expected: expected.to_owned(),
        };
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = bytes[..error.valid_up_to()]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count()
                + 1;
            damaged(line, "bytes that are not UTF-8", "text")
        })?;
        let mut lines: Vec<&str> = text.split('\n').collect();
        let count = lines.len();
        if lines.pop() != Some("") {
            return Err(damaged(
                count,
                "the end of the file within a line",
                "a newline",
            ));
        }
        let [opening, header, records @ .., last] = &lines[..] else {
            return Err(damaged(
                count,
                "the end of the file",
                "an opening, a header and an end",
            ));
        };
        if *opening != OPENING {
            return Err(damaged(1, &start(opening), &format!("`{OPENING}`")));
        }
        let of_header =
            |error: &str| damaged(2, &format!("{} ({error})", start(header)), "a header");
        let json = header
            .strip_prefix("header ")
            .ok_or_else(|| of_header("no header"))?;
        let read: Header =
            serde_json::from_str(json).map_err(|error| of_header(&error.to_string()))?;
        let mut file = Self {
            header: read,
            records: Vec::new(),
            seal: Digest::ZERO,
        };
        let mut chain = Digest::of(format!("{opening}\nheader {json}\n").as_bytes());
        let mut before: Option<(u64, Digest)> = None;
        for (n, line) in records.iter().enumerate() {
            let (role, entry, digest) = record(line, &mut chain)
                .map_err(|(found, expected)| damaged(n + 3, &found, &expected))?;
            check_order(&entry, before, digest, &file.header.ledger)
                .map_err(|(found, expected)| damaged(n + 3, &found, &expected))?;
            before = Some((entry.seq, digest));
            file.records.push((role, entry));
        }
        file.seal = end(chain, file.records.len());
        let expected = format!("end {} {}", file.records.len(), file.seal);
        if *last != expected {
            return Err(damaged(count - 1, &start(last), &format!("`{expected}`")));
        }
        Ok(file)
    }
}

/// Reads one record's line: undamaged, and chained to the line before.
fn record(line: &str, chain: &mut Digest) -> Result<(RecordUse, Entry, Digest), (String, String)> {
    let form = || {
        (
            start(line),
            "`judged` or `given`, two digests and a record".to_owned(),
        )
    };
    let mut parts = line.splitn(4, ' ');
    let (word, named, chained, text) =
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(word), Some(named), Some(chained), Some(text)) => (word, named, chained, text),
            (_, _, _, _) => return Err(form()),
        };
    let role = [RecordUse::Judged, RecordUse::Given]
        .into_iter()
        .find(|role| role.word() == word)
        .ok_or_else(form)?;
    let digest = Digest::of(text.as_bytes());
    if digest.to_string() != named {
        return Err((format!("a record with the digest {digest}"), start(named)));
    }
    *chain = link(*chain, role, digest);
    if chain.to_string() != chained {
        return Err((
            format!("{} for the chain", start(chained)),
            format!("{chain}: a line before is another"),
        ));
    }
    let entry = Entry::from_line(text.as_bytes())
        .map_err(|error| (error.to_string(), "a line of a ledger".to_owned()))?;
    Ok((role, entry, digest))
}

/// Checks that records are in ledger order, and that a direct successor names the digest of the record before it.
fn check_order(
    entry: &Entry,
    before: Option<(u64, Digest)>,
    digest: Digest,
    anchor: &Anchor,
) -> Result<(), (String, String)> {
    let Entry { seq, prev, .. } = entry;
    let (last, of_last) = before.unwrap_or((0, Digest::ZERO));
    if *seq <= last || *seq > anchor.records {
        let expected = format!("one from {} to {}", last + 1, anchor.records);
        return Err((format!("record {seq}"), expected));
    }
    if *seq == last + 1 && *prev != of_last {
        return Err((
            format!("`prev` {prev}"),
            format!("{of_last}, the record before"),
        ));
    }
    if *seq == anchor.records && digest != anchor.last {
        return Err((
            format!("record {seq} with the digest {digest}"),
            format!("{}, the ledger's last", anchor.last),
        ));
    }
    Ok(())
}

/// The beginning of what was found, for display.
fn start(text: &str) -> String {
    format!("`{}`", line::escaped(&line::cut(text, 100)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three chained records; the file has the first and the third.
    fn written() -> (Header, Vec<u8>, Digest) {
        let mut prev = Digest::ZERO;
        let records: Vec<Entry> = (1..=3)
            .map(|seq| {
                let line = format!(
                    r#"{{"v":1,"seq":{seq},"at":"2026-02-13T10:00:00.000Z","prev":"{prev}","batch":{seq},"kind":"taken","review":null,"id":null,"original":null,"deliveries":[],"decision":{{}}}}"#
                );
                prev = Digest::of(line.as_bytes());
                Entry::from_line(line.as_bytes()).expect("a line of the ledger")
            })
            .collect();
        let header = Header {
            pr: "86".parse().expect("a number"),
            repo: None,
            reviewers: Vec::new(),
            exported_at: "2026-02-13T10:00:00Z".to_owned(),
            by: "settled".to_owned(),
            ledger: Anchor {
                records: 3,
                last: prev,
            },
            policy: PolicyThen {
                taken: "at_export".to_owned(),
                toml: None,
            },
            agents: Vec::new(),
            evidence: BTreeMap::new(),
        };
        let used = [
            (RecordUse::Judged, records[0].clone()),
            (RecordUse::Given, records[2].clone()),
        ];
        let (bytes, seal) = write(&header, &used);
        (header, bytes, seal)
    }

    #[test]
    fn a_file_reads_back_as_it_was_written_with_its_seal() {
        let (_, bytes, seal) = written();
        let file = VerdictFile::read(&bytes).expect("a file");
        assert_eq!(file.seal, seal);
        let used: Vec<(RecordUse, u64)> = file
            .records
            .iter()
            .map(|(role, entry)| (*role, entry.seq))
            .collect();
        assert_eq!(used, [(RecordUse::Judged, 1), (RecordUse::Given, 3)]);
    }

    #[test]
    fn the_first_line_that_is_wrong_is_named() {
        let (_, bytes, _) = written();
        let text = String::from_utf8(bytes).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        let joined = |lines: &[&str]| lines.join("\n") + "\n";
        for (other, line, found) in [
            (
                text.replacen("verdict 1", "verdict 2", 1),
                1,
                "`settled verdict 2`",
            ),
            (text.replacen("header", "heading", 1), 2, "(no header)"),
            (
                text.replacen("\"kind\":\"taken\"", "\"kind\":\"takes\"", 1),
                3,
                "a record with the digest",
            ),
            (
                text.replacen("judged sha", "given sha", 1),
                3,
                "for the chain",
            ),
            (
                joined(&[&lines[..2], &lines[3..]].concat()),
                3,
                "for the chain",
            ),
            (joined(&[&lines[..3], &lines[4..]].concat()), 4, "`end 2"),
            (
                text.trim_end().to_owned(),
                5,
                "the end of the file within a line",
            ),
        ] {
            let error = VerdictFile::read(other.as_bytes()).expect_err(found);
            assert_eq!(error.line, line, "{error}");
            assert!(error.found.contains(found), "{error}");
        }
    }

    #[test]
    fn the_last_record_is_the_one_the_header_names() {
        let (header, _, _) = written();
        let other = Header {
            ledger: Anchor {
                records: 3,
                last: Digest::of(b"another"),
            },
            ..header
        };
        let (_, bytes, _) = written();
        let file = VerdictFile::read(&bytes).expect("a file");
        let (forged, _) = write(&other, &file.records);
        let error = VerdictFile::read(&forged).expect_err("another ledger");
        assert_eq!(
            (error.line, error.expected.contains("the ledger's last")),
            (4, true)
        );
    }

    #[test]
    fn a_line_that_is_no_text_is_named() {
        let (_, bytes, _) = written();
        for line in 1..=5 {
            let mut bytes = bytes.clone();
            let mut ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
            let (end, _) = ends.nth(line - 1).expect("five lines");
            bytes[end - 1] = 0xff;
            let error = VerdictFile::read(&bytes).expect_err("bytes that are not UTF-8");
            let found = (error.line, error.found.as_str());
            assert_eq!(found, (line, "bytes that are not UTF-8"));
        }
    }

    #[test]
    fn records_are_in_the_order_of_the_ledger_and_not_behind_its_end() {
        let (header, bytes, _) = written();
        let file = VerdictFile::read(&bytes).expect("a file");
        let [first, third] = &file.records[..] else {
            panic!("two records");
        };
        let ends_with = |records| Header {
            ledger: Anchor {
                records,
                ..header.ledger.clone()
            },
            ..header.clone()
        };
        for (end, records, found, expected) in [
            (3, [first, first], "record 1", "one from 2 to 3"),
            (3, [third, first], "record 1", "one from 4 to 3"),
            (2, [first, third], "record 3", "one from 2 to 2"),
        ] {
            let (bytes, _) = write(&ends_with(end), &records.map(Clone::clone));
            let error = VerdictFile::read(&bytes).expect_err(found);
            let error = (error.line, error.found.as_str(), error.expected.as_str());
            assert_eq!(error, (4, found, expected));
        }
    }

    #[test]
    fn a_record_names_the_one_that_it_follows() {
        let (header, bytes, _) = written();
        let file = VerdictFile::read(&bytes).expect("a file");
        let (role, first) = &file.records[0];
        let before = Digest::of(&first.to_line());
        let other = Digest::of(b"another");
        for (prev, expected) in [(before, None), (other, Some(before))] {
            let second = Entry {
                seq: 2,
                prev,
                ..first.clone()
            };
            let records = [(*role, first.clone()), (*role, second)];
            let (bytes, _) = write(&header, &records);
            let error = VerdictFile::read(&bytes).err();
            let error = error.map(|error| (error.line, error.found, error.expected));
            let says = expected.map(|before| {
                let found = format!("`prev` {prev}");
                (4, found, format!("{before}, the record before"))
            });
            assert_eq!(error, says);
        }
    }
}
