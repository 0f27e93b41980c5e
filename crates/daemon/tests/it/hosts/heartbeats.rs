//! Tests what hosts learn of each other without a record.

use super::*;

/// Hosts that follow one log with a record, and the time.
fn with_one_history() -> (Shared, Vec<Host>, i64) {
    let log = Shared::new(1, Weather::default());
    let mut hosts = started(&log);
    hosts[0].put("a.yaml", &question("claude", "codex", "msg-a"));
    let mut ms = 0;
    settle(&mut hosts, &mut ms);
    (log, hosts, ms)
}

#[test]
fn hosts_hear_of_each_other_without_a_record() {
    let (log, mut hosts, mut ms) = with_one_history();
    let records = hosts[0].entries().len();
    for _ in 0..3 {
        ms += 10_000;
        // In one round only the hosts that pass later hear the first; a second round reaches all.
        for _ in 0..2 {
            hosts.iter_mut().for_each(|host| host.pass(ms));
        }
    }
    let heard = |host: &Host| {
        let heard = workspace::heartbeat::read(host.root.path()).into_iter();
        let said = heard.map(|heard| {
            let clock = heard.clock_ahead().num_seconds();
            let state = &heard.state;
            (
                state.host.to_string(),
                state.state.clone(),
                state.seq,
                heard.behind,
                clock,
            )
        });
        said.collect::<Vec<_>>()
    };
    let in_step = "in_step".to_owned();
    let of = |host: &str, clock| (host.to_owned(), in_step.clone(), 1, 0, clock);
    assert_eq!(heard(&hosts[1]), [of("box", -135), of("tower", -90)]);
    // A heartbeat that no host has signed is ignored.
    let forged = HostState {
        host: "box".parse().expect("a name"),
        version: "9.9.9".to_owned(),
        seq: 9,
        digest: None,
        state: in_step.clone(),
        at: hosts[2].moment(ms + 5_000).utc,
        started: hosts[2].moment(ms).utc,
        number: 9,
    };
    let forged = workspace::heartbeat::written(&forged, "w", &Named("tower"));
    log.connect().send_heartbeat(forged);
    hosts[1].pass(ms + 1_000);
    assert_eq!(heard(&hosts[1])[0], of("box", -135));
    assert_eq!(hosts[0].entries().len(), records);
}

/// The alert about clocks on a host.
fn of_clocks(host: &Host) -> Option<String> {
    let mut alerts = workspace::operator_alerts::read(host.root.path()).into_iter();
    let alert = alerts.find(|alert| alert.kind == workspace::operator_alerts::AlertKind::HostClock);
    alert.map(|alert| alert.what)
}

#[test]
fn every_host_says_whose_clock_is_wrong() {
    let log = Shared::new(1, Weather::default());
    let mut hosts = started(&log);
    // Two of three clocks agree within the tolerance.
    (hosts[1].off_ms, hosts[2].off_ms) = (90_000, 1_500);
    hosts[1].put("a.yaml", &question("codex", "claude", "msg-a"));
    let mut ms = 0;
    settle(&mut hosts, &mut ms);
    let mut speak = |hosts: &mut [Host]| {
        ms += 10_000;
        for _ in 0..2 {
            hosts.iter_mut().for_each(|host| host.pass(ms));
        }
    };
    speak(&mut hosts);
    let there =
        "the clock of host laptop is more than 60 s ahead of most hosts' clock: set it there";
    let here = "this host's clock is more than 60 s ahead of most hosts' clock: set it";
    let told = |hosts: &[Host]| hosts.iter().map(of_clocks).collect::<Vec<_>>();
    let expected = [there, here, there].map(|what| Some(what.to_owned()));
    assert_eq!(told(&hosts), expected);
    hosts[1].off_ms = -1_000;
    for _ in 0..2 {
        speak(&mut hosts);
    }
    assert_eq!(told(&hosts), [None, None, None]);
}

#[test]
fn a_host_that_only_keeps_the_time_of_another_is_not_the_one_with_the_wrong_clock() {
    let log = Shared::new(1, Weather::default());
    let mut hosts = started(&log);
    hosts[0].off_ms = 200_000;
    (hosts[1].off_ms, hosts[2].off_ms) = (0, 0);
    let (mut first, mut second) = (
        question("claude", "pi", "msg-a"),
        question("codex", "pi", "b"),
    );
    for (number, text) in [(0, &mut first), (1, &mut second)] {
        hosts[number].put("a.yaml", text);
        for ms in [1_000, 2_000, 3_000] {
            hosts[number].pass(ms);
        }
    }
    // This host has heard nobody.
    hosts[2].start(&log);
    hosts[2].pass(4_000);
    let told = of_clocks(&hosts[2]);
    assert_eq!(log.batches().len(), 2);
    assert!(
        told.as_ref()
            .is_some_and(|told| told.contains("host tower")),
        "{told:?}"
    );
    assert!(told.is_some_and(|told| !told.contains("laptop")));
}

