//! One record as one line of JSON with a fixed order of keys; knows nothing of files.

use serde::Deserialize;

use crate::{Digest, Entry, EntryDraft, Head, HostName};

/// The version of the record's form that this program writes, and the newest that it reads.
pub const FORMAT_VERSION: u32 = 1;

#[derive(Deserialize)]
struct Version {
    v: u32,
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
        match serde_json::from_slice::<Entry>(line) {
            // Our records start with their version, which saves a second parse.
            Ok(entry) if line.starts_with(b"{\"v\":1,") => Ok(entry),
            Ok(_) => Err(version(line).unwrap_or_else(|| {
                NotALine::Unreadable("the format version is missing".to_owned())
            })),
            Err(error) => {
                Err(version(line).unwrap_or_else(|| NotALine::Unreadable(error.to_string())))
            }
        }
    }
}

/// Gives a draft its place in the chain.
pub(crate) fn entry(draft: EntryDraft, after: Head, batch: u64, host: Option<HostName>) -> Entry {
    Entry {
        seq: after.seq + 1,
        at: draft.at,
        prev: after.digest,
        batch,
        host,
        kind: draft.kind,
        rules: Some(draft.rules),
        review: draft.review,
        id: draft.id,
        original: draft.original,
        deliveries: draft.deliveries,
        decision: draft.decision,
    }
}

/// Appends the entry's line, newline included, and returns the digest that the next line must name.
pub(crate) fn write(entry: &Entry, to: &mut Vec<u8>) -> Digest {
    let begin = to.len();
    to.extend(format!("{{\"v\":{FORMAT_VERSION}").into_bytes());
    let object = to.len();
    serde_json::to_writer(&mut *to, entry)
        .expect("text and numbers become JSON, and memory takes every write");
    to[object] = b',';
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

fn version(line: &[u8]) -> Option<NotALine> {
    match serde_json::from_slice::<Version>(line) {
        Ok(Version { v }) if v > FORMAT_VERSION => Some(NotALine::TooNew(v)),
        Ok(Version { .. }) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::{Away, Content, Delivery, FileName, Mailbox, Original, Stamp};

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
        let read = Entry::from_line(&line[..line.len() - 1]).expect("a record");
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
        let read = Entry::from_line(&line[..line.len() - 1]).expect("a record");
        assert_eq!(read.host, Some(host));
    }

    #[test]
    fn a_newer_version_is_told_from_damage() {
        assert!(matches!(
            Entry::from_line(b"{\"v\":2,\"new\":true}"),
            Err(NotALine::TooNew(2))
        ));
        assert!(matches!(
            Entry::from_line(b"{\"v\":1}"),
            Err(NotALine::Unreadable(_))
        ));
        assert!(matches!(
            Entry::from_line(b"\0\0\0"),
            Err(NotALine::Unreadable(_))
        ));
    }

    #[test]
    fn a_line_holds_its_record_and_no_line_break() {
        let mut draft = draft();
        draft.decision = RawValue::from_string("{\"a\":\r\n1}".to_owned()).expect("JSON");
        let entry = entry(draft, after(6), 5, None);
        let mut written = b"before\n".to_vec();
        let digest = write(&entry, &mut written);
        let line = entry.to_line();
        assert_eq!(written, [b"before\n", &line[..], b"\n"].concat());
        assert_eq!(digest, Digest::of(&line));
        let text = String::from_utf8(line).expect("text");
        assert!(text.ends_with("\"decision\":{\"a\":  1}}"), "{text}");
    }

    #[test]
    fn a_record_without_its_version_is_damage() {
        let line = entry(draft(), after(6), 5, None).to_line();
        let text = String::from_utf8(line).expect("text");
        for (from, to, why) in [
            (
                "{\"v\":1,",
                "{",
                "it is not a record: the format version is missing",
            ),
            (
                "{\"v\":1,",
                "{\"v\":2,",
                "it has format version 2, this program reads up to 1",
            ),
            (
                "\"seq\":7",
                "\"seq\":-7",
                "it is not a record: invalid value",
            ),
        ] {
            let error = Entry::from_line(text.replacen(from, to, 1).as_bytes());
            let error = error.expect_err(why).to_string();
            assert!(error.starts_with(why), "{error}");
        }
    }
}
