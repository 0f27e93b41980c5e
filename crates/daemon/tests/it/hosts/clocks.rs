//! A clock that is far ahead moves no record and no deadline of the other hosts, and stops none of them for good.

use super::*;

const HOUR_MS: i64 = 3_600_000;

/// Three hosts whose clocks agree, but for the tower's, which is an hour ahead.
fn with_a_fast_tower() -> (Shared, Vec<Host>) {
    let log = Shared::new(1, Weather::default());
    let mut hosts = started(&log);
    for (host, off_ms) in hosts.iter_mut().zip([HOUR_MS, 0, 1_000]) {
        host.off_ms = off_ms;
    }
    (log, hosts)
}

fn pass_all(hosts: &mut [Host], ms: &mut i64) {
    for _ in 0..12 {
        *ms += 1_000;
        hosts.iter_mut().for_each(|host| host.pass(*ms));
    }
}

/// The time since which a host waits, and what for.
fn waits(host: &Host) -> (chrono::DateTime<chrono::Utc>, String) {
    let sharing_state = host.sharing_state();
    let SharingState::Waiting { since, why } = sharing_state else {
        panic!("{sharing_state:?}");
    };
    (since, why)
}

/// Checks that the tower records nothing, follows the others, and goes on once its clock is set.
fn records_nothing_until_its_clock_is_set(hosts: &mut [Host], ms: &mut i64) {
    hosts[0].put("a.yaml", &question("claude", "codex", "msg-a"));
    hosts[1].put("b.yaml", &question("codex", "claude", "msg-b"));
    pass_all(hosts, ms);
    let (since, why) = waits(&hosts[0]);
    assert!(
        why.starts_with("this host's clock is more than 5 minutes ahead"),
        "{why}"
    );
    pass_all(hosts, ms);
    assert_eq!(waits(&hosts[0]).0, since);
    for host in &*hosts {
        let from: Vec<_> = host.entries().into_iter().map(|entry| entry.host).collect();
        assert_eq!(from, [Some("laptop".parse().expect("a name"))]);
    }
    assert_eq!(names(&hosts[0].path("agents/claude/inbox")), ["b.yaml"]);
    assert_eq!(names(&hosts[0].path("agents/claude/outbox")), ["a.yaml"]);
    hosts[0].off_ms = 0;
}

#[test]
fn a_host_that_is_far_ahead_of_the_logs_clock_records_nothing() {
    let (log, mut hosts) = with_a_fast_tower();
    log.set_clock_ahead(hosts[0].handle, -HOUR_MS);
    let mut ms = 0;
    records_nothing_until_its_clock_is_set(&mut hosts, &mut ms);
    log.set_clock_ahead(hosts[0].handle, 0);
    settle(&mut hosts, &mut ms);
    assert_eq!(names(&hosts[1].path("agents/codex/inbox")), ["a.yaml"]);
}

#[test]
fn a_host_that_is_far_ahead_of_most_hosts_records_nothing() {
    let (_, mut hosts) = with_a_fast_tower();
    let mut ms = 0;
    pass_all(&mut hosts, &mut ms);
    records_nothing_until_its_clock_is_set(&mut hosts, &mut ms);
    settle(&mut hosts, &mut ms);
    assert_eq!(names(&hosts[1].path("agents/codex/inbox")), ["a.yaml"]);
}

#[test]
fn a_log_whose_clock_is_far_behind_that_of_most_hosts_stops_none() {
    let (log, mut hosts) = with_a_fast_tower();
    hosts[0].off_ms = 0;
    for host in &hosts {
        log.set_clock_ahead(host.handle, -HOUR_MS);
    }
    let mut ms = 0;
    pass_all(&mut hosts, &mut ms);
    hosts[0].put("a.yaml", &question("claude", "codex", "msg-a"));
    settle(&mut hosts, &mut ms);
    assert_eq!(names(&hosts[1].path("agents/codex/inbox")), ["a.yaml"]);
}

#[test]
fn a_record_whose_time_has_not_come_waits_for_it() {
    let (_, mut hosts) = with_a_fast_tower();
    // Nobody has heard whose clock is right, as with a repository.
    hosts[0].put("a.yaml", &question("claude", "codex", "msg-a"));
    hosts[0].pass(1_000);
    hosts[1].pass(2_000);
    let (_, why) = waits(&hosts[1]);
    assert!(why.starts_with("record 1, of host tower, is of "), "{why}");
    assert!(hosts[1].entries().is_empty());
    let mut ms = HOUR_MS;
    hosts[0].off_ms = 0;
    settle(&mut hosts, &mut ms);
    assert_eq!(names(&hosts[1].path("agents/codex/inbox")), ["a.yaml"]);
}

#[test]
fn a_host_whose_own_clock_is_behind_follows_as_far_as_the_logs_clock_says() {
    let (log, mut hosts) = with_a_fast_tower();
    log.set_clock_ahead(hosts[0].handle, 0);
    log.set_clock_ahead(hosts[1].handle, HOUR_MS);
    hosts[0].put("a.yaml", &question("claude", "codex", "msg-a"));
    hosts[0].pass(1_000);
    hosts[1].pass(2_000);
    assert_eq!(hosts[1].sharing_state(), SharingState::InStep);
    assert_eq!(hosts[1].ledger(), hosts[0].ledger());
}
