//! Decides whether the reviews of a pull request approve a commit, and gives every reason against. Knows the state, but
//! not where it came from.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use git::Changes;
use message_schema::Code;
use message_schema::id::{AgentName, CommitSha, DiffDigest, FindingId, PrNumber, Repo, RepoPath};
use message_schema::line::escaped;
use review::{Approval, Change, CloseReason, HumanPaths, Phase, Review, ReviewKey, State, Thread};
use serde::Serialize;

use super::patch::Comparison;
use super::summary::EvidenceSummary;

/// The question that a verdict answers.
#[derive(Clone, Debug)]
pub struct ApprovalQuestion {
    /// The pull request.
    pub pr: PrNumber,
    /// Its repository, where the number alone does not tell.
    pub repo: Option<Repo>,
    /// The reviewers that have to approve; none named means all there are.
    pub reviewers: Vec<AgentName>,
    /// The commit.
    pub head: CommitSha,
    /// True if an approval counts even if its reviewer did not say that it may be merged.
    pub allow_waiting: bool,
}

/// The reason why an approval does not hold for a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The review goes on.
    NoApproval,
    /// A person has to decide.
    Escalated,
    /// The review was closed without approval.
    Closed,
    /// The quality gate fails; the advisory profile let the approval stand.
    GateBroken,
    /// The approval names no commit.
    Unbound,
    /// Another commit was approved.
    OtherCommit,
    /// One of the two commits is abbreviated, and the other begins with it. An abbreviated approval never holds: an
    /// author can make two commits that begin alike, and push the second after the approval of the first.
    Abbreviated,
    /// The last event of the pull request named another head.
    Stale,
    /// The reviewer approves and says that it is not ready to merge.
    Waiting,
    /// The change touches a file that only a person may approve, and an agent approved it.
    HumanPaths,
    /// Merging the commit brings another change than the request shows.
    OtherChange,
    /// The branch already has the commit, so nothing shows whether it changes a file that only a person may approve.
    NothingToCompare,
    /// A review of the same number in another repository blocks the same commit, or the same change.
    BlockedElsewhere,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct ApprovalVerdict {
    /// The pull request, without leading zeros.
    pub pr: String,
    /// The requested commit.
    pub head: String,
    /// True if every review that counts approves the commit.
    pub passes: bool,
    /// The reviews that count, ordered by key.
    pub reviews: Vec<CheckedReview>,
}

/// One review's part of the answer.
#[derive(Clone, Debug, Serialize)]
pub struct CheckedReview {
    /// The review, as `#86 claude -> codex`.
    pub review: String,
    /// Its author.
    pub author: AgentName,
    /// Its current reviewer.
    pub reviewer: AgentName,
    /// Its repository, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<Repo>,
    /// Its phase.
    pub phase: &'static str,
    /// True if it approves the commit.
    pub passes: bool,
    /// The reasons why it does not approve; empty if it does.
    pub reasons: BTreeSet<Reason>,
    /// The answer in one sentence.
    pub summary: String,
    /// The approved commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_commit: Option<CommitSha>,
    /// The time of the approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_at: Option<DateTime<Utc>>,
    /// The findings that were resolved without a response in words, by what resolved them: `silence`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub resolved_by: BTreeMap<&'static str, Vec<FindingId>>,
    /// The files of the change that the reviewer read, and the tests that the change edits.
    #[serde(flatten)]
    pub shown: EvidenceSummary,
    /// The comparison of the changes of both commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remap: Option<Remap>,
    #[serde(skip)]
    is_by_person: bool,
    /// The commit since which the request shows the change.
    #[serde(skip)]
    shown_from: Option<CommitSha>,
    /// The digest of the change that the request shows.
    #[serde(skip)]
    digest: Option<DiffDigest>,
    #[serde(skip)]
    told: SentenceParts,
}

/// The attempt to carry an approval over to another commit.
#[derive(Clone, Debug, Serialize)]
pub struct Remap {
    /// True if the approval holds for the other commit.
    pub remapped: bool,
    /// The approved commit.
    pub from: String,
    /// The requested commit.
    pub to: String,
    /// The patch id of both changes, from `git patch-id --stable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch_id: Option<String>,
    /// The reason why it does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The words after `git` that fetch what was missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetch: Option<String>,
}

/// The parts of the summary besides the reasons.
#[derive(Clone, Debug, Default)]
struct SentenceParts {
    head: String,
    end: String,
    hidden: String,
    elsewhere: Option<ReviewKey>,
}

