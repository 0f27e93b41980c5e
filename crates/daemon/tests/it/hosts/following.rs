//! A host and the log: cut off, behind, without an answer, and in front of a log that lost what it acknowledged.

use daemon::schedule::Wakeup;

use super::*;

#[test]
fn cut_off_a_host_accepts_nothing_says_so_and_catches_up() {
    let log = Shared::new(1, Weather::default());
    let mut hosts = started(&log);
    let mut ms = 0;
    settle(&mut hosts, &mut ms);
    let nothing = Weather {
        unreachable: 100,
        ..Weather::default()
    };
    log.set_weather(nothing);
    hosts[0].put("a.yaml", &question("claude", "codex", "msg-a"));
    for _ in 0..5 {
        ms += 1_000;
        hosts[0].pass(ms);
    }
    assert!(matches!(
        hosts[0].sharing_state(),
        SharingState::Waiting { .. }
    ));
    assert!(hosts[0].entries().is_empty());
    assert_eq!(names(&hosts[0].path("agents/claude/outbox")), ["a.yaml"]);
    let told = fs::read_to_string(hosts[0].path(".settled/alerts.json")).expect("alerts");
    assert!(
        told.contains("waiting for the shared ledger since"),
        "{told}"
    );
    log.set_weather(Weather::default());
    settle(&mut hosts, &mut ms);
    assert_eq!(names(&hosts[1].path("agents/codex/inbox")), ["a.yaml"]);
    let told = fs::read_to_string(hosts[0].path(".settled/alerts.json")).expect("alerts");
    assert!(!told.contains("waiting"), "{told}");
}

#[test]
fn a_host_that_may_only_read_says_so_until_it_may_write() {
    let log = Shared::new(1, Weather::default());
    let mut hosts = started(&log);
    let mut ms = 0;
    settle(&mut hosts, &mut ms);
    log.set_weather(Weather {
        is_read_only: true,
        ..Weather::default()
    });
    hosts[0].put("a.yaml", &question("claude", "codex", "msg-a"));
    let alerts =
        |host: &Host| fs::read_to_string(host.path(".settled/alerts.json")).unwrap_or_default();
    let mut told = Vec::new();
    for pass in 0..20 {
        ms += 500;
        hosts[0].pass(ms);
        assert!(matches!(
            hosts[0].sharing_state(),
            SharingState::Waiting { .. }
        ));
        // A file that this host may not judge is not work: a run with `--once` would wait for it without a pause.
        let left = hosts[0].mailroom().left_over();
        assert_eq!(left.at(Wakeup::Look), None);
        if pass > 0 {
            told.push(alerts(&hosts[0]));
        }
    }
    assert!(
        told[0].contains("waiting for the shared ledger since") && told[0].contains("only read"),
        "{told:?}"
    );
    assert!(told.iter().all(|alert| *alert == told[0]), "{told:?}");
    // Its file is withdrawn: nothing waits for the log any more.
    fs::remove_file(hosts[0].path("agents/claude/outbox/a.yaml")).expect("a file");
    for _ in 0..10 {
        ms += 1_000;
        hosts[0].pass(ms);
    }
    assert!(!alerts(&hosts[0]).contains("waiting"));
    hosts[0].put("b.yaml", &question("claude", "codex", "msg-b"));
    ms += 1_000;
    hosts[0].pass(ms);
    log.set_weather(Weather::default());
    settle(&mut hosts, &mut ms);
    assert_eq!(names(&hosts[1].path("agents/codex/inbox")), ["b.yaml"]);
    assert!(!alerts(&hosts[0]).contains("waiting"));
}

