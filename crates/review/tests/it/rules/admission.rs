//! Ids, senders, expiry, rates and notices.

use super::{ok, refused};
use crate::table::{Note, Table, claude, codex};
use review::{Notice, RefusedMessage};

#[test]
fn the_id_of_a_refused_message_stays_free() {
    let mut table = Table::default();
    let wrong = crate::table::text(
        &Note {
            body: "hello",
            to: "nobody",
            ..claude("question")
        },
        "msg-x",
    );
    assert_eq!(
        table.post("claude", &wrong, None),
        refused(&["unknown_recipient"])
    );
    let right = crate::table::text(
        &Note {
            body: "hello",
            ..claude("question")
        },
        "msg-x",
    );
    assert_eq!(table.post("claude", &right, None), ok("delivered"));
}

#[test]
fn the_outbox_proves_the_sender() {
    let mut table = Table::default();
    let text = crate::table::text(
        &Note {
            body: "hello",
            ..claude("question")
        },
        "msg-x",
    );
    assert_eq!(
        table.post("gemini", &text, None),
        refused(&["sender_mismatch"])
    );
}

#[test]
fn an_expired_message_is_refused() {
    let mut table = Table::default();
    let note = |envelope| Note {
        envelope,
        body: "hello",
        ..claude("question")
    };
    assert_eq!(
        table.send(&note("expires_at: 2026-02-13T10:00:00Z\n")),
        refused(&["expired"])
    );
    assert_eq!(
        table.send(&note("expires_at: 2026-02-13T11:00:00Z\n")),
        ok("delivered")
    );
}

#[test]
fn a_pair_exchanges_sixty_messages_an_hour_outside_the_loop() {
    let mut table = Table::default();
    let note = Note {
        body: "hello",
        ..claude("question")
    };
    for _ in 0..60 {
        assert_eq!(table.send(&note), ok("delivered"));
    }
    assert_eq!(table.send(&note), refused(&["rate_limited"]));
    assert_eq!(table.state.accepted(), 60);
    assert_eq!(
        table.request(),
        ok("reviewing"),
        "the review loop has its own limits"
    );
    table.now += chrono::TimeDelta::hours(1);
    assert_eq!(table.send(&note), ok("delivered"));
}

#[test]
fn thirty_notices_a_minute_and_then_a_sum() {
    let mut table = Table::default();
    let note = Note {
        to: "nobody",
        body: "hello",
        ..claude("question")
    };
    let mut notices = Vec::new();
    for _ in 0..33 {
        table.send(&note).expect_err("refused");
        table.now -= chrono::TimeDelta::seconds(1);
        let Some(RefusedMessage { notice, .. }) = table.last_record().refused() else {
            panic!("not refused")
        };
        notices.push(notice.clone());
    }
    assert!(
        notices[..30]
            .iter()
            .all(|notice| matches!(notice, Notice::Sent { summed_up: 0, .. }))
    );
    assert!(
        notices[30..]
            .iter()
            .all(|notice| *notice == Notice::Withheld)
    );
    table.now += chrono::TimeDelta::minutes(1);
    table.send(&note).expect_err("refused");
    let Some(RefusedMessage { notice, .. }) = table.last_record().refused() else {
        panic!("not refused")
    };
    assert!(
        matches!(notice, Notice::Sent { summed_up: 3, .. }),
        "{notice:?}"
    );
}

#[test]
fn an_answer_to_the_daemon_gets_no_notice_and_one_to_an_agent_does() {
    let mut table = Table::default();
    table.request().expect("opens");
    let wrong = Note {
        to: "nobody",
        body: "why?",
        ..claude("question")
    };
    table.send(&wrong).expect_err("refused");
    let Some(Notice::Sent { id, .. }) = table.last_record().refused().map(|it| it.notice.clone())
    else {
        panic!("no notice")
    };
    table.wait(chrono::TimeDelta::days(7));
    let messages = table.last_record().messages();
    let escalated: Vec<String> = messages.iter().map(|it| it.id.to_string()).collect();
    assert_eq!(escalated.len(), 2, "one for each agent");
    for (parent, is_heard) in [
        (id.as_str(), false),
        (&*escalated[0], false),
        (&*escalated[1], false),
        ("msg-1", true),
    ] {
        let envelope = format!("parent_message_id: {parent}\n");
        let answer = Note {
            envelope: &envelope,
            ..wrong
        };
        table.send(&answer).expect_err("refused");
        let refused = table.last_record().refused().expect("refused");
        let notice = &refused.notice;
        assert_eq!(
            matches!(notice, Notice::Sent { .. }),
            is_heard,
            "{parent}: {notice:?}"
        );
        assert_eq!(*notice == Notice::Never, !is_heard, "{parent}: {notice:?}");
    }
}

#[test]
fn a_correction_that_cites_the_notice_is_heard() {
    let mut table = Table::default();
    table.request().expect("opens");
    table.lgtm("", Some("F-001 P1 open")).expect_err("refused");
    let Some(RefusedMessage {
        notice: Notice::Sent { id, .. },
        ..
    }) = table.last_record().refused().cloned()
    else {
        panic!("no notice")
    };
    let envelope = format!("related_pr: 86\nparent_message_id: {id}\n");
    let body = "quality_gate_result: fail\nmerge_ready: true";
    table
        .send(&Note {
            envelope: &envelope,
            body,
            ..codex("review_lgtm")
        })
        .expect_err("refused");
    let Some(RefusedMessage { notice, .. }) = table.last_record().refused() else {
        panic!("not refused")
    };
    assert!(matches!(notice, Notice::Sent { .. }), "{notice:?}");
}
