//! A review over several hosts, and who fires its deadlines.

use super::*;

/// The time that the reviewer of a P1 request has to pick it up, in milliseconds.
pub(super) const PICK_UP_MS: i64 = 24 * 3_600 * 1_000;

/// Three hosts with a review of pull request 86 from claude's host to codex's, and about when it was opened.
fn with_an_open_review() -> (Vec<Host>, i64) {
    let (_, hosts, opened) = logged_with_an_open_review();
    (hosts, opened)
}

pub(super) fn logged_with_an_open_review() -> (Shared, Vec<Host>, i64) {
    let log = Shared::new(1, Weather::default());
    let mut hosts = started(&log);
    let body = "pr: 86\n  branch: x\n  diff_summary: y\n  max_runtime_s_reviewer: 600";
    let request = review_message("claude", "codex", "review_request", body);
    hosts[0].put("review_request.yaml", &request);
    let mut ms = 0;
    settle(&mut hosts, &mut ms);
    (log, hosts, ms)
}

#[test]
fn a_review_goes_over_two_hosts_and_a_third_one_follows_it() {
    let (mut hosts, mut ms) = with_an_open_review();
    assert_eq!(
        names(&hosts[1].path("agents/codex/inbox")),
        ["review_request.yaml"]
    );
    assert!(names(&hosts[0].path("agents/codex/inbox")).is_empty());
    let body = "quality_gate_result: pass\n  merge_ready: true";
    hosts[1].put(
        "lgtm.yaml",
        &review_message("codex", "claude", "review_lgtm", body),
    );
    settle(&mut hosts, &mut ms);
    assert_eq!(names(&hosts[0].path("agents/claude/inbox")), ["lgtm.yaml"]);
    for host in &hosts {
        assert_eq!(host.sharing_state(), SharingState::InStep);
        let kinds: Vec<String> = host.entries().into_iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, ["accepted", "accepted"]);
    }
}

pub(super) fn fire(host: &mut Host, ms: i64) {
    host.pass(ms);
    let moment = host.moment(ms);
    let kept = host.mailroom().keep_deadlines(moment.utc, moment);
    kept.expect("deadlines");
}

fn fired_by(hosts: &[Host]) -> Vec<String> {
    let entries = hosts[2].entries();
    let fired = entries.iter().filter(|entry| entry.kind == "deadline");
    fired
        .map(|entry| {
            let host = entry.host.as_ref().expect("a host");
            let is_away = entry.decision.get().contains("\"home_away\":true");
            format!("{host}{}", if is_away { ", away" } else { "" })
        })
        .collect()
}

#[test]
fn a_deadline_is_fired_where_its_agent_is_at_home_and_elsewhere_after_a_grace() {
    // codex is at home on the laptop, whose clock is 90 s ahead; the tower's is right.
    let (mut hosts, opened) = with_an_open_review();
    let due = opened + PICK_UP_MS;
    fire(&mut hosts[0], due + 30_000);
    assert!(fired_by(&hosts).is_empty());
    fire(&mut hosts[1], due);
    let mut ms = due + 31_000;
    settle(&mut hosts, &mut ms);
    assert_eq!(fired_by(&hosts), ["laptop"]);

    let (mut hosts, opened) = with_an_open_review();
    let due = opened + PICK_UP_MS;
    fire(&mut hosts[0], due + 61_000);
    let mut ms = due + 62_000;
    settle(&mut hosts, &mut ms);
    assert_eq!(fired_by(&hosts), ["tower, away"]);
    for host in &hosts {
        assert_eq!(host.sharing_state(), SharingState::InStep);
    }
}

#[test]
fn a_deadline_that_has_not_come_by_the_logs_clock_is_not_fired() {
    let (log, mut hosts, opened) = logged_with_an_open_review();
    let due = opened + PICK_UP_MS;
    // codex is at home on the laptop, whose clock is 90 s ahead.
    log.set_clock_ahead(hosts[1].handle, -90_000);
    fire(&mut hosts[1], due - 20_000);
    let mut ms = due - 19_000;
    settle(&mut hosts, &mut ms);
    assert!(fired_by(&hosts).is_empty());
    fire(&mut hosts[1], due);
    settle(&mut hosts, &mut ms);
    assert_eq!(fired_by(&hosts), ["laptop"]);
}

#[test]
fn a_deadline_that_an_answer_overtakes_is_not_recorded() {
    let (log, mut hosts, opened) = logged_with_an_open_review();
    let ms = opened + PICK_UP_MS + 61_000;
    hosts.iter_mut().for_each(|host| host.off_ms = 0);
    let body = "quality_gate_result: pass\n  merge_ready: true";
    let answer = review_message("codex", "claude", "review_lgtm", body);
    hosts[1].put("lgtm.yaml", &answer);
    hosts[1].pass(ms);
    assert_eq!(log.batches().len(), 2);
    // The tower may fire by now, and has not seen the answer.
    let moment = hosts[0].moment(ms);
    let kept = hosts[0].mailroom().keep_deadlines(moment.utc, moment);
    assert!(
        matches!(kept, Err(spool::SpoolError::NotTaken { .. })),
        "{kept:?}"
    );
    fire(&mut hosts[0], ms + 1_000);
    let mut ms = ms + 2_000;
    settle(&mut hosts, &mut ms);
    for host in &hosts {
        assert_eq!(host.sharing_state(), SharingState::InStep);
        let kinds: Vec<String> = host.entries().into_iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, ["accepted", "accepted"]);
    }
}
