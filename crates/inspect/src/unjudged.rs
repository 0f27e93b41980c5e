//! An agent's own files that the daemon has not accepted: those in its outbox, with the validator's answer on each, and
//! its refused messages that can still be corrected.

use std::io;
use std::path::Path;

use message_schema::id::AgentName;
use message_schema::limit::{MESSAGE_BYTES_MAX, PACKET_BYTES_MAX};
use message_schema::line::escaped;
use message_schema::{Level, Message};
use serde::Serialize;
use spool::Layout;
use validate_message::{PacketInput, Violations};
use workspace::directory;
use workspace::regular_file;

use crate::dead_letter::{self, DeadLetter};

/// A file in an outbox that the daemon has not judged yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnjudgedFile {
    /// Its path, relative to the workspace.
    pub path: String,
    /// The id of the message, if it can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The errors for which the daemon would refuse it, each with its place; empty if the validator finds none.
    pub errors: Vec<String>,
    /// True if the daemon reads files with such a name.
    pub is_read: bool,
}

impl UnjudgedFile {
    /// Returns its path under a name that the daemon reads.
    pub fn renamed(&self) -> String {
        let path = &self.path;
        let ends = [".tmp", ".part", ".txt", ".bak"];
        let stem = ends.iter().find_map(|end| path.strip_suffix(end));
        let stem = stem.unwrap_or(path);
        let is_message = [".yaml", ".yml", ".json"]
            .iter()
            .any(|end| stem.ends_with(end));
        if is_message {
            stem.to_owned()
        } else {
            format!("{stem}.yaml")
        }
    }
}

/// Returns the first `at_most` files of an agent's outbox by name, and the number of all. Leaves out dotfiles, which
/// become messages when they are renamed.
pub fn in_outbox(root: &Path, agent: &AgentName, at_most: usize) -> (Vec<UnjudgedFile>, usize) {
    let outbox = Layout::new(root).outbox(agent.as_str());
    // An outbox that cannot be listed belongs to another user.
    let listed = std::fs::read_dir(&outbox).into_iter().flatten().flatten();
    let mut names: Vec<String> = listed
        .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort_unstable();
    let messages = directory::waiting(root, agent);
    let is_read = |name: &str| {
        messages
            .iter()
            .any(|file| file.as_bytes() == name.as_bytes())
    };
    let folder = spool::dirs::of_agent(agent.as_str(), spool::dirs::OUTBOX);
    let count = names.len();
    // A file that vanishes meanwhile was judged.
    let files = names.iter().take(at_most).filter_map(|name| {
        let path = format!("{folder}/{name}");
        let unread = |errors| UnjudgedFile {
            is_read: is_read(name),
            id: None,
            path: path.clone(),
            errors,
        };
        if !is_read(name) {
            return Some(unread(Vec::new()));
        }
        match bytes(&outbox.join(name)) {
            Ok(bytes) => {
                let message = message_schema::parse(&bytes).ok();
                Some(UnjudgedFile {
                    id: message.and_then(|message| Some(message.id()?.to_string())),
                    ..unread(errors(root, &bytes, &escaped(&path)))
                })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => Some(unread(vec![format!("{}: {error}", escaped(&path))])),
        }
    });
    (files.collect(), count)
}

/// Returns the agent's refused messages that a correction can fix and that nobody corrected or dismissed, oldest first.
pub fn refused(root: &Path, agent: &AgentName) -> Vec<DeadLetter> {
    let mut messages = dead_letter::of(root, std::slice::from_ref(agent)).messages;
    messages.retain(|message| message.open == Some(true) && message.report.retryable);
    messages
}

/// Returns the validator's errors for a message as it is, with its packet from the workspace.
pub(crate) fn errors(root: &Path, message: &[u8], file: &str) -> Vec<String> {
    let violations = match message_schema::parse(message) {
        Ok(message) => match check(root, &message) {
            Ok(()) => return Vec::new(),
            Err(violations) => violations,
        },
        Err(malformed) => Violations::from(malformed),
    };
    let errors = violations
        .iter()
        .filter(|violation| violation.level == Level::Error);
    errors.map(|violation| violation.to_text(file)).collect()
}

fn check(root: &Path, message: &Message) -> Result<(), Violations> {
    let read;
    let input = match message.packet_path() {
        None => PacketInput::NotNamed,
        Some(path) => {
            let path = Path::new(path.as_str());
            let found = match spool::check_packet_path(path) {
                Ok(()) => regular_file::read_beneath(root, path, PACKET_BYTES_MAX),
                Err(why) => Err(io::Error::other(why)),
            };
            match found {
                Ok(Some(bytes)) => {
                    read = bytes;
                    PacketInput::Bytes(&read)
                }
                Ok(None) => no_packet(root, path),
                Err(error) if error.kind() == io::ErrorKind::NotFound => PacketInput::Missing,
                Err(error) => PacketInput::Unsafe(error.to_string()),
            }
        }
    };
    validate_message::check(message, input).map(drop)
}

/// Says why a path is no packet: too large, or not a regular file, or reached through a link.
fn no_packet(root: &Path, path: &Path) -> PacketInput<'static> {
    let data = root.join(path).symlink_metadata();
    if data.is_ok_and(|data| data.is_file() && data.len() > PACKET_BYTES_MAX) {
        return PacketInput::TooLarge;
    }
    PacketInput::Unsafe("it is not a regular file, or reached through a link".to_owned())
}

/// Reads a regular file of a message's size.
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let found = regular_file::read(path, MESSAGE_BYTES_MAX)?;
    found.ok_or_else(|| {
        let why = format!("not a regular file of at most {MESSAGE_BYTES_MAX} bytes");
        io::Error::other(why)
    })
}
