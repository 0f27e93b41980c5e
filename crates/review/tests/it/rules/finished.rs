//! Reviews at rest are rows, but no answer about them differs.

use review::{
    CloseReason, Deadline, Event, EventRecord, Happened, Phase, Record, Review, ReviewKey,
    ReviewStep, State, Undo,
};

use crate::table::kept;

fn key(number: usize) -> ReviewKey {
    let agent = |name: &str| name.parse().expect("a name");
    let number = number.to_string().parse().expect("a number");
    ReviewKey::new(None, &number, agent("claude"), agent("codex"))
}

/// Returns a state with `count` reviews like this one.
fn state_of(count: usize, review: &Review) -> State {
    let keys: Vec<ReviewKey> = (0..count).map(key).collect();
    State::of(keys.iter().map(|key| (key, review)), [], [])
}

#[test]
fn reviews_at_rest_are_in_the_snapshot_and_change_as_others_do() {
    let approved: Review =
        serde_json::from_str(include_str!("../../approved.json")).expect("a review");
    let mut state = state_of(200, &approved);
    let mut restored = kept(&state);
    assert_eq!(restored, state);

    // The first to rest is a row.
    let key = key(0);
    let closed = Phase::Closed(CloseReason::Merged);
    let step = ReviewStep::to(&key, 2, closed.clone());
    let record = Record::Event(EventRecord::Happened(Box::new(Happened {
        home_away: false,
        event: Event::Deadline {
            review: key.clone(),
            which: Deadline::Author,
        },
        order: None,
        steps: vec![step],
        messages: Vec::new(),
        handoff: None,
        pair: None,
    })));
    let undo = Undo::of(&state, &record, approved.since);
    review::apply(&mut state, &record, approved.since);
    let changed = state.review(&key).expect("a review");
    assert_eq!(
        (&changed.phase, &changed.threads),
        (&closed, &approved.threads)
    );
    assert_ne!(restored, state);
    undo.revert(&mut state);
    assert_eq!(restored, state);
    review::apply(&mut state, &record, approved.since);
    review::apply(&mut restored, &record, approved.since);
    assert_eq!(restored, state);
}
