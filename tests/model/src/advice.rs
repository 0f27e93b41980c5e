//! Checks that the rules accept everything that `why`, `problems`, `threads` and `status` advise in a state: parses
//! each command like a shell, fills in its placeholders, and judges the message or event it makes.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use inspect::status::WorkspaceStatus;
use inspect::status::fix::FixCommand;
use inspect::status::pending::PendingMail;
use inspect::status::row::ReviewRow;
use inspect::status::threads::Histories;
use message_schema::id::{AgentName, FindingId, PrNumber};
use review::{
    Act, Decision, Event, EventRecord, PersonsDecision, Phase, Policy, Posted, PullAction,
    PullEvent, ReportedEvent, Review, ReviewKey, State, Which, apply, approval_barred,
};
use spool::{Digest, Folded, Verified};
use workspace::index::LedgerIndex;

use crate::inputs::{Input, Line, Response, agent, minute};
use crate::invariants::{Broken, Invariant};
use crate::moves::Place;

/// Tries everything advised in this state.
pub(crate) fn check(place: &Place<'_>) -> Result<(), Broken> {
    let status = status(place);
    let spell = |_: Option<&AgentName>, words: &str| words.to_owned();
    let problems = status.problems(&Policy::default(), now(), &spell);
    for (key, review) in place.state.reviews() {
        let is_theirs = |line: &Line| {
            let of = line.key();
            of.pr == key.pr && of.reviewer == *review.reviewer(key)
        };
        let Some(line) = Line::all(place.bounds).find(is_theirs) else {
            continue;
        };
        let advised = Advised {
            place,
            key,
            line,
            review,
        };
        let policy = &place.bounds.policy;
        let why = status.why(key, review, policy, now(), &spell);
        let threads = Histories::default().threads(key, review, &status.name_of(key), &spell);
        let persons = threads.threads.into_iter().flat_map(|thread| thread.person);
        why.fixes
            .into_iter()
            .chain(persons)
            .try_for_each(|fix| advised.command(&fix))?;
        let row = ReviewRow::of(&place.state, key, review);
        row.legal_next
            .iter()
            .try_for_each(|next| advised.sentence(next))?;
        let named = key.to_string();
        problems
            .iter()
            .filter(|problem| problem.review.as_ref() == Some(&named))
            .try_for_each(|problem| advised.command(&problem.fix))?;
    }
    Ok(())
}

/// The time at which people read advice and act on it.
fn now() -> DateTime<Utc> {
    minute(7)
}

fn status(place: &Place<'_>) -> WorkspaceStatus {
    let mut index = LedgerIndex::default();
    index.state = place.state.clone();
    let verified = Verified {
        records: 0,
        segments: 0,
        bytes: 0,
        last: Digest::ZERO,
        torn: None,
    };
    WorkspaceStatus {
        index,
        folded: Folded {
            verified,
            snapshot: None,
            passed_over: Vec::new(),
        },
        serving: Some(true),
        agents: place.bounds.policy.agents.keys().cloned().collect(),
        unjudged: PendingMail::default(),
        dead: Vec::new(),
        alerts: Vec::new(),
        host: None,
        heard: Vec::new(),
    }
}

/// The advice about one review.
struct Advised<'a> {
    place: &'a Place<'a>,
    key: &'a ReviewKey,
    line: Line,
    review: &'a Review,
}

