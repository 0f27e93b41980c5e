//! Fix pull requests: judged only by whether they fix their task, in at most five reviews.

use super::{ok, refused};
use crate::table::{Note, Table, agent, claude, codex, packet};
use message_schema::limit::Rounds;
use review::{
    Act, EscalationReason, Event, HandoffMode, PersonsDecision, Phase, PullAction, PullEvent,
    ThreadState, Which,
};

/// Pull request 86 is merged with a P1, a blocking P2 and a P3 in a.rs, all handed off to gemini.
fn handed_off() -> Table {
    let mut table = Table::default();
    table.policy.handoff.mode = HandoffMode::Full;
    table.policy.handoff.target = Some(agent("gemini"));
    table.policy.rounds = Rounds::new(3).expect("in range");
    table.request().expect("opens");
    let findings = "F-1 P1 open title: leak; file: a.rs
F-2 P2 open title: untested; file: a.rs; blocking: true
F-3 P3 open title: typo; file: a.rs";
    table.feedback(1, findings).expect("feedback");
    table.pull(PullAction::Merged, None).expect("merged");
    assert_eq!(table.handoff().0, ["handoff-pr86-1 -> gemini F-1 F-2 F-3"]);
    table
}

fn fix_request(table: &mut Table, reviewer: &str, fields: &str) -> Result<String, Vec<String>> {
    let body = format!(
        "pr: 90\nbranch: fix\ndiff_summary: the fix\nhandoff_ref: handoff-pr86-1\n{fields}"
    );
    table.send(&Note {
        from: "gemini",
        to: reviewer,
        envelope: "",
        body: &body,
        ..claude("review_request")
    })
}

fn feedback(
    table: &mut Table,
    reviewer: &str,
    round: u32,
    blocking: usize,
    findings: &str,
) -> Result<String, Vec<String>> {
    let packet = packet(findings);
    let body = format!(
        "findings_packet: packets/findings/p.yaml\nround: {round}\nblocking_count: {blocking}"
    );
    let note = Note {
        from: reviewer,
        to: "gemini",
        envelope: "related_pr: 90\n",
        body: &body,
        packet: Some(&packet),
        ..codex("review_feedback")
    };
    table.send(&note)
}

fn addressed(table: &mut Table, reviewer: &str, round: u32) -> Result<String, Vec<String>> {
    let body = format!("commit_sha: abc1234\nchanges_summary: fixed\nround: {round}");
    table.send(&Note {
        from: "gemini",
        to: reviewer,
        envelope: "related_pr: 90\n",
        body: &body,
        ..claude("review_addressed")
    })
}

fn fix_review(table: &Table) -> &review::Review {
    table
        .state
        .reviews()
        .find(|(key, _)| key.pr.as_str() == "90")
        .expect("the fix")
        .1
}

#[test]
fn the_task_s_findings_are_open_from_the_start_and_the_mild_ones_deferred() {
    let mut table = handed_off();
    assert_eq!(fix_request(&mut table, "codex", ""), ok("reviewing"));
    let states: Vec<_> = fix_review(&table)
        .threads
        .values()
        .map(|thread| thread.state)
        .collect();
    assert_eq!(
        states,
        [ThreadState::Open, ThreadState::Open, ThreadState::Deferred]
    );
}

/// A brief, a notice and `settled threads` show the round in which a thread was opened: a round of the old pull request
/// would name a review that the fix never had.
#[test]
fn what_was_raised_in_a_later_round_is_carried_into_the_fix_s_first() {
    let mut table = Table::default();
    table.policy.handoff.mode = HandoffMode::Full;
    table.policy.handoff.target = Some(agent("gemini"));
    table.policy.rounds = Rounds::new(3).expect("in range");
    table.request().expect("opens");
    table
        .feedback(1, "F-1 P1 open title: leak; file: a.rs")
        .expect("feedback");
    table.addressed(1, &[]).expect("addressed");
    table.request().expect("round 2");
    let late = "F-1 P1 fixed\nF-2 P1 open title: untested; file: b.rs";
    table.feedback(2, late).expect("feedback");
    table.pull(PullAction::Merged, None).expect("merged");
    assert_eq!(table.handoff().0, ["handoff-pr86-1 -> gemini F-2"]);

    fix_request(&mut table, "codex", "").expect("opens");
    let carried = &fix_review(&table).threads[&"F-2".parse().expect("an id")];
    assert_eq!((carried.opened_in, carried.dialogue.replies), (1, 0));
    assert!(!carried.was_reopened() && carried.task().is_some());
}

