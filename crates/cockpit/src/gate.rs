//! The obstacles between a review and an approval that holds: the answer of `settled gate check`, and the gate's
//! clauses one by one, as far as they can be judged before the response arrives.

use inspect::status::WorkspaceStatus;
use inspect::verdict::{ApprovalQuestion, ApprovalVerdict};
use message_schema::id::{CommitSha, FindingId};
use message_schema::packet::Severity;
use review::{Clause, ObservedRun, Phase, Policy, Review, ReviewKey, Thread};
use serde::Serialize;

/// The gate of one review. Fields are added, never changed.
#[derive(Debug, Serialize)]
pub struct GateView {
    /// The commit to check: the head of the pull request, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The answer of `settled gate check --json` for that commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<ApprovalVerdict>,
    /// The clauses, in the order of the protocol.
    pub clauses: Vec<ClauseView>,
    /// The obstacles that `settled why` names.
    pub in_the_way: Vec<String>,
}

/// One clause of the gate. Fields are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClauseView {
    /// Its word, as in reports.
    pub clause: &'static str,
    /// The state of the clause.
    pub is: ClauseState,
    /// The reason, in a few words.
    pub what: String,
}

/// The state of a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClauseState {
    /// It is met.
    Met,
    /// It is broken, and no approval passes until it is met.
    Broken,
    /// Depends on the response.
    Pending,
}

impl ClauseState {
    /// Returns the word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Broken => "broken",
            Self::Pending => "pending",
        }
    }
}

impl GateView {
    /// Tells in one line whether an approval would pass now: the broken clauses, and those that depend on the response.
    pub fn verdict(&self) -> (ClauseState, String) {
        let of = |state| -> Vec<&str> {
            let clauses = self.clauses.iter().filter(|clause| clause.is == state);
            clauses.map(|clause| clause.clause).collect()
        };
        let (broken, pending) = (of(ClauseState::Broken), of(ClauseState::Pending));
        let pending_text = format!("pending: {}", pending.join(", "));
        match (broken.is_empty(), pending.is_empty()) {
            (true, true) => (ClauseState::Met, "passes: every clause is met".to_owned()),
            (true, false) => (
                ClauseState::Pending,
                format!("does not pass yet; {pending_text}"),
            ),
            (false, _) => {
                let broken = format!("does not pass; broken: {}", broken.join(", "));
                let more = if pending.is_empty() {
                    String::new()
                } else {
                    format!("; {pending_text}")
                };
                (ClauseState::Broken, broken + &more)
            }
        }
    }

    pub(crate) fn of(
        status: &WorkspaceStatus,
        key: &ReviewKey,
        review: &Review,
        policy: &Policy,
        head: Option<&CommitSha>,
        in_the_way: Vec<String>,
    ) -> Self {
        let check = head.and_then(|head| {
            let asked = ApprovalQuestion {
                pr: key.pr.clone(),
                repo: key.repo.clone(),
                reviewers: Vec::new(),
                head: head.clone(),
                allow_waiting: false,
            };
            ApprovalVerdict::of(status.index.state(), &asked).ok()
        });
        let clauses = vec![
            blocking(review, Clause::P0, |severity| severity == Severity::P0),
            blocking(review, Clause::Blocking, |severity| {
                severity != Severity::P0
            }),
            nits(review),
            validation(review, policy),
            evidence(review),
            approver(status, key, review, policy),
            approval(key, check.as_ref()),
        ];
        Self {
            head: head.map(ToString::to_string),
            check,
            clauses,
            in_the_way,
        }
    }
}

/// The head of the pull request: from its events, else from the round, else the last one reported.
pub(crate) fn head(
    status: &WorkspaceStatus,
    key: &ReviewKey,
    review: &Review,
) -> Option<CommitSha> {
    let pull = status.index.state().pull(key.repo.as_ref(), &key.pr);
    let open = review.phase.invocation();
    let of_round = || {
        open.and_then(|open| open.newer_heads.iter().last().or(open.head.as_ref()))
            .or(review.commit.as_ref())
            .or_else(|| review.phase.approval()?.commit.as_ref())
            .or(review.reading.change.head.as_ref())
    };
    pull.and_then(|pull| pull.head)
        .or_else(|| of_round().cloned())
}

fn view(clause: &'static str, is: ClauseState, what: impl Into<String>) -> ClauseView {
    ClauseView {
        clause,
        is,
        what: what.into(),
    }
}

fn ids<'t>(threads: impl Iterator<Item = (&'t FindingId, &'t Thread)>) -> Vec<&'t str> {
    threads.map(|(id, _)| id.as_str()).collect()
}

