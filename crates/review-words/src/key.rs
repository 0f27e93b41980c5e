//! The names that records use: the key of a review (which pull request, between which two agents)
//! and the id of a task that was handed off.

use std::fmt;

use message_schema::id::{AgentName, PrNumber, Repo};
use serde::{Deserialize, Serialize};

/// Names one review for the life of its pull request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ReviewKey {
    /// The repository, if the requests name one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub repo: Option<Repo>,
    /// The pull request, without leading zeros.
    pub pr: PrNumber,
    /// The agent that opened the review.
    pub author: AgentName,
    /// The reviewer it was opened with.
    pub reviewer: AgentName,
}

impl ReviewKey {
    /// Makes a key; ignores leading zeros of the number, and the case and a `.git` of the repository.
    pub fn new(repo: Option<&Repo>, pr: &PrNumber, author: AgentName, reviewer: AgentName) -> Self {
        Self {
            repo: repo.map(Repo::to_canonical),
            pr: pr.to_canonical(),
            author,
            reviewer,
        }
    }

    /// True if a message that names this repository, or none, may mean this review: a review without a repository
    /// matches every message, and a message without one matches every review.
    pub fn may_be_of(&self, repo: Option<&Repo>) -> bool {
        match (&self.repo, repo) {
            // A key that an older version wrote may end in `.git`.
            (Some(own), Some(named)) => own.same_repo(named),
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

/// The name of a dispatched task, unique in the ledger: `handoff-pr86-1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(String);

impl TaskId {
    /// Names the `number`th task of the ledger.
    pub fn new(pr: &PrNumber, number: u64) -> Self {
        Self(format!("handoff-pr{}-{number}", pr.to_canonical()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if a request's `handoff_ref` names this task, by its id or by the path of its packet.
    pub fn is_named_by(&self, handoff_ref: &str) -> bool {
        let name = handoff_ref.trim();
        let of_packet = name
            .strip_prefix("packets/handoff/")
            .and_then(|file| file.strip_suffix(".yaml"));
        of_packet.unwrap_or(name) == self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_an_older_version_wrote_is_found_under_each_spelling() {
        let repo = |text: &str| Repo::new(text).expect("a repository");
        let agent = |name: &str| AgentName::new(name).expect("a name");
        let pr = PrNumber::new("86").expect("a number");
        let named = repo("Owner/Name.git");
        let new = ReviewKey::new(Some(&named), &pr, agent("claude"), agent("codex"));
        assert_eq!(new.repo, Some(repo("owner/name")));
        let old = ReviewKey {
            repo: Some(repo("owner/name.git")),
            ..new.clone()
        };
        for key in [&new, &old] {
            for spelling in ["owner/name", "owner/name.git", "OWNER/name.GIT"] {
                assert!(key.may_be_of(Some(&repo(spelling))), "{key} {spelling}");
            }
            assert!(!key.may_be_of(Some(&repo("owner/nome"))));
        }
    }
}
