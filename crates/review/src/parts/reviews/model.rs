//! The reviews against a plain map, while batches are undone, snapshots are made elsewhere and processes start again.

use proptest::prelude::*;
use review_words::phase::{Invocation, Phase};

use super::tests::{approved, escalated, fixing, key};
use super::*;
use crate::parts::state::State;
use crate::parts::waiting::is_removal_of_review;

type Model = BTreeMap<ReviewKey, Review>;

#[derive(Clone, Debug)]
enum Step {
    /// The changes of one batch, and whether it commits.
    Batch(Vec<(usize, Review)>, bool),
    BeginSnapshot,
    /// Ends a snapshot, and tells whether the daemon heard that it was written.
    EndSnapshot(bool),
    /// The newest snapshot turns out to be damaged.
    LoseNewest,
    Restart,
    Release,
}

fn reviewing(minute: i64) -> Review {
    let at = DateTime::from_timestamp(60 * minute, 0).expect("a time");
    let invocation = serde_json::json!({
        "request": "m-1", "priority": "P1", "turns": 4, "runtime_s": 600, "pick_up_by": at, "attempts_left": 3,
        "supersessions_left": 2,
    });
    let invocation: Invocation = serde_json::from_value(invocation).expect("an invocation");
    Review {
        phase: Phase::Reviewing(invocation),
        ..approved()
    }
}

fn any_review() -> impl Strategy<Value = Review> {
    let reviews = prop_oneof![
        2 => (0..6_i64).prop_map(fixing),
        1 => (0..6_i64).prop_map(reviewing),
        1 => Just(escalated()),
        2 => Just(approved()),
    ];
    let reviewer = prop::option::weighted(0.2, Just("gemini".parse().expect("a name")));
    let fixes = prop::option::weighted(0.1, (1..3_u32).prop_map(task));
    (reviews, reviewer, fixes).prop_map(|(review, reassigned_to, fixes)| Review {
        reassigned_to,
        fixes,
        ..review
    })
}

fn task(number: u32) -> TaskId {
    TaskId::new(&key(0).pr, number.into())
}

fn any_step() -> impl Strategy<Value = Step> {
    let changes = prop::collection::vec((0..110_usize, any_review()), 1..30);
    prop_oneof![
        12 => (changes, prop::bool::weighted(0.6)).prop_map(|(changes, commits)| Step::Batch(changes, commits)),
        3 => Just(Step::BeginSnapshot),
        3 => any::<bool>().prop_map(Step::EndSnapshot),
        1 => Just(Step::LoseNewest),
        1 => Just(Step::Restart),
        1 => Just(Step::Release),
    ]
}

/// Fails unless the reviews answer as those of the model do.
fn compare(reviews: &Reviews, model: &Model) -> Result<(), TestCaseError> {
    for (key, review) in model {
        prop_assert_eq!(reviews.get(key), Some(review));
    }
    prop_assert!(reviews.iter().eq(model.iter()), "all of them");
    let requested = |(_, review): &(&ReviewKey, &Review)| review.phase.invocation().is_some();
    prop_assert!(reviews.iter_requested().eq(model.iter().filter(requested)));
    let mut deadlines: Vec<_> = model
        .iter()
        .filter_map(|(key, review)| Some((review.deadline()?.0, key, review.reviewer(key))))
        .collect();
    deadlines.sort_unstable();
    prop_assert!(reviews.deadlines().eq(deadlines), "the deadlines");
    let mut phases: BTreeMap<String, u64> = BTreeMap::new();
    let mut open: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    let mut claims: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (key, review) in model {
        *phases.entry(review.phase.word().to_owned()).or_default() += 1;
        if let Some(pair) = open_with(key, review) {
            open.entry(pair).or_default().insert(Arc::new(key.clone()));
        }
        if let Some(task) = review.fixes.clone() {
            claims
                .entry(task)
                .or_default()
                .insert(Arc::new(key.clone()));
        }
    }
    prop_assert_eq!(reviews.phases(), phases);
    prop_assert_eq!((&reviews.open, &reviews.claims), (&open, &claims));
    let current: BTreeSet<_> = reviews.iter_current().map(|(key, _)| key).collect();
    let somebody_acts = model.iter().filter(|(_, review)| !review.is_at_rest());
    prop_assert!(
        somebody_acts
            .into_iter()
            .all(|(key, _)| current.contains(key))
    );
    Ok(())
}

/// Applies a change as a message does: it makes the review if there is none.
fn apply(reviews: &mut Reviews, key: &ReviewKey, review: &Review) {
    let make = reviews.get(key).is_none().then(|| review.clone());
    reviews.change(key, make, |known| known.clone_from(review));
}

/// The committed batches since a snapshot.
type Log = Vec<Vec<(usize, Review)>>;

/// Returns the state of another process that goes on from a snapshot.
fn replayed((snapshot, log): &(State, Log)) -> State {
    let mut state = snapshot.clone();
    for (number, review) in log.iter().flatten() {
        apply(&mut state.reviews, &key(*number), review);
    }
    state
}

/// Returns the state as a snapshot restores it, which leaves removals out if nothing is beneath them.
fn restored(state: &State) -> State {
    let mut restored = state.through_snapshot().expect("its own lines");
    let mut rows = state.rows();
    rows.retain(|key, value| !is_removal_of_review(key, value));
    restored.rest_on(&(Arc::new(rows) as _));
    restored
}

fn play(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let (mut here, mut model) = (State::default(), Model::new());
    // The snapshots on the disk, the newest last. Another process makes them, from the one before and the records alone:
    // batches that are undone never reach it.
    let mut disk = vec![(State::default(), Log::new())];
    let mut made: Option<(State, Log)> = None;
    let many = (0..80).map(|number| (number, fixing(3))).collect();
    for step in [Step::Batch(many, true)].into_iter().chain(steps) {
        match step {
            Step::Batch(changes, commits) => {
                let (before, mut undo) = (model.clone(), Vec::new());
                for (number, review) in &changes {
                    let key = key(*number);
                    undo.push((key.clone(), here.reviews.get(&key).cloned()));
                    apply(&mut here.reviews, &key, review);
                    model.insert(key, review.clone());
                }
                compare(&here.reviews, &model)?;
                if commits {
                    let logs = disk.iter_mut().chain(&mut made);
                    logs.for_each(|(_, log)| log.push(changes.clone()));
                } else {
                    for (key, before) in undo.into_iter().rev() {
                        here.reviews.put_back(&key, before);
                    }
                    model = before;
                }
            }
            Step::BeginSnapshot if made.is_none() => {
                here.begin_snapshot();
                let maker = replayed(disk.last().expect("the first"));
                compare(&maker.reviews, &model)?;
                made = Some((restored(&maker), Log::new()));
            }
            Step::BeginSnapshot => {}
            Step::EndSnapshot(is_written) => match made.take() {
                Some(made) if is_written => {
                    here.rest_on(&(Arc::new(made.0.rows()) as _));
                    disk.push(made);
                }
                Some(made) => {
                    here.give_up_snapshot();
                    // Its file may be there all the same.
                    disk.push(made);
                }
                None => {}
            },
            Step::LoseNewest if disk.len() > 1 => drop(disk.pop()),
            Step::LoseNewest => {}
            Step::Restart => {
                made = None;
                here = replayed(disk.last().expect("the first"));
            }
            Step::Release => here.reviews.release(),
        }
        compare(&here.reviews, &model)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]
    #[test]
    fn reviews_are_those_of_a_map_whatever_became_a_row(steps in prop::collection::vec(any_step(), 1..25)) {
        play(steps)?;
    }
}
