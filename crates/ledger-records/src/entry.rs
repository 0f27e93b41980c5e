//! One record of the ledger: the decision, the file it judged and the files it makes.
//!
//! `line` defines the line of a record and its integrity; the caller defines the meaning of the decision.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::dirs::{DEAD_LETTER, SENT};
use crate::{Digest, FileName, HostName, Mailbox};

/// The largest file that can be a message, in bytes: more than intake ever accepts.
pub const MESSAGE_FILE_MAX: u64 = 1 << 20;

/// One decision to be written; the ledger adds its place in the chain.
#[derive(Debug, Clone)]
pub struct EntryDraft {
    /// The time of the decision: RFC 3339, UTC, with milliseconds.
    pub at: String,
    /// The decision in one word; opaque here.
    pub kind: String,
    /// The version of the rules that decided; opaque here.
    pub rules: u32,
    /// The review's key, for grep and jq; opaque here.
    pub review: Option<String>,
    /// The message's id, for grep and jq; opaque here.
    pub id: Option<String>,
    /// The outbox file that this record judged, to be put away.
    pub original: Option<Original>,
    /// The files to make; a record may make several, also in one mailbox.
    pub deliveries: Vec<Delivery>,
    /// The decision itself, as JSON; opaque here.
    pub decision: Box<RawValue>,
}

/// One record of the ledger, as it was written: its line has the version of the form, then these fields in this order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    /// The record's number, from 1, without gaps.
    pub seq: u64,
    /// The time of the decision: RFC 3339, UTC, with milliseconds.
    pub at: String,
    /// The digest of the line before, without its newline; [`Digest::ZERO`] before the first.
    pub prev: Digest,
    /// The number of the first record that was written in the same batch.
    pub batch: u64,
    /// The host that decided it, if several hosts share the ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostName>,
    /// The decision in one word; opaque here.
    pub kind: String,
    /// The version of the rules that decided; opaque here. Records older than these versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<u32>,
    /// The review's key; opaque here.
    pub review: Option<String>,
    /// The message's id; opaque here.
    pub id: Option<String>,
    /// The outbox file this record judged.
    pub original: Option<Original>,
    /// The files this record makes.
    pub deliveries: Vec<Delivery>,
    /// The decision itself, as JSON; opaque here.
    pub decision: Box<RawValue>,
}

/// The outbox file a record judged.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Original {
    /// The agent whose outbox it was in.
    pub outbox: String,
    /// Its name there.
    pub file: FileName,
    /// The digest of the judged bytes; absent if they were never read (too large, not a regular file).
    pub digest: Option<Digest>,
    /// The identity of the file as intake saw it; absent if intake did not find the file.
    #[serde(default)]
    pub stamp: Option<Stamp>,
    /// The file's new place, once it is put away.
    pub away: Away,
    /// Its exact text; accepted messages only.
    #[serde(default, deserialize_with = "disk::long_text_if_any")]
    pub text: Option<String>,
}

impl Original {
    /// Returns the most bytes of a file that may still be this original. Its writer can enlarge it at any time, so a
    /// comparison must read no more.
    pub fn size_max(&self) -> u64 {
        self.stamp.map_or(MESSAGE_FILE_MAX, |stamp| stamp.size)
    }
}

/// The identity of one version of a file: if any of these differs, it is another file or has other content. The default is
/// for a file that was not looked at on a disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The inode's number.
    pub ino: u64,
    /// The size in bytes.
    pub size: u64,
    /// The time of the last change in nanoseconds since 1970, UTC.
    pub mtime_ns: i64,
    /// True if equal stamps do not prove equal bytes: the change was too recent when the file was read, or the stamp
    /// comes from the ledger. Not stored.
    #[serde(skip, default = "yes")]
    pub fresh: bool,
}

fn yes() -> bool {
    true
}

/// The directory and the name that a judged original gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Away {
    /// Accepted: into the sender's `sent/`.
    Sent(FileName),
    /// Refused: into the sender's `dead_letter/`.
    DeadLetter(FileName),
}

impl fmt::Display for Away {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Away::Sent(file) => write!(f, "{SENT}/{file}"),
            Away::DeadLetter(file) => write!(f, "{DEAD_LETTER}/{file}"),
        }
    }
}

/// A text was read where `sent/<file>` or `dead_letter/<file>` was expected.
#[derive(Debug, thiserror::Error)]
#[error("an original is put away to `sent/<file>` or `dead_letter/<file>`")]
pub struct NotAway;

impl FromStr for Away {
    type Err = NotAway;

