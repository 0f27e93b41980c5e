//! Shows the reviews of an agent from its side: what it owes, what it waits for, and until when.

use std::path::Path;

use chrono::{DateTime, Utc};
use message_schema::id::{AgentName, CommitSha, PrNumber, Repo};
use review::{Review, ReviewKey, Side, State};
use serde::Serialize;
use workspace::index::LedgerIndex;
use workspace::shell::quoted;

use crate::said::Said;

/// The side that moves next, as one agent sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Move {
    /// This agent has to move.
    Yours,
    /// The other agent has to move.
    Theirs,
    /// A person has to decide.
    Person,
    /// Nobody: the review has ended.
    Nobody,
}

/// A review as one of its two agents sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MyReview {
    /// Such as `#86 claude -> codex`.
    pub review: String,
    /// The repository, if the requests name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<Repo>,
    /// The pull request.
    pub pr: PrNumber,
    /// `author` or `reviewer`.
    pub role: &'static str,
    /// The agent on the other side.
    pub other: AgentName,
    /// The phase.
    pub phase: &'static str,
    /// The round within the generation, from 1.
    pub round: u32,
    /// The number of rounds in the generation.
    pub rounds: u8,
    /// The side that moves next.
    #[serde(rename = "move")]
    pub whose: Move,
    /// The time at which the review entered this phase.
    pub since: DateTime<Utc>,
    /// The running deadline: `pick_up`, `runtime` or `author`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<&'static str>,
    /// The time at which the daemon ends the wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at: Option<DateTime<Utc>>,
    /// The number of open blocking findings.
    #[serde(skip)]
    pub open_blockers: usize,
    /// The approved commit.
    #[serde(skip)]
    pub approved_head: Option<CommitSha>,
    /// True if the pull request was merged or closed.
    #[serde(skip)]
    pub is_pull_over: bool,
    /// True if the rules would refuse every request of its author.
    #[serde(skip)]
    pub takes_no_request: bool,
    /// The messages that the agent may send now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub legal_next: Vec<String>,
}

/// The reviews of an agent that have not ended or wait for a person: its own moves first, then the earliest deadlines.
pub fn of(state: &State, agent: &AgentName) -> Vec<MyReview> {
    let mut mine: Vec<MyReview> = state
        .current_reviews()
        .filter(|(key, review)| [&key.author, review.reviewer(key)].contains(&agent))
        .filter(|(_, review)| !review.phase.is_final() || review.mover() == Side::Person)
        .map(|(key, review)| one(state, key, review, agent))
        .collect();
    mine.sort_by(|a, b| {
        // Without a deadline nothing is urgent.
        let due = |mine: &MyReview| mine.due_at.unwrap_or(DateTime::<Utc>::MAX_UTC);
        (a.whose, due(a), &a.review).cmp(&(b.whose, due(b), &b.review))
    });
    mine
}

/// All reviews of a pull request in which the agent takes part, ended ones too.
pub fn of_pr(state: &State, pr: &PrNumber, agent: &AgentName) -> Vec<MyReview> {
    state
        .reviews_of(pr)
        .filter(|(key, review)| [&key.author, review.reviewer(key)].contains(&agent))
        .map(|(key, review)| one(state, key, review, agent))
        .collect()
}

/// The reviews of a pull request from this agent's side; none if it may not read the ledger.
pub fn read(root: &Path, pr: &PrNumber, agent: &AgentName) -> Vec<MyReview> {
    LedgerIndex::read(root)
        .map(|(index, _)| of_pr(index.state(), pr, agent))
        .unwrap_or_default()
}

