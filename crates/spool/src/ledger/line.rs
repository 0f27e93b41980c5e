//! One record as one line of JSON with a fixed order of keys; knows nothing of files.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::batch::Head;
use crate::{Delivery, Digest, Entry, EntryDraft, HostName, Original};

/// The version of the record's form that this program writes, and the newest that it reads.
pub const FORMAT_VERSION: u32 = 1;

#[derive(Serialize)]
struct LineWritten<'a> {
    v: u32,
    seq: u64,
    at: &'a str,
    prev: Digest,
    batch: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a HostName>,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<u32>,
    review: Option<&'a str>,
    id: Option<&'a str>,
    original: Option<&'a Original>,
    deliveries: &'a [Delivery],
    decision: &'a RawValue,
}

#[derive(Deserialize)]
struct Version {
    v: u32,
}

/// Why a line is no record of ours.
#[derive(Debug)]
pub(crate) enum NotARecord {
    /// A newer program wrote it.
    TooNew(u32),
    /// It cannot be read; the text is the parser's error.
    Unreadable(String),
}

/// A text was read where a line of the ledger was expected.
#[derive(Debug, thiserror::Error)]
pub enum NotALine {
    /// A newer program wrote it.
    #[error("it has format version {0}, this program reads up to {FORMAT_VERSION}")]
    TooNew(u32),
    /// It cannot be read; the text is the parser's error.
    #[error("it is not a record: {0}")]
    Unreadable(String),
}

impl Entry {
    /// Returns the record's line as in the ledger, without its newline. The next record names the digest of this line.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = Vec::new();
        write(self, &mut line);
        line.pop();
        line
    }

    /// Reads a line of a ledger, without its newline. Does not check the chain.
    pub fn from_line(line: &[u8]) -> Result<Entry, NotALine> {
        read(line).map_err(|error| match error {
            NotARecord::TooNew(version) => NotALine::TooNew(version),
            NotARecord::Unreadable(what) => NotALine::Unreadable(what),
        })
    }
}

/// Gives a draft its place in the chain.
pub(crate) fn entry(draft: EntryDraft, after: Head, batch: u64, host: Option<HostName>) -> Entry {
    let EntryDraft {
        at,
        kind,
        rules,
        review,
        id,
        original,
        deliveries,
        decision,
    } = draft;
    Entry {
        seq: after.seq + 1,
        prev: after.digest,
        batch,
        host,
        at,
        kind,
        rules: Some(rules),
        review,
        id,
        original,
        deliveries,
        decision,
    }
}

/// Appends the entry's line, newline included, and returns the digest that the next line must name.
pub(crate) fn write(entry: &Entry, to: &mut Vec<u8>) -> Digest {
    let begin = to.len();
    let written = LineWritten {
        v: FORMAT_VERSION,
        seq: entry.seq,
        at: &entry.at,
        prev: entry.prev,
        batch: entry.batch,
        host: entry.host.as_ref(),
        kind: &entry.kind,
        rules: entry.rules,
        review: entry.review.as_deref(),
        id: entry.id.as_deref(),
        original: entry.original.as_ref(),
        deliveries: &entry.deliveries,
        decision: &entry.decision,
    };
    serde_json::to_writer(&mut *to, &written)
        .expect("text and numbers become JSON, and memory takes every write");
    // The caller's JSON passes through unchanged and may span lines. Outside of strings a newline is plain white space,
    // and inside strings JSON has none.
    for byte in &mut to[begin..] {
        if *byte == b'\n' || *byte == b'\r' {
            *byte = b' ';
        }
    }
    let digest = Digest::of(&to[begin..]);
    to.push(b'\n');
    digest
}

/// Reads a line without its newline.
pub(crate) fn read(line: &[u8]) -> Result<Entry, NotARecord> {
    match serde_json::from_slice::<Entry>(line) {
        // Our records start with their version, which saves a second parse.
        Ok(entry) if line.starts_with(b"{\"v\":1,") => Ok(entry),
        Ok(_) => Err(version(line)
            .unwrap_or_else(|| NotARecord::Unreadable("the format version is missing".to_owned()))),
        Err(error) => {
            Err(version(line).unwrap_or_else(|| NotARecord::Unreadable(error.to_string())))
        }
    }
}

