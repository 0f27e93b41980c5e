//! The walks that fit into the suite, and the thread rules by themselves. `cargo xtask walk` takes
//! the large ones.

use message_schema::packet::Stance::{self, Accepts, SeeksChange};
use review::REPLIES_MAX;
use settled_walk::{Replies, alone, follow, run, small};

#[test]
fn every_law_holds_on_every_step_within_small_bounds() {
    for bounds in small() {
        let report = run(bounds, 2);
        assert!(report.broken.is_empty(), "{report}");
        assert!(report.states > 20 && report.accepted > 20 && report.refused > 20, "hardly walked: {report}");
    }
}

#[test]
fn the_rules_of_a_thread_end_it_without_a_limit_on_rounds() {
    let (states, way) = alone(Replies::Counted);
    assert_eq!(way, None, "a step does not lower the rank");
    assert!(states > 20, "only {states} states");
}

#[test]
fn the_stance_rule_alone_ends_a_stance_that_is_held() {
    let (cycles, comes_back) = follow(Replies::Forgotten, [SeeksChange; 10]);
    assert_eq!((cycles.len(), comes_back), (2, false), "opened, one reply, then no more");
}

#[test]
fn the_stance_rule_alone_does_not_end_a_stance_that_flips() {
    let flips: Vec<Stance> = [Accepts, SeeksChange].into_iter().cycle().take(100).collect();
    let (cycles, comes_back) = follow(Replies::Forgotten, flips.clone());
    assert!(comes_back, "the thread is where it was after {} cycles", cycles.len());
    assert!(alone(Replies::Forgotten).1.is_some(), "the walk does not find it");

    let (cycles, comes_back) = follow(Replies::Counted, flips);
    assert_eq!((cycles.len(), comes_back), (1 + usize::from(REPLIES_MAX), false));
}