/// One review from the side of one of its two agents.
fn one(state: &State, key: &ReviewKey, review: &Review, agent: &AgentName) -> MyReview {
    let (role, other) = if *agent == key.author {
        ("author", review.reviewer(key))
    } else {
        ("reviewer", &key.author)
    };
    let whose = match (review.mover(), review.mover_of(key)) {
        (Side::Person, _) => Move::Person,
        (_, Some(mover)) if mover == agent => Move::Yours,
        (_, Some(_)) => Move::Theirs,
        (Side::Author | Side::Reviewer | Side::Nobody, None) => Move::Nobody,
    };
    let deadline = review.deadline();
    let own = format!("{agent}: ");
    MyReview {
        review: key.to_string(),
        repo: key.repo.clone(),
        pr: key.pr.clone(),
        role,
        other: other.clone(),
        phase: review.phase.word(),
        round: review.round_of_generation(),
        rounds: review.rounds.get() + review.granted,
        whose,
        since: review.since,
        waits_for: deadline.map(|(_, which)| which.word()),
        due_at: deadline.map(|(at, _)| at),
        open_blockers: review.open_blockers(),
        approved_head: review.phase.approved_commit().cloned(),
        is_pull_over: state.is_pull_over(key),
        takes_no_request: state.no_request(key, review).is_some(),
        legal_next: state
            .legal_next(key, review)
            .iter()
            .filter_map(|said| said.strip_prefix(&own).map(str::to_owned))
            .collect(),
    }
}

impl MyReview {
    /// The commands that this agent should run next, the first one first, without the options for workspace and agent.
    /// `said` is what the two agents wrote to each other.
    pub fn helps(&self, said: &Said) -> Vec<(String, &'static str)> {
        let (pr, other) = (&self.pr, &self.other);
        let repo = self
            .repo
            .as_ref()
            .map_or_else(String::new, |repo| format!(" --repo {repo}"));
        let of = |verb: &str| format!("{verb} {pr}{repo}");
        let is_author = self.role == "author";
        match (self.whose, is_author) {
            (Move::Yours, false) => {
                vec![(
                    of("brief"),
                    "shows this round's request; then feedback or lgtm",
                )]
            }
            (Move::Yours, true) if self.phase == "fixing" && self.open_blockers > 0 => vec![(
                of("threads"),
                "what to fix; its last line is the command that reports the fixes",
            )],
            (Move::Yours, true) if said.request.is_some() && !self.takes_no_request => {
                vec![(self.request(said), "asks for the next round")]
            }
            (Move::Yours, true) => vec![(of("why"), "what to send, and until when")],
            (Move::Theirs, true) => {
                vec![(
                    format!("wait --for verdict --pr {pr}"),
                    "returns when the answer comes",
                )]
            }
            (Move::Theirs, false) => vec![("wait".to_owned(), "until something comes")],
            (Move::Person, _) => vec![(of("why"), "ask a person to decide")],
            (Move::Nobody, true) if self.phase == "approved" && !self.is_pull_over => {
                // An abbreviated commit passes no check.
                let whole = self.approved_head.as_ref().filter(|head| head.is_whole());
                let check = whole.map(|head| {
                    let words =
                        format!("gate check --pr {pr}{repo} --head {head} --reviewer {other}");
                    (words, "merge if this ends with 0")
                });
                let merged = (of("pr merged"), "once it is merged");
                check.into_iter().chain([merged]).collect()
            }
            (Move::Nobody, _) => Vec::new(),
        }
    }

