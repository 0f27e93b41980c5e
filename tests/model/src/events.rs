//! The events of a walk besides messages: deadlines, takes, turns, pull requests, people.

use chrono::{DateTime, Utc};
use message_schema::id::{CommitSha, PrNumber};
use message_schema::spend::Spend;
use review::{
    Event, FailureCause, PersonsDecision, PullAction, PullEvent, RunFailure, RunSpend, Which,
};

use crate::bounds::Bounds;
use crate::inputs::minute;
use crate::state::Node;

/// Returns the events possible in this state, each with its time.
pub(crate) fn events(bounds: &Bounds, node: &Node) -> Vec<(Event, DateTime<Utc>)> {
    let mut events = Vec::new();
    for (key, tracked) in &node.reviews {
        if let Some((at, which)) = tracked.review.deadline() {
            events.push((
                Event::Deadline {
                    review: key.clone(),
                    which,
                },
                at,
            ));
        }
        if bounds.counts {
            let which = Which::at_work(key, tracked.review.reviewer(key));
            events.push((Event::Taken(which.clone()), minute(2)));
            events.push((
                Event::Turns {
                    which: which.clone(),
                    count: 1,
                },
                minute(3),
            ));
            events.push((
                Event::Turns {
                    which: which.clone(),
                    count: u16::MAX,
                },
                minute(3),
            ));
            events.push((Event::Started(which.clone()), minute(4)));
            for cause in [
                FailureCause::GaveUp,
                FailureCause::Crashed,
                FailureCause::Quota,
            ] {
                let failure = RunFailure {
                    cause,
                    why: "it said so".to_owned(),
                    retry_after: None,
                    run: None,
                };
                let which = which.clone();
                events.push((Event::Failed { which, failure }, minute(5)));
            }
        }
        // A review's spending grows with each report; beyond its limit there is nothing left to check.
        let limit = bounds.policy.budget.per_review.tokens.unwrap_or(0);
        if tracked.review.spent.tokens < limit {
            let report = RunSpend {
                review: key.clone(),
                agent: tracked.review.reviewer(key).clone(),
                run: "run".to_owned(),
                spend: Spend::tokens(1),
            };
            events.push((Event::Spent(report), minute(5)));
        }
        for act in &bounds.acts {
            let (which, by, reason) = (Which::of(key), "anna".to_owned(), "seen".to_owned());
            let decision = PersonsDecision {
                which,
                by,
                reason,
                act: act.clone(),
            };
            events.push((Event::Person(decision), minute(7)));
        }
    }
    if bounds.pulls {
        use PullAction::{Closed, Merged, Opened, Reopened, Synchronize};
        let heads = [
            (Opened, "aaaaaa1"),
            (Synchronize, "cccccc1"),
            (Closed, ""),
            (Merged, ""),
            (Reopened, ""),
        ];
        // With two pull requests, leave out the events that only show an approval or make it stale.
        let heads = if bounds.prs.len() == 1 {
            &heads[..]
        } else {
            &heads[2..]
        };
        let of_each = bounds
            .prs
            .iter()
            .flat_map(|pr| heads.iter().map(move |(action, head)| (pr, *action, head)));
        for (pr, action, head) in of_each {
            let pull = PullEvent {
                repo: None,
                pr: PrNumber::new(*pr).expect("a number"),
                action,
                author: bounds.pull_author.map(str::to_owned),
                head: CommitSha::new(*head).ok(),
            };
            events.push((Event::Pull(pull), minute(6)));
        }
    }
    events
}
