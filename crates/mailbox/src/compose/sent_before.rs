//! Finds the message that an agent sent before under an id: in its outbox, or accepted in `sent/`. Refused messages do
//! not count; their ids are free.

use std::io;
use std::path::{Path, PathBuf};

use message_schema::envelope::MessageType;
use message_schema::id::{AgentName, MessageId, PrNumber};
use message_schema::schema::Schema;
use message_schema::{Message, ReadBody, coerce, parse};
use serde_json::Value;
use spool::{FileName, Layout};

use super::packet::read;
use crate::mailboxes::{can_hold, file_name};

/// A message sent before.
#[derive(Clone, Debug)]
pub struct SentMessage {
    /// Its file.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// True if it was accepted; otherwise it waits in the outbox.
    pub accepted: bool,
}

/// Finds the message that an agent sent under this id, whatever its file is called.
pub fn find(root: &Path, agent: &AgentName, id: &MessageId) -> io::Result<Option<SentMessage>> {
    for (directory, accepted) in places(root, agent) {
        let likely = directory.join(file_name(id));
        let listed = match std::fs::read_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            listed => listed?,
        };
        let others = listed
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| *path != likely && is_message(path));
        let mut paths = std::iter::once(likely.clone()).chain(others);
        if let Some(found) = paths.find_map(|path| message_at(path, id, accepted)) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Finds the message that a command of ours sent under this id, if its file still has the name made from the id. Lists no
/// directory: `sent/` may hold hundreds of thousands of others.
pub fn find_named(root: &Path, agent: &AgentName, id: &MessageId) -> Option<SentMessage> {
    places(root, agent)
        .into_iter()
        .find_map(|(directory, accepted)| message_at(directory.join(file_name(id)), id, accepted))
}

/// The directories of messages that count, and whether the messages in each were accepted. The second search finds a message
/// that moves between the two.
fn places(root: &Path, agent: &AgentName) -> [(PathBuf, bool); 2] {
    let layout = Layout::new(root);
    let (outbox, sent) = (layout.outbox(agent.as_str()), layout.sent(agent.as_str()));
    [(outbox, false), (sent, true)]
}

/// Reads the message at this path if it has this id.
fn message_at(path: PathBuf, id: &MessageId, accepted: bool) -> Option<SentMessage> {
    let bytes = read(&path).ok().filter(|bytes| can_hold(bytes, id))?;
    let text = String::from_utf8(bytes).ok()?;
    let message = parse(text.as_bytes()).ok()?;
    (message.id().as_ref() == Some(id)).then_some(SentMessage {
        path,
        text,
        accepted,
    })
}

/// Finds the message of this type, about this pull request if one is given, that was accepted under this id; with the
/// pull request that it names.
pub fn accepted(
    (root, agent): (&Path, &AgentName),
    id: &MessageId,
    kind: MessageType,
    pr: Option<&PrNumber>,
) -> Option<(PathBuf, Option<PrNumber>)> {
    let known = find(root, agent, id).ok()?.filter(|known| known.accepted)?;
    let message = parse(known.text.as_bytes()).ok()?;
    let about = message.related_pr();
    let is_about = |pr: &PrNumber| about.as_ref().is_some_and(|about| about.same_pr(pr));
    let is_meant = message.kind() == Some(kind) && pr.is_none_or(is_about);
    is_meant.then_some((known.path, about))
}

fn is_message(path: &Path) -> bool {
    let name = path
        .file_name()
        .map(|name| FileName::new(name.as_encoded_bytes()));
    name.is_some_and(|name| name.is_ok_and(|name| spool::is_candidate(&name)))
}

/// True if two messages have the same content, except for the time of writing.
pub fn same(a: &str, b: &str) -> bool {
    let read = |text: &str| parse(text.as_bytes()).ok().map(|message| content(&message));
    read(a).is_some_and(|a| Some(a) == read(b))
}

fn content(message: &Message) -> (Value, Option<Value>) {
    let mut envelope = coerce(message.root(), Schema::Envelope.shape());
    let body = match (
        message.read_body(),
        message.kind().and_then(Schema::of_body),
    ) {
        (ReadBody::Mapping(body), Some(schema)) => Some(coerce(body, schema.shape())),
        (ReadBody::Mapping(_) | ReadBody::Unread | ReadBody::Malformed(_), _) => None,
    };
    if let Value::Object(fields) = &mut envelope {
        fields.remove("created_at_utc");
        if body.is_some() {
            fields.remove("body");
        }
    }
    (envelope, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_spelled_with_an_escape_is_found() {
        let root = tempfile::tempdir().expect("a directory");
        let agent: AgentName = "codex".parse().expect("a name");
        let sent = Layout::new(root.path()).sent(agent.as_str());
        std::fs::create_dir_all(&sent).expect("a mailbox");
        std::fs::write(sent.join("x.yaml"), "id: \"m\\x2d1\"\n").expect("a message");
        let found = |id: &str| {
            let id = id.parse().expect("an id");
            find(root.path(), &agent, &id).expect("a search")
        };
        assert!(found("m-1").is_some_and(|found| found.accepted));
        assert!(found("m-2").is_none());
    }

    #[test]
    fn only_the_time_may_differ() {
        let text = "id: m-1\nfrom: a\nto: b\ntype: question\npriority: P2\n\
                    created_at_utc: 2026-02-13T10:00:00Z\nsubject: s\nbody: |\n  why?\n";
        assert!(same(text, &text.replace("10:00", "11:00")));
        assert!(same(text, &text.replace("subject: s", "subject: \"s\"")));
        assert!(!same(text, &text.replace("why", "how")));
        assert!(!same(text, &text.replace("P2", "P1")));
    }
}
