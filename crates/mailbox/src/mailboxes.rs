//! Reads an agent's own mailboxes: messages in its inbox, taken and archived ones, and the fate of its own. Reads
//! envelopes and moves files. The daemon checked each message before it delivered it, so nothing here reads the ledger.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io::{self, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use message_schema::envelope::MessageType;
use message_schema::id::{AgentName, MessageId, PrNumber};
use message_schema::limit::MESSAGE_BYTES_MAX;
use message_schema::{Message, parse};
use serde::Serialize;
use spool::Layout;
use workspace::atomic_file::rename_new;
use workspace::regular_file;

/// The mailbox that a message is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MailboxPlace {
    /// It is delivered, and nobody has taken it.
    Inbox,
    /// It is being worked on.
    Taken,
    /// Its reader has finished with it.
    Archive,
    /// The agent wrote it, and it is not judged yet.
    Outbox,
    /// The agent wrote it, and it was accepted.
    Sent,
    /// The agent wrote it, and it was refused.
    DeadLetter,
}

/// A message in one of the agent's mailboxes; missing and unreadable fields are left out.
#[derive(Clone, Debug, Serialize)]
pub struct MailboxEntry {
    /// Its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// `P0` to `P3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// The number of the pull request it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pr: Option<PrNumber>,
    /// One line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The time of writing, as the sender states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at_utc: Option<String>,
    /// The message it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_message_id: Option<String>,
    /// The conversation it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// The packet it points to, relative to the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet: Option<String>,
    /// The mailbox it is in.
    pub place: MailboxPlace,
    /// Its file.
    #[serde(serialize_with = "spool::path_text::serialize")]
    pub path: PathBuf,
    /// The reason it is not a message; then only its place is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// Its exact text.
    #[serde(skip)]
    pub text: String,
    /// The time at which the file was finished.
    #[serde(skip)]
    pub arrived: Option<SystemTime>,
}

/// The reason a message was not moved.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// Another worker moved it first.
    #[error("{} no longer exists", .0.display())]
    Gone(PathBuf),
    /// The disk failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// An agent's own mailboxes.
#[derive(Clone, Debug)]
pub struct AgentMailboxes {
    layout: Layout,
    agent: AgentName,
}

impl AgentMailboxes {
    /// The mailboxes of an agent; reads nothing yet.
    pub fn new(root: &Path, agent: &AgentName) -> Self {
        Self {
            layout: Layout::new(root),
            agent: agent.clone(),
        }
    }

    /// The directory of a place.
    pub fn directory(&self, place: MailboxPlace) -> PathBuf {
        let agent = self.agent.as_str();
        match place {
            MailboxPlace::Inbox => self.layout.inbox(agent),
            MailboxPlace::Taken => self.layout.taken(agent),
            MailboxPlace::Archive => self.layout.archive(agent),
            MailboxPlace::Outbox => self.layout.outbox(agent),
            MailboxPlace::Sent => self.layout.sent(agent),
            MailboxPlace::DeadLetter => self.layout.dead_letter(agent),
        }
    }

    /// The names of the messages in a place, in no order; none if there is no such directory.
    pub fn names(&self, place: MailboxPlace) -> io::Result<Vec<PathBuf>> {
        let entries = match std::fs::read_dir(self.directory(place)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if is_message(&path) {
                names.push(path);
            }
        }
        Ok(names)
    }

    /// The messages in a place, most urgent first and oldest first within a priority.
    pub fn messages(&self, place: MailboxPlace) -> io::Result<Vec<MailboxEntry>> {
        Ok(self.first_messages(place, usize::MAX)?.0)
    }

