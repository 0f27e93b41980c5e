//! Every order of steps of three hosts and one log, and the flaws that this finds.

use settled_model::shared_log::{Flaw, SharedLog};
use stateright::{Checker, HasDiscoveries, Model};

/// The hosts: with two, no batch of a third one comes between a lost append and the next.
const HOSTS: usize = 3;

/// The files of each host. With one, the hosts meet in every way except successively.
const FILES: u8 = 1;

fn walk(flaw: Flaw, until: HasDiscoveries) -> impl Checker<SharedLog> {
    let model = SharedLog {
        flaw,
        hosts: HOSTS,
        files: FILES,
    };
    model
        .checker()
        .threads(2)
        .finish_when(until)
        .spawn_bfs()
        .join()
}

#[test]
fn in_no_order_of_steps_is_a_file_judged_twice_or_a_mirror_another() {
    let walked = walk(Flaw::Nothing, HasDiscoveries::AnyFailures);
    walked.assert_properties();
    let states = walked.unique_state_count();
    assert!(
        states > 1_000,
        "only {states} states: the walk is cut off somewhere"
    );
}

#[test]
fn the_walk_finds_each_flaw() {
    for (flaw, broken) in [
        (
            Flaw::NoFence,
            &[
                "every batch was judged on what it follows",
                "every file is judged once",
            ][..],
        ),
        (Flaw::NotJudgedAgain, &["every file is judged once"]),
        (
            Flaw::UnknownIsCommitted,
            &["every mirror is the log's beginning"],
        ),
    ] {
        let walked = walk(
            flaw,
            HasDiscoveries::AllOf(broken.iter().copied().collect()),
        );
        let found = walked.discoveries();
        for name in broken {
            assert!(
                found.contains_key(name),
                "{flaw:?}: {name}: {:?}",
                found.keys()
            );
        }
    }
}
