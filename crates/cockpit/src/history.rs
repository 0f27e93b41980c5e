//! The course of reviews over time: reviews per day, rounds, who waited for whom, refusals, and a comparison of
//! reviewers.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, Utc};
use message_schema::envelope::ReviewKind;
use message_schema::id::FindingId;
use review::{Phase, Record, ReviewKey, ReviewStep, Side, State, ThreadState};
use serde::Serialize;

use crate::timeline::verdict;

/// The history of a mailroom. Fields are added, never changed.
#[derive(Clone, Debug, Serialize)]
pub struct History {
    /// The days on which something began or ended, oldest first, UTC.
    pub days: Vec<DayCount>,
    /// The number of approvals by round, counted over the life of the pull request.
    pub rounds_to_approval: BTreeMap<u32, u64>,
    /// The seconds that reviews waited for each side (`author`, `reviewer`, `person`), without waits that go on.
    pub waited_s: BTreeMap<&'static str, u64>,
    /// The number of refused messages, by code.
    pub refusals: BTreeMap<String, u64>,
    /// The reviewers, by name.
    pub reviewers: Vec<ReviewerScore>,
}

/// The events of one day. Fields are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DayCount {
    /// The day, UTC.
    pub day: NaiveDate,
    /// The number of reviews opened.
    pub opened: u64,
    /// The number of approvals.
    pub approved: u64,
    /// The number of reviews escalated to a person.
    pub escalated: u64,
    /// The number of reviews that ended with their pull request or as a comment.
    pub closed: u64,
}

/// The record of one reviewer. Fields are added, never changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReviewerScore {
    /// The agent.
    pub reviewer: String,
    /// The number of reviews in which it answered first.
    pub first_verdicts: u64,
    /// The number of these that its answer approved.
    pub first_approvals: u64,
    /// The number of findings it raised.
    pub findings: u64,
    /// The number of these that block.
    pub blocking: u64,
    /// The number of findings that the author reported as fixed and no person dropped, so they were real.
    pub proven: u64,
    /// The number of findings it raised again after they had been resolved.
    pub reopened: u64,
    /// The seconds from request to answer, over all its answers.
    pub answered_s: u64,
    /// The number of its answers.
    pub answers: u64,
}

/// The sums over the records so far.
#[derive(Debug, Default)]
pub(crate) struct HistoryTally {
    days: BTreeMap<NaiveDate, DayCount>,
    rounds_to_approval: BTreeMap<u32, u64>,
    waited_ms: BTreeMap<&'static str, u64>,
    refusals: BTreeMap<String, u64>,
    reviews: BTreeMap<ReviewKey, ReviewTally>,
    answers: BTreeMap<String, (u64, u64)>,
}

#[derive(Debug)]
struct ReviewTally {
    since: DateTime<Utc>,
    phase: &'static str,
    side: Side,
    /// The sender of the first answer, and whether it approved; `None` before that answer. Another agent may review
    /// now.
    first: Option<(String, bool)>,
    /// The agent that raised each finding.
    raised: BTreeMap<FindingId, String>,
    /// The findings that are open.
    open: BTreeSet<FindingId>,
    /// The findings that the author reported as fixed.
    reported: BTreeSet<FindingId>,
}

impl HistoryTally {
    /// Takes in a record.
    pub(crate) fn note(&mut self, record: &Record, at: DateTime<Utc>) {
        if let Some(refused) = record.refused() {
            *self.refusals.entry(refused.code.to_string()).or_default() += 1;
        }
        for step in record.steps() {
            self.step(record, step, at);
        }
    }