    /// Up to `at_most` messages of a place, the first by name, in the same order, and the number of all. For callers
    /// without time to read them all.
    pub fn first_messages(
        &self,
        place: MailboxPlace,
        at_most: usize,
    ) -> io::Result<(Vec<MailboxEntry>, usize)> {
        let mut names = self.names(place)?;
        let count = names.len();
        if count > at_most {
            names.select_nth_unstable(at_most);
            names.truncate(at_most);
        }
        let mut messages: Vec<MailboxEntry> = names
            .into_iter()
            .filter_map(|path| read(&path, place))
            .collect();
        let rank =
            |message: &MailboxEntry| message.priority.clone().unwrap_or_else(|| "P9".to_owned());
        messages.sort_by(|a, b| (rank(a), a.arrived, &a.path).cmp(&(rank(b), b.arrived, &b.path)));
        Ok((messages, count))
    }

    /// Up to `at_most` messages of a place, those that were finished last.
    pub fn newest(&self, place: MailboxPlace, at_most: usize) -> io::Result<Vec<MailboxEntry>> {
        let mut names = self.names(place)?;
        if names.len() > at_most {
            let finished = |path: &PathBuf| {
                path.symlink_metadata()
                    .and_then(|data| data.modified())
                    .ok()
            };
            names.sort_by_cached_key(|path| std::cmp::Reverse(finished(path)));
            names.truncate(at_most);
        }
        Ok(names
            .into_iter()
            .filter_map(|path| read(&path, place))
            .collect())
    }

    /// The messages in a place that were finished after `instant`, in no order.
    pub fn since(&self, place: MailboxPlace, instant: SystemTime) -> io::Result<Vec<MailboxEntry>> {
        let is_newer = |path: &PathBuf| {
            let modified = path.symlink_metadata().and_then(|data| data.modified());
            modified.is_ok_and(|modified| modified > instant)
        };
        Ok(self
            .names(place)?
            .into_iter()
            .filter(is_newer)
            .filter_map(|path| read(&path, place))
            .collect())
    }

    /// The received messages with this id or file name, those in the inbox first, then taken, then archived ones.
    pub fn find(&self, what: &str) -> io::Result<Vec<MailboxEntry>> {
        let mut found = Vec::new();
        for place in [
            MailboxPlace::Inbox,
            MailboxPlace::Taken,
            MailboxPlace::Archive,
        ] {
            let messages = self.messages(place)?;
            found.extend(messages.into_iter().filter(|message| message.is(what)));
        }
        Ok(found)
    }

    /// The message of this type with this id in one of these places, the first that has one. Reads the files that the
    /// commands name after the id first, and then parses only those that can hold it: an inbox that nobody empties has
    /// thousands of notices.
    pub fn with_id(
        &self,
        places: &[MailboxPlace],
        id: &MessageId,
        kind: MessageType,
    ) -> Option<MailboxEntry> {
        let name = file_name(id);
        let named = |place: &MailboxPlace| (self.directory(*place).join(&name), *place);
        let others = places.iter().flat_map(|place| {
            let names = self.names(*place).unwrap_or_default();
            names.into_iter().map(|path| (path, *place))
        });
        let mut entries = places
            .iter()
            .map(named)
            .chain(others)
            .filter_map(|(path, place)| read_if(&path, place, |bytes| can_hold(bytes, id)));
        entries.find(|entry| {
            entry.id.as_deref() == Some(id.as_str()) && entry.kind.as_deref() == Some(kind.as_str())
        })
    }

    /// Takes a message from the inbox to work on it. If several workers try, one succeeds.
    pub fn take(&self, message: &MailboxEntry) -> Result<PathBuf, MoveError> {
        self.to(&message.path, MailboxPlace::Taken)
    }

    /// Archives a message with which its reader has finished.
    pub fn put_away(&self, message: &MailboxEntry) -> Result<PathBuf, MoveError> {
        self.to(&message.path, MailboxPlace::Archive)
    }