/// The reason why the question cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// There is no such review.
    #[error("no review of pull request {pr}{of}")]
    NoReview {
        /// The pull request.
        pr: PrNumber,
        /// The repository or the other side, with a blank before it; may be empty.
        of: String,
    },
    /// Several repositories have a pull request of this number.
    #[error(
        "{}: pull request {pr} exists in several repositories: {repos}; name one with --repo",
        Code::ReviewAmbiguous
    )]
    Ambiguous {
        /// The pull request.
        pr: PrNumber,
        /// The repositories, separated by commas.
        repos: String,
    },
}

/// The reviews that count, ordered by key; never empty.
pub(super) fn find<'s>(
    state: &'s State,
    pr: &PrNumber,
    repo: Option<&Repo>,
    reviewers: &[AgentName],
) -> Result<Vec<(&'s ReviewKey, &'s Review)>, NoAnswer> {
    let mut found = state.counted_reviews(repo, pr);
    let none = |of: String| NoAnswer::NoReview { pr: pr.clone(), of };
    if found.is_empty() {
        return Err(none(
            repo.map_or_else(String::new, |repo| format!(" of {repo}")),
        ));
    }
    let repos: BTreeSet<&Repo> = found
        .iter()
        .filter_map(|(key, _)| key.repo.as_ref())
        .collect();
    if repos.len() > 1 {
        let repos: Vec<&str> = repos.into_iter().map(Repo::as_str).collect();
        return Err(NoAnswer::Ambiguous {
            pr: pr.clone(),
            repos: repos.join(", "),
        });
    }
    let is_there = |name: &AgentName| {
        let mut reviews = found.iter();
        reviews.any(|(key, review)| review.reviewer(key) == name)
    };
    if let Some(stranger) = reviewers.iter().find(|name| !is_there(name)) {
        return Err(none(format!(" with {stranger}")));
    }
    found.retain(|(key, review)| reviewers.is_empty() || reviewers.contains(review.reviewer(key)));
    Ok(found)
}

impl ApprovalVerdict {
    /// Answers the question from a state.
    pub fn of(state: &State, asked: &ApprovalQuestion) -> Result<Self, NoAnswer> {
        let ApprovalQuestion {
            pr,
            repo,
            reviewers,
            head,
            ..
        } = asked;
        let found = find(state, pr, repo.as_ref(), reviewers)?;
        let reviews: Vec<CheckedReview> = found
            .into_iter()
            .map(|(key, review)| CheckedReview::of(key, review, asked))
            .collect();
        let mut verdict = Self {
            pr: pr.to_canonical().to_string(),
            head: head.to_string(),
            passes: reviews.iter().all(|review| review.passes),
            reviews,
        };
        verdict.bar_elsewhere(state, asked);
        Ok(verdict)
    }

    /// Lets the approval of another commit hold if `compare` finds that it makes the same change as the head, or that
    /// the head is its abbreviation. Other reasons against them remain.
    pub fn remap<E>(
        &mut self,
        mut compare: impl FnMut(&CommitSha) -> Result<Comparison, E>,
    ) -> Result<(), E> {
        for review in &mut self.reviews {
            let is_moved = [Reason::OtherCommit, Reason::Abbreviated, Reason::Stale]
                .iter()
                .any(|why| review.reasons.contains(why));
            let approved = review.approved_commit.clone();
            if let (true, Some(commit)) = (is_moved, approved.filter(CommitSha::is_whole)) {
                review.take(compare(&commit)?, &commit, &self.head);
            }
        }
        self.passes = self.reviews.iter().all(|review| review.passes);
        Ok(())
    }

    /// Bars agents' approvals if `hidden` finds that the change from one commit to the other, which the reviewer was
    /// shown, is not what merging the approved commit brings.
    pub fn bar_other_changes<E>(
        &mut self,
        mut hidden: impl FnMut(&CommitSha, &CommitSha) -> Result<Option<String>, E>,
    ) -> Result<(), E> {
        for review in &mut self.reviews {
            let (true, Some(from), Some(approved)) = (
                review.passes && !review.is_by_person,
                &review.shown_from,
                &review.approved_commit,
            ) else {
                continue;
            };
            if let Some(why) = hidden(from, approved)? {
                review.reasons.insert(Reason::OtherChange);
                review.told.hidden = why;
                review.conclude();
            }
        }
        self.passes = self.reviews.iter().all(|review| review.passes);
        Ok(())
    }

    /// Bars agents' approvals if the change touches a file that only a person may approve, even if the request did not list
    /// that file, or if there is nothing to compare.
    pub fn bar_human_paths(&mut self, changes: Option<&Changes>, paths: &HumanPaths) {
        let is_barred = |file: &&RepoPath, changes: &Changes| {
            paths.admits(file.as_str())
                || changes.links.contains(*file) && paths.admits_link(file.as_str())
        };
        let (reason, end) = match changes {
            _ if paths.is_empty() => return,
            None => (Reason::NothingToCompare, String::new()),
            Some(changes) => match changes.files.iter().find(|file| is_barred(file, changes)) {
                Some(file) => (Reason::HumanPaths, escaped(file.as_str())),
                None => return,
            },
        };
        let of_agents = self.reviews.iter_mut();
        for review in of_agents.filter(|review| !review.is_by_person) {
            review.reasons.insert(reason);
            review.told.end.clone_from(&end);
            review.conclude();
        }
        self.passes = self.reviews.iter().all(|review| review.passes);
    }