#[test]
fn a_log_that_lost_what_it_acknowledged_freezes_whoever_has_it() {
    let log = Shared::new(1, Weather::default());
    let mut hosts = started(&log);
    let mut ms = 0;
    for id in ["msg-a", "msg-b"] {
        hosts[0].put(&format!("{id}.yaml"), &question("claude", "codex", id));
        settle(&mut hosts, &mut ms);
    }
    log.lose_tail(1);
    ms += 2_000;
    hosts[1].put("c.yaml", &question("codex", "claude", "msg-c"));
    hosts[1].pass(ms);
    hosts[1].pass(ms + 2_000);
    let sharing_state = hosts[1].sharing_state();
    assert!(
        matches!(sharing_state, SharingState::Frozen { seq: 2, .. }),
        "{sharing_state:?}"
    );
    assert_eq!(names(&hosts[1].path("agents/codex/outbox")), ["c.yaml"]);
    // The lost tail simply continues the log: once it is put back from a mirror, the next look ends the freeze.
    let tail = Batch::read(
        {
            let ledger = hosts[1].ledger();
            let begin = ledger
                .iter()
                .position(|byte| *byte == b'\n')
                .expect("a line")
                + 1;
            ledger[begin..].to_vec()
        },
        log.batches()[0].batch.head(),
    );
    let signed = Signed::new(
        tail.expect("a batch"),
        "w",
        "tower".parse().expect("a name"),
        &Named("tower"),
    );
    log.connect().append(&signed).expect("an append");
    settle(&mut hosts, &mut ms);
    assert_eq!(hosts[1].sharing_state(), SharingState::InStep);
    assert_eq!(
        names(&hosts[0].path("agents/claude/inbox")).last(),
        Some(&"c.yaml".to_owned())
    );
    let told = fs::read_to_string(hosts[1].path(".settled/alerts.json")).expect("alerts");
    assert!(!told.contains("frozen"), "{told}");
}

/// Catching up syncs once for each batch and once for all signatures that came with them.
#[test]
fn a_host_that_catches_up_syncs_each_batch_once() {
    const BATCHES: usize = 12;
    let log = Shared::new(1, Weather::default());
    let mut tower = Host::new(0);
    tower.start(&log);
    for ms in (0..).step_by(1_000).take(BATCHES) {
        let id = format!("msg-{ms}");
        tower.put(&format!("{id}.yaml"), &question("claude", "pi", &id));
        tower.pass(ms);
    }
    assert_eq!(log.batches().len(), BATCHES);
    let laptop = Host::new(1);
    let disk = Arc::new(FaultyDisk::new("boot"));
    let opened = Mailroom::open_shared_on(
        laptop.root.path(),
        Arc::clone(&disk) as _,
        sharing("laptop", Box::new(log.connect())),
    );
    let mut mailroom = opened.expect("a start").0;
    disk.set(None);
    mailroom.pass(laptop.moment(20_000)).expect("a pass");
    assert_eq!(laptop.ledger(), tower.ledger());
    let changes = disk.log();
    let syncs = changes.iter().filter(|change| change.ends_with(" sync "));
    assert_eq!(syncs.count(), BATCHES + 1, "{changes:#?}");
}

/// A log that loses its answers to the appends with these numbers.
fn unanswered(log: ModelLog, lost: &'static [usize]) -> Box<dyn Log> {
    let mut appends = 0..;
    Box::new(Appends::by(Box::new(log), move |log, batch| {
        let appended = log.append(batch)?;
        if lost.contains(&appends.next().expect("a number")) {
            return Ok(Appended::Unknown("no answer in time".to_owned()));
        }
        Ok(appended)
    }))
}

/// A log that takes a batch only once this disk has synced the file of signatures.
fn awaits_signature(log: ModelLog, disk: Arc<FaultyDisk>) -> Box<dyn Log> {
    Box::new(Appends::by(Box::new(log), move |log, batch| {
        let is_noted = || {
            let changes = disk.log();
            let wrote = changes
                .iter()
                .rposition(|change| change.contains("signatures"));
            wrote.is_some_and(|at| {
                changes[at..]
                    .iter()
                    .any(|change| change.ends_with(" sync "))
            })
        };
        let began = std::time::Instant::now();
        while !is_noted() {
            let waited = began.elapsed();
            assert!(
                waited < std::time::Duration::from_secs(20),
                "{:#?}",
                disk.log()
            );
            std::thread::yield_now();
        }
        log.append(batch)
    }))
}

