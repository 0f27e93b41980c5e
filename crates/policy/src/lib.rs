//! The project's own choices. The daemon reads them from `settled.toml` and hands them in. A record keeps everything
//! that its decision took from the policy, so that replay needs no policy.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod human_paths;

use std::collections::{BTreeMap, BTreeSet};

use message_schema::id::AgentName;
use message_schema::limit::Rounds;
use message_schema::packet::Severity;
use message_schema::spend::Spend;
use serde::{Deserialize, Serialize};

pub use crate::human_paths::HumanPaths;

/// The project's rules and its agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The agents that have a mailbox, each with the roles it may take; an empty set means both.
    pub agents: BTreeMap<AgentName, BTreeSet<Role>>,
    /// The rounds that a generation may take.
    pub rounds: Rounds,
    /// The interpretation of silence about an open thread.
    pub threads: ThreadMode,
    /// The treatment of a blocker that a reviewer finds late, outside the files the author touched.
    pub late_findings: LateFindings,
    /// The requirements of the quality gate beyond the findings.
    pub gate: GatePolicy,
    /// The most messages outside the review loop that one agent may send another within an hour.
    pub messages_per_hour: MessagesPerHour,
    /// The number of files that one outbox may send within an hour; beyond it, only open reviews continue.
    pub files_per_hour: FilesPerHour,
    /// The most reviews of one author that may be open with one reviewer at a time.
    pub open_reviews: OpenReviews,
    /// The mode of the quality gate: it decides or it advises.
    pub profile: Profile,
    /// The moment a reviewer's runtime budget starts.
    pub runtime_clock: RuntimeClock,
    /// The findings to hand off once a pull request is merged, and the agents that get them.
    pub handoff: HandoffPolicy,
    /// The reviewers, in the order in which a request passes to the next if one cannot work; after the last, a person
    /// decides.
    pub reviewers: Vec<AgentName>,
    /// The vendor of each agent's model, if the config names it.
    pub vendors: BTreeMap<AgentName, String>,
    /// The most tokens and money that the commands of agents may use.
    pub budget: SpendBudget,
}

/// The most tokens and money that the commands of agents may use; unlimited unless the project sets a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendBudget {
    /// For one generation of a review.
    pub per_review: SpendLimit,
    /// For one day, all agents together.
    pub per_day: SpendLimit,
    /// For one day, each agent.
    pub per_agent: SpendLimit,
}

impl SpendBudget {
    /// Returns the limits, each with its key in the config.
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
    /// True if the spend uses up the limit of tokens or of money.
    pub fn is_reached(&self, spend: Spend) -> bool {
        self.tokens.is_some_and(|max| spend.tokens >= max)
            || self.micro_usd.is_some_and(|max| spend.micro_usd >= max)
    }
}

/// The treatment of an approval without evidence that its reviewer read the change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceMode {
    /// It is accepted with a warning that names the missing evidence.
    #[default]
    Warn,
    /// It is refused.
    Require,
}

/// The mode of the quality gate: it decides or it advises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// An approval that contradicts the gate is refused.
    #[default]
    Gate,
    /// On pull requests of people the gate's result is attached and refuses nothing.
    Advisory,
}

/// The moment a reviewer's runtime budget starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeClock {
    /// The reviewer takes the request.
    #[default]
    Take,
    /// The daemon delivers the request.
    Delivery,
}

/// The findings to hand off once a pull request is merged, and the agents that get them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandoffPolicy {
    /// The findings that are handed off without a person's request.
    pub mode: HandoffMode,
    /// In threshold mode: the mildest severity that is handed off.
    pub threshold: Severity,
    /// In threshold mode: the categories that are handed off; empty means all.
    pub categories: BTreeSet<String>,
    /// Names at the forge whose pull requests cause no handoff on their own.
    pub bots: BTreeSet<String>,
    /// Agents whose requests can come from a verify run.
    pub verify_agents: BTreeSet<AgentName>,
    /// The agent that gets a finding that names no agent and whose category has no route.
    pub target: Option<AgentName>,
    /// The agent that gets the findings of each category.
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

/// The findings that the daemon hands off without a person's request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoffMode {
    /// None; only those a person queued.
    #[default]
    Off,
    /// The findings at or above a severity, of the listed categories.
    Threshold,
    /// All findings that are not resolved.
    Full,
}