    /// Bars agents' approvals if a blocker is open or with a person in a review of the same number in another repository,
    /// and the commit or the change is the same. Otherwise another spelling of the repository's name would get a second
    /// opinion.
    fn bar_elsewhere(&mut self, state: &State, asked: &ApprovalQuestion) {
        let others = state.reviews_of(&asked.pr);
        let blocked: Vec<(&ReviewKey, &Review)> = others
            .filter(|(key, review)| {
                !key.may_be_of(asked.repo.as_ref())
                    && review.threads.values().any(Thread::blocks_approval)
            })
            .collect();
        let of_agents = self.reviews.iter_mut();
        for review in of_agents.filter(|review| !review.is_by_person) {
            let is_same = |(_, other): &&(&ReviewKey, &Review)| review.is_about(other, asked);
            if let Some((key, _)) = blocked.iter().find(is_same) {
                review.reasons.insert(Reason::BlockedElsewhere);
                review.told.elsewhere = Some((*key).clone());
                review.conclude();
            }
        }
        self.passes = self.reviews.iter().all(|review| review.passes);
    }
}

impl CheckedReview {
    /// The review of another repository that bars this one's approval.
    pub fn blocked_by(&self) -> Option<&ReviewKey> {
        self.told.elsewhere.as_ref()
    }

    fn of(key: &ReviewKey, review: &Review, asked: &ApprovalQuestion) -> Self {
        let mut reasons = BTreeSet::new();
        let mut end = String::new();
        let approval = match &review.phase {
            Phase::Approved(approval) => Some(approval),
            Phase::Escalated(reason) => {
                reasons.insert(Reason::Escalated);
                end = escaped(&reason.to_string());
                None
            }
            Phase::Closed(reason) => {
                reasons.insert(Reason::Closed);
                end = closed(*reason).to_owned();
                None
            }
            Phase::Awaiting { .. }
            | Phase::Reviewing(_)
            | Phase::Fixing { .. }
            | Phase::Addressed { .. } => {
                reasons.insert(Reason::NoApproval);
                let mover = review.mover_of(key).map_or("nobody", |name| name.as_str());
                end = format!(
                    "{}, round {}: {mover} moves",
                    review.phase.word(),
                    review.round
                );
                None
            }
        };
        if let Some(approval) = approval {
            reasons.extend(against(approval, asked));
            let broken: Vec<&str> = approval
                .broken
                .iter()
                .map(|clause| clause.as_str())
                .collect();
            end = broken.join(", ");
        }
        let mut checked = Self {
            review: key.to_string(),
            author: key.author.clone(),
            reviewer: review.reviewer(key).clone(),
            repo: key.repo.clone(),
            phase: review.phase.word(),
            passes: false,
            reasons,
            summary: String::new(),
            approved_commit: approval.and_then(|approval| approval.commit.clone()),
            approved_at: approval.map(|approval| approval.at),
            resolved_by: by_silence(review),
            shown: EvidenceSummary::of(review),
            remap: None,
            is_by_person: approval.is_some_and(|approval| approval.by_person.is_some()),
            shown_from: review.reading.change.base.clone(),
            told: SentenceParts {
                head: asked.head.to_string(),
                end,
                ..SentenceParts::default()
            },
            digest: review.reading.change.digest.clone(),
        };
        checked.conclude();
        checked
    }

    /// True if the other review is about the commit of the question, the approved one, or the same change.
    fn is_about(&self, other: &Review, asked: &ApprovalQuestion) -> bool {
        let Change { head, digest, .. } = &other.reading.change;
        let heads = [Some(&asked.head), self.approved_commit.as_ref()];
        let is_head = |commit: &CommitSha| {
            let mut heads = heads.into_iter().flatten();
            heads.any(|head| head.same_commit(commit))
        };
        [head, &other.commit].into_iter().flatten().any(is_head)
            || digest.is_some() && *digest == self.digest
    }

    fn take(&mut self, found: Comparison, from: &CommitSha, to: &str) {
        let (from, to) = (from.to_string(), to.to_owned());
        if !matches!(found, Comparison::Void { .. }) {
            self.reasons.remove(&Reason::OtherCommit);
            self.reasons.remove(&Reason::Abbreviated);
            self.reasons.remove(&Reason::Stale);
        }
        let same = |patch_id| Remap {
            remapped: true,
            from: from.clone(),
            to: to.clone(),
            patch_id,
            why: None,
            fetch: None,
        };
        self.remap = Some(match found {
            Comparison::Itself => same(None),
            Comparison::Same { patch_id } => same(Some(patch_id)),
            Comparison::Void { why, fetch } => Remap {
                remapped: false,
                from,
                to,
                patch_id: None,
                why: Some(why),
                fetch,
            },
        });
        self.conclude();
    }