    /// Archives a refused message, if it is still there, and its report. The report goes last, so that an interrupted
    /// dismissal is still listed.
    pub fn dismiss(&self, file: Option<&str>, report: &str) -> Result<Vec<PathBuf>, MoveError> {
        let refused = self.directory(MailboxPlace::DeadLetter);
        let mut dismissed = Vec::new();
        for name in file.into_iter().chain([report]) {
            match self.to(&refused.join(name), MailboxPlace::Archive) {
                Ok(path) => dismissed.push(path),
                Err(MoveError::Gone(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(dismissed)
    }

    /// Moves a file atomically. If the name is taken there, uses one with a number.
    fn to(&self, from: &Path, place: MailboxPlace) -> Result<PathBuf, MoveError> {
        let directory = self.directory(place);
        let failed = |path: &Path, source: io::Error| MoveError::Io {
            path: path.to_owned(),
            source,
        };
        match DirBuilder::new().mode(0o770).create(&directory) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(&directory, error)),
        }
        for n in 1_u32.. {
            let to = directory.join(numbered(from, n));
            match rename_new(from, &to) {
                Ok(()) => return Ok(to),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(MoveError::Gone(from.to_owned()));
                }
                Err(error) => return Err(failed(from, error)),
            }
        }
        unreachable!("a directory has fewer files than there are numbers")
    }
}

impl MailboxEntry {
    /// True if this is its id or file name.
    pub fn is(&self, what: &str) -> bool {
        self.id.as_deref() == Some(what) || self.path.file_name().is_some_and(|name| name == what)
    }

    /// True if it is about this pull request, however it writes the number.
    pub fn is_about(&self, pr: &PrNumber) -> bool {
        self.pr.as_ref().is_some_and(|own| own.same_pr(pr))
    }

    /// Its id, or its file name if it has none.
    pub fn name(&self) -> String {
        let file = || {
            self.path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        };
        self.id.clone().unwrap_or_else(file)
    }
}

/// The name of a message's file. The daemon ignores names that begin with a dot, but an id may, so `_` goes before it.
/// Other systems allow no colon in a name, so `=`, which no id contains, replaces it.
pub fn file_name(id: &MessageId) -> String {
    let hidden = if id.as_str().starts_with('.') {
        "_"
    } else {
        ""
    };
    format!("{hidden}{}.yaml", id.as_str().replace(':', "="))
}

/// The file's own name or, for later tries, that name with a number before the extension.
fn numbered(path: &Path, n: u32) -> OsString {
    if n == 1 {
        return path.file_name().unwrap_or_default().to_owned();
    }
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{n}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    name
}

/// True if the daemon and agents treat a file of this name as a message.
fn is_message(path: &Path) -> bool {
    let is_hidden = path
        .file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let extension = path.extension().and_then(|extension| extension.to_str());
    // The report of a refused message is in the same directory.
    let is_report = path
        .file_stem()
        .is_some_and(|stem| stem.as_encoded_bytes().ends_with(b".report"));
    !is_hidden && !is_report && matches!(extension, Some("yaml" | "yml" | "json"))
}

/// False if no message of these bytes has this id: YAML can spell an id differently only with a backslash.
pub(crate) fn can_hold(bytes: &[u8], id: &MessageId) -> bool {
    bytes.contains(&b'\\')
        || std::str::from_utf8(bytes).is_ok_and(|text| text.contains(id.as_str()))
}

/// Reads a message; `None` if it was moved or is not a file.
fn read(path: &Path, place: MailboxPlace) -> Option<MailboxEntry> {
    read_if(path, place, |_| true)
}

/// Reads a message if its bytes are wanted.
fn read_if(
    path: &Path,
    place: MailboxPlace,
    is_wanted: impl Fn(&[u8]) -> bool,
) -> Option<MailboxEntry> {
    let read = regular_file::open(path).and_then(|file| {
        let data = file.metadata()?;
        let mut bytes = Vec::new();
        if data.is_file() && data.len() <= MESSAGE_BYTES_MAX {
            file.take(MESSAGE_BYTES_MAX).read_to_end(&mut bytes)?;
        }
        Ok((data, bytes))
    });
    let (data, bytes) = match read {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => return Some(MailboxEntry::unreadable(path, place, error.to_string())),
    };
    if data.is_dir() {
        return None;
    }
    if !data.is_file() || data.len() > MESSAGE_BYTES_MAX {
        let why = format!("it is not a regular file of at most {MESSAGE_BYTES_MAX} bytes");
        return Some(MailboxEntry::unreadable(path, place, why));
    }
    if !is_wanted(&bytes) {
        return None;
    }
    let entry = match parse(&bytes) {
        Ok(message) => MailboxEntry::of(&message, path, place),
        Err(malformed) => MailboxEntry::unreadable(path, place, malformed.to_string()),
    };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Some(MailboxEntry {
        text,
        arrived: data.modified().ok(),
        ..entry
    })
}

impl MailboxEntry {
    fn of(message: &Message, path: &Path, place: MailboxPlace) -> Self {
        let field = |key| message.root().optional_text(key).map(str::to_owned);
        Self {
            id: field("id"),
            kind: field("type"),
            from: field("from"),
            priority: field("priority"),
            pr: message.related_pr(),
            subject: message.subject().map(str::to_owned),
            created_at_utc: field("created_at_utc"),
            parent_message_id: field("parent_message_id"),
            conversation_id: field("conversation_id"),
            packet: message
                .packet_path()
                .map(|path| path.to_string())
                .or_else(|| field("related_packet")),
            ..Self::blank(path, place)
        }
    }

