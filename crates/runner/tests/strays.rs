//! Tests the search for what agents left behind, beside an agent that forks all the time. Alone in its program, because
//! the search covers all children of this process.

use std::process::Command;
use std::time::{Duration, Instant};

use runner::tree;

/// Comparing two looks at the processes, with a fork in between, would stop or kill this agent.
#[test]
fn what_a_kept_agent_forks_meanwhile_is_never_taken_for_a_stray() {
    let directory = tempfile::tempdir().expect("a directory");
    let done = directory.path().join("done");
    let script = "for i in $(seq 1500); do /bin/true || exit 1; done; touch \"$0\"";
    // A session of its own, like a keeper's.
    let mut keeper = Command::new("setsid")
        .args(["sh", "-c", script])
        .arg(&done)
        .spawn()
        .expect("a shell");
    let kept = [keeper.id().cast_signed()];
    let start = Instant::now();
    while matches!(keeper.try_wait(), Ok(None)) && start.elapsed() < Duration::from_secs(300) {
        tree::end_strays(&kept);
    }
    let _ = keeper.kill();
    let status = keeper.wait().expect("its end");
    assert!(
        status.success() && done.exists(),
        "{status}: something of it was stopped or killed"
    );
}
