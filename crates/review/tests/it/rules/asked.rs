//! Tests that the rules decide on a message as they answered its sender beforehand.

use message_schema::Code;
use message_schema::body::Body;
use review::{
    Cycle, Fault, Hold, ThreadState, feedback_is_empty, gate, gate_faults, repeated, resembles,
    threads,
};

use super::{fixing, second_round};
use crate::table::{
    Note, Table, agent, blocking_count, codex, digest, packet, read_packet, text, valid,
};

/// A table on which the reviewer has an open request, and the words for it.
fn tables() -> Vec<(&'static str, Table)> {
    let mut opened = Table::default();
    opened.request().expect("opens");
    let mut commands = Table::default();
    let command = "validation_commands: [make]";
    commands.request_with(command).expect("opens");
    let mut strict = Table::default();
    strict.policy.gate.require_validation = true;
    strict.policy.gate.validation_commands = vec!["lint".to_owned()];
    strict.request().expect("opens");
    vec![
        ("fixing", fixing()),
        ("round 1", opened),
        ("with a command", commands),
        ("with a command of the project", strict),
        ("round 2", second_round()),
    ]
}

/// The faults of the clauses that a sender can still mend, as code and message.
fn words(faults: &[Fault]) -> Vec<String> {
    let line = |fault: &Fault| format!("{} {}", fault.code, fault.message);
    faults.iter().map(line).collect()
}

#[test]
fn a_feedback_is_called_empty_exactly_when_it_is_refused_as_that() {
    let mut empty = 0;
    for (place, table) in tables() {
        for (fields, findings) in [
            ("", ""),
            ("escalation: Who owns this?", ""),
            ("escalation: reviewer_budget_exceeded", ""),
            ("telemetry: {turns: 1}", ""),
            ("telemetry: {turns: 200}", ""),
            ("", "F-001 P1 open action: resolve"),
            ("", "F-001 P1 open action: veto"),
            ("", "F-001 P1 fixed"),
            ("", "F-001 P1 not_fixed action: reply"),
            ("", "F-009 P3 open title: New; file: z.rs"),
        ] {
            let packet = packet(findings);
            let round = table.review().round;
            let blocking = blocking_count(&packet);
            let body = format!(
                "findings_packet: packets/findings/p.yaml\nround: {round}\nblocking_count: {blocking}\n{fields}"
            );
            let note = Note {
                body: &body,
                packet: Some(&packet),
                ..codex("review_feedback")
            };
            let text = text(&note, "msg-x");
            let checked = valid(&text, Some(&packet));
            let Body::Feedback(body) = checked.body() else {
                panic!("{text} is a feedback")
            };
            let review = table.review();
            let declared = body.telemetry.as_ref().and_then(|spent| spent.turns);
            let is_empty =
                feedback_is_empty(review, &table.policy, (body, declared), checked.findings());
            let mut sent = table.clone();
            let said = sent.post("codex", &text, Some(&packet));
            let is_refused = said == Err(vec![Code::FeedbackEmpty.to_string()]);
            assert_eq!(
                is_empty, is_refused,
                "{place}: {fields} {findings}: {said:?}"
            );
            empty += u32::from(is_empty);
        }
    }
    assert!(empty > 5, "{empty} feedbacks are empty");
}

#[test]
fn an_approval_has_the_faults_that_the_gate_told_before() {
    let mut faulty = 0;
    for (place, table) in tables() {
        for (fields, findings) in [
            ("", ""),
            ("", "F-001 P1 open"),
            ("", "F-001 P1 open action: resolve"),
            ("", "F-002 P0 open title: New; file: z.rs"),
            ("", "F-002 P3 open title: New; file: z.rs"),
            ("", "ran fail lint"),
            ("", "ran pass make\nran pass lint"),
        ] {
            let packet = packet(findings);
            let body = format!(
                "quality_gate_result: pass\nmerge_ready: true\nfindings_packet: packets/findings/p.yaml\n{fields}"
            );
            let note = Note {
                body: &body,
                packet: Some(&packet),
                ..codex("review_lgtm")
            };
            let text = text(&note, "msg-x");
            let checked = valid(&text, Some(&packet));
            let Body::Lgtm(body) = checked.body() else {
                panic!("{text} is an lgtm")
            };
            let told = gate_faults(table.review(), &table.policy, body, checked.findings());
            let mut sent = table.clone();
            // Without an open request there is nothing to approve, whatever the gate would say.
            let is_open = table.review().phase.invocation().is_some();
            let said = sent.post("codex", &text, Some(&packet));
            let of_gate = |fault: &&Fault| is_open && fault.code == Code::QualityGateViolation;
            let judged: Vec<Fault> = sent.faults.iter().filter(of_gate).cloned().collect();
            assert_eq!(
                words(&told),
                words(&judged),
                "{place}: {findings}: {said:?}"
            );
            faulty += u32::from(!told.is_empty());
        }
    }
    assert!(faulty > 10, "{faulty} approvals have a fault");
}

