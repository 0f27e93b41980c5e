//! Every order of steps of two hosts and one log, and the flaws that it finds.

use settled_walk::shared_log::{Flaw, SharedLog};
use stateright::{Checker, Model};

fn broken(flaw: Flaw) -> Vec<&'static str> {
    let walked = SharedLog { flaw }.checker().threads(2).spawn_bfs().join();
    let mut broken: Vec<&'static str> = walked.discoveries().into_keys().collect();
    broken.retain(|name| *name != "all files are judged");
    broken.sort_unstable();
    broken
}

#[test]
fn in_no_order_of_steps_is_a_file_judged_twice_or_a_mirror_another() {
    let walked = SharedLog {
        flaw: Flaw::Nothing,
    }
    .checker()
    .threads(2)
    .spawn_bfs()
    .join();
    walked.assert_properties();
    let states = walked.unique_state_count();
    assert!(
        states > 10_000,
        "only {states} states: the walk is cut off somewhere"
    );
}

#[test]
fn the_walk_finds_each_flaw() {
    assert_eq!(
        broken(Flaw::NoFence),
        [
            "every batch was judged on what it follows",
            "every file is judged once"
        ]
    );
    assert!(!broken(Flaw::NotJudgedAgain).is_empty());
    assert_eq!(
        broken(Flaw::UnknownIsCommitted),
        ["every mirror is the log's beginning"]
    );
}
