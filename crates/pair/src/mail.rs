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
) -> Result<usize, PairError> {
    let failed = |source| PairError::Io {
        what: format!("the mail of {agent}"),
        source,
    };
    let bag = AgentMailboxes::new(root, agent);
    let (letters, _) = bag
        .first_messages(MailboxPlace::Inbox, DRAINED_MAX + others.len())
        .map_err(failed)?;
    let is_others = |letter: &MailboxEntry| {
        let id = letter.id.as_deref();
        id.is_some_and(|id| others.iter().any(|other| other.as_str() == id))
    };
    let mut taken = 0;
    for letter in letters
        .into_iter()
        .filter(|letter| !letter.text.is_empty() && !is_others(letter))
    {
        let there: Vec<String> = std::fs::read_dir(into)
            .map_err(failed)?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        let digest: String = Digest::of(letter.text.as_bytes())
            .to_string()
            .chars()
            .skip("sha256:".len())
            .take(16)
            .collect();
        if !there.iter().any(|name| name.contains(&digest)) {
            let name = format!("{:03}-{digest}.yaml", there.len() + 1);
            places::write(&into.join(name), &letter.text).map_err(failed)?;
        }
        match bag.take(&letter) {
            Ok(_) => taken += 1,
            // Another reader took it first.
            Err(MoveError::Gone(_)) => {}
            Err(MoveError::Io { source, .. }) => return Err(failed(source)),
        }
    }
    Ok(taken)
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
