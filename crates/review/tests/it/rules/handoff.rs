//! Handoff, in the order of the protocol: the first reason that matches wins.

use super::ok;
use crate::table::{Table, agent};
use message_schema::packet::Severity;
use review::{Act, HandoffMode, PullAction};

/// Returns a table after one round of feedback with these findings; those not resolved go to gemini.
fn raised(mode: HandoffMode, findings: &str) -> Table {
    let mut table = Table::default();
    table.policy.handoff.mode = mode;
    table.policy.handoff.target = Some(agent("gemini"));
    table.request().expect("opens");
    assert_eq!(table.feedback(1, findings), ok("fixing"));
    table
}

const THREE: &str = "F-1 P0 open title: injection; file: a.rs; category: security
F-2 P2 open title: untested branch; file: b.rs; category: tests; blocking: false
F-3 P1 open title: secret in source; file: a.rs; line: 90; category: security";

fn merged(table: &mut Table) -> (Vec<String>, Vec<String>) {
    table.pull(PullAction::Merged, None).expect("merged");
    table.handoff()
}

#[test]
fn findings_of_one_file_and_target_are_one_task() {
    let mut table = raised(HandoffMode::Full, THREE);
    let (tasks, left) = merged(&mut table);
    assert_eq!(
        tasks,
        [
            "handoff-pr86-1 -> gemini F-1 F-3",
            "handoff-pr86-2 -> gemini F-2"
        ]
    );
    assert!(left.is_empty());
}

#[test]
fn findings_without_a_file_go_alone() {
    let mut table = raised(
        HandoffMode::Full,
        "F-1 P1 open title: one\nF-2 P1 open title: two",
    );
    assert_eq!(merged(&mut table).0.len(), 2);
}

#[test]
fn nothing_is_handed_off_before_the_merge() {
    let mut table = raised(HandoffMode::Full, THREE);
    for action in [
        PullAction::Opened,
        PullAction::Synchronize,
        PullAction::Reopened,
    ] {
        table.pull(action, None).expect("noted");
        assert_eq!(table.handoff(), (vec![], vec![]));
    }
}

#[test]
fn an_unmerged_pull_request_drops_what_was_queued() {
    let mut table = raised(HandoffMode::Full, THREE);
    table
        .person(Act::Queue("F-1".parse().expect("an id")))
        .expect("queued");
    table.pull(PullAction::Closed, None).expect("closed");
    let Some(happened) = table.last_record().happened() else {
        unreachable!()
    };
    let handoff = happened.handoff.as_ref().expect("judged");
    assert_eq!((handoff.dropped, handoff.tasks.len()), (1, 0));
    assert!(
        handoff
            .left
            .iter()
            .all(|left| left.why.word() == "not_merged")
    );
    table.policy.handoff.mode = HandoffMode::Off;
    assert_eq!(merged(&mut table).0.len(), 0, "it is not queued any more");
}

#[test]
fn a_finding_is_dispatched_once_however_often_the_event_comes() {
    let mut table = raised(HandoffMode::Full, THREE);
    merged(&mut table);
    let (tasks, left) = merged(&mut table);
    assert!(tasks.is_empty());
    assert_eq!(
        left,
        [
            "F-1 already_handed_off",
            "F-2 already_handed_off",
            "F-3 already_handed_off"
        ]
    );
}

#[test]
fn the_threshold_holds_back_what_is_milder() {
    let mut table = raised(HandoffMode::Threshold, THREE);
    let (tasks, left) = merged(&mut table);
    assert_eq!(
        (tasks.len(), left),
        (1, vec!["F-2 below_threshold".to_owned()])
    );
    let mut table = raised(HandoffMode::Threshold, THREE);
    table.policy.handoff.threshold = Severity::P0;
    assert_eq!(
        merged(&mut table).1,
        ["F-2 below_threshold", "F-3 below_threshold"]
    );
}

#[test]
fn a_list_of_categories_leaves_the_others_out() {
    let mut table = raised(HandoffMode::Threshold, THREE);
    table.policy.handoff.threshold = Severity::P3;
    table.policy.handoff.categories.insert("tests".to_owned());
    let (tasks, left) = merged(&mut table);
    assert_eq!(tasks, ["handoff-pr86-1 -> gemini F-2"]);
    assert_eq!(left, ["F-1 category_excluded", "F-3 category_excluded"]);
}