    fn from_str(text: &str) -> Result<Away, NotAway> {
        match text.split_once('/') {
            Some((SENT, file)) => Ok(Away::Sent(file.parse().map_err(|_| NotAway)?)),
            Some((DEAD_LETTER, file)) => Ok(Away::DeadLetter(file.parse().map_err(|_| NotAway)?)),
            Some(_) | None => Err(NotAway),
        }
    }
}

impl Serialize for Away {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Away {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Away, D::Error> {
        disk::from_text(deserializer)
    }
}

/// One file a record makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The mailbox that gets the file.
    pub mailbox: Mailbox,
    /// The file's name, unless other bytes have it already: then `<stem>.<seq>.<ext>`.
    pub file: FileName,
    /// The file's content.
    pub content: Content,
}

/// The content of a delivered file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// The exact text of the record's original.
    Original,
    /// This text.
    Text(#[serde(deserialize_with = "disk::long_text")] String),
    /// Nothing: if the file of this name holds these bytes, delivery removes it. Some writers put a copy of their
    /// message into the recipient's mailbox themselves, and the copy of a refused message must not stay there.
    Withdrawn(Digest),
}

impl Entry {
    /// Returns the bytes of one of this record's deliveries, or the digest of those to remove.
    pub fn expected<'a>(&'a self, delivery: &'a Delivery) -> ExpectedContent<'a> {
        match &delivery.content {
            Content::Text(text) => ExpectedContent::File(text.as_bytes()),
            Content::Original => {
                let original = self
                    .original
                    .as_ref()
                    .and_then(|original| original.text.as_ref());
                let text = original.expect(
                    "a draft that delivers its original has its text, or it is not committed",
                );
                ExpectedContent::File(text.as_bytes())
            }
            Content::Withdrawn(digest) => ExpectedContent::Absent(digest),
        }
    }
}

/// The content that a mailbox must hold under a name once a delivery is done.
pub enum ExpectedContent<'a> {
    /// A file of these bytes.
    File(&'a [u8]),
    /// No file of these bytes.
    Absent(&'a Digest),
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn name(text: &str) -> FileName {
        FileName::new(text).expect("a name")
    }

    /// A record of an accepted message that delivers this content.
    fn entry(content: &Content) -> Entry {
        let record = json!({
            "seq": 1, "at": "2026-02-13T10:00:00.000Z", "prev": Digest::ZERO, "batch": 1, "kind": "accepted",
            "review": null, "id": null,
            "original": {
                "outbox": "claude", "file": "a.yaml", "digest": null, "away": "sent/a.yaml", "text": "a message",
            },
            "deliveries": [{"mailbox": "codex/inbox", "file": "a.yaml", "content": content}],
            "decision": {},
        });
        serde_json::from_str(&record.to_string()).expect("a record")
    }

    #[test]
    fn an_original_goes_to_sent_or_to_dead_letter() {
        for (text, away) in [
            ("sent/a.yaml", Some(Away::Sent(name("a.yaml")))),
            ("dead_letter/a.yaml", Some(Away::DeadLetter(name("a.yaml")))),
            ("inbox/a.yaml", None),
            ("a.yaml", None),
            ("sent/", None),
            ("sent/../a", None),
            ("dead_letter/a/b", None),
        ] {
            let read = text.parse::<Away>().ok();
            assert_eq!(read, away, "{text}");
            let shown = read.map(|away| away.to_string());
            assert_eq!(shown.as_deref(), away.is_some().then_some(text));
        }
    }

    #[test]
    fn a_delivery_makes_its_text_or_the_original_or_takes_a_file_away() {
        let copy = Digest::of(b"a copy");
        for (content, file, absent) in [
            (Content::Original, Some("a message"), None),
            (Content::Text("a report".to_owned()), Some("a report"), None),
            (Content::Withdrawn(copy), None, Some(copy)),
        ] {
            let entry = entry(&content);
            let found = match entry.expected(&entry.deliveries[0]) {
                ExpectedContent::File(bytes) => (Some(bytes), None),
                ExpectedContent::Absent(digest) => (None, Some(*digest)),
            };
            assert_eq!(found, (file.map(str::as_bytes), absent), "{content:?}");
        }
    }

    #[test]
    fn no_more_of_a_file_is_compared_than_its_original_had() {
        let mut original = entry(&Content::Original).original.expect("an original");
        assert_eq!(original.size_max(), MESSAGE_FILE_MAX);
        assert_eq!(MESSAGE_FILE_MAX, 1_048_576);
        original.stamp = Some(Stamp {
            size: 9,
            ..Stamp::default()
        });
        assert_eq!(original.size_max(), 9);
    }
}
