//! Records which open requests a reviewer was shown, with receipts in its own archive. A response is bound to what its
//! reviewer has read, so it must not answer a request that has replaced that one unread.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use message_schema::envelope::ReviewKind;
use message_schema::id::{AgentName, MessageId, PrNumber};
use message_schema::read_document;
use serde::{Deserialize, Serialize};

use crate::compose::ask::Ask;
use crate::compose::draft::MessageDraft;
use crate::compose::packet::read;
use crate::mailboxes::MailboxEntry;
use crate::receipts::Receipts;

const PREFIX: &str = ".shown-";

/// A request that a reviewer was shown, and that it has not answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownRequest {
    /// The request.
    pub request: MessageId,
    /// Its pull request.
    pub pr: PrNumber,
    /// Its author.
    pub author: AgentName,
}

impl ShownRequest {
    fn is_about(&self, pr: &PrNumber, author: &AgentName) -> bool {
        self.pr.same_pr(pr) && self.author == *author
    }
}

impl From<&Ask> for ShownRequest {
    fn from(ask: &Ask) -> Self {
        Self {
            request: ask.brief.request.clone(),
            pr: ask.brief.pr.clone(),
            author: ask.brief.author.clone(),
        }
    }
}

/// Records that the reviewer was shown this request. Ignores errors: what was printed was printed, and without a
/// receipt the response is still bound to the request it names.
pub fn note(root: &Path, me: &AgentName, shown: &ShownRequest) {
    let _ = Receipts::of(root, me, PREFIX).write(&shown.request, shown);
}

/// Records that the reviewer reads the request in this message, if it is one.
pub fn note_message(root: &Path, me: &AgentName, message: &MailboxEntry) {
    let kind = message.kind.as_deref().and_then(ReviewKind::from_word);
    let [id, from] = [&message.id, &message.from].map(Option::as_deref);
    let request = id.and_then(|id| id.parse().ok());
    let author = from.and_then(|from| AgentName::new(from).ok());
    if let (Some(ReviewKind::Request), Some(request), Some(pr), Some(author)) =
        (kind, request, message.pr.clone(), author)
    {
        note(
            root,
            me,
            &ShownRequest {
                request,
                pr,
                author,
            },
        );
    }
}

/// Returns the request that the reviewer has read in place of the open one: it was shown that one, and not this.
/// `brief` is the brief of the run that asks, if the daemon or a pair runs the command; such a run answers no other
/// request of its review, even if it has seen one.
pub fn read_instead(root: &Path, ask: &Ask, brief: Option<&Path>) -> Option<MessageId> {
    let of_run = brief.and_then(|path| read_document(&read(path).ok()?));
    let of_run = of_run.and_then(|brief| ShownRequest::deserialize(&brief).ok());
    if let Some(shown) = of_run.filter(|shown| shown.is_about(&ask.brief.pr, &ask.brief.author)) {
        return (shown.request != ask.brief.request).then_some(shown.request);
    }
    let mut shown = all(root, &ask.brief.reviewer);
    shown.retain(|(_, _, shown)| shown.is_about(&ask.brief.pr, &ask.brief.author));
    let has_read = shown
        .iter()
        .any(|(_, _, shown)| shown.request == ask.brief.request);
    let (_, _, last) = shown.into_iter().max_by_key(|(_, written, _)| *written)?;
    (!has_read).then_some(last.request)
}

/// Forgets what the reviewer was shown of a review once this response is accepted.
pub fn forget(root: &Path, me: &AgentName, response: &MessageDraft) {
    let (Some(pr), Some(author), true) = (
        &response.pr,
        response.to.first(),
        response.kind.is_terminal_response(),
    ) else {
        return;
    };
    for (path, _, shown) in all(root, me) {
        if shown.is_about(pr, author) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns the receipts, with their files and when these were written, and removes old ones.
fn all(root: &Path, me: &AgentName) -> Vec<(PathBuf, Option<SystemTime>, ShownRequest)> {
    let kept = Receipts::of(root, me, PREFIX).kept().into_iter();
    kept.filter_map(|(path, written)| {
        let shown = serde_json::from_slice(&read(&path).ok()?).ok()?;
        Some((path, written, shown))
    })
    .collect()
}