    /// The author's next request, with everything that is known.
    fn request(&self, said: &Said) -> String {
        let mut words = format!("send review_request --to {} --pr {}", self.other, self.pr);
        let mut add = |flag: &str, value: Option<&str>| {
            if let Some(value) = value {
                words += &format!(" {flag} {}", quoted(value.as_ref()));
            }
        };
        add("--repo", self.repo.as_ref().map(Repo::as_str));
        let request = said.request.as_ref();
        add(
            "--branch",
            request.and_then(|request| request.branch.as_deref()),
        );
        let commit = said.unasked().map_or_else(
            || request.and_then(|request| request.head.as_deref()),
            |addressed| addressed.commit.as_deref(),
        );
        add("--declared-head", commit);
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(name: &str) -> AgentName {
        AgentName::new(name).expect("a name")
    }

    /// A review of claude by codex, without anything that makes it special.
    fn mine() -> MyReview {
        MyReview {
            review: "#86 claude -> codex".to_owned(),
            repo: None,
            pr: PrNumber::new("86").expect("a number"),
            role: "author",
            other: agent("codex"),
            phase: "addressed",
            round: 2,
            rounds: 3,
            whose: Move::Yours,
            since: DateTime::UNIX_EPOCH,
            waits_for: None,
            due_at: None,
            open_blockers: 0,
            approved_head: None,
            is_pull_over: false,
            takes_no_request: false,
            legal_next: Vec::new(),
        }
    }

    /// The contents of these messages, oldest first.
    fn said(messages: &[(&str, &str)]) -> Said {
        let mut said = Said::default();
        for (kind, body) in messages {
            let text = format!("from: claude\nto: codex\ntype: {kind}\nbody: |\n  {body}\n");
            let agents = [&agent("claude"), &agent("codex")];
            said.note(&text, "", &agents, || None);
        }
        said
    }

    const REQUEST: (&str, &str) = ("review_request", "branch: fix\n  declared_head: abc1234");

    fn helps(said: &Said, change: impl FnOnce(&mut MyReview)) -> Vec<String> {
        let mut mine = mine();
        change(&mut mine);
        mine.helps(said)
            .into_iter()
            .map(|(words, _)| words)
            .collect()
    }

    #[test]
    fn no_command_sends_a_request_that_the_rules_would_refuse() {
        let said = said(&[REQUEST]);
        let helps =
            |takes_no_request| helps(&said, |mine| mine.takes_no_request = takes_no_request);
        let request = "send review_request --to codex --pr 86 --branch fix --declared-head abc1234";
        assert_eq!(helps(false), [request]);
        assert_eq!(helps(true), ["why 86"]);
    }

    #[test]
    fn the_next_request_is_for_the_repository_and_the_commit_with_the_fixes() {
        let fixes = ("review_addressed", "round: 1\n  commit_sha: def5678");
        let said = said(&[REQUEST, fixes]);
        let repo = Repo::new("team/tool").ok();
        let words = helps(&said, |mine| mine.repo = repo);
        let request = "send review_request --to codex --pr 86 --repo team/tool --branch fix --declared-head def5678";
        assert_eq!(words, [request]);
    }

    #[test]
    fn each_side_of_a_review_has_the_command_for_its_next_step() {
        const HEAD: &str = "9b2f41c07de1a3b85c6f2e94d1a07b3c5e8f6a21";
        let gate = format!("gate check --pr 86 --head {HEAD} --reviewer codex");
        let approved = |head: &str| {
            let head = CommitSha::new(head).ok();
            MyReview {
                whose: Move::Nobody,
                phase: "approved",
                approved_head: head,
                ..mine()
            }
        };
        let whose = |whose, role| MyReview {
            whose,
            role,
            ..mine()
        };
        let fixing = |phase, open_blockers| MyReview {
            phase,
            open_blockers,
            ..mine()
        };
        let in_repo = MyReview {
            repo: Repo::new("team/tool").ok(),
            ..whose(Move::Yours, "reviewer")
        };
        let over = MyReview {
            is_pull_over: true,
            ..approved(HEAD)
        };
        let reviewer = MyReview {
            role: "reviewer",
            ..approved(HEAD)
        };
        let cases: [(MyReview, &[&str]); 14] = [
            (whose(Move::Yours, "reviewer"), &["brief 86"]),
            (in_repo, &["brief 86 --repo team/tool"]),
            (fixing("fixing", 1), &["threads 86"]),
            (fixing("fixing", 0), &["why 86"]),
            (fixing("addressed", 1), &["why 86"]),
            (
                whose(Move::Theirs, "author"),
                &["wait --for verdict --pr 86"],
            ),
            (whose(Move::Theirs, "reviewer"), &["wait"]),
            (whose(Move::Person, "author"), &["why 86"]),
            (whose(Move::Person, "reviewer"), &["why 86"]),
            (approved(HEAD), &[&gate, "pr merged 86"]),
            (approved("9b2f41c"), &["pr merged 86"]),
            (over, &[]),
            (reviewer, &[]),
            (whose(Move::Nobody, "author"), &[]),
        ];
        for (mine, expected) in cases {
            let helps = mine.helps(&Said::default()).into_iter();
            let words: Vec<String> = helps.map(|(words, _)| words).collect();
            assert_eq!(words, expected, "{mine:?}");
        }
    }
}