    fn conclude(&mut self) {
        self.passes = self.reasons.is_empty();
        let commit = self
            .approved_commit
            .as_ref()
            .map_or("no commit", |commit| commit.as_str());
        let SentenceParts {
            head,
            end,
            hidden,
            elsewhere,
        } = &self.told;
        let mut said: Vec<String> = self
            .reasons
            .iter()
            .map(|reason| match reason {
                Reason::NoApproval => format!("no approval yet ({end})"),
                Reason::Escalated => format!("escalated to a person ({end})"),
                Reason::Closed => format!("ended without approval ({end})"),
                Reason::GateBroken => format!("approved against the gate, advisory only ({end})"),
                Reason::Unbound => "approved without naming a commit".to_owned(),
                Reason::OtherCommit => format!("approved {commit}, which is not {head}"),
                Reason::Abbreviated => {
                    let is_whole = self.approved_commit.as_ref().is_some_and(CommitSha::is_whole);
                    let why = if is_whole {
                        "--repo-dir and --base expand it"
                    } else {
                        "an abbreviated approval holds for none, because several commits may begin so"
                    };
                    format!("approved {commit}, asked about {head}: {why}")
                }
                Reason::OtherChange => format!("approved another change: {hidden}"),
                Reason::Stale => {
                    format!("the approval of {commit} is stale: the last event of the pull request named another head")
                }
                Reason::NothingToCompare => format!(
                    "the branch already has {head}, so git cannot show whether it changes a file that only a person may approve"
                ),
                Reason::BlockedElsewhere => {
                    let other = elsewhere.as_ref().expect("the review that blocks it");
                    format!("{other} is about the same change, and a finding there blocks it")
                }
                Reason::HumanPaths => format!("approved by an agent, but only a person may approve a change of {end}"),
                Reason::Waiting => {
                    "approved, but the reviewer says that it is not ready to merge (merge_ready: false)".to_owned()
                }
            })
            .collect();
        match &self.remap {
            Some(Remap {
                remapped: true,
                patch_id: Some(id),
                ..
            }) => {
                said.push(format!(
                    "approved {commit}; {head} makes the same change (patch {id})"
                ));
            }
            Some(Remap { why: Some(why), .. }) => said.push(why.clone()),
            Some(Remap { remapped: true, .. }) => {
                said.push(format!("approved {commit}, which is {head}"));
            }
            Some(_) => {}
            None if self.passes => said.push(format!("approved {commit}")),
            None => {}
        }
        said.extend(self.resolved_by.iter().map(|(by, ids)| {
            let ids: Vec<&str> = ids.iter().map(FindingId::as_str).collect();
            format!("resolved by {by}: {}", escaped(&ids.join(", ")))
        }));
        self.summary = said.join("; ");
    }
}

/// Returns every reason against an approval.
fn against(approval: &Approval, asked: &ApprovalQuestion) -> impl Iterator<Item = Reason> {
    let commit = approval.commit.as_ref();
    [
        (!approval.broken.is_empty(), Reason::GateBroken),
        (commit.is_none(), Reason::Unbound),
        (
            commit.is_some_and(|commit| !commit.same_commit(&asked.head)),
            Reason::OtherCommit,
        ),
        (
            commit.is_some_and(|commit| {
                let are_whole = commit.is_whole() && asked.head.is_whole();
                !are_whole && commit.same_commit(&asked.head)
            }),
            Reason::Abbreviated,
        ),
        (approval.stale, Reason::Stale),
        (
            !approval.merge_ready && !asked.allow_waiting,
            Reason::Waiting,
        ),
    ]
    .into_iter()
    .filter_map(|(is_so, reason)| is_so.then_some(reason))
}

fn by_silence(review: &Review) -> BTreeMap<&'static str, Vec<FindingId>> {
    let resolved = review.threads.iter();
    let ids: Vec<FindingId> = resolved
        .filter(|(_, thread)| thread.is_resolved_by_silence())
        .map(|(id, _)| id.clone())
        .collect();
    if ids.is_empty() {
        BTreeMap::new()
    } else {
        BTreeMap::from([("silence", ids)])
    }
}

fn closed(reason: CloseReason) -> &'static str {
    match reason {
        CloseReason::Merged => "its pull request was merged",
        CloseReason::NotMerged => "its pull request was closed",
        CloseReason::Commented => "its last feedback was a comment",
    }
}
