//! What the project may choose. The daemon reads it from `settled.toml` and hands it in; what a
//! decision took from it is recorded, so that replay needs no policy.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::{BTreeMap, BTreeSet};

use message_schema::id::AgentName;
use message_schema::limit::Rounds;
use message_schema::packet::Severity;
use message_schema::spend::Spend;
use serde::{Deserialize, Serialize};

/// The project's rules and its agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The agents that have a mailbox, each with the roles it may take; no role named means both.
    pub agents: BTreeMap<AgentName, BTreeSet<Role>>,
    /// The rounds a generation may take.
    pub rounds: Rounds,
    /// How silence about an open thread is read.
    pub threads: ThreadMode,
    /// Whether a blocker found late, outside the files the author touched, still blocks.
    pub late_findings: LateFindings,
    /// What the quality gate asks beyond the findings.
    pub gate: GatePolicy,
    /// How many messages outside the review loop one agent may send another within an hour.
    pub messages_per_hour: MessagesPerHour,
    /// How many files may come out of one outbox within an hour before only open reviews go on.
    pub files_per_hour: FilesPerHour,
    /// How many reviews of one author may be open with one reviewer at a time.
    pub open_reviews: OpenReviews,
    /// Whether the gate decides or advises.
    pub profile: Profile,
    /// When a reviewer's seconds begin to count.
    pub runtime_clock: RuntimeClock,
    /// What is handed off once a pull request is merged, and to whom.
    pub handoff: HandoffPolicy,
    /// The order in which reviewers are asked, when one cannot work; after the last a person decides.
    pub reviewers: Vec<AgentName>,
    /// Who makes the model of an agent, where the config says so.
    pub vendors: BTreeMap<AgentName, String>,
    /// How many tokens and how much money the commands of agents may use.
    pub budget: SpendBudget,
}

/// How many tokens and how much money the commands of agents may use; no limit unless the project sets one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendBudget {
    /// In one generation of a review.
    pub per_review: SpendLimit,
    /// On one day, all agents together.
    pub per_day: SpendLimit,
    /// On one day, each agent.
    pub per_agent: SpendLimit,
}

impl SpendBudget {
    /// The limits, each with its key in the config.
    pub fn limits(&self) -> [(&'static str, SpendLimit); 3] {
        [
            ("per_review", self.per_review),
            ("per_day", self.per_day),
            ("per_agent", self.per_agent),
        ]
    }
}

/// A limit of tokens, of money, or of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendLimit {
    /// The most tokens.
    pub tokens: Option<u64>,
    /// The most money, in millionths of a US dollar.
    pub micro_usd: Option<u64>,
}

impl SpendLimit {
    /// Whether so much uses it up.
    pub fn is_reached(&self, spend: Spend) -> bool {
        self.tokens.is_some_and(|max| spend.tokens >= max)
            || self.micro_usd.is_some_and(|max| spend.micro_usd >= max)
    }
}

/// What an approval comes to that does not show that its change was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceMode {
    /// It is accepted, and what is missing is told.
    #[default]
    Warn,
    /// It is refused.
    Require,
}

/// Patterns of paths. `?` is one character and `*` any number of them within a name; `**` is any number of folders; a
/// pattern that ends with `/` is everything below. One without a `/` is a name in any folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HumanPaths(Vec<String>);