/// A message waits for one sync after the log has its record, not for two.
#[test]
fn the_signature_becomes_durable_while_the_log_takes_the_batch() {
    let log = Shared::new(1, Weather::default());
    let tower = Host::new(0);
    let disk = Arc::new(FaultyDisk::new("boot"));
    let awaits = awaits_signature(log.connect(), Arc::clone(&disk));
    let opened = Mailroom::open_shared_on(
        tower.root.path(),
        Arc::clone(&disk) as _,
        sharing("tower", awaits),
    );
    let mut mailroom = opened.expect("a start").0;
    disk.set(None);
    tower.put("a.yaml", &question("claude", "codex", "msg-a"));
    mailroom.sweep().expect("a sweep");
    let pass = mailroom.pass(tower.moment(1_000)).expect("a pass");
    assert_eq!(pass.accepted, 1);
    assert_eq!(names(&tower.path("agents/claude/sent")), ["a.yaml"]);
}

#[test]
fn batches_that_the_log_does_not_take_leave_one_signature_at_most() {
    let log = Shared::new(1, Weather::default());
    let mut hosts = started(&log);
    let mut ms = 0;
    settle(&mut hosts, &mut ms);
    let lost = Weather {
        request_lost: 100,
        ..Weather::default()
    };
    log.set_weather(lost);
    for number in 0..20 {
        hosts[0].put(&format!("{number}.yaml"), &question("claude", "codex", "a"));
        ms += 1_000;
        hosts[0].pass(ms);
    }
    log.set_weather(Weather::default());
    settle(&mut hosts, &mut ms);
    let signatures = fs::read_to_string(hosts[0].path(".settled/signatures")).expect("lines");
    assert_eq!(signatures.lines().count(), log.batches().len());
}

/// There are more files than one batch takes. Where the log's answer was lost, their records come back from it; in the
/// second case the answer to the next batch is lost in the same pass.
#[test]
fn serving_once_counts_what_it_judged_though_answers_of_the_log_are_lost() {
    // Each run gives its new files five seconds, so all wait at once.
    std::thread::scope(|runs| {
        for lost in [&[][..], &[0], &[0, 2], &[1]] {
            runs.spawn(move || serving_once_counts_what_it_judged(lost));
        }
    });
}

/// Serves once while the log's answers to these batches are lost, and then on another host.
fn serving_once_counts_what_it_judged(lost: &'static [usize]) {
    const REFUSED: usize = 300;
    let log = Shared::new(1, Weather::default());
    let tower = Host::new(0);
    for number in 0..REFUSED {
        tower.put(&format!("broken-{number}.yaml"), "from: [\n");
    }
    tower.put("a.yaml", &question("claude", "codex", "msg-a"));
    let sharing = sharing("tower", unanswered(log.connect(), lost));
    let served = serve_shared_once(tower.root.path(), sharing, 0).expect("a run");
    assert_eq!(served.sharing_state, SharingState::InStep, "{lost:?}");
    let tally = served.tally;
    assert_eq!((tally.accepted, tally.refused), (1, REFUSED), "{lost:?}");
    assert_eq!(tower.entries().len(), REFUSED + 1, "{lost:?}");
    // This host does not count what another host judged.
    let laptop = Host::new(1);
    let sharing = self::sharing("laptop", Box::new(log.connect()));
    let end = log.batches().last().expect("a batch").batch.head().seq;
    let served = serve_shared_once(laptop.root.path(), sharing, end).expect("a run");
    assert_eq!(served.tally, daemon::serve::Tally::default(), "{lost:?}");
    assert_eq!(laptop.ledger(), tower.ledger(), "{lost:?}");
}
