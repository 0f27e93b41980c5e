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

/// Changes a record of an honest batch, signs the batch as its host, and returns the state of a host that sees it.
fn lied(signer: &'static str, change: impl FnOnce(&mut Entry)) -> SharingState {
    let (_, forged) = honest_and_forged(signer, change);
    let (_, laptop) = reader_of(&forged);
    let is_delivered = !names(&laptop.path("agents/codex/inbox")).is_empty();
    let sharing_state = laptop.sharing_state();
    assert_eq!(
        is_delivered,
        sharing_state == SharingState::InStep,
        "{sharing_state:?}"
    );
    assert_eq!(
        laptop.entries().is_empty(),
        sharing_state != SharingState::InStep
    );
    sharing_state
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
        let sharing_state = lied(signer, change);
        let SharingState::Frozen { seq: 1, why } = &sharing_state else {
            panic!("{lie}: {sharing_state:?}");
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
        let frozen = laptop.sharing_state();
        assert!(matches!(frozen, SharingState::Frozen { .. }), "{frozen:?}");
        let mut ms = 2_000;
        let mut pass = |laptop: &mut Host| {
            for _ in 0..10 {
                ms += 3_000;
                laptop.pass(ms);
            }
        };
        pass(&mut laptop);
        assert_eq!(laptop.sharing_state(), frozen);
        let out_of_reach = Weather {
            unreachable: 100,
            ..Weather::default()
        };
        log.set_weather(out_of_reach);
        pass(&mut laptop);
        assert_eq!(laptop.sharing_state(), frozen);
        log.set_weather(Weather::default());
        log.lose_tail(1);
        if is_empty_between {
            pass(&mut laptop);
            assert_eq!(laptop.sharing_state(), SharingState::InStep);
        }
        log.connect().append(&honest).expect("an append");
        pass(&mut laptop);
        assert_eq!(laptop.sharing_state(), SharingState::InStep);
        assert_eq!(laptop.ledger(), honest.batch.bytes());
        assert_eq!(names(&laptop.path("agents/codex/inbox")), ["a.yaml"]);
    }
}

#[test]
fn a_record_of_newer_rules_asks_for_an_upgrade() {
    let sharing_state = lied("tower", |entry| entry.rules = Some(review::RULES + 1));
    assert!(
        matches!(sharing_state, SharingState::Outdated { .. }),
        "{sharing_state:?}"
    );
}

fn changed(entry: &Entry, from: &str, to: &str) -> Box<serde_json::value::RawValue> {
    let text = entry.decision.get().replace(from, to);
    assert_ne!(text, entry.decision.get());
    serde_json::value::RawValue::from_string(text).expect("JSON")
}

/// The last batch of a log with these records of it changed, signed again as its host.
fn forged(last: &Signed, change: impl FnOnce(&mut Vec<Entry>)) -> Signed {
    let mut entries: Vec<Entry> = last
        .batch
        .entries()
        .iter()
        .map(|it| (**it).clone())
        .collect();
    change(&mut entries);
    let after = last.batch.after();
    let (mut bytes, mut prev) = (Vec::new(), after.digest);
    for (entry, seq) in entries.iter_mut().zip(after.seq + 1..) {
        (entry.seq, entry.batch, entry.prev) = (seq, after.seq + 1, prev);
        let line = entry.to_line();
        prev = Digest::of(&line);
        bytes.extend(line);
        bytes.push(b'\n');
    }
    let batch = Batch::read(bytes, after).expect("a batch");
    let signer = HOSTS.iter().find(|(name, _)| *name == last.host.as_str());
    let signer = signer.expect("one of the hosts").0;
    Signed::new(batch, "w", last.host.clone(), &Named(signer))
}

