//! Finds a message's review and checks who may send it.

use super::{ok, refused};
use crate::table::{Note, Table, agent, claude, codex};
use review::Role;

#[test]
fn roles_do_not_swap_and_no_third_agent_joins() {
    let mut table = Table::default();
    table.request().expect("opens");
    let body = "pr: 86\nbranch: b\ndiff_summary: s";
    let swapped = Note {
        from: "codex",
        to: "claude",
        body,
        ..claude("review_request")
    };
    assert_eq!(table.send(&swapped), refused(&["wrong_direction"]));
    let lgtm = "quality_gate_result: pass\nmerge_ready: true";
    let own = Note {
        from: "claude",
        to: "codex",
        body: lgtm,
        ..codex("review_lgtm")
    };
    assert_eq!(table.send(&own), refused(&["wrong_direction"]));
    let third = Note {
        from: "gemini",
        to: "claude",
        body: lgtm,
        ..codex("review_lgtm")
    };
    assert_eq!(table.send(&third), refused(&["wrong_direction"]));
    let other_author = Note {
        from: "gemini",
        to: "codex",
        body,
        ..claude("review_request")
    };
    assert_eq!(table.send(&other_author), refused(&["wrong_direction"]));
}

#[test]
fn a_configured_role_is_judged_first() {
    let mut table = Table::default();
    table
        .policy
        .agents
        .insert(agent("codex"), [Role::Author].into());
    assert_eq!(table.request(), refused(&["wrong_direction"]));
    table
        .policy
        .agents
        .insert(agent("codex"), [Role::Reviewer].into());
    assert_eq!(table.request(), ok("reviewing"));
}

#[test]
fn a_message_without_a_pull_request_finds_its_review() {
    let mut table = Table::default();
    table.request().expect("opens");
    let lgtm = "quality_gate_result: pass\nmerge_ready: true";
    assert_eq!(
        table.send(&Note {
            envelope: "",
            body: lgtm,
            ..codex("review_lgtm")
        }),
        ok("approved")
    );
}

#[test]
fn between_two_open_reviews_the_parent_decides() {
    let mut table = Table::default();
    table.request().expect("opens"); // msg-1
    let other = Note {
        envelope: "related_pr: 87\n",
        body: "pr: 87\nbranch: b\ndiff_summary: s",
        ..claude("review_request")
    };
    table.send(&other).expect("opens");
    let body = "quality_gate_result: pass\nmerge_ready: true";
    let lgtm = |envelope| Note {
        envelope,
        body,
        ..codex("review_lgtm")
    };
    assert_eq!(table.send(&lgtm("")), refused(&["review_ambiguous"]));
    assert_eq!(
        table.send(&lgtm("parent_message_id: msg-1\n")),
        ok("approved")
    );
    assert_eq!(
        table.review().phase.word(),
        "approved",
        "the review of pull request 86"
    );
}

#[test]
fn the_only_open_review_of_a_number_needs_no_repository() {
    let mut table = Table::default();
    table.request_with("repo: o/x").expect("opens");
    table.request_with("repo: o/y").expect("opens");
    let both = "quality_gate_result: pass\nmerge_ready: true";
    assert_eq!(
        table.send(&Note {
            body: both,
            ..codex("review_lgtm")
        }),
        refused(&["review_ambiguous"])
    );
    let first = Note {
        envelope: "related_pr: 86\nparent_message_id: msg-1\n",
        body: both,
        ..codex("review_lgtm")
    };
    assert_eq!(table.send(&first), ok("approved"));
    assert_eq!(
        table.send(&Note {
            body: both,
            ..codex("review_lgtm")
        }),
        ok("approved")
    );
}

#[test]
fn naming_the_repository_is_no_way_to_a_fresh_count() {
    let mut table = Table::default();
    table.request().expect("opens");
    table
        .feedback_with(1, "escalation: stuck", "F-001 P0 open")
        .expect("escalates");
    assert_eq!(table.request_with("repo: o/x"), refused(&["review_closed"]));
    let mut table = Table::default();
    table.request_with("repo: O/X").expect("opens");
    assert_eq!(
        table.request_with("repo: o/x"),
        refused(&["request_already_open"])
    );
    assert_eq!(table.request(), refused(&["request_already_open"]));
}