    fn step(&mut self, record: &Record, step: &ReviewStep, at: DateTime<Utc>) {
        let day = self.days.entry(at.date_naive()).or_insert(DayCount {
            day: at.date_naive(),
            opened: 0,
            approved: 0,
            escalated: 0,
            closed: 0,
        });
        if !self.reviews.contains_key(&step.review) {
            day.opened += 1;
        }
        let (side, phase) = (step.phase.mover(), step.phase.word());
        let review = self
            .reviews
            .entry(step.review.clone())
            .or_insert_with(|| ReviewTally {
                since: at,
                phase: "",
                side: Side::Nobody,
                first: None,
                raised: BTreeMap::new(),
                open: BTreeSet::new(),
                reported: BTreeSet::new(),
            });
        let waited_ms = u64::try_from((at - review.since).num_milliseconds()).unwrap_or(0);
        if let Some(word) = word(review.side) {
            *self.waited_ms.entry(word).or_default() += waited_ms;
        }
        if phase != review.phase {
            match &step.phase {
                Phase::Approved(_) => {
                    day.approved += 1;
                    *self.rounds_to_approval.entry(step.round).or_default() += 1;
                }
                Phase::Escalated(_) => day.escalated += 1,
                Phase::Closed(_) => day.closed += 1,
                Phase::Awaiting { .. }
                | Phase::Reviewing(_)
                | Phase::Fixing { .. }
                | Phase::Addressed { .. } => {}
            }
        }
        for (id, thread) in &step.threads {
            if thread.is_open() {
                review.open.insert(id.clone());
            } else {
                review.open.remove(id);
            }
        }
        if let Phase::Addressed { report, .. } = &step.phase {
            // A report that names no findings covers all open ones.
            let all = report.findings.is_empty().then_some(&review.open);
            let named = report.findings.iter().chain(all.into_iter().flatten());
            review.reported.extend(named.cloned());
        }
        if let Some((from, kind)) = verdict(record) {
            let is_approval = kind == ReviewKind::Lgtm || phase == "approved";
            review
                .first
                .get_or_insert_with(|| (from.to_string(), is_approval));
            for id in step.threads.keys() {
                let raised = review.raised.entry(id.clone());
                raised.or_insert_with(|| from.to_string());
            }
            let (answers, answered_ms) = self.answers.entry(from.to_string()).or_default();
            *answers += 1;
            *answered_ms += waited_ms;
        }
        (review.since, review.phase, review.side) = (at, phase, side);
    }