impl Advised<'_> {
    /// Runs a command of `why`, `problems` or `threads`.
    fn command(&self, fix: &FixCommand) -> Result<(), Broken> {
        let words: Vec<&str> = fix.run.split(' ').collect();
        let last = || FindingId::new(*words.last().expect("a command has words")).expect("an id");
        match words.as_slice() {
            ["review", "reopen", ..] => self.decide(&words, Act::Reopen),
            ["review", "grant", ..] => self.decide(&words, Act::Grant { rounds: 1 }),
            ["thread", "resolve", ..] => self.decide(&words, Act::Resolve(last())),
            ["thread", "wont-fix", ..] => self.decide(&words, Act::WontFix(last())),
            ["thread", "queue", ..] => self.decide(&words, Act::Queue(last())),
            ["thread", "hold", ..] => self.decide(&words, Act::Hold(last())),
            ["thread", "release", ..] => self.decide(&words, Act::Release(last())),
            ["pr", "closed", ..] => self.happen(&self.pull(PullAction::Closed), &fix.run),
            ["pr", "merged", ..] => self.happen(&self.pull(PullAction::Merged), &fix.run),
            ["take", ..] => {
                let which = Which::at_work(self.key, self.review.reviewer(self.key));
                self.happen(&Event::Taken(which), &fix.run)
            }
            ["send", "review_request", .., "--declared-head", _] => {
                self.post(&self.authors().request_of_a_head, &fix.run)
            }
            ["send", "review_request", ..] => self.post(&self.authors().request, &fix.run),
            ["send", "review_addressed", ..] => self.post(&self.authors().addressed, &fix.run),
            ["feedback", ..] => self.respond(Response::Feedback, &fix.run),
            ["lgtm", ..] => self.approve(&fix.run),
            ["review", "approve", ..] => self.decide(&words, Act::Approve { head: None }),
            // These only read.
            ["brief" | "gate" | "threads" | "why", ..] => Ok(()),
            _ => Err(breach(&fix.run, "is a command the walk cannot run")),
        }
    }

    /// Does what a line of `legal_next` says.
    fn sentence(&self, next: &str) -> Result<(), Broken> {
        if next.starts_with("a person decides") {
            Ok(())
        } else if next == "a person can reopen the review" {
            self.decide(&[], Act::Reopen)
        } else if next.contains("review_feedback") {
            self.respond(Response::Feedback, next)
        } else if next.contains("review_lgtm") {
            let mut threads = self.review.threads.values();
            let passes = !threads.any(|thread| thread.blocking && thread.is_held());
            if passes { self.approve(next) } else { Ok(()) }
        } else if next.contains("review_addressed") {
            self.post(&self.authors().addressed, next)
        } else if next.contains("once the pull request is open again") {
            let state = self.after(&self.pull(PullAction::Reopened));
            self.post_in(&state, &self.authors().request, next)
        } else if next.contains("with a declared_head that was not approved") {
            self.post(&self.authors().request_of_a_head, next)
        } else {
            self.post(&self.authors().request, next)
        }
    }

    fn authors(&self) -> &crate::inputs::Advised {
        let Place { bounds, inputs, .. } = self.place;
        &inputs.hand(bounds, self.line, self.review.round).advised
    }

    /// Approves as the reviewer; if only a person may, escalates instead, as that refusal advises.
    fn approve(&self, said: &str) -> Result<(), Broken> {
        let barred = approval_barred(&self.place.bounds.policy, self.key, self.review);
        let response = if barred.is_empty() {
            Response::Lgtm
        } else {
            Response::Feedback
        };
        self.respond(response, said)
    }

    fn respond(&self, response: Response, said: &str) -> Result<(), Broken> {
        let Place { bounds, inputs, .. } = self.place;
        let is_open = |place: usize| {
            let name = crate::describe::NAMES[place].0;
            let mut open = self.review.open_threads();
            open.any(|(id, _)| id.as_str() == name)
        };
        let open: Vec<bool> = (0..bounds.slots.len()).map(is_open).collect();
        let round = self.review.round;
        self.post(
            &inputs.response(bounds, self.line, round, response, &open),
            said,
        )
    }

    fn post(&self, input: &Arc<Input>, said: &str) -> Result<(), Broken> {
        self.post_in(&self.place.state, input, said)
    }

    fn post_in(&self, state: &State, input: &Arc<Input>, said: &str) -> Result<(), Broken> {
        let posted = Posted {
            outbox: &input.outbox,
            digest: input.digest,
            valid: &input.valid,
        };
        match self.place.judge(state, now()).checked(posted) {
            Ok(Decision::Accept(_) | Decision::Duplicate(_)) => Ok(()),
            Err(refusal) => {
                let faults = refusal.faults.iter().map(|fault| fault.message.as_str());
                Err(self.refused(said, &faults.collect::<Vec<_>>().join("; ")))
            }
        }
    }

    fn decide(&self, words: &[&str], act: Act) -> Result<(), Broken> {
        let reviewer = words
            .iter()
            .skip_while(|word| **word != "--reviewer")
            .nth(1)
            .map(|name| agent(name));
        let decision = PersonsDecision {
            which: Which {
                pr: self.key.pr.clone(),
                repo: None,
                reviewer,
            },
            by: "anna".to_owned(),
            reason: "advised".to_owned(),
            act,
        };
        self.happen(&Event::Person(decision), &words.join(" "))
    }

    fn pull(&self, action: PullAction) -> Event {
        Event::Pull(PullEvent {
            repo: None,
            pr: PrNumber::clone(&self.key.pr),
            action,
            author: None,
            head: None,
        })
    }

    fn judged(&self, event: &Event) -> EventRecord {
        let told = ReportedEvent { order: None, event };
        let judge = self.place.judge(&self.place.state, now());
        judge.event(told, &mut crate::ids())
    }

    fn after(&self, event: &Event) -> State {
        let mut state = self.place.state.clone();
        apply(&mut state, &self.judged(event).into(), now());
        state
    }

    fn happen(&self, event: &Event, said: &str) -> Result<(), Broken> {
        match self.judged(event) {
            EventRecord::Happened(_) => Ok(()),
            EventRecord::Declined(declined) => Err(self.refused(said, &declined.why)),
        }
    }

    fn refused(&self, said: &str, why: &str) -> Broken {
        let phase: &Phase = &self.review.phase;
        breach(
            said,
            &format!(
                "is advised of {} ({}) and refused: {why}",
                self.key,
                phase.word()
            ),
        )
    }
}

fn breach(said: &str, why: &str) -> Broken {
    Broken::new(Invariant::AdviceHolds, format!("`{said}` {why}"))
}