#[test]
fn a_host_is_heard_after_its_clock_was_set_back_and_nothing_is_heard_twice() {
    let (log, mut hosts, mut ms) = with_one_history();
    let last = |host: &Host| {
        let mut heard = workspace::heartbeat::read(host.root.path()).into_iter();
        let of_box = heard.find(|heard| heard.state.host.as_str() == "box");
        of_box.expect("a heartbeat").state
    };
    let speak = |hosts: &mut [Host], ms: &mut i64| {
        *ms += 10_000;
        hosts[2].pass(*ms);
        hosts[1].pass(*ms);
        last(&hosts[1])
    };
    let before = speak(&mut hosts, &mut ms);
    hosts[2].off_ms -= 3_600_000;
    let back = speak(&mut hosts, &mut ms);
    assert!(back.at < before.at, "{back:?} after {before:?}");
    hosts[2].start(&log);
    let again = speak(&mut hosts, &mut ms);
    assert_ne!(again.started, back.started, "it is another run");
    for recorded in [&before, &back, &again] {
        let bytes = workspace::heartbeat::written(recorded, "w", &Named("box"));
        log.connect().send_heartbeat(bytes);
        let heard_at = |host: &Host| fs::read(host.path(".settled/hosts.json")).expect("a file");
        let known = heard_at(&hosts[1]);
        hosts[1].pass(ms + 1_000);
        assert_eq!(heard_at(&hosts[1]), known, "{recorded:?} was heard twice");
    }
}

/// Hosts whose log shows the laptop another history from the second record on, and the time.
fn with_two_histories() -> (Shared, Vec<Host>, i64) {
    let (log, mut hosts, mut ms) = with_one_history();
    log.split();
    hosts[0].put("b.yaml", &question("claude", "pi", "msg-b"));
    hosts[1].put("c.yaml", &question("codex", "pi", "msg-c"));
    for _ in 0..12 {
        ms += 1_000;
        hosts.iter_mut().for_each(|host| host.pass(ms));
    }
    (log, hosts, ms)
}

#[test]
fn a_host_that_hears_of_another_history_freezes_until_its_host_is_silent() {
    let (_, mut hosts, mut ms) = with_two_histories();
    assert_ne!(hosts[0].ledger(), hosts[1].ledger());
    let is_frozen =
        |host: &Host| matches!(host.sharing_state(), SharingState::Frozen { seq: 2, .. });
    let frozen: Vec<usize> = (0..3).filter(|at| is_frozen(&hosts[*at])).collect();
    // One side is enough: the laptop, or both others.
    assert!(frozen == [1] || frozen == [0, 2], "{frozen:?}");
    let (stopped, goes_on) = (frozen[0], 1 - frozen[0].min(1));
    let SharingState::Frozen { why, .. } = hosts[stopped].sharing_state() else {
        unreachable!("it was frozen");
    };
    let other = HOSTS[goes_on].0;
    assert!(why.contains(BY_A_HOST) && why.contains(other), "{why}");
    assert_eq!(hosts[goes_on].sharing_state(), SharingState::InStep);
    // It stays frozen for as long as it hears that host, and judges nothing.
    let agent = HOSTS[stopped].1;
    hosts[stopped].put("d.yaml", &question(agent, "pi", "msg-d"));
    for _ in 0..30 {
        ms += 1_000;
        hosts.iter_mut().for_each(|host| host.pass(ms));
        assert!(is_frozen(&hosts[stopped]));
    }
    for _ in 0..45 {
        ms += 1_000;
        hosts[stopped].pass(ms);
    }
    assert_eq!(hosts[stopped].sharing_state(), SharingState::InStep);
    assert!(names(&hosts[stopped].path(&format!("agents/{agent}/outbox"))).is_empty());
}

/// Lets the box say that its first record has this digest, and returns the laptop's state when it has heard that.
fn told_of_box(log: &Shared, hosts: &mut [Host], digest: Option<Digest>, ms: i64) -> SharingState {
    let state = HostState {
        host: "box".parse().expect("a name"),
        version: "0.0.1".to_owned(),
        seq: 1,
        digest,
        state: "in_step".to_owned(),
        at: hosts[2].moment(ms).utc,
        started: hosts[2].moment(0).utc,
        number: ms.unsigned_abs(),
    };
    let bytes = workspace::heartbeat::written(&state, "w", &Named("box"));
    log.connect().send_heartbeat(bytes);
    hosts[1].pass(ms);
    hosts[1].sharing_state()
}

#[test]
fn a_host_compares_the_records_of_others_with_its_own_and_none_without_a_digest() {
    let (log, mut hosts, mut ms) = with_one_history();
    let ours = Some(log.batches()[0].batch.head().digest);
    let other = Some(Digest::of(b"another"));
    let mut told = |hosts: &mut [Host], digest| {
        ms += 10_000;
        told_of_box(&log, hosts, digest, ms)
    };
    let is_frozen = |sharing_state| matches!(sharing_state, SharingState::Frozen { seq: 1, .. });
    assert_eq!(told(&mut hosts, None), SharingState::InStep);
    assert_eq!(told(&mut hosts, ours), SharingState::InStep);
    assert!(is_frozen(told(&mut hosts, other)));
    told(&mut hosts, ours);
    assert_eq!(told(&mut hosts, ours), SharingState::InStep);
    // It also knows a record that is not its last one, and that an earlier run of its daemon read.
    hosts[1].put("b.yaml", &question("codex", "claude", "msg-b"));
    assert_eq!(told(&mut hosts, ours), SharingState::InStep);
    assert_eq!(hosts[1].entries().len(), 2);
    hosts[1].start(&log);
    assert!(is_frozen(told(&mut hosts, other)));
}