/// The state of a third host that reads these batches, the last of them changed.
fn read_with_last(batches: &[Signed], change: impl FnOnce(&mut Vec<Entry>)) -> SharingState {
    let log = Shared::new(1, Weather::default());
    let (last, before) = batches.split_last().expect("a batch");
    let mut writer = log.connect();
    for signed in before.iter().chain([&forged(last, change)]) {
        assert_eq!(writer.append(signed), Ok(Appended::Committed));
    }
    let mut reader = Host::new(2);
    reader.off_ms = 0;
    reader.start(&log);
    for ms in [1_000, 2_000] {
        reader.pass(deadlines::PICK_UP_MS + 600_000 + ms);
    }
    reader.sharing_state()
}

fn assert_frozen(sharing_state: &SharingState, rule: &str) {
    let SharingState::Frozen { why, .. } = sharing_state else {
        panic!("{rule}: {sharing_state:?}");
    };
    assert!(why.contains(rule), "{rule}: {why}");
}

fn set_back(entry: &mut Entry, seconds: i64) {
    let at = chrono::DateTime::parse_from_rfc3339(&entry.at).expect("a time");
    let earlier = at - TimeDelta::seconds(seconds);
    entry.at = earlier.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
}

#[test]
fn a_deadline_recorded_too_early_or_for_the_wrong_home_freezes_the_others() {
    const IS_AWAY: &str = "\"home_away\":true";
    // The reviewer is at home on the laptop. From there the deadline comes at once, from the tower a minute later.
    for (number, after_ms, is_away) in [(1, 0, false), (0, 61_000, true)] {
        let (log, mut hosts, opened) = deadlines::logged_with_an_open_review();
        hosts[number].off_ms = 0;
        deadlines::fire(
            &mut hosts[number],
            opened + deadlines::PICK_UP_MS + after_ms,
        );
        let batches = log.batches();
        assert_eq!(read_with_last(&batches, |_| {}), SharingState::InStep);
        let early = read_with_last(&batches, |entries| set_back(&mut entries[0], 30));
        assert_frozen(&early, "it fired a deadline too early");
        let wrong_home = read_with_last(&batches, |entries| {
            let decision = entries[0].decision.get();
            assert_eq!(decision.contains(IS_AWAY), is_away, "{decision}");
            entries[0].decision = if is_away {
                changed(&entries[0], &format!(",{IS_AWAY}"), "")
            } else {
                changed(
                    &entries[0],
                    "\"happened\":{",
                    &format!("\"happened\":{{{IS_AWAY},"),
                )
            };
        });
        assert_frozen(&wrong_home, "on which host its deadline was awaited");
    }
}

#[test]
fn a_record_that_is_older_than_the_one_before_it_freezes_the_others() {
    let log = Shared::new(1, Weather::default());
    let mut tower = Host::new(0);
    tower.start(&log);
    for (id, ms) in [("msg-a", 1_000), ("msg-b", 3_000)] {
        tower.put(&format!("{id}.yaml"), &question("claude", "codex", id));
        tower.pass(ms);
    }
    let batches = log.batches();
    assert_eq!(batches.len(), 2);
    assert_eq!(read_with_last(&batches, |_| {}), SharingState::InStep);
    let older = read_with_last(&batches, |entries| set_back(&mut entries[0], 3));
    assert_frozen(&older, "older than the one before it");
}

#[test]
fn a_change_of_hosts_that_is_not_alone_in_its_batch_freezes_the_others() {
    let log = Shared::new(1, Weather::default());
    let mut tower = Host::new(0);
    tower.start(&log);
    let claimed = review::HostChange::Claimed {
        host: "tower".to_owned(),
        agents: vec!["gpt".parse().expect("a name")],
    };
    let moment = tower.moment(1_000);
    let recorded = tower.mailroom().change_hosts(&claimed, None, moment);
    recorded.expect("a free agent");
    assert_eq!(read_with_last(&log.batches(), |_| {}), SharingState::InStep);
    tower.put("a.yaml", &question("claude", "codex", "msg-a"));
    tower.pass(2_000);
    let batches = log.batches();
    let [change, message] = batches.as_slice() else {
        panic!("{} batches", batches.len());
    };
    let more = (*message.batch.entries()[0]).clone();
    let both = read_with_last(std::slice::from_ref(change), |entries| entries.push(more));
    assert_frozen(&both, "it changes hosts and more in one batch");
}
