//! A host that records what the rules do not allow: the others freeze and name the rule.

use super::*;

/// An honest batch, and the same with its record changed and signed again.
fn honest_and_forged(signer: &'static str, change: impl FnOnce(&mut Entry)) -> (Signed, Signed) {
    let honest = Shared::new(1, Weather::default());
    let mut tower = Host::new(0);
    tower.start(&honest);
    tower.put("a.yaml", &question("claude", "codex", "msg-a"));
    for ms in [1_000, 2_000] {
        tower.pass(ms);
    }
    let honest = honest.batches();
    assert_eq!(honest.len(), 1, "one batch of one record");
    let first = &honest[0].batch;
    let mut entry = (*first.entries()[0]).clone();
    change(&mut entry);
    let mut bytes = entry.to_line();
    bytes.push(b'\n');
    let batch = Batch::read(bytes, first.after()).expect("a batch");
    let forged = Signed::new(batch, "w", "tower".parse().expect("a name"), &Named(signer));
    (honest[0].clone(), forged)
}

/// A host that has read a log with this batch.
fn reader_of(signed: &Signed) -> (Shared, Host) {
    let log = Shared::new(1, Weather::default());
    log.connect().append(signed).expect("an append");
    let mut laptop = Host::new(1);
    laptop.start(&log);
    for ms in [1_000, 2_000] {
        laptop.pass(ms);
    }
    (log, laptop)
}

/// Changes a record of an honest batch, signs the batch as its host, and returns the standing of a host that sees it.
fn lied(signer: &'static str, change: impl FnOnce(&mut Entry)) -> SharingState {
    let (_, forged) = honest_and_forged(signer, change);
    let (_, laptop) = reader_of(&forged);
    let is_delivered = !names(&laptop.path("agents/codex/inbox")).is_empty();
    let standing = laptop.standing();
    assert_eq!(
        is_delivered,
        standing == SharingState::InStep,
        "{standing:?}"
    );
    assert_eq!(
        laptop.entries().is_empty(),
        standing != SharingState::InStep
    );
    standing
}

#[test]
fn an_honest_record_is_taken_over() {
    assert_eq!(lied("tower", |_| {}), SharingState::InStep);
}

#[test]
fn a_record_that_does_not_follow_freezes_the_others_and_names_the_rule() {
    type Lie = (&'static str, &'static str, fn(&mut Entry));
    let lies: [Lie; 10] = [
        ("another key", "signature", |_| {}),
        ("another host's name", "another host than signed", |entry| {
            entry.host = Some("laptop".parse().expect("a name"));
        }),
        ("another id", "rules decide", |entry| {
            entry.decision = changed(entry, "msg-a", "msg-b");
        }),
        ("another's outbox", "at home elsewhere", |entry| {
            entry.original.as_mut().expect("an original").outbox = "codex".to_owned();
        }),
        ("another recipient", "rules decide", |entry| {
            entry.decision = changed(entry, "codex", "pi");
        }),
        ("another text", "rules decide", |entry| {
            let original = entry.original.as_mut().expect("an original");
            original.text = original
                .text
                .as_ref()
                .map(|text| text.replace("Which?", "Who?"));
        }),
        ("no text", "without its text", |entry| {
            entry.original.as_mut().expect("an original").text = None;
            entry.deliveries.clear();
        }),
        (
            "a response refused for nothing",
            "costs the reviewer",
            |entry| {
                let refused =
                    r#"{"refused":{"from":"claude","code":"feedback_empty","notice":"never"}}"#;
                entry.kind = "refused".to_owned();
                entry.decision =
                    serde_json::value::RawValue::from_string(refused.to_owned()).expect("JSON");
                entry.original.as_mut().expect("an original").text = None;
                entry.deliveries.clear();
            },
        ),
        ("another file", "makes the files", |entry| {
            entry.deliveries[0].content = Content::Text("forged".to_owned());
        }),
        ("one file more", "makes the files", |entry| {
            let mut more = entry.deliveries[0].clone();
            more.mailbox = "pi/inbox".parse().expect("a mailbox");
            entry.deliveries.push(more);
        }),
    ];
    for (lie, rule, change) in lies {
        let signer = if lie == "another key" { "box" } else { "tower" };
        let standing = lied(signer, change);
        let SharingState::Frozen { seq: 1, why } = &standing else {
            panic!("{lie}: {standing:?}");
        };
        assert!(why.contains(rule), "{lie}: {why}");
    }
}

#[test]
fn a_broken_rule_freezes_a_host_until_the_log_has_another_record_or_none_in_its_place() {
    for is_empty_between in [false, true] {
        let (honest, forged) = honest_and_forged("tower", |entry| {
            entry.deliveries[0].content = Content::Text("forged".to_owned());
        });
        let (log, mut laptop) = reader_of(&forged);
        let frozen = laptop.standing();
        assert!(matches!(frozen, SharingState::Frozen { .. }), "{frozen:?}");
        let mut ms = 2_000;
        let mut pass = |laptop: &mut Host| {
            for _ in 0..10 {
                ms += 3_000;
                laptop.pass(ms);
            }
        };
        pass(&mut laptop);
        assert_eq!(laptop.standing(), frozen);
        let out_of_reach = Weather {
            unreachable: 100,
            ..Weather::default()
        };
        log.set_weather(out_of_reach);
        pass(&mut laptop);
        assert_eq!(laptop.standing(), frozen);
        log.set_weather(Weather::default());
        log.lose_tail(1);
        if is_empty_between {
            pass(&mut laptop);
            assert_eq!(laptop.standing(), SharingState::InStep);
        }
        log.connect().append(&honest).expect("an append");
        pass(&mut laptop);
        assert_eq!(laptop.standing(), SharingState::InStep);
        assert_eq!(laptop.ledger(), honest.batch.bytes());
        assert_eq!(names(&laptop.path("agents/codex/inbox")), ["a.yaml"]);
    }
}

#[test]
fn a_record_of_newer_rules_asks_for_an_upgrade() {
    let standing = lied("tower", |entry| entry.rules = Some(review::RULES + 1));
    assert!(
        matches!(standing, SharingState::Outdated { .. }),
        "{standing:?}"
    );
}

fn changed(entry: &Entry, from: &str, to: &str) -> Box<serde_json::value::RawValue> {
    let text = entry.decision.get().replace(from, to);
    assert_ne!(text, entry.decision.get());
    serde_json::value::RawValue::from_string(text).expect("JSON")
}