#[test]
fn a_task_of_another_agent_or_of_nobody_has_no_effect() {
    let mut table = handed_off();
    let body = "pr: 91\nbranch: fix\ndiff_summary: s\nhandoff_ref: handoff-pr86-1";
    assert_eq!(
        table.send(&Note {
            envelope: "",
            body,
            ..claude("review_request")
        }),
        ok("reviewing")
    );
    let Some(accepted) = table.last_record().accepted() else {
        unreachable!()
    };
    assert!(
        accepted.alerts[0].to_string().contains("handoff_ref"),
        "{:?}",
        accepted.alerts
    );
    assert!(
        table
            .state
            .reviews()
            .all(|(_, review)| review.fixes.is_none())
    );
}

#[test]
fn feedback_in_which_nothing_blocks_approves_by_rule() {
    let mut table = handed_off();
    fix_request(&mut table, "codex", "declared_head: abc1234").expect("opens");
    let said = feedback(
        &mut table,
        "codex",
        1,
        1,
        "F-1 P1 fixed\nF-2 P2 fixed blocking: true\nN-1 P1 open title: style of the fix; file: a.rs",
    );
    assert_eq!(said, ok("approved"));
    let Phase::Approved(approval) = &fix_review(&table).phase else {
        unreachable!()
    };
    assert!(approval.by_rule && approval.commit.is_some());
    assert_eq!(
        fix_review(&table).threads[&"N-1".parse().expect("an id")].state,
        ThreadState::Deferred
    );
}

