//! The key of a review: which pull request, between which two agents.

use std::fmt;

use message_schema::id::{AgentName, PrNumber, Repo};
use serde::{Deserialize, Serialize};

/// Names one review for the life of its pull request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ReviewKey {
    /// The repository, where the requests name one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub repo: Option<Repo>,
    /// The pull request, without leading zeros.
    pub pr: PrNumber,
    /// Who opened the review.
    pub author: AgentName,
    /// Whom it was opened with.
    pub reviewer: AgentName,
}

impl ReviewKey {
    /// Makes a key; leading zeros of the number and the case of the repository do not count.
    pub fn new(repo: Option<&Repo>, pr: &PrNumber, author: AgentName, reviewer: AgentName) -> Self {
        Self {
            repo: repo.map(Repo::to_canonical),
            pr: pr.to_canonical(),
            author,
            reviewer,
        }
    }

    /// Whether a message that names this repository, or none, may mean this review: a review
    /// without a repository is meant by all, and a message without one means any.
    pub(crate) fn may_be_of(&self, repo: Option<&Repo>) -> bool {
        match (&self.repo, repo) {
            (Some(own), Some(named)) => *own == named.to_canonical(),
            (None, _) | (_, None) => true,
        }
    }
}

impl fmt::Display for ReviewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(repo) = &self.repo {
            write!(f, "{repo}")?;
        }
        write!(f, "#{} {} -> {}", self.pr, self.author, self.reviewer)
    }
}
