//! Finished reviews are never removed, so each takes few bytes. A binary of its own, so that every allocation it counts
//! is its own.

use peak_alloc::PeakAlloc;
use review::{Restore, Review, ReviewKey, State};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

const REVIEWS: usize = 1_000;

/// What a finished review may take: up to 500 bytes for itself, and its key and its places in the indexes.
const BYTES_MAX: usize = 700;

/// Two rounds, two findings, a diff that was read, two commands that were run.
const APPROVED: &str = include_str!("approved.json");

fn key(number: usize) -> ReviewKey {
    let agent = |name: &str| name.parse().expect("a name");
    let number = number.to_string().parse().expect("a number");
    ReviewKey::new(None, &number, agent("claude"), agent("codex"))
}

/// A state with so many reviews like this one.
fn state_of(count: usize, review: &Review) -> State {
    let keys: Vec<ReviewKey> = (0..count).map(key).collect();
    State::of(keys.iter().map(|key| (key, review)), [], [])
}

/// What a thousand more such reviews take, each.
fn bytes_each(review: &Review) -> usize {
    let start = ALLOCATED.current_usage();
    let few = state_of(REVIEWS, review);
    let of_few = ALLOCATED.current_usage() - start;
    drop(few);
    let start = ALLOCATED.current_usage();
    let _many = state_of(2 * REVIEWS, review);
    (ALLOCATED.current_usage() - start - of_few) / REVIEWS
}

#[test]
fn a_finished_review_takes_few_bytes_and_is_whole_when_asked_for() {
    let approved: Review = serde_json::from_str(APPROVED).expect("a review");
    let taken = bytes_each(&approved);
    assert!(taken <= BYTES_MAX, "{taken} bytes each");

    let start = ALLOCATED.current_usage();
    let mut state = state_of(REVIEWS, &approved);
    let folded = ALLOCATED.current_usage() - start;
    for number in 0..REVIEWS {
        assert_eq!(state.review(&key(number)), Some(&approved));
    }
    let asked_for = ALLOCATED.current_usage() - start;
    assert!(asked_for > 4 * folded, "{asked_for} of {folded}");
    state.release_finished();
    assert_eq!(ALLOCATED.current_usage() - start, folded);

    // A command that reads once and ends does not pay for folding.
    let start = ALLOCATED.current_usage();
    let mut reading = Restore::new(State::unfolded().emptied());
    state
        .write_lines(&mut |line| reading.take(line))
        .expect("the lines of a state");
    let reading = reading.into_state();
    assert!(ALLOCATED.current_usage() - start > 4 * folded);
    assert_eq!(reading, state);
}