#[test]
fn what_a_fix_leaves_undone_is_not_handed_off_again() {
    let mut table = handed_off();
    fix_request(&mut table, "codex", "").expect("opens");
    let (pr, action) = ("90".parse().expect("a number"), PullAction::Merged);
    let merged = Event::Pull(PullEvent {
        repo: None,
        pr,
        action,
        author: None,
        head: None,
    });
    table.on_event(&merged).expect("merged");
    let (tasks, left) = table.handoff();
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
fn a_new_blocker_outside_the_files_of_the_task_holds_it_up_too() {
    let mut table = handed_off();
    fix_request(&mut table, "codex", "").expect("opens");
    let fixed = "F-1 P1 fixed\nF-2 P2 fixed blocking: true";
    let new = "N-1 P1 open title: crash; file: c.rs\nN-2 P3 open title: style; file: c.rs";
    let said = feedback(&mut table, "codex", 1, 1, &format!("{fixed}\n{new}"));
    assert_eq!(said, ok("fixing"));
    let state = |id: &str| fix_review(&table).threads[&id.parse().expect("an id")].state;
    assert_eq!(
        (state("N-1"), state("N-2")),
        (ThreadState::Open, ThreadState::Deferred)
    );
}

#[test]
fn one_pull_request_claims_a_task_until_it_is_closed_without_a_merge() {
    let mut table = handed_off();
    let pull = |pr: &str, action| {
        let pr = pr.parse().expect("a number");
        Event::Pull(PullEvent {
            repo: None,
            pr,
            action,
            author: None,
            head: None,
        })
    };
    let request = |table: &mut Table, pr: u32| {
        let body = format!(
            "pr: {pr}\nbranch: fix\ndiff_summary: s\nhandoff_ref: packets/handoff/handoff-pr86-1.yaml"
        );
        let sent = table.send(&Note {
            from: "gemini",
            to: "codex",
            envelope: "",
            body: &body,
            ..claude("review_request")
        });
        assert_eq!(sent, ok("reviewing"));
        table
            .last_record()
            .accepted()
            .map(|accepted| {
                accepted
                    .alerts
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
            })
            .unwrap_or_default()
    };
    let claims = |table: &Table| {
        let fixes = |(key, review): (&review::ReviewKey, &review::Review)| {
            review.fixes.is_some().then(|| key.pr.to_string())
        };
        table.state.reviews().filter_map(fixes).collect::<Vec<_>>()
    };
    assert_eq!(request(&mut table, 90), Vec::<String>::new());
    assert!(request(&mut table, 91)[0].contains("pull request 90 claims `handoff-pr86-1`"));
    assert_eq!(claims(&table), ["90"]);

    table
        .on_event(&pull("90", PullAction::Closed))
        .expect("closed");
    assert_eq!(claims(&table), Vec::<String>::new());
    assert_eq!(request(&mut table, 92), Vec::<String>::new());
    assert_eq!(claims(&table), ["92"]);

    table
        .on_event(&pull("90", PullAction::Reopened))
        .expect("open again");
    assert!(request(&mut table, 90)[0].contains("pull request 92 claims"));
    table
        .on_event(&pull("92", PullAction::Merged))
        .expect("merged");
    table
        .on_event(&pull("92", PullAction::Closed))
        .expect("reported late");
    assert_eq!(claims(&table), ["92"], "a fix that was merged stays one");
}

fn merged(table: &mut Table, pr: &str) -> (Vec<String>, Vec<String>) {
    let pr = pr.parse().expect("a number");
    let merged = Event::Pull(PullEvent {
        repo: None,
        pr,
        action: PullAction::Merged,
        author: None,
        head: None,
    });
    table.on_event(&merged).expect("merged");
    table.handoff()
}

fn left_to_person(table: &Table) -> Vec<String> {
    let reviews = table.state.reviews();
    reviews
        .flat_map(|(key, review)| table.state.left_to_person(key, review))
        .map(ToString::to_string)
        .collect()
}

#[test]
fn what_a_fix_leaves_is_a_person_s() {
    let mut table = handed_off();
    fix_request(&mut table, "codex", "").expect("opens");
    let left =
        "F-1 P1 not_fixed\nF-2 P2 fixed blocking: true\nN-1 P1 open title: crash; file: c.rs";
    feedback(&mut table, "codex", 1, 2, left).expect("feedback");
    let (tasks, left) = merged(&mut table, "90");
    assert!(tasks.is_empty());
    assert_eq!(
        left,
        [
            "F-1 already_handed_off",
            "F-3 already_handed_off",
            "N-1 claims_task"
        ]
    );
    assert_eq!(left_to_person(&table), ["F-1", "F-3", "N-1"]);
}

#[test]
fn an_agent_with_a_task_to_finish_hands_nothing_off() {
    let mut table = handed_off();
    let ask = |table: &mut Table, pr: &str| {
        let body = format!("pr: {pr}\nbranch: b\ndiff_summary: s");
        let request = Note {
            from: "gemini",
            envelope: "",
            body: &body,
            ..claude("review_request")
        };
        table.send(&request).expect("opens");
    };
    ask(&mut table, "90");
    feedback(
        &mut table,
        "codex",
        1,
        1,
        "N-1 P1 open title: crash; file: c.rs",
    )
    .expect("feedback");
    assert_eq!(
        merged(&mut table, "90"),
        (vec![], vec!["N-1 holds_task".to_owned()])
    );
    assert_eq!(left_to_person(&table), ["N-1"]);
    // Once escalated it stays with a person, although a person has settled the task since.
    for id in ["F-1", "F-2", "F-3"] {
        let act = Act::WontFix(id.parse().expect("an id"));
        table.person(act).expect("settled");
    }
    assert_eq!(merged(&mut table, "90").1, ["N-1 holds_task"]);
    // Its task is done, so the findings of its next pull request are handed off.
    ask(&mut table, "91");
    let packet = packet("N-2 P1 open title: hang; file: d.rs");
    table
        .send(&Note {
            to: "gemini",
            envelope: "related_pr: 91\n",
            body: "findings_packet: packets/findings/p.yaml\nround: 1\nblocking_count: 1",
            packet: Some(&packet),
            ..codex("review_feedback")
        })
        .expect("feedback");
    let tasks = vec!["handoff-pr91-2 -> gemini N-2".to_owned()];
    assert_eq!(merged(&mut table, "91"), (tasks, vec![]));
}

#[test]
fn a_carried_blocker_and_a_new_p0_hold_it_up() {
    let mut table = handed_off();
    fix_request(&mut table, "codex", "").expect("opens");
    let said = feedback(
        &mut table,
        "codex",
        1,
        1,
        "F-1 P1 not_fixed action: reply\nF-2 P2 fixed blocking: true",
    );
    assert_eq!(said, ok("fixing"));
    let mut table = handed_off();
    fix_request(&mut table, "codex", "").expect("opens");
    let said = feedback(
        &mut table,
        "codex",
        1,
        1,
        "F-1 P1 fixed\nF-2 P2 fixed blocking: true\nN-1 P0 open title: crash; file: c.rs",
    );
    assert_eq!(said, ok("fixing"));
}

#[test]
fn an_approval_cannot_pass_over_a_carried_blocker() {
    let mut table = handed_off();
    fix_request(&mut table, "codex", "").expect("opens");
    let packet = packet("F-1 P1 open action: veto\nF-2 P2 fixed blocking: true");
    let body =
        "quality_gate_result: pass\nmerge_ready: true\nfindings_packet: packets/findings/p.yaml";
    let note = Note {
        to: "gemini",
        envelope: "related_pr: 90\n",
        body,
        packet: Some(&packet),
        ..codex("review_lgtm")
    };
    assert_eq!(
        table.send(&note),
        refused(&["quality_gate_violation blocking"])
    );
}

#[test]
fn the_fifth_review_approves_or_escalates_by_any_reviewer() {
    let mut table = handed_off();
    let packet = "F-1 P1 not_fixed action: reply\nF-2 P2 fixed blocking: true";
    let again = "F-1 P1 not_fixed action: reply; stance: accepts";
    fix_request(&mut table, "codex", "").expect("opens");
    feedback(&mut table, "codex", 1, 1, packet).expect("1");
    addressed(&mut table, "codex", 1).expect("addressed");
    fix_request(&mut table, "codex", "").expect("2");
    feedback(&mut table, "codex", 2, 1, again).expect("2");
    fix_request(&mut table, "claude", "").expect("3");
    feedback(&mut table, "claude", 1, 1, packet).expect("3");
    addressed(&mut table, "claude", 1).expect("addressed");
    fix_request(&mut table, "claude", "").expect("4");
    feedback(&mut table, "claude", 2, 1, again).expect("4");
    addressed(&mut table, "claude", 2).expect("addressed");
    fix_request(&mut table, "claude", "").expect("5");
    assert_eq!(
        feedback(&mut table, "claude", 3, 1, "F-1 P1 not_fixed action: reply"),
        refused(&["action_illegal"])
    );
    assert_eq!(
        feedback(&mut table, "claude", 3, 1, "F-1 P1 not_fixed action: veto"),
        ok("escalated")
    );
    let ended = table
        .state
        .reviews()
        .find(|(key, _)| key.reviewer.as_str() == "claude" && key.pr.as_str() == "90");
    assert_eq!(
        ended.expect("claude's").1.phase,
        Phase::Escalated(EscalationReason::MaxRoundsExceeded)
    );
    addressed(&mut table, "codex", 2).expect("addressed");
    assert_eq!(
        fix_request(&mut table, "codex", ""),
        refused(&["iteration_limit_exceeded"])
    );
    let which = Which {
        pr: "90".parse().expect("a number"),
        repo: None,
        reviewer: Some(agent("claude")),
    };
    for act in [Act::Reopen, Act::Grant { rounds: 1 }] {
        let (by, reason) = ("ada".to_owned(), "once more".to_owned());
        let decision = PersonsDecision {
            which: which.clone(),
            by,
            reason,
            act,
        };
        let declined = table.on_event(&Event::Person(decision));
        assert_eq!(
            declined,
            Err("iteration_limit_exceeded".to_owned()),
            "no sixth review"
        );
    }
}
