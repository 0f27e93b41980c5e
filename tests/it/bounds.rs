//! The bounds in seconds that hold whatever an outbox contains, on the real daemon and by its own clock.
//! `cargo xtask bench neighbour --noise "held files"` measures them beside more files.

use settled_tests::crowd::{
    AGENTS, DEADLINE_MS_MAX, ORDER_MS_MAX, TAKE_MS_MAX, Waits, waits_beside,
};
use settled_tests::mailroom::Mailroom;
use settled_tests::{binaries, names};

/// Enough that they are not all judged within the bounds.
const CROWD: usize = 2_000;

/// The time that a command takes to start and a busy machine to do all this, in milliseconds.
const SLACK_MS: i64 = 3_000;

#[test]
fn an_order_a_take_and_a_deadline_come_in_time_beside_thousands_of_held_files() {
    let mailroom = Mailroom::new(&AGENTS);
    let daemon = mailroom.serve();
    let waits = waits_beside(mailroom.root(), &binaries::settled(), CROWD);
    let left = names(mailroom.agent("mallory", "outbox")).len();
    let Waits {
        order,
        take,
        deadline,
    } = waits;
    assert!(order <= ORDER_MS_MAX + SLACK_MS, "{waits:?}");
    assert!(take <= TAKE_MS_MAX + SLACK_MS, "{waits:?}");
    // Not one of the files is of the review's agents.
    assert!(deadline < DEADLINE_MS_MAX / 2, "{waits:?}");
    assert!(left > 0, "the crowd was judged before all this: {waits:?}");
    daemon.kill();
}