fn version(line: &[u8]) -> Option<NotARecord> {
    match serde_json::from_slice::<Version>(line) {
        Ok(Version { v }) if v > FORMAT_VERSION => Some(NotARecord::TooNew(v)),
        Ok(Version { .. }) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Away, Content, FileName, Mailbox, Stamp};

    fn after(seq: u64) -> Head {
        Head {
            seq,
            digest: Digest::ZERO,
        }
    }

    fn draft() -> EntryDraft {
        let file = FileName::new("a\n.yaml").expect("a name");
        EntryDraft {
            at: "2026-02-13T10:00:00.000Z".to_owned(),
            kind: "accepted".to_owned(),
            rules: 2,
            review: Some("86/claude/codex".to_owned()),
            id: None,
            original: Some(Original {
                outbox: "claude".to_owned(),
                file: file.clone(),
                digest: Some(Digest::of(b"x")),
                stamp: Some(Stamp {
                    ino: 1,
                    size: 2,
                    mtime_ns: 3,
                    fresh: false,
                }),
                away: Away::Sent(file.clone()),
                text: Some("a: \"b\"\n".to_owned()),
            }),
            deliveries: vec![
                Delivery {
                    mailbox: Mailbox::Inbox("codex".to_owned()),
                    file: file.clone(),
                    content: Content::Original,
                },
                Delivery {
                    mailbox: Mailbox::Packets("briefs".to_owned()),
                    file,
                    content: Content::Text("t".to_owned()),
                },
            ],
            decision: RawValue::from_string("{\"a\":\n[1.50]}".to_owned()).expect("JSON"),
        }
    }

    #[test]
    fn a_record_is_one_line_in_a_fixed_order() {
        let mut line = Vec::new();
        let digest = write(&entry(draft(), after(6), 5, None), &mut line);
        let zeros = "0".repeat(64);
        let x = Digest::of(b"x");
        let expected = format!(
            r#"{{"v":1,"seq":7,"at":"2026-02-13T10:00:00.000Z","prev":"sha256:{zeros}","batch":5,"kind":"accepted","rules":2,"review":"86/claude/codex","id":null,"original":{{"outbox":"claude","file":"a%0A.yaml","digest":"{x}","stamp":{{"ino":1,"size":2,"mtime_ns":3}},"away":"sent/a%0A.yaml","text":"a: \"b\"\n"}},"deliveries":[{{"mailbox":"codex/inbox","file":"a%0A.yaml","content":"original"}},{{"mailbox":"packets/briefs","file":"a%0A.yaml","content":{{"text":"t"}}}}],"decision":{{"a": [1.50]}}}}"#
        );
        assert_eq!(String::from_utf8_lossy(&line), format!("{expected}\n"));
        assert_eq!(digest, Digest::of(expected.as_bytes()));
    }

    #[test]
    fn a_record_read_back_is_written_the_same() {
        let mut line = Vec::new();
        write(&entry(draft(), after(6), 5, None), &mut line);
        let read = read(&line[..line.len() - 1]).expect("a record");
        assert!(
            read.original
                .as_ref()
                .and_then(|original| original.stamp)
                .is_some_and(|stamp| stamp.fresh)
        );
        let mut again = Vec::new();
        write(&read, &mut again);
        assert_eq!(again, line);
    }

    #[test]
    fn a_record_of_a_shared_ledger_names_its_host_behind_the_batch() {
        let host: HostName = "tower".parse().expect("a name");
        let mut line = Vec::new();
        write(&entry(draft(), after(6), 5, Some(host.clone())), &mut line);
        let text = String::from_utf8_lossy(&line);
        assert!(
            text.contains(r#""batch":5,"host":"tower","kind":"#),
            "{text}"
        );
        let read = read(&line[..line.len() - 1]).expect("a record");
        assert_eq!(read.host, Some(host));
    }

    #[test]
    fn a_newer_version_is_told_from_damage() {
        assert!(matches!(
            read(b"{\"v\":2,\"new\":true}"),
            Err(NotARecord::TooNew(2))
        ));
        assert!(matches!(read(b"{\"v\":1}"), Err(NotARecord::Unreadable(_))));
        assert!(matches!(read(b"\0\0\0"), Err(NotARecord::Unreadable(_))));
    }
}
