//! Handles the mail of a pair's agents: has it judged before and after each run, drains it, and lists what was
//! accepted.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use daemon::submit_order;
use mailbox::mailboxes::{AgentMailboxes, MailboxEntry, MailboxPlace, MoveError};
use message_schema::envelope::MessageType;
use message_schema::id::{AgentName, MessageId};
use review::ReviewKey;
use spool::{Digest, SpoolError, Tail};
use workspace::index;

use super::{PairError, places};

/// The time the daemon has to judge an agent's files: a little more than its longest patience with a file whose packet
/// is missing.
const PATIENCE: Duration = Duration::from_secs(8);

/// The most messages handed over in one turn; the rest wait for the next.
const DRAINED_MAX: usize = 100;

/// Waits until the daemon has judged and delivered the agent's messages, or does so if no daemon serves. A message
/// judged later does not count for this turn.
pub(super) fn judged(root: &Path, agent: &AgentName) -> Result<(), PairError> {
    let outbox = AgentMailboxes::new(root, agent);
    let is_empty = || {
        outbox
            .names(MailboxPlace::Outbox)
            .is_ok_and(|names| names.is_empty())
    };
    submit_order::wait_until(root, PATIENCE, is_empty)
        .map(drop)
        .map_err(PairError::Serve)
}

/// An accepted message with its review.
pub(super) struct Sent {
    pub(super) id: MessageId,
    pub(super) kind: MessageType,
    pub(super) review: Option<ReviewKey>,
}

/// Takes messages from an agent's inbox and copies each into the turn's folder under a name of our own, because senders
/// choose theirs. The copy comes first, so that a kill leaves no message taken but not handed over. Unreadable messages
/// stay in the inbox, and so do requests of reviews that the pair does not answer: taking one would start its clock.
pub(super) fn drain(
    root: &Path,
    agent: &AgentName,
    into: &Path,
    others: &BTreeSet<MessageId>,
) -> Result<(), PairError> {
    let failed = |source| PairError::Io {
        what: format!("the mail of {agent}"),
        source,
    };
    let mailboxes = AgentMailboxes::new(root, agent);
    let (messages, _) = mailboxes
        .first_messages(MailboxPlace::Inbox, DRAINED_MAX + others.len())
        .map_err(failed)?;
    let is_others = |message: &MailboxEntry| {
        let id = message.id.as_deref();
        id.is_some_and(|id| others.iter().any(|other| other.as_str() == id))
    };
    for message in messages
        .into_iter()
        .filter(|message| !message.text.is_empty() && !is_others(message))
    {
        let there: Vec<String> = std::fs::read_dir(into)
            .map_err(failed)?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        let digest: String = Digest::of(message.text.as_bytes())
            .to_string()
            .chars()
            .skip("sha256:".len())
            .take(16)
            .collect();
        if !there.iter().any(|name| name.contains(&digest)) {
            let name = format!("{:03}-{digest}.yaml", there.len() + 1);
            places::write(&into.join(name), &message.text).map_err(failed)?;
        }
        match mailboxes.take(&message) {
            // If it is gone, another reader took it first.
            Ok(_) | Err(MoveError::Gone(_)) => {}
            Err(MoveError::Io { source, .. }) => return Err(failed(source)),
        }
    }
    Ok(())
}

/// The messages of an agent that the daemon has accepted since the last call.
pub(super) fn accepted(tail: &mut Tail, agent: &AgentName) -> Result<Vec<Sent>, SpoolError> {
    let mut found = Vec::new();
    tail.read(&mut |entry| {
        let (record, _) = index::decision(entry)?;
        if let Some(accepted) = record.accepted()
            && accepted.from == *agent
        {
            let review = accepted.step.as_ref().map(|step| step.review.clone());
            found.push(Sent {
                id: accepted.id.clone(),
                kind: accepted.kind,
                review,
            });
        }
        Ok(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use tempfile::TempDir;
    use workspace::directory;

    use super::*;

    /// A workspace, the inbox of `codex` in it, and a folder for a turn's messages.
    fn workspace() -> (TempDir, PathBuf, PathBuf) {
        let root = tempfile::tempdir().expect("a directory");
        directory::init(root.path(), &[codex()]).expect("a workspace");
        let inbox = root.path().join("agents/codex/inbox");
        let turn = root.path().join("turn");
        fs::create_dir(&turn).expect("a folder");
        (root, inbox, turn)
    }

    fn codex() -> AgentName {
        AgentName::new("codex").expect("a name")
    }

    fn put(inbox: &Path, id: &str) -> String {
        let text = format!("id: {id}\nfrom: claude\nto: codex\ntype: message\n");
        fs::write(inbox.join(format!("{id}.yaml")), &text).expect("a message");
        text
    }

    /// The texts of the files in a folder, in the order of their names.
    fn texts(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let mut files: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
        files.sort_unstable();
        let read = |path: PathBuf| fs::read_to_string(path).expect("text");
        files.into_iter().map(read).collect()
    }

    #[test]
    fn a_turn_gets_the_messages_once_and_leaves_the_requests_of_others() {
        let (root, inbox, turn) = workspace();
        let others = BTreeSet::from([MessageId::new("m-2").expect("an id")]);
        let [first, second, third] = ["m-1", "m-2", "m-3"].map(|id| put(&inbox, id));
        drain(root.path(), &codex(), &turn, &others).expect("mail");
        assert_eq!(texts(&turn), [first.clone(), third.clone()]);
        assert_eq!(texts(&inbox), std::slice::from_ref(&second));
        // A kill between the copy and the take left this one in the inbox.
        put(&inbox, "m-1");
        drain(root.path(), &codex(), &turn, &others).expect("mail");
        assert_eq!(texts(&turn), [first, third]);
        assert_eq!(texts(&inbox), [second]);
    }

    #[test]
    fn a_turn_gets_a_hundred_messages_at_most_besides_those_of_others() {
        let (root, inbox, turn) = workspace();
        let others = BTreeSet::from([MessageId::new("m-100").expect("an id")]);
        for number in 100..=201 {
            put(&inbox, &format!("m-{number}"));
        }
        drain(root.path(), &codex(), &turn, &others).expect("mail");
        assert_eq!(texts(&turn).len(), DRAINED_MAX);
        assert_eq!(texts(&inbox).len(), 2);
    }
}
