//! The daemon dies between commit and delivery. The state it reads back from the ledger, line by line through JSON,
//! must be the one it had.

use chrono::{DateTime, Utc};
use review::{Record, State, apply};

use crate::edge::{Edge, What};
use crate::invariants::{Broken, Invariant};
use crate::moves::Place;
use crate::state::{Line, Node, settle_thread};

/// Adds the steps from a committed record: the daemon delivers, or dies and starts again.
pub(crate) fn edges(place: &Place<'_>, edges: &mut Vec<Edge>) {
    let delivered = Node {
        waiting: false,
        ..place.node.clone()
    };
    let broken = started_again(place.node, &delivered).err();
    edges.push(Edge {
        what: What::Crashed,
        next: Box::new(Node {
            broken,
            ..delivered.clone()
        }),
    });
    edges.push(Edge {
        what: What::Delivered,
        next: Box::new(delivered),
    });
}

fn started_again(node: &Node, expected: &Node) -> Result<(), Broken> {
    let mut lines = Vec::new();
    let mut last = node.ledger.as_deref();
    while let Some(Line { record, at, before }) = last {
        lines.push((record, *at));
        last = before.as_deref();
    }
    let mut state = State::of([], [], &[]);
    for (record, at) in lines.into_iter().rev() {
        read_back(record, at, &mut state)?;
    }
    for (key, tracked) in &expected.reviews {
        let mut review = state.review(key).cloned();
        if let Some(review) = &mut review {
            review.since = tracked.review.since;
            review.failed = None;
            review.past_requests.clear();
            review.threads.values_mut().for_each(settle_thread);
        }
        if review.as_ref() != Some(&tracked.review) {
            return Err(Broken::new(
                Invariant::CrashesLoseNothing,
                format!("{review:?}, but it was {tracked:?}"),
            ));
        }
    }
    Ok(())
}

fn read_back(record: &Record, at: DateTime<Utc>, state: &mut State) -> Result<(), Broken> {
    let broken = |why: String| Broken::new(Invariant::CrashesLoseNothing, why);
    let json = serde_json::to_string(record).map_err(|error| broken(error.to_string()))?;
    let read: Record =
        serde_json::from_str(&json).map_err(|error| broken(format!("{error}: {json}")))?;
    if read != *record {
        return Err(broken(format!("{json} reads back as {read:?}")));
    }
    apply(state, &read, at);
    Ok(())
}
