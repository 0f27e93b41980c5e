//! The process is killed after, or in the middle of, every change it makes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::daemon::{BOOT, Daemon, Workspace, run};
use spool::{DiskFault, FaultyDisk};

const ALPHA: &str = "to codex: alpha";
const BETA: &str = "to codex: beta, which is longer";
const GAMMA: &str = "to claude: gamma";
const BAD: &str = "to codex: bad";
const STRANGER: &str = "left here by somebody else";

/// Three messages, one of them sent twice, a refused one, and taken names wherever a file has to go.
pub(crate) fn scenario() -> Workspace {
    let workspace = Workspace::new(&["claude", "codex"]);
    workspace.write("agents/claude/outbox/a.yaml", ALPHA);
    workspace.write("agents/claude/outbox/again.yaml", ALPHA);
    workspace.write("agents/claude/outbox/b.yaml", BETA);
    workspace.write("agents/claude/outbox/bad.yaml", BAD);
    workspace.write("agents/codex/outbox/c.yaml", GAMMA);
    workspace.write("agents/codex/inbox/b.yaml", STRANGER);
    workspace.write("agents/claude/sent/a.yaml", STRANGER);
    workspace.write("agents/claude/dead_letter/bad.yaml", STRANGER);
    workspace
}

/// The texts that readers have taken out of their inboxes, with their counts.
pub(crate) type Seen = BTreeMap<String, u32>;

/// Takes every visible file out of the inboxes and checks that no partial file shows anywhere.
pub(crate) fn take_all(workspace: &Workspace, seen: &mut Seen) {
    for agent in ["claude", "codex"] {
        let inbox = format!("agents/{agent}/inbox");
        for (name, text) in workspace.show(&inbox) {
            *seen.entry(text).or_default() += 1;
            std::fs::remove_file(workspace.path(&inbox).join(name)).expect("a file to take");
        }
    }
}

fn whole_texts() -> BTreeSet<String> {
    let mut whole: BTreeSet<String> = [ALPHA, BETA, GAMMA, BAD, STRANGER]
        .map(str::to_owned)
        .into();
    for text in [ALPHA, BETA, GAMMA] {
        whole.extend([format!("notice of {text}"), format!("brief of {text}")]);
    }
    whole.insert(format!("report on {BAD}"));
    whole
}

fn nothing_partial_shows(workspace: &Workspace, context: &str) {
    let whole = whole_texts();
    for place in ["inbox", "sent", "dead_letter", "outbox"] {
        for agent in ["claude", "codex"] {
            for (name, text) in workspace.show(&format!("agents/{agent}/{place}")) {
                assert!(
                    whole.contains(&text),
                    "{context}: {agent}/{place}/{name} holds {text:?}"
                );
            }
        }
    }
    for (name, text) in workspace.show("packets/briefs") {
        assert!(
            whole.contains(&text),
            "{context}: packets/briefs/{name} holds {text:?}"
        );
    }
}

/// Checks that everything happened exactly once in effect.
pub(crate) fn all_is_as_if_nothing_had_happened(
    workspace: &Workspace,
    daemon: &Daemon,
    mut seen: Seen,
    context: &str,
) {
    nothing_partial_shows(workspace, context);
    take_all(workspace, &mut seen);
    let mut expected: Seen = BTreeMap::new();
    for text in [ALPHA, BETA, GAMMA] {
        expected.insert(text.to_owned(), 1);
        expected.insert(format!("notice of {text}"), 1);
    }
    expected.insert(STRANGER.to_owned(), 1);
    assert_eq!(seen, expected, "{context}: what readers got");

    let texts = |place: &str| {
        let mut texts: Vec<String> = workspace.show(place).into_values().collect();
        texts.sort();
        texts
    };
    let sorted = |mut texts: Vec<String>| {
        texts.sort();
        texts
    };
    // The same bytes twice under two names: both are put away.
    let sent = [ALPHA, ALPHA, BETA, STRANGER].map(str::to_owned).to_vec();
    assert_eq!(
        texts("agents/claude/sent"),
        sorted(sent),
        "{context}: sent of claude"
    );
    assert_eq!(
        texts("agents/codex/sent"),
        [GAMMA],
        "{context}: sent of codex"
    );
    let dead = vec![
        BAD.to_owned(),
        format!("report on {BAD}"),
        STRANGER.to_owned(),
    ];
    assert_eq!(
        texts("agents/claude/dead_letter"),
        sorted(dead),
        "{context}: dead letters"
    );
    let briefs = [ALPHA, BETA, GAMMA]
        .map(|text| format!("brief of {text}"))
        .to_vec();
    assert_eq!(texts("packets/briefs"), sorted(briefs), "{context}: briefs");
    for agent in ["claude", "codex"] {
        assert!(
            workspace.show(&format!("agents/{agent}/outbox")).is_empty(),
            "{context}: an outbox is not empty"
        );
        for place in ["inbox", "sent", "dead_letter", "outbox"] {
            let hidden = workspace.hidden(&format!("agents/{agent}/{place}"));
            assert!(
                hidden.is_empty(),
                "{context}: {hidden:?} left in {agent}/{place}"
            );
        }
    }
    let judged: Vec<u32> = daemon.state.judged.values().copied().collect();
    assert_eq!(
        judged,
        [1, 1, 1, 1, 1],
        "{context}: something was judged twice: {:?}",
        daemon.state.judged
    );
    assert_eq!(
        spool::verify(workspace.root())
            .expect("a whole ledger")
            .records,
        5,
        "{context}"
    );
}