fn blocking(review: &Review, clause: Clause, is_its: fn(Severity) -> bool) -> ClauseView {
    let in_the_way = ids(review
        .threads
        .iter()
        .filter(|(_, thread)| thread.blocks_approval() && is_its(thread.severity)));
    if in_the_way.is_empty() {
        let what = if clause == Clause::P0 {
            "no P0 is open"
        } else {
            "nothing else that blocks is open"
        };
        return view(clause.as_str(), ClauseState::Met, what);
    }
    let verb = if in_the_way.len() == 1 {
        "blocks"
    } else {
        "block"
    };
    let what = format!("{} {verb}", in_the_way.join(", "));
    view(clause.as_str(), ClauseState::Broken, what)
}

fn nits(review: &Review) -> ClauseView {
    let clause = Clause::Nits.as_str();
    let open = ids(review.open_threads().filter(|(_, thread)| !thread.blocking));
    if open.is_empty() {
        return view(clause, ClauseState::Met, "no finding needs a nit");
    }
    let what = format!("the lgtm names {} as a nit or answers it", open.join(", "));
    view(clause, ClauseState::Pending, what)
}

fn validation(review: &Review, policy: &Policy) -> ClauseView {
    let clause = Clause::Validation.as_str();
    let required = review::commands_so_far(policy, review);
    if required.is_empty() && !policy.gate.require_validation {
        return view(clause, ClauseState::Met, "no command is required");
    }
    let with = |is_so: fn(Option<&ObservedRun>) -> bool| -> Vec<&str> {
        let required = required.iter().filter(|(_, run)| is_so(**run));
        required.map(|(command, _)| *command).collect()
    };
    let failed = with(|run| run.is_some_and(|run| !run.passed()));
    let missing = with(|run| run.is_none());
    let is_approved = review.phase.approval().is_some();
    if !failed.is_empty() && !is_approved {
        return view(
            clause,
            ClauseState::Broken,
            format!("failed: {}", failed.join(", ")),
        );
    }
    if is_approved || (missing.is_empty() && !required.is_empty()) {
        return view(clause, ClauseState::Met, "recorded as passing");
    }
    let what = if missing.is_empty() {
        "a command must be recorded as passing".to_owned()
    } else {
        format!("to be recorded as passing: {}", missing.join(", "))
    };
    view(clause, ClauseState::Pending, what)
}

fn evidence(review: &Review) -> ClauseView {
    let clause = Clause::Evidence.as_str();
    let files = review.reading.change.files.len();
    if let Phase::Approved(approval) = &review.phase {
        let missing = approval
            .evidence
            .as_ref()
            .map_or(0, |evidence| evidence.missing.len());
        return if missing == 0 {
            view(clause, ClauseState::Met, "the approval shows what was read")
        } else {
            let what = format!("{missing} of {files} changed files were not examined");
            view(clause, ClauseState::Broken, what)
        };
    }
    let seen = review.reading.observed.len();
    let what = match files {
        0 => "the request names no files".to_owned(),
        files => format!("{seen} of {files} changed files seen read"),
    };
    view(clause, ClauseState::Pending, what)
}

/// The clause about the approver: of another vendor where the policy asks for that, and allowed to approve these files.
fn approver(
    status: &WorkspaceStatus,
    key: &ReviewKey,
    review: &Review,
    policy: &Policy,
) -> ClauseView {
    let barred = status.index.state().lgtm_barred(policy, key, review);
    if barred.is_empty() {
        return view(
            "approver",
            ClauseState::Met,
            format!("{} may approve it", review.reviewer(key)),
        );
    }
    view("approver", ClauseState::Broken, barred.join("; "))
}

/// The clause about the head: this review approves that commit.
fn approval(key: &ReviewKey, check: Option<&ApprovalVerdict>) -> ClauseView {
    let mut reviews = check.into_iter().flat_map(|check| &check.reviews);
    match reviews.find(|checked| checked.review == key.to_string()) {
        None => view(
            "head",
            ClauseState::Pending,
            "no commit is known to approve",
        ),
        Some(checked) if checked.passes => view("head", ClauseState::Met, checked.summary.clone()),
        Some(checked) if checked.approved_commit.is_none() => {
            view("head", ClauseState::Pending, checked.summary.clone())
        }
        Some(checked) => view("head", ClauseState::Broken, checked.summary.clone()),
    }
}

#[cfg(test)]
mod tests {
    use review::State;
    use serde_json::json;

    use super::*;

    /// A review whose open request is for `abc1234` and wants `cargo test`, which ran once.
    fn ran(head: &str, exit: i32) -> Review {
        let review = json!({
            "generation": 1, "rounds": 2, "granted": 0, "first_round": 1, "round": 1, "asked": 1,
            "since": "2026-02-13T10:00:00Z", "priority": "P1",
            "phase": { "reviewing": {
                "request": "q-1", "priority": "P1", "turns": 8, "runtime_s": 600, "attempts_left": 3,
                "supersessions_left": 2, "pick_up_by": "2026-02-13T11:00:00Z", "head": "abc1234",
                "validation_commands": ["cargo test"],
            } },
            "reading": { "change": {}, "runs": [{
                "command": "cargo test", "exit": exit, "duration_ms": 1, "head": head,
                "output": format!("sha256:{}", "0".repeat(64)),
            }] },
        });
        serde_json::from_value(review).expect("a review")
    }

