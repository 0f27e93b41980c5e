//! The walks that fit into the suite, and the thread rules alone. `cargo xtask model` runs the large ones.

use std::collections::BTreeSet;

use message_schema::Code;
use message_schema::packet::Stance::{self, Accepts, SeeksChange};
use review::REPLIES_MAX;
use settled_model::{Replies, alone, follow, run_all, small};

/// Each end of a review; a walk without one of them would prove nothing about it.
const ENDS: [&str; 17] = [
    "approved",
    "approved by a person",
    "approved by rule",
    "closed commented",
    "closed merged",
    "closed not_merged",
    "escalated author_timeout",
    "escalated blocker_held",
    "escalated cancelled",
    "escalated invocation_failed",
    "escalated max_rounds_exceeded",
    "escalated no_reviewer",
    "escalated protocol_violation",
    "escalated reviewer's words",
    "escalated reviewer_budget_exceeded",
    "escalated reviewer_timeout",
    "escalated spend_exceeded",
];

/// The codes that must occur in the walks, so that no rule is silently out of reach.
const CODES: [Code; 21] = [
    Code::SenderMismatch,
    Code::WrongDirection,
    Code::NoOpenRequest,
    Code::DuplicateTerminalResponse,
    Code::InvocationClosed,
    Code::RoundMismatch,
    Code::AddressedRequired,
    Code::RequestAlreadyOpen,
    Code::SupersedesUnknown,
    Code::RoundLimitExceeded,
    Code::AlreadyApproved,
    Code::IterationLimitExceeded,
    Code::ReviewClosed,
    Code::TurnBudgetExceeded,
    Code::QualityGateViolation,
    Code::HeadMismatch,
    Code::ActionMissing,
    Code::ThreadUnknown,
    Code::ThreadNotOpen,
    Code::ActionIllegal,
    Code::DuplicateFinding,
];

#[test]
fn every_law_holds_on_every_step_within_small_bounds() {
    let (mut ends, mut codes, mut most) = (BTreeSet::new(), BTreeSet::new(), 0);
    for report in run_all(small(), 2, &|_| ()) {
        assert!(report.broken.is_empty(), "{report}");
        most = most.max(report.most);
        ends.extend(report.ends.into_keys());
        codes.extend(report.codes);
    }
    assert_eq!(
        most, 8,
        "two rounds and one granted: three requests, three responses, two reports between them"
    );
    assert_eq!(ends.iter().map(String::as_str).collect::<Vec<_>>(), ENDS);
    let missed: Vec<_> = CODES.iter().filter(|code| !codes.contains(code)).collect();
    assert!(
        missed.is_empty(),
        "{missed:?} were never met, but {codes:?}"
    );
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
    assert_eq!(
        (cycles.len(), comes_back),
        (2, false),
        "opened, one reply, then no more"
    );
}

#[test]
fn the_stance_rule_alone_does_not_end_a_stance_that_flips() {
    let flips: Vec<Stance> = [Accepts, SeeksChange]
        .into_iter()
        .cycle()
        .take(100)
        .collect();
    let (cycles, comes_back) = follow(Replies::Forgotten, flips.clone());
    assert!(
        comes_back,
        "the thread is where it was after {} cycles",
        cycles.len()
    );
    assert!(
        alone(Replies::Forgotten).1.is_some(),
        "the walk does not find it"
    );

    let (cycles, comes_back) = follow(Replies::Counted, flips);
    assert_eq!(
        (cycles.len(), comes_back),
        (1 + usize::from(REPLIES_MAX), false)
    );
}