/// Runs a daemon until it is at rest or killed.
fn run_until_killed(workspace: &Workspace, fault: Option<DiskFault>) -> Arc<FaultyDisk> {
    let disk = Arc::new(FaultyDisk::new(BOOT));
    disk.set(fault);
    if let Ok(mut daemon) = Daemon::start(workspace, Arc::clone(&disk) as _) {
        let ended = daemon.run();
        assert!(ended.is_ok() || disk.stopped(), "{ended:?}");
    }
    disk
}

fn changes_of_a_whole_run() -> u64 {
    let workspace = scenario();
    let disk = run_until_killed(&workspace, None);
    let daemon = run(&workspace, BOOT);
    all_is_as_if_nothing_had_happened(&workspace, &daemon, Seen::new(), "without a fault");
    disk.changes()
}

#[test]
fn a_kill_at_any_change_has_no_effect() {
    let changes = changes_of_a_whole_run();
    assert!(
        changes > 60,
        "only {changes} changes: the scenario is too small to mean something"
    );
    for n in 1..=changes {
        for fault in [DiskFault::StopAfter(n), DiskFault::StopWithin(n)] {
            for readers_are_quick in [false, true] {
                let workspace = scenario();
                let disk = run_until_killed(&workspace, Some(fault));
                let last = disk.log().last().cloned().unwrap_or_default();
                let context = format!("{fault:?} ({last}), quick readers: {readers_are_quick}");
                assert!(disk.stopped(), "{context}: the fault was never reached");
                nothing_partial_shows(&workspace, &context);
                let mut seen = Seen::new();
                if readers_are_quick {
                    take_all(&workspace, &mut seen);
                }
                let daemon = run(&workspace, BOOT);
                all_is_as_if_nothing_had_happened(&workspace, &daemon, seen, &context);
            }
        }
    }
}

#[test]
fn a_second_kill_during_the_recovery_has_no_effect() {
    let changes = changes_of_a_whole_run();
    for n in (1..=changes).step_by(7) {
        for m in 1.. {
            let workspace = scenario();
            run_until_killed(&workspace, Some(DiskFault::StopAfter(n)));
            let mut seen = Seen::new();
            take_all(&workspace, &mut seen);
            let second = run_until_killed(&workspace, Some(DiskFault::StopAfter(m)));
            if !second.stopped() {
                break;
            }
            nothing_partial_shows(&workspace, "after the second kill");
            take_all(&workspace, &mut seen);
            let last = second.log().last().cloned().unwrap_or_default();
            let context = format!("killed after change {n}, then after change {m} ({last})");
            let daemon = run(&workspace, BOOT);
            all_is_as_if_nothing_had_happened(&workspace, &daemon, seen, &context);
        }
    }
}

#[test]
fn a_failed_change_has_no_effect() {
    let changes = changes_of_a_whole_run();
    // The last error is that of a rename between two mounts: originals are then copied and removed.
    let (no_room, broken, two_mounts) = (28, 5, 18);
    for n in 1..=changes {
        for errno in [no_room, broken, two_mounts] {
            let fault = DiskFault::Fail(n, errno);
            let workspace = scenario();
            let disk = Arc::new(FaultyDisk::new(BOOT));
            disk.set(Some(fault));
            let mut seen = Seen::new();
            // The first error that cannot be retried ends the process, as it ends the daemon.
            if let Ok(mut daemon) = Daemon::start(&workspace, Arc::clone(&disk) as _) {
                for _ in 0..10 {
                    match daemon.run() {
                        Ok(()) => break,
                        Err(error) if error.is_retryable() => {}
                        Err(_) => break,
                    }
                }
            }
            let last = disk
                .log()
                .get(usize::try_from(n - 1).expect("a count"))
                .cloned()
                .unwrap_or_default();
            let context = format!("{fault:?} ({last})");
            nothing_partial_shows(&workspace, &context);
            take_all(&workspace, &mut seen);
            let daemon = run(&workspace, BOOT);
            all_is_as_if_nothing_had_happened(&workspace, &daemon, seen, &context);
        }
    }
}

#[test]
fn nothing_is_delivered_before_the_tail_of_the_ledger_is_durable() {
    for n in 1..=changes_of_a_whole_run() {
        let workspace = scenario();
        run_until_killed(&workspace, Some(DiskFault::StopAfter(n)));
        let disk = run_until_killed(&workspace, None);
        let log = disk.log();
        let at = |what: &str| {
            log.iter()
                .position(|line| line.contains(what))
                .unwrap_or(log.len())
        };
        // The daemon syncs its own directories first, then the segment.
        if spool::verify(workspace.root()).is_ok_and(|verified| verified.records > 0) {
            let synced = log
                .iter()
                .position(|line| line.ends_with(" sync "))
                .expect("a sync of the segment");
            assert!(
                synced < at("create .settled-") && synced < at("rename"),
                "killed after {n}: {log:#?}"
            );
        }
    }
}
