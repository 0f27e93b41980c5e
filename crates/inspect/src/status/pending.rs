//! The mail in outboxes that is not judged yet, and the reviews it claims to belong to: enough to say why a review does
//! not move while no daemon serves. Only the daemon checks the claims.

use std::path::Path;

use chrono::{DateTime, Utc};
use message_schema::id::{AgentName, PrNumber};
use message_schema::limit::MESSAGE_BYTES_MAX;
use review::{Review, ReviewKey};
use spool::{FileName, Layout};
use workspace::directory;
use workspace::regular_file;

/// The number of files read in each outbox; the others are only counted.
const LOOKED_INTO_MAX: usize = 100;

/// The unjudged mail of a workspace.
#[derive(Debug, Default)]
pub struct PendingMail {
    /// The number of waiting files in each non-empty outbox.
    pub counts: Vec<(AgentName, usize)>,
    /// The files that were read.
    pub files: Vec<PendingFile>,
}

/// One waiting file.
#[derive(Debug)]
pub struct PendingFile {
    /// The agent whose outbox it is in.
    pub agent: AgentName,
    /// Its name.
    pub file: FileName,
    /// The time of its last change, if it is readable.
    pub since: Option<DateTime<Utc>>,
    /// The review it claims to be about.
    pub about: ClaimedReview,
}

/// The review that a message claims to belong to, as far as it is readable.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ClaimedReview {
    /// The pull request it names.
    pub pr: Option<PrNumber>,
    /// True if its type belongs to reviews.
    pub is_review: bool,
}

impl PendingMail {
    /// Reads the outboxes.
    pub fn read(root: &Path, agents: &[AgentName]) -> Self {
        let mut unjudged = Self::default();
        for agent in agents {
            let waiting = directory::waiting(root, agent);
            if waiting.is_empty() {
                continue;
            }
            unjudged.counts.push((agent.clone(), waiting.len()));
            let outbox = Layout::new(root).outbox(agent.as_str());
            for file in waiting.into_iter().take(LOOKED_INTO_MAX) {
                let path = outbox.join(&file);
                let since = path
                    .symlink_metadata()
                    .and_then(|data| data.modified())
                    .ok()
                    .map(DateTime::from);
                unjudged.files.push(PendingFile {
                    agent: agent.clone(),
                    file,
                    since,
                    about: ClaimedReview::of(&path),
                });
            }
        }
        unjudged
    }

    /// Counts the files that wait.
    pub fn count(&self) -> usize {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// Returns the time of the oldest file that was read.
    pub fn oldest(&self) -> Option<DateTime<Utc>> {
        self.files.iter().filter_map(|file| file.since).min()
    }

    /// Returns a file that may move the review: in the outbox of its author or its current reviewer, and naming its
    /// pull request or, as a message of a review, none.
    pub(crate) fn for_review(&self, key: &ReviewKey, review: &Review) -> Option<&PendingFile> {
        self.files.iter().find(|file| {
            let parties = [&key.author, review.reviewer(key)];
            parties.contains(&&file.agent) && file.about.may_mean(&key.pr)
        })
    }
}

impl ClaimedReview {
    /// Reads what a file claims; empty if it cannot be read.
    pub fn of(path: &Path) -> Self {
        let Some(message) = bytes(path).and_then(|bytes| message_schema::parse(&bytes).ok()) else {
            return Self::default();
        };
        let is_review = message
            .meant()
            .is_some_and(message_schema::envelope::MessageType::is_review);
        Self {
            pr: message.related_pr(),
            is_review,
        }
    }

    /// True if it names this pull request, or has a type of reviews and names none.
    pub(crate) fn may_mean(&self, pr: &PrNumber) -> bool {
        self.pr
            .as_ref()
            .map_or(self.is_review, |named| named.same_pr(pr))
    }
}

/// Reads a regular file no larger than a message may be. Agents own these directories, so it must block on nothing.
fn bytes(path: &Path) -> Option<Vec<u8>> {
    regular_file::read(path, MESSAGE_BYTES_MAX).ok()?
}