#[test]
fn cycles_outside_of_a_review_are_judged_like_its_rounds() {
    let table = fixing();
    let before = &table.review().threads;
    let policy = &table.policy;
    let read = |findings: &str| read_packet(&packet(findings));
    for (findings, addressed, state) in [
        ("F-001 P1 fixed", None, Ok(ThreadState::Resolved)),
        (
            "F-001 P1 open action: veto",
            None,
            Ok(ThreadState::Held(Hold::Veto)),
        ),
        ("", Some(vec!["F-001"]), Ok(ThreadState::Resolved)),
        ("", None, Err(Code::ActionMissing)),
    ] {
        let packet = read(findings);
        let addressed: Option<Vec<_>> = addressed.map(|ids| {
            let ids = ids.into_iter();
            ids.map(|id| id.parse().expect("an id")).collect()
        });
        let cycle = Cycle {
            number: 2,
            packet: &packet,
            policy,
            addressed: addressed.as_deref(),
        };
        let after = threads(before, &cycle);
        let found = after
            .map(|after| after[&"F-001".parse().expect("an id")].state)
            .map_err(|faults| faults[0].code);
        assert_eq!(found, state, "{findings} {addressed:?}");
    }
    for (finding, is_alike) in [
        ("F-009 P1 open title: Empty diff; file: z.rs", true),
        ("F-009 P1 open title: Other; file: a.rs", true),
        ("F-009 P1 open title: Other; file: z.rs", false),
    ] {
        let mut table = Table::default();
        table.request().expect("opens");
        let raised = "F-001 P1 open title: Empty diff; file: a.rs";
        table.feedback(1, raised).expect("feedback");
        let thread = table.review().threads.values().next().expect("a thread");
        let packet = read(finding);
        assert_eq!(
            resembles(&packet.findings[0], thread),
            is_alike,
            "{finding}"
        );
    }
    let lgtm = "quality_gate_result: pass\nmerge_ready: true";
    let note = Note {
        body: lgtm,
        ..codex("review_lgtm")
    };
    let checked = valid(&text(&note, "msg-x"), None);
    let Body::Lgtm(lgtm) = checked.body() else {
        panic!("it is an lgtm")
    };
    let mut policy = table.policy.gate.clone();
    policy.require_head = true;
    policy.validation_commands = vec![" make ".to_owned()];
    let faults = gate(before, lgtm, None, &policy).expect_err("a P1 is open");
    let clauses: Vec<_> = faults.iter().filter_map(|it| it.clause).collect();
    let clauses: Vec<_> = clauses.iter().map(|clause| clause.as_str()).collect();
    assert_eq!(clauses, ["blocking", "validation", "head"]);
    let none = gate(
        &std::collections::BTreeMap::new(),
        lgtm,
        None,
        &table.policy.gate,
    );
    assert_eq!(none, Ok(std::collections::BTreeMap::new()));
}

#[test]
fn a_message_is_repeated_if_its_outbox_had_the_same_bytes_accepted() {
    let mut table = Table::default();
    let note = Note {
        body: "hello",
        ..crate::table::claude("question")
    };
    let first = text(&note, "msg-x");
    table.post("claude", &first, None).expect("delivered");
    let id = message_schema::id::MessageId::new("msg-x").expect("an id");
    for (outbox, bytes, is_repeated) in [
        ("claude", &*first, true),
        ("claude", "other bytes", false),
        ("codex", &*first, false),
    ] {
        let found = repeated(&table.state, &agent(outbox), &id, digest(bytes));
        let names = found.map(|it| (it.from, it.id));
        let expected = is_repeated.then(|| (agent(outbox), id.clone()));
        assert_eq!(names, expected, "{outbox}: {bytes}");
    }
}