#[test]
fn a_bot_s_pull_request_hands_nothing_off_by_itself() {
    let mut table = raised(HandoffMode::Full, THREE);
    table.policy.handoff.bots.insert("fixer[bot]".to_owned());
    table
        .person(Act::Queue("F-2".parse().expect("an id")))
        .expect("queued");
    table
        .pull_by("fixer[bot]", PullAction::Merged, None)
        .expect("merged");
    let (tasks, left) = table.handoff();
    assert_eq!(
        tasks,
        ["handoff-pr86-1 -> gemini F-2"],
        "a person's word crosses the guard"
    );
    assert_eq!(left, ["F-1 bot_author", "F-3 bot_author"]);
}

#[test]
fn an_event_without_an_author_is_of_the_review_s() {
    let mut table = raised(HandoffMode::Full, THREE);
    table.policy.handoff.bots.insert("claude".to_owned());
    let merged = review::PullEvent {
        repo: None,
        pr: "86".parse().expect("a number"),
        action: PullAction::Merged,
        author: None,
        head: None,
    };
    table
        .on_event(&review::Event::Pull(merged))
        .expect("merged");
    assert_eq!(table.handoff().0, Vec::<String>::new());
}

#[test]
fn off_is_off_but_for_what_a_person_queued() {
    let mut table = raised(HandoffMode::Off, THREE);
    assert_eq!(
        merged(&mut table).1,
        ["F-1 mode_off", "F-2 mode_off", "F-3 mode_off"]
    );
    table
        .person(Act::Queue("F-3".parse().expect("an id")))
        .expect("queued after the merge");
    assert_eq!(merged(&mut table).0, ["handoff-pr86-1 -> gemini F-3"]);
    let again = table.person(Act::Queue("F-3".parse().expect("an id")));
    assert_eq!(again, Err("decision_invalid".to_owned()));
}

#[test]
fn the_target_is_the_finding_s_then_its_category_s_then_the_project_s() {
    let findings = "F-1 P1 open title: one; file: a.rs; target: codex\nF-2 P1 open title: two; file: b.rs; category: docs\nF-3 P1 open title: three; file: c.rs\nF-4 P1 open title: four; file: d.rs; target: nobody";
    let mut table = raised(HandoffMode::Full, findings);
    table
        .policy
        .handoff
        .routes
        .insert("docs".to_owned(), agent("claude"));
    let (tasks, left) = merged(&mut table);
    assert_eq!(
        tasks,
        [
            "handoff-pr86-1 -> claude F-2",
            "handoff-pr86-2 -> codex F-1",
            "handoff-pr86-3 -> gemini F-3"
        ]
    );
    assert_eq!(left, ["F-4 no_target"]);
}

#[test]
fn what_a_verify_run_found_is_never_handed_off() {
    let mut table = Table::default();
    table.policy.handoff.mode = HandoffMode::Full;
    table.policy.handoff.target = Some(agent("gemini"));
    table.policy.handoff.verify_agents.insert(agent("claude"));
    table.request_with("run_trigger: verify").expect("opens");
    table.feedback(1, "F-1 P1 open").expect("feedback");
    table
        .person(Act::Queue("F-1".parse().expect("an id")))
        .expect("queued");
    assert_eq!(merged(&mut table).1, ["F-1 verify_run"]);
}

#[test]
fn verify_said_by_another_agent_is_ignored_with_a_warning() {
    let mut table = Table::default();
    table.policy.handoff.mode = HandoffMode::Full;
    table.policy.handoff.target = Some(agent("gemini"));
    table.request_with("run_trigger: verify").expect("opens");
    let Some(accepted) = table.last_record().accepted() else {
        unreachable!()
    };
    assert!(
        accepted.alerts[0]
            .to_string()
            .starts_with("run_trigger: verify is ignored"),
        "{:?}",
        accepted.alerts
    );
    table.feedback(1, "F-1 P1 open").expect("feedback");
    assert_eq!(merged(&mut table).0.len(), 1);
}

#[test]
fn resolved_findings_stay_and_held_and_deferred_ones_go() {
    let findings = "F-1 P1 fixed title: one; file: a.rs\nF-2 P1 open title: two; file: b.rs";
    let mut table = raised(HandoffMode::Full, findings);
    table
        .person(Act::Hold("F-2".parse().expect("an id")))
        .expect("held");
    assert_eq!(merged(&mut table).0, ["handoff-pr86-1 -> gemini F-2"]);
}