    fn unreadable(path: &Path, place: MailboxPlace, why: String) -> Self {
        Self {
            unreadable: Some(why),
            ..Self::blank(path, place)
        }
    }

    fn blank(path: &Path, place: MailboxPlace) -> Self {
        Self {
            id: None,
            kind: None,
            from: None,
            priority: None,
            pr: None,
            subject: None,
            created_at_utc: None,
            parent_message_id: None,
            conversation_id: None,
            packet: None,
            place,
            path: path.to_owned(),
            unreadable: None,
            text: String::new(),
            arrived: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use message_schema::envelope::ReviewKind;

    use super::*;

    #[test]
    fn what_is_null_is_left_out_and_what_is_no_message_says_why() {
        let root = tempfile::tempdir().expect("a directory");
        let inbox = root.path().join("agents/codex/inbox");
        std::fs::create_dir_all(&inbox).expect("an inbox");
        std::fs::write(
            inbox.join("a.yaml"),
            "id: m-1\nparent_message_id: null\nconversation_id: ~\nsubject: \"\"\n",
        )
        .expect("a message");
        std::fs::write(inbox.join("b.yaml"), "- no mapping\n").expect("a file");
        for name in [".hidden.yaml", "a.report.yaml", "a.tmp"] {
            std::fs::write(inbox.join(name), "id: m-2\n").expect("a file");
        }
        let mailboxes = AgentMailboxes::new(root.path(), &"codex".parse().expect("a name"));
        let messages = mailboxes.messages(MailboxPlace::Inbox).expect("a list");
        assert_eq!(messages.len(), 2);
        let of = |name: &str| {
            messages
                .iter()
                .find(|message| message.is(name))
                .expect("it was listed")
        };
        let MailboxEntry {
            parent_message_id,
            conversation_id,
            subject,
            unreadable,
            ..
        } = of("m-1");
        assert_eq!(
            [parent_message_id, conversation_id, subject, unreadable],
            [&None; 4]
        );
        assert!(of("b.yaml").unreadable.is_some());
    }

    #[test]
    fn a_message_is_about_its_pull_request_however_it_writes_the_number() {
        let root = tempfile::tempdir().expect("a directory");
        let inbox = root.path().join("agents/codex/inbox");
        std::fs::create_dir_all(&inbox).expect("an inbox");
        std::fs::write(inbox.join("m.yaml"), "id: m-1\nrelated_pr: '0086'\n").expect("a file");
        let mailboxes = AgentMailboxes::new(root.path(), &"codex".parse().expect("a name"));
        let messages = mailboxes.messages(MailboxPlace::Inbox).expect("a list");
        let is_about = |pr| messages[0].is_about(&PrNumber::new(pr).expect("a number"));
        assert!(is_about("86") && !is_about("860"));
        let json = serde_json::to_value(&messages[0]).expect("JSON");
        assert_eq!(json["pr"], "0086");
    }

    #[test]
    fn a_message_whose_name_is_not_utf_8_is_json() {
        let root = tempfile::tempdir().expect("a directory");
        let inbox = root.path().join("agents/codex/inbox");
        std::fs::create_dir_all(&inbox).expect("an inbox");
        let name = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff.yaml");
        std::fs::write(inbox.join::<&std::ffi::OsStr>(name), "id: m-1\n").expect("a message");
        let mailboxes = AgentMailboxes::new(root.path(), &"codex".parse().expect("a name"));
        let messages = mailboxes.messages(MailboxPlace::Inbox).expect("a list");
        let json = serde_json::to_value(&messages).expect("every path is JSON");
        let path = json[0]["path"].as_str().expect("a text");
        assert!(path.ends_with("/inbox/%FF.yaml"), "{path}");
    }

    #[test]
    fn what_cannot_be_read_is_listed_with_the_reason_unless_it_is_a_directory() {
        let root = tempfile::tempdir().expect("a directory");
        let inbox = root.path().join("agents/codex/inbox");
        std::fs::create_dir_all(inbox.join("directory.yaml")).expect("an inbox");
        let length = usize::try_from(MESSAGE_BYTES_MAX).expect("a length");
        let fill = "id: m-1\nsubject: s\n# ";
        for (name, length) in [("long.yaml", length), ("longer.yaml", length + 1)] {
            let text = fill.to_owned() + &"x".repeat(length - fill.len());
            std::fs::write(inbox.join(name), text).expect("a file");
        }
        std::os::unix::fs::symlink("long.yaml", inbox.join("link.yaml")).expect("a link");
        std::os::unix::net::UnixListener::bind(inbox.join("socket.yaml")).expect("a socket");
        let mailboxes = AgentMailboxes::new(root.path(), &"codex".parse().expect("a name"));
        let messages = mailboxes.messages(MailboxPlace::Inbox).expect("a list");
        let longer = messages.iter().find(|message| message.is("longer.yaml"));
        let why = longer.and_then(|message| message.unreadable.as_deref());
        let expected = "it is not a regular file of at most";
        assert!(why.is_some_and(|why| why.starts_with(expected)), "{why:?}");
        let mut told: Vec<(String, bool)> = messages
            .iter()
            .map(|message| (message.name(), message.unreadable.is_some()))
            .collect();
        told.sort();
        let expected = [
            ("link.yaml", true),
            ("longer.yaml", true),
            ("m-1", false),
            ("socket.yaml", true),
        ];
        assert_eq!(
            told,
            expected.map(|(name, unread)| (name.to_owned(), unread))
        );
    }

    #[test]
    fn urgent_messages_come_first_and_older_ones_within_a_priority() {
        let root = tempfile::tempdir().expect("a directory");
        let inbox = root.path().join("agents/codex/inbox");
        std::fs::create_dir_all(&inbox).expect("an inbox");
        for (name, priority, age) in [
            ("a", Some("P2"), 1),
            ("b", None, 9),
            ("c", Some("P2"), 3),
            ("d", Some("P0"), 2),
        ] {
            let priority = priority.map_or_else(String::new, |word| format!("priority: {word}\n"));
            let path = inbox.join(name).with_extension("yaml");
            std::fs::write(&path, format!("id: {name}\n{priority}")).expect("a message");
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000 - age);
            let file = std::fs::File::options().write(true).open(&path);
            file.and_then(|file| file.set_modified(time))
                .expect("a time");
        }
        let mailboxes = AgentMailboxes::new(root.path(), &"codex".parse().expect("a name"));
        let names = |messages: Vec<MailboxEntry>| {
            let names: Vec<String> = messages.iter().map(MailboxEntry::name).collect();
            names.concat()
        };
        let some = |at_most| {
            mailboxes
                .first_messages(MailboxPlace::Inbox, at_most)
                .expect("an inbox")
        };
        assert_eq!(names(some(9).0), "dcab");
        assert_eq!((names(some(2).0), some(2).1), ("ab".to_owned(), 4));
        assert_eq!(
            names(mailboxes.newest(MailboxPlace::Inbox, 2).expect("an inbox")),
            "ad"
        );
    }

    #[test]
    fn a_message_is_found_by_its_id_however_it_is_spelled_and_its_file_named() {
        let root = tempfile::tempdir().expect("a directory");
        let me = "codex".parse().expect("a name");
        let mailboxes = AgentMailboxes::new(root.path(), &me);
        let inbox = mailboxes.directory(MailboxPlace::Inbox);
        let taken = mailboxes.directory(MailboxPlace::Taken);
        std::fs::create_dir_all(&taken).expect("mailboxes");
        for (path, text) in [
            (inbox.join("r-1.yaml"), "id: r-2\ntype: review_request\n"),
            (inbox.join("a.yaml"), "id: r-1\ntype: question\n"),
            (
                inbox.join("b.yaml"),
                "id: \"r\\x2d3\"\ntype: review_request\n",
            ),
            (inbox.join("c.yaml"), "- r-4\n"),
            (
                taken.join("d.yaml"),
                "{\"id\": \"r-1\", \"type\": \"review_request\"}",
            ),
            (taken.join("r-4.yaml"), "id: r-4\ntype: review_request\n"),
        ] {
            std::fs::write(path, text).expect("a file");
        }
        let file = |places: &[MailboxPlace], id: &str| {
            let id = id.parse().expect("an id");
            let found = mailboxes.with_id(places, &id, MessageType::Review(ReviewKind::Request));
            found.map(|entry| entry.path)
        };
        let all = [
            MailboxPlace::Inbox,
            MailboxPlace::Taken,
            MailboxPlace::Archive,
        ];
        assert_eq!(file(&all, "r-1"), Some(taken.join("d.yaml")));
        assert_eq!(file(&all, "r-2"), Some(inbox.join("r-1.yaml")));
        assert_eq!(file(&all, "r-3"), Some(inbox.join("b.yaml")));
        assert_eq!(file(&all, "r-4"), Some(taken.join("r-4.yaml")));
        assert_eq!(file(&all, "r-5"), None);
        assert_eq!(file(&all[..1], "r-4"), None);
    }

    #[test]
    fn a_file_whose_name_is_taken_gets_a_number() {
        let root = tempfile::tempdir().expect("a directory");
        let inbox = root.path().join("agents/codex/inbox");
        std::fs::create_dir_all(&inbox).expect("an inbox");
        let mailboxes = AgentMailboxes::new(root.path(), &"codex".parse().expect("a name"));
        for name in ["m.yaml", "m.2.yaml", "m.3.yaml"] {
            std::fs::write(inbox.join("m.yaml"), "id: m-1\n").expect("a message");
            let message = mailboxes
                .messages(MailboxPlace::Inbox)
                .expect("an inbox")
                .remove(0);
            let taken = mailboxes.take(&message).expect("it can be taken");
            assert_eq!(taken, inbox.join("taken").join(name));
            let again = mailboxes.take(&message);
            assert!(matches!(again, Err(MoveError::Gone(_))), "{again:?}");
        }
        assert_eq!(numbered(Path::new("m"), 2), "m.2");
        let taken = mailboxes.find("m-1").expect("mailboxes").remove(0);
        std::fs::write(root.path().join("agents/codex/archive"), "").expect("a file");
        let failed = mailboxes.put_away(&taken);
        assert!(matches!(failed, Err(MoveError::Io { .. })), "{failed:?}");
    }

    #[test]
    fn the_name_of_a_message_is_a_name_on_every_system_and_no_other_messages() {
        let of = |id: &str| file_name(&MessageId::new(id).expect("an id"));
        assert_eq!(of("req:86@1+2"), "req=86@1+2.yaml");
        assert_eq!(of(".req-86"), "_.req-86.yaml");
        assert_ne!(of("req:86"), of("req_86"));
    }
}