    /// Returns the history so far, with the state's view of the findings.
    pub(crate) fn history(&self, state: &State) -> History {
        let seconds = |(word, ms): (&&'static str, &u64)| (*word, ms / 1_000);
        History {
            days: self.days.values().cloned().collect(),
            rounds_to_approval: self.rounds_to_approval.clone(),
            waited_s: self.waited_ms.iter().map(seconds).collect(),
            refusals: self.refusals.clone(),
            reviewers: self.reviewers(state),
        }
    }

    fn reviewers(&self, state: &State) -> Vec<ReviewerScore> {
        let mut scores: BTreeMap<&str, ReviewerScore> = BTreeMap::new();
        for (key, review) in state.reviews() {
            scores.entry(review.reviewer(key).as_str()).or_default();
            let tally = self.reviews.get(key);
            if let Some((reviewer, is_approval)) = tally.and_then(|tally| tally.first.as_ref()) {
                let score = scores.entry(reviewer).or_default();
                score.first_verdicts += 1;
                score.first_approvals += u64::from(*is_approval);
            }
            for (id, thread) in &review.threads {
                // A finding without a known raiser came with a task of another pull request.
                let raised_by = tally.and_then(|tally| tally.raised.get(id));
                let Some(raised_by) = raised_by else { continue };
                let score = scores.entry(raised_by).or_default();
                score.findings += 1;
                score.blocking += u64::from(thread.blocking);
                score.reopened += u64::from(thread.was_reopened());
                let is_proven = thread.state == ThreadState::Resolved
                    && !thread.was_resolved_by_person()
                    && tally.is_some_and(|tally| tally.reported.contains(id));
                score.proven += u64::from(is_proven);
            }
        }
        for (reviewer, score) in &mut scores {
            score.reviewer = (*reviewer).to_owned();
            if let Some((answers, answered_ms)) = self.answers.get(*reviewer) {
                (score.answers, score.answered_s) = (*answers, answered_ms / 1_000);
            }
        }
        scores.into_values().collect()
    }
}

/// The side's word in JSON; `None` if nobody has to move.
fn word(side: Side) -> Option<&'static str> {
    match side {
        Side::Author => Some("author"),
        Side::Reviewer => Some("reviewer"),
        Side::Person => Some("person"),
        Side::Nobody => None,
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use review::Review;
    use serde_json::{Value, json};

    use super::*;

    fn key(pr: &str) -> Value {
        json!({"pr": pr, "author": "claude", "reviewer": "codex"})
    }

    fn thread(state: &str, blocking: bool, reopened: bool, by_person: bool) -> Value {
        json!({
            "severity": "P1", "blocking": blocking, "opened_in": 1, "state": state,
            "dialogue": {"stance": "seeks_change", "round_count": 0, "replies": 0},
            "reopened": reopened, "by_person": by_person,
        })
    }

    /// A message that is accepted, and leads a review to this phase.
    fn message(from: &str, kind: &str, pr: &str, phase: &Value, threads: &Value) -> Value {
        json!({"accepted": {
            "from": from, "id": "m-1", "digest": "0".repeat(64), "to": [], "type": kind,
            "step": {"review": key(pr), "phase": phase, "round": 1, "threads": threads},
        }})
    }

    fn review(threads: &Value) -> Review {
        let review = json!({
            "generation": 1, "rounds": 2, "granted": 0, "first_round": 1, "round": 1, "asked": 1,
            "since": "2026-02-13T10:00:00Z", "priority": "P1", "phase": {"closed": "merged"},
            "threads": threads,
        });
        serde_json::from_value(review).expect("a review")
    }

    #[test]
    fn a_reviewer_is_judged_by_its_first_answers_and_by_what_became_of_its_findings() {
        let due = "2026-02-14T10:00:00Z";
        let reviewing = json!({"reviewing": {
            "request": "q-1", "priority": "P1", "turns": 8, "runtime_s": 600, "attempts_left": 3,
            "supersessions_left": 2, "pick_up_by": due,
        }});
        let approved = json!({"approved": {"merge_ready": true, "at": due}});
        let fixing = json!({"fixing": {"due": due}});
        let reported =
            json!({"addressed": {"report": {"findings": ["F-1", "F-2", "F-3"]}, "due": due}});
        let escalated = json!({"escalated": "reviewer_timeout"});
        let none = json!({});
        let open = thread("open", true, false, false);
        let raised = json!({"F-1": open, "F-2": open, "F-3": open, "F-4": open, "F-5": open});
        let records = [
            message("claude", "review_request", "1", &reviewing, &none),
            message("codex", "review_feedback", "1", &fixing, &raised),
            message("claude", "review_addressed", "1", &reported, &none),
            message("claude", "review_request", "2", &reviewing, &none),
            // An approval that a person has to look at.
            message("codex", "review_lgtm", "2", &escalated, &none),
            message("claude", "review_request", "3", &reviewing, &none),
            // Feedback on a fix in which nothing blocks.
            message("codex", "review_feedback", "3", &approved, &none),
            json!({"happened": {"event": {"pull": {"pr": "3", "action": "merged"}}, "steps": [
                {"review": key("3"), "phase": {"closed": "merged"}, "round": 1},
            ]}}),
        ];
        let mut tally = HistoryTally::default();
        for (minute, record) in (0..).zip(records) {
            let record: Record = serde_json::from_value(record).expect("a record");
            tally.note(&record, DateTime::UNIX_EPOCH + TimeDelta::minutes(minute));
        }
        let threads = json!({
            "F-1": thread("resolved", true, false, false),
            "F-2": thread("resolved", true, true, false),
            // A person dropped it.
            "F-3": thread("resolved", true, true, true),
            // The author never said that it fixed it.
            "F-4": thread("resolved", false, false, false),
            "F-5": thread("open", false, true, false),
            // It came with a task, not from an agent of this review.
            "F-6": thread("open", true, true, false),
        });
        let keys = ["1", "2", "3"].map(|pr| serde_json::from_value(key(pr)).expect("a key"));
        let reviews = [review(&threads), review(&none), review(&none)];
        let state = State::of(keys.iter().zip(&reviews), [], []);
        let history = serde_json::to_value(tally.history(&state)).expect("plain values are JSON");
        let expected = json!({
            "days": [{"day": "1970-01-01", "opened": 3, "approved": 1, "escalated": 1, "closed": 1}],
            "rounds_to_approval": {"1": 1},
            "waited_s": {"author": 60, "reviewer": 180},
            "refusals": {},
            "reviewers": [{
                "reviewer": "codex", "first_verdicts": 3, "first_approvals": 2, "findings": 5,
                "blocking": 3, "proven": 2, "reopened": 3, "answered_s": 180, "answers": 3,
            }],
        });
        assert_eq!(history, expected);
    }
}
