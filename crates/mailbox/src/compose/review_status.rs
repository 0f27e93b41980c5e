//! Reads the state of an agent's reviews from the ledger, without the lock. An agent with a user of its own may not
//! read it; then the state is unknown, and the caller uses the files or needs an argument.

use std::path::Path;

use message_schema::envelope::{MessageType, ReviewKind};
use message_schema::id::{AgentName, CommitSha, MessageId, PrNumber, Repo};
use message_schema::{ReadBody, parse};
use review::{Review, ReviewKey, Side};
use serde::Serialize;
use workspace::index::LedgerIndex;

use crate::mailboxes::{AgentMailboxes, MailboxPlace};

/// The reviews in which an agent takes part.
#[derive(Debug)]
pub struct ReviewStatuses {
    index: LedgerIndex,
    me: AgentName,
}

/// The state of one review.
#[derive(Clone, Debug, Serialize)]
pub struct ReviewStatus {
    /// Such as `#86 claude -> codex`.
    pub review: String,
    /// The phase.
    pub phase: &'static str,
    /// The round, counted over the pull request's life.
    pub round: u32,
    /// Who moves next: an agent, `person`, or nobody (absent).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mover: Option<String>,
    /// The approved commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_commit: Option<CommitSha>,
}

impl ReviewStatuses {
    /// Reads the ledger; none if it cannot be read.
    pub fn read(root: &Path, me: &AgentName) -> Option<Self> {
        let (index, _) = LedgerIndex::read(root).ok()?;
        Some(Self {
            index,
            me: me.clone(),
        })
    }

    /// The ledger itself.
    pub(super) fn index(&self) -> &LedgerIndex {
        &self.index
    }

    /// This agent's reviews of a pull request or, without one, its current reviews.
    pub fn mine<'a>(
        &'a self,
        pr: Option<&'a PrNumber>,
        repo: Option<&'a Repo>,
    ) -> impl Iterator<Item = (&'a ReviewKey, &'a Review)> {
        let state = self.index.state();
        let of_pr = pr.into_iter().flat_map(|pr| state.reviews_of(pr));
        // The current reviews of all pull requests may be many, so none is read if one pull request is given.
        let of_all = pr.is_none().then(|| state.current_reviews());
        of_pr
            .chain(of_all.into_iter().flatten())
            .filter(move |(key, review)| {
                let is_mine = key.author == self.me || *review.reviewer(key) == self.me;
                is_mine && key.may_be_of(repo)
            })
    }

    /// The only possible agent on a pull request: the other side of its single open review.
    pub fn other_side(&self, pr: &PrNumber, repo: Option<&Repo>) -> Option<AgentName> {
        let mut open = self
            .mine(Some(pr), repo)
            .filter(|(_, review)| !review.phase.is_final());
        let (key, review) = open.next()?;
        let is_only = open.next().is_none();
        is_only.then(|| {
            if key.author == self.me {
                review.reviewer(key).clone()
            } else {
                key.author.clone()
            }
        })
    }

    /// The review that this agent's accepted message belongs to. Its record says so: the pull request and the other
    /// agent in the message may fit a review of each of several repositories.
    pub fn of_message(&self, id: &MessageId) -> Option<ReviewStatus> {
        let state = self.index.state();
        let key = state.review_of_message(&self.me, id)?;
        Some(ReviewStatus::of(key, state.review(key)?))
    }

    /// The round that a message to that agent about the pull request belongs to.
    pub fn round(&self, pr: &PrNumber, repo: Option<&Repo>, other: &AgentName) -> Option<u32> {
        let mut reviews = self
            .mine(Some(pr), repo)
            .filter(|(key, review)| key.author == *other || review.reviewer(key) == other);
        let (_, review) = reviews.next()?;
        reviews.next().is_none().then_some(review.round)
    }
}

/// The reviewer and the round of the newest feedback on a pull request in the agent's own mailboxes: what the author
/// answers if it cannot read the ledger.
pub fn newest_feedback(root: &Path, me: &AgentName, pr: &PrNumber) -> Option<(AgentName, u32)> {
    let mailboxes = AgentMailboxes::new(root, me);
    let places = [
        MailboxPlace::Inbox,
        MailboxPlace::Taken,
        MailboxPlace::Archive,
    ];
    let messages = places
        .into_iter()
        .filter_map(|place| mailboxes.messages(place).ok())
        .flatten();
    let rounds = messages.filter_map(|entry| {
        let message = parse(entry.text.as_bytes()).ok()?;
        let is_meant = message.kind() == Some(MessageType::Review(ReviewKind::Feedback))
            && message.related_pr().is_some_and(|about| about.same_pr(pr));
        let ReadBody::Mapping(body) = message.read_body() else {
            return None;
        };
        let round = body.field_text("round")?.parse().ok()?;
        is_meant.then_some((message.from()?, round))
    });
    rounds.max_by_key(|(_, round)| *round)
}

impl ReviewStatus {
    /// The status of this review.
    pub fn of(key: &ReviewKey, review: &Review) -> Self {
        let mover = match review.mover() {
            Side::Author => Some(key.author.to_string()),
            Side::Reviewer => Some(review.reviewer(key).to_string()),
            Side::Person => Some("person".to_owned()),
            Side::Nobody => None,
        };
        Self {
            review: key.to_string(),
            phase: review.phase.word(),
            round: review.round,
            mover,
            approved_commit: review.phase.approved_commit().cloned(),
        }
    }

    /// The commit that the review approves, on a line of its own; empty if it approves none.
    pub fn approval(&self) -> String {
        let commit = self.approved_commit.as_ref();
        commit.map_or_else(String::new, |commit| {
            format!("  approved commit: {commit}\n")
        })
    }

    /// The status in one phrase.
    pub fn phrase(&self) -> String {
        let Self {
            review,
            phase,
            round,
            mover,
            ..
        } = self;
        let whose = match mover.as_deref() {
            Some("person") => "a person moves".to_owned(),
            Some(agent) => format!("{agent} moves"),
            None => "nobody has to move".to_owned(),
        };
        format!("{review}: {phase}, round {round}; {whose}")
    }
}