/// A part that an agent may take in a review.
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

/// The interpretation of a response that does not name an open thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadMode {
    /// A `status` counts as an action, and silence resolves a thread that the author named as addressed.
    #[default]
    Inferred,
    /// Every open thread needs an `action`.
    Explicit,
}

/// The treatment of a new blocker below P0 that a reviewer raises from the second round of a generation on, in a file
/// that the author did not touch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LateFindings {
    /// It blocks like any other.
    #[default]
    Block,
    /// It is deferred, unless it names what introduced it.
    Defer,
}

/// The requirements of the quality gate beyond the findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatePolicy {
    /// True if the gate refuses an approval without any recorded validation command.
    pub require_validation: bool,
    /// True if silence resolves nothing: each thread needs an action or a status.
    pub require_actions: bool,
    /// True if the gate refuses an approval that names no commit.
    pub require_head: bool,
    /// Commands that must be recorded as passing, in addition to those that the request names.
    pub validation_commands: Vec<String>,
    /// The treatment of an approval without evidence that its reviewer read the change.
    pub evidence: EvidenceMode,
    /// True if the models of author and reviewer must come from different vendors.
    pub reviewer_other_vendor: bool,
    /// The files whose changes only a person may approve.
    pub human_paths: HumanPaths,
}

/// A limit on messages per hour and pair: 1 to 10 000, by default 60.
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

    /// Returns the number.
    pub fn get(self) -> usize {
        self.0.into()
    }
}

impl Default for MessagesPerHour {
    fn default() -> Self {
        Self(60)
    }
}

/// A limit on files per hour and outbox: 1 to 1 000 000, by default 250 000.
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

    /// Returns the number.
    pub fn get(self) -> u64 {
        self.0.into()
    }
}

impl Default for FilesPerHour {
    fn default() -> Self {
        Self(250_000)
    }
}