    #[test]
    fn a_run_counts_only_on_the_commit_of_the_round() {
        let is = |head, exit| {
            let clause = validation(&ran(head, exit), &Policy::default());
            (clause.is, clause.what)
        };
        let clause = |is, what: &str| (is, what.to_owned());
        let missing = clause(
            ClauseState::Pending,
            "to be recorded as passing: cargo test",
        );
        assert_eq!(
            is("abc1234", 0),
            clause(ClauseState::Met, "recorded as passing")
        );
        assert_eq!(
            is("abc1234", 1),
            clause(ClauseState::Broken, "failed: cargo test")
        );
        assert_eq!(is("def5678", 0), missing);
        assert_eq!(is("def5678", 1), missing);
    }

    #[test]
    fn the_verdict_names_the_broken_clauses_and_those_pending() {
        use ClauseState::{Broken, Met, Pending};
        let names = ["p0", "blocking", "nits"];
        for (clauses, state, told) in [
            ([Met, Met, Met], Met, "passes: every clause is met"),
            (
                [Pending, Met, Pending],
                Pending,
                "does not pass yet; pending: p0, nits",
            ),
            (
                [Broken, Met, Broken],
                Broken,
                "does not pass; broken: p0, nits",
            ),
            (
                [Met, Broken, Pending],
                Broken,
                "does not pass; broken: blocking; pending: nits",
            ),
        ] {
            let clauses = names.into_iter().zip(clauses);
            let gate = GateView {
                head: None,
                check: None,
                clauses: clauses.map(|(name, is)| view(name, is, "")).collect(),
                in_the_way: Vec::new(),
            };
            assert_eq!(gate.verdict(), (state, told.to_owned()));
        }
    }

    #[test]
    fn the_word_of_a_clause_is_that_of_the_json() {
        for state in [ClauseState::Met, ClauseState::Broken, ClauseState::Pending] {
            assert_eq!(json!(state), state.word());
        }
    }

    #[test]
    fn an_approval_of_another_commit_breaks_the_gate_and_a_missing_one_is_pending() {
        let whole = |digit: &str| digit.repeat(40);
        let approved = |commit: &str| {
            json!({"approved": {
                "commit": whole(commit), "merge_ready": true, "at": "2026-02-13T10:00:00Z",
            }})
        };
        let fixing = json!({"fixing": {"due": "2026-02-14T10:00:00Z"}});
        for (phase, is) in [
            (approved("a"), ClauseState::Met),
            (approved("b"), ClauseState::Broken),
            (fixing, ClauseState::Pending),
        ] {
            // The first one approves another commit, so it must not count as the second.
            let reviews = [("claude", approved("c")), ("codex", phase)].map(|(reviewer, phase)| {
                let key = json!({"pr": "1", "author": "gemini", "reviewer": reviewer});
                let key: ReviewKey = serde_json::from_value(key).expect("a key");
                let review = json!({
                    "generation": 1, "rounds": 2, "granted": 0, "first_round": 1, "round": 1, "asked": 1,
                    "since": "2026-02-13T10:00:00Z", "priority": "P1", "phase": phase,
                });
                (key, serde_json::from_value(review).expect("a review"))
            });
            let key = &reviews[1].0;
            let state = State::of(reviews.iter().map(|(key, review)| (key, review)), [], []);
            let asked = ApprovalQuestion {
                pr: key.pr.clone(),
                repo: None,
                reviewers: Vec::new(),
                head: CommitSha::new(whole("a")).expect("a commit"),
                allow_waiting: false,
            };
            let verdict = ApprovalVerdict::of(&state, &asked).expect("there are reviews");
            let clause = approval(key, Some(&verdict));
            let summary = verdict.reviews[1].summary.clone();
            assert_eq!(clause, view("head", is, summary));
        }
        let unknown = view(
            "head",
            ClauseState::Pending,
            "no commit is known to approve",
        );
        let key = json!({"pr": "1", "author": "gemini", "reviewer": "codex"});
        let key: ReviewKey = serde_json::from_value(key).expect("a key");
        assert_eq!(approval(&key, None), unknown);
    }

    #[test]
    fn a_command_that_passed_is_not_asked_for_beside_one_that_did_not_run() {
        let mut policy = Policy::default();
        policy.gate.validation_commands = vec!["cargo build".to_owned()];
        let clause = validation(&ran("abc1234", 0), &policy);
        assert_eq!(clause.what, "to be recorded as passing: cargo build");
    }
}
