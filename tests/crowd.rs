//! An outbox full of messages that name packets nobody writes, and how long an order, a take and a deadline of other agents
//! wait beside it, by the clock of a real daemon.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::{list, seed, wait, write};

/// The agents of such a workspace: an author, its reviewer, and the one with the crowd.
pub const AGENTS: [&str; 3] = ["claude", "codex", "mallory"];

/// The most time that other files hold up an order, in milliseconds, from when the daemon sees it.
pub const ORDER_MS_MAX: i64 = 3_000;

/// The most time that they hold up a take, in milliseconds: 2 s, and as much again between two sweeps.
pub const TAKE_MS_MAX: i64 = 4_000;

/// The most time that files of its own agents hold up a deadline, in milliseconds. Those of others do not.
pub const DEADLINE_MS_MAX: i64 = 10_000;

/// The reviewer's seconds.
const SECONDS: i64 = 2;

/// How long each waited beside the crowd, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// From the start of the command to its end.
    pub order: i64,
    /// From the move of the request out of the inbox until it is recorded.
    pub take: i64,
    /// From the end of the reviewer's seconds until it is recorded.
    pub deadline: i64,
}

/// A review message of mallory's that waits for its packet.
pub fn without_packet(from: &str, number: usize) -> String {
    let body = format!(
        "findings_packet: packets/findings/none-{number}.yaml\nround: 1\nblocking_count: 0\n"
    );
    let id = format!("held-{number}");
    seed::review_message("review_feedback", &id, from, "claude", "86", &body)
}

/// Writes `count` such messages, dated in the future, and measures beside them. A daemon must serve the workspace.
pub fn waits_beside(root: &Path, settled: &Path, count: usize) -> Waits {
    let body = format!("pr: 7\nbranch: b\ndiff_summary: s\nmax_runtime_s_reviewer: {SECONDS}\n");
    let request = seed::review_message("review_request", "r-7", "claude", "codex", "7", &body);
    write(root.join("agents/claude/outbox/r-7.yaml"), &request);
    let [inbox, archive] =
        ["inbox", "archive"].map(|place| root.join("agents/codex").join(place).join("r-7.yaml"));
    wait::until("the request", || inbox.exists());
    fill(&root.join("agents/mallory/outbox"), count);
    std::thread::scope(|scope| {
        let order = scope.spawn(|| order(root, settled));
        let moved = Instant::now();
        std::fs::rename(&inbox, archive).expect("the request is in the inbox");
        let taken = wait::for_some("the take", || record(root, "taken"));
        let take = millis(moved.elapsed());
        let ended = wait::for_some("the deadline", || record(root, "deadline"));
        Waits {
            order: order.join().expect("an order"),
            take,
            deadline: (at(&ended) - at(&taken)).num_milliseconds() - SECONDS * 1_000,
        }
    })
}

fn fill(outbox: &Path, count: usize) {
    let future = SystemTime::now() + Duration::from_secs(400 * 86_400);
    for number in 0..count {
        let file = File::create(outbox.join(format!("{number:07}.yaml")));
        // The daemon may have put it away by then.
        let _ = file.and_then(|mut file| {
            file.write_all(without_packet("mallory", number).as_bytes())?;
            file.set_modified(future)
        });
    }
}

fn order(root: &Path, settled: &Path) -> i64 {
    let began = Instant::now();
    let given = Command::new(settled)
        .args(["pr", "synchronize", "8", "--head", "9b2f41c", "--root"])
        .arg(root)
        .stdout(Stdio::null())
        .status();
    assert!(given.is_ok_and(|status| status.success()), "the order");
    millis(began.elapsed())
}

/// Returns the first record of this kind; a batch that is being written is not read.
fn record(root: &Path, kind: &str) -> Option<Value> {
    let segments = list(root.join(".settled/ledger")).into_iter();
    let texts = segments.filter_map(|segment| std::fs::read_to_string(segment).ok());
    let wanted = format!("\"kind\":\"{kind}\"");
    let find = |text: String| {
        let mut lines = text.lines().filter(|line| line.contains(&wanted));
        lines.find_map(|line| serde_json::from_str(line).ok())
    };
    texts.filter_map(find).next()
}

fn at(record: &Value) -> DateTime<Utc> {
    let at = record["at"].as_str().and_then(|at| at.parse().ok());
    at.expect("a record has its time")
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).expect("a short time")
}