/// A limit on the reviews of one author that are open with one reviewer: 1 to 1 000 000, by default 200 000.
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

    /// Returns the number.
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
    /// Returns the reason that the models of two agents are not known to come from different vendors, for a project that
    /// requires it; `None` if they do.
    pub fn same_vendor(&self, author: &AgentName, reviewer: &AgentName) -> Option<String> {
        let vendor = |agent| self.vendors.get(agent).map(|vendor| vendor.to_lowercase());
        let unknown = |agent| {
            format!(
                "the vendor of `{agent}` is not known; this project requires a reviewer from another vendor than the author's"
            )
        };
        match (vendor(author), vendor(reviewer)) {
            (Some(one), Some(other)) if one != other => None,
            (Some(_), Some(vendor)) => Some(format!(
                "`{author}` and `{reviewer}` both have the vendor {vendor}; this project requires a reviewer from another vendor"
            )),
            (None, _) => Some(unknown(author)),
            (_, None) => Some(unknown(reviewer)),
        }
    }

    /// True if the agent may take the role. An agent that the policy does not list may take both.
    pub fn admits(&self, agent: &AgentName, role: Role) -> bool {
        self.agents
            .get(agent)
            .is_none_or(|roles| roles.is_empty() || roles.contains(&role))
    }

    /// Returns the agents to ask, in order, for a review of this author if the reviewer cannot work; `None` if the list
    /// does not name the reviewer.
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
    fn a_limit_is_a_number_within_its_bounds_and_has_a_default() {
        let messages = |number| MessagesPerHour::new(number).map(MessagesPerHour::get);
        let files = |number| FilesPerHour::new(number).map(FilesPerHour::get);
        let open = |number| OpenReviews::new(number).map(OpenReviews::get);
        assert_eq!(
            [0, 1, 10_000, 10_001, 65_537].map(messages),
            [None, Some(1), Some(10_000), None, None]
        );
        let most = 1_000_000;
        let beyond = (1 << 32) + 1;
        assert_eq!(
            [0, 1, most, most + 1, beyond].map(files),
            [None, Some(1), Some(most), None, None]
        );
        assert_eq!(
            [0, 1, most, most + 1, beyond].map(open),
            [None, Some(1), Some(1_000_000), None, None]
        );
        let policy = Policy::default();
        assert_eq!(policy.messages_per_hour.get(), 60);
        assert_eq!(policy.files_per_hour.get(), 250_000);
        assert_eq!(policy.open_reviews.get(), 200_000);
    }

    #[test]
    fn a_budget_names_each_limit_by_its_key_and_is_used_up_at_exactly_its_limit() {
        let of_tokens = |tokens| SpendLimit {
            tokens: Some(tokens),
            micro_usd: None,
        };
        let of_money = SpendLimit {
            tokens: None,
            micro_usd: Some(5),
        };
        let budget = SpendBudget {
            per_review: of_tokens(1),
            per_day: of_tokens(2),
            per_agent: of_money,
        };
        let limits = [
            ("per_review", of_tokens(1)),
            ("per_day", of_tokens(2)),
            ("per_agent", of_money),
        ];
        assert_eq!(budget.limits(), limits);

        let spend = |tokens, micro_usd| Spend { tokens, micro_usd };
        for (limit, tokens, micro_usd, is_reached) in [
            (of_tokens(2), 1, 9, false),
            (of_tokens(2), 2, 0, true),
            (of_money, 9, 4, false),
            (of_money, 0, 5, true),
            (SpendLimit::default(), u64::MAX, u64::MAX, false),
        ] {
            assert_eq!(
                limit.is_reached(spend(tokens, micro_usd)),
                is_reached,
                "{limit:?} after {tokens} tokens, {micro_usd} millionths"
            );
        }
    }

    #[test]
    fn a_request_passes_to_the_reviewers_after_that_may_review_and_did_not_write_it() {
        let agent = |name: &str| AgentName::new(name).expect("a name");
        let policy = Policy {
            reviewers: ["codex", "gemini", "claude", "gpt", "fable"]
                .map(agent)
                .into(),
            agents: [
                (agent("gemini"), [Role::Author].into()),
                (agent("gpt"), [Role::Author, Role::Reviewer].into()),
                (agent("claude"), [].into()),
            ]
            .into(),
            ..Policy::default()
        };
        let after = |reviewer: &str, author: &str| {
            let names = policy.reviewers_after(&agent(reviewer), &agent(author));
            names.map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let some = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect());
        assert_eq!(after("codex", "purple"), some(&["claude", "gpt", "fable"]));
        assert_eq!(after("codex", "claude"), some(&["gpt", "fable"]));
        assert_eq!(after("gpt", "claude"), some(&["fable"]));
        assert_eq!(after("fable", "claude"), some(&[]), "nobody is left");
        assert_eq!(after("purple", "claude"), None, "not in the list");

        for (name, roles) in [
            ("gemini", [true, false]),
            ("gpt", [true, true]),
            ("claude", [true, true]),
            ("unlisted", [true, true]),
        ] {
            let admitted =
                [Role::Author, Role::Reviewer].map(|role| policy.admits(&agent(name), role));
            assert_eq!(admitted, roles, "{name}");
        }
    }

    #[test]
    fn a_role_is_written_as_in_the_config() {
        for (role, word) in [(Role::Author, "author"), (Role::Reviewer, "reviewer")] {
            assert_eq!(role.to_string(), word);
        }
    }

    #[test]
    fn two_agents_of_one_vendor_or_of_an_unknown_one_do_not_review_each_other() {
        let agent = |name: &str| AgentName::new(name).expect("a name");
        let vendors = [
            ("claude", "Anthropic"),
            ("fable", "anthropic"),
            ("codex", "OpenAI"),
        ];
        let policy = Policy {
            vendors: vendors
                .map(|(name, vendor)| (agent(name), vendor.to_owned()))
                .into(),
            ..Policy::default()
        };
        let why =
            |author: &str, reviewer: &str| policy.same_vendor(&agent(author), &agent(reviewer));
        assert_eq!(why("claude", "codex"), None);
        for (author, reviewer, begins) in [
            (
                "claude",
                "fable",
                "`claude` and `fable` both have the vendor anthropic;",
            ),
            ("claude", "gpt", "the vendor of `gpt` is not known;"),
            ("gpt", "claude", "the vendor of `gpt` is not known;"),
            ("gpt", "purple", "the vendor of `gpt` is not known;"),
        ] {
            let why = why(author, reviewer).unwrap_or_default();
            assert!(why.starts_with(begins), "{author} {reviewer}: {why}");
        }
    }
}