impl HumanPaths {
    /// Admits patterns that say something.
    pub fn new(patterns: Vec<String>) -> Option<Self> {
        let is_fit = |pattern: &String| {
            !pattern.trim().is_empty() && !pattern.starts_with('/') && !pattern.contains("***")
        };
        patterns.iter().all(is_fit).then_some(Self(patterns))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the path is one of them.
    pub fn admits(&self, path: &str) -> bool {
        let path: Vec<&str> = path.split('/').collect();
        self.0.iter().any(|pattern| {
            let whole = match pattern.strip_suffix('/') {
                Some(folder) => format!("{folder}/**"),
                None if pattern.contains('/') => pattern.clone(),
                None => format!("**/{pattern}"),
            };
            let parts: Vec<&str> = whole.split('/').collect();
            is_below(&parts, &path)
        })
    }
}

fn is_below(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        // At the end it stands for what is below, which is something.
        (Some((&"**", [])), path) => path.is_some(),
        (Some((&"**", rest)), _) => (0..=path.len()).any(|from| is_below(rest, &path[from..])),
        (Some((name, rest)), Some((first, others))) => {
            let (name, first) = (
                name.chars().collect::<Vec<_>>(),
                first.chars().collect::<Vec<_>>(),
            );
            is_like(&name, &first) && is_below(rest, others)
        }
        (Some(_), None) => false,
    }
}

fn is_like(pattern: &[char], name: &[char]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some(('*', rest)), _) => (0..=name.len()).any(|from| is_like(rest, &name[from..])),
        (Some(('?', rest)), Some((_, others))) => is_like(rest, others),
        (Some((one, rest)), Some((other, others))) => one == other && is_like(rest, others),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

/// Whether the quality gate decides or advises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// An approval that contradicts the gate is refused.
    #[default]
    Gate,
    /// On pull requests of people the gate's result is attached and refuses nothing.
    Advisory,
}

/// When a reviewer's seconds begin to count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeClock {
    /// When it takes the request.
    #[default]
    Take,
    /// When the request is delivered.
    Delivery,
}

/// What is handed off once a pull request is merged, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandoffPolicy {
    /// Which findings go by themselves.
    pub mode: HandoffMode,
    /// In threshold mode: the mildest severity that goes.
    pub threshold: Severity,
    /// In threshold mode: the categories that go; empty means all.
    pub categories: BTreeSet<String>,
    /// Names at the forge whose pull requests never hand off by themselves.
    pub bots: BTreeSet<String>,
    /// Agents whose requests can come from a verify run.
    pub verify_agents: BTreeSet<AgentName>,
    /// Who gets a finding that names nobody and whose category has no route.
    pub target: Option<AgentName>,
    /// Who gets the findings of a category.
    pub routes: BTreeMap<String, AgentName>,
}

impl Default for HandoffPolicy {
    fn default() -> Self {
        Self {
            mode: HandoffMode::Off,
            threshold: Severity::P1,
            categories: BTreeSet::new(),
            bots: BTreeSet::new(),
            verify_agents: BTreeSet::new(),
            target: None,
            routes: BTreeMap::new(),
        }
    }
}

/// Which findings are handed off by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoffMode {
    /// None; only those a person queued.
    #[default]
    Off,
    /// Those at or above a severity, of the listed categories.
    Threshold,
    /// All that are not resolved.
    Full,
}

/// Which part an agent may take in a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Opens reviews and addresses findings.
    Author,
    /// Gives feedback and approvals.
    Reviewer,
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Author => "author",
            Self::Reviewer => "reviewer",
        })
    }
}

/// How a response that does not name an open thread is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadMode {
    /// A `status` counts as an action, and silence on a thread the author named as addressed
    /// resolves it.
    #[default]
    Inferred,
    /// Every open thread needs an `action`.
    Explicit,
}

/// What becomes of a new blocker below P0 that is raised from the second round of a generation on, in
/// no file the author touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LateFindings {
    /// It blocks like any other.
    #[default]
    Block,
    /// It is deferred, unless it says what introduced it.
    Defer,
}

/// What the quality gate asks beyond the findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatePolicy {
    /// Whether an approval without any recorded validation command is refused.
    pub require_validation: bool,
    /// Whether silence resolves nothing: each thread needs an action or a status.
    pub require_actions: bool,
    /// Whether an approval that names no commit is refused.
    pub require_head: bool,
    /// Commands that must be recorded as passing, besides those the request names.
    pub validation_commands: Vec<String>,
    /// What an approval comes to that does not show that its change was read.
    pub evidence: EvidenceMode,
    /// Whether author and reviewer have to be of two vendors.
    pub reviewer_other_vendor: bool,
    /// The files whose change only a person approves.
    pub human_paths: HumanPaths,
}

