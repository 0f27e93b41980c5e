//! With a snapshot, a daemon keeps rarely needed state on disk. A test binary of its own, so that it counts only its
//! own allocations.

use peak_alloc::PeakAlloc;
use review::{Review, ReviewKey, State};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

const REVIEWS: usize = 250;

/// The memory of a review without an open request, until the next snapshot, in bytes: for itself, and with its key and
/// index entries.
const ITSELF_MAX: usize = 500;
const BYTES_MAX: usize = 700;

/// What stays in memory of a review that waits for its author: its key, its deadline and its agents.
const OPEN_MAX: usize = 300;

/// Two rounds, two findings, a diff that was read, two commands that were run.
const APPROVED: &str = include_str!("approved.json");

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

/// Returns the bytes that each of as many more such reviews takes.
fn bytes_each(review: &Review) -> usize {
    let start = ALLOCATED.current_usage();
    let few = state_of(REVIEWS, review);
    let of_few = ALLOCATED.current_usage() - start;
    drop(few);
    let start = ALLOCATED.current_usage();
    let _many = state_of(2 * REVIEWS, review);
    (ALLOCATED.current_usage() - start - of_few) / REVIEWS
}

/// The rows of a snapshot, outside of the counted memory.
#[derive(Debug)]
struct Elsewhere(Vec<(review::RowKey, Vec<u8>)>);

impl review::StoredRows for Elsewhere {
    fn visit(&self, prefix: &[u8], visit: &mut dyn FnMut(review::RowKey, &[u8])) {
        let rows = self.0.iter().filter(|(key, _)| key.starts_with(prefix));
        rows.for_each(|(key, value)| visit(*key, value));
    }
}

#[test]
fn a_review_without_an_open_request_takes_few_bytes_and_hardly_any_after_a_snapshot() {
    let approved: serde_json::Value = serde_json::from_str(APPROVED).expect("JSON");
    let mut escalated = approved.clone();
    escalated["phase"] = serde_json::json!({"escalated": "max_rounds_exceeded"});
    for review in [approved, escalated] {
        takes_few_bytes(&serde_json::from_value(review).expect("a review"), 0);
    }
    let mut fixing: serde_json::Value = serde_json::from_str(APPROVED).expect("JSON");
    fixing["phase"] = serde_json::json!({"fixing": {"due": "2026-02-15T10:20:00Z"}});
    takes_few_bytes(&serde_json::from_value(fixing).expect("a review"), OPEN_MAX);
}

/// Fails if a review like this one takes more than a few bytes, or more than `left_max` after a snapshot.
fn takes_few_bytes(review: &Review, left_max: usize) {
    let taken = bytes_each(review);
    assert!(taken <= BYTES_MAX + left_max, "{taken} bytes each");

    let mut states = [REVIEWS, 2 * REVIEWS].map(|count| state_of(count, review));
    let itself = states[0].new_rows().map(|(_, value)| value.len()).max();
    assert!(
        itself.is_some_and(|bytes| (100..=ITSELF_MAX).contains(&bytes)),
        "{itself:?}"
    );
    let stored = states.each_mut().map(|state| {
        let rows = state.new_rows().map(|(key, value)| (key, value.to_vec()));
        std::sync::Arc::new(Elsewhere(rows.collect())) as std::sync::Arc<dyn review::StoredRows>
    });
    let [few, many] = &mut states;
    let in_memory = ALLOCATED.current_usage();
    few.rest_on(&stored[0]);
    let without_few = ALLOCATED.current_usage();
    many.rest_on(&stored[1]);
    let without_many = ALLOCATED.current_usage();
    assert!(
        without_few - without_many > 500 * REVIEWS,
        "they were given back"
    );
    for number in 0..2 * REVIEWS {
        assert_eq!(many.review(&key(number)), Some(review));
    }
    assert!(ALLOCATED.current_usage() > without_many + 1024 * REVIEWS);
    many.release_finished();
    assert!(ALLOCATED.current_usage() < without_many + REVIEWS);
    let [of_few, of_many] = states.map(|state| {
        let start = ALLOCATED.current_usage();
        drop(state);
        start - ALLOCATED.current_usage()
    });
    assert!(
        of_many < of_few + REVIEWS + left_max * REVIEWS,
        "{of_few} bytes beside {REVIEWS} reviews, {of_many} beside twice as many; {in_memory} before"
    );
}