/// A bound on messages per hour and pair: 1 to 10 000, 60 unless the project says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessagesPerHour(u16);

impl MessagesPerHour {
    /// Admits 1 to 10 000.
    pub fn new(number: u64) -> Option<Self> {
        u16::try_from(number)
            .ok()
            .filter(|n| (1..=10_000).contains(n))
            .map(Self)
    }

    /// The number.
    pub fn get(self) -> usize {
        self.0.into()
    }
}

impl Default for MessagesPerHour {
    fn default() -> Self {
        Self(60)
    }
}

/// A bound on files per hour and outbox: 1 to 1 000 000, 250 000 unless the project says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilesPerHour(u32);

impl FilesPerHour {
    /// Admits 1 to 1 000 000.
    pub fn new(number: u64) -> Option<Self> {
        u32::try_from(number)
            .ok()
            .filter(|n| (1..=1_000_000).contains(n))
            .map(Self)
    }

    /// The number.
    pub fn get(self) -> u64 {
        self.0.into()
    }
}

impl Default for FilesPerHour {
    fn default() -> Self {
        Self(250_000)
    }
}

/// A bound on the reviews of one author that are open with one reviewer: 1 to 1 000 000, 200 000 unless
/// the project says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenReviews(u32);

impl OpenReviews {
    /// Admits 1 to 1 000 000.
    pub fn new(number: u64) -> Option<Self> {
        u32::try_from(number)
            .ok()
            .filter(|n| (1..=1_000_000).contains(n))
            .map(Self)
    }

    /// The number.
    pub fn get(self) -> usize {
        usize::try_from(self.0).expect("a million fits memory")
    }
}

impl Default for OpenReviews {
    fn default() -> Self {
        Self(200_000)
    }
}

impl Policy {
    /// Whether the agent may take the role.
    pub fn admits(&self, agent: &AgentName, role: Role) -> bool {
        self.agents
            .get(agent)
            .is_none_or(|roles| roles.is_empty() || roles.contains(&role))
    }

    /// Who is asked for a review of this author when the reviewer cannot work, in order; `None` if the list does not name
    /// the reviewer.
    pub fn reviewers_after(
        &self,
        reviewer: &AgentName,
        author: &AgentName,
    ) -> Option<Vec<AgentName>> {
        let place = self.reviewers.iter().position(|name| name == reviewer)?;
        let may = |name: &&AgentName| *name != author && self.admits(name, Role::Reviewer);
        Some(
            self.reviewers[place + 1..]
                .iter()
                .filter(may)
                .cloned()
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_admit_what_they_say() {
        let admits = |pattern: &str, path: &str| {
            HumanPaths::new(vec![pattern.to_owned()])
                .expect("a pattern")
                .admits(path)
        };
        for (pattern, path) in [
            (".github/", ".github/workflows/ci.yml"),
            ("**/migrations/**", "db/migrations/1.sql"),
            ("**/migrations/**", "migrations/a/1.sql"),
            ("settled.toml", "settled.toml"),
            ("settled.toml", "a/settled.toml"),
            ("*.tf", "main.tf"),
            ("*.tf", "a/main.tf"),
            ("**/*.tf", "main.tf"),
            ("**/*.tf", "a/b/main.tf"),
            ("a?.rs", "ab.rs"),
        ] {
            assert!(admits(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            (".github/", ".github"),
            (".github/", "a/.github/x"),
            ("db/*.tf", "main.tf"),
            ("db/*.tf", "a/db/main.tf"),
            ("**/migrations/**", "migrations"),
            ("a?.rs", "a.rs"),
        ] {
            assert!(!admits(pattern, path), "{pattern} {path}");
        }
        assert_eq!(HumanPaths::new(vec![" ".to_owned()]), None);
    }
}
