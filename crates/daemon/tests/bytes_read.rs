//! Tests that a command reads no more because there are more finished reviews. It is a binary of its own, so that it
//! counts only its own bytes.

#[path = "it/room.rs"]
#[allow(dead_code, reason = "only a part of it is needed here")]
mod room;
#[path = "../../../tests/scratch.rs"]
mod scratch;

use chrono::DateTime;
use mailbox::compose::ask;
use mailbox::compose::review_status::ReviewStatuses;
use workspace::index::LedgerIndex;

use crate::room::Room;

/// Requests these reviews, approves every second one, leaves the others to a person, and makes a snapshot.
fn finish_reviews(room: &Room, numbers: std::ops::Range<u32>, second: i64) {
    let message = |from: &str, to: &str, kind: &str, number: u32, body: &str| {
        let text = format!(
            "id: {kind}-{number}\nfrom: {from}\nto: {to}\ntype: {kind}\npriority: P1\n\
             created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"{number}\"\nsubject: \"Change {number}\"\nbody: |\n{body}"
        );
        room.put(&format!("agents/{from}/outbox/{kind}-{number}.yaml"), &text);
    };
    for number in numbers.clone() {
        let body = format!(
            "  pr: {number}\n  branch: b-{number}\n  diff_summary: |\n    What was changed.\n  \
             max_turns_reviewer: 8\n  max_runtime_s_reviewer: 600\n"
        );
        message("claude", "codex", "review_request", number, &body);
    }
    room.visit(second);
    for number in numbers.step_by(2) {
        let body = "  quality_gate_result: pass\n  merge_ready: true\n";
        message("codex", "claude", "review_lgtm", number, body);
    }
    room.visit(second + 60);
    // By then every pick-up deadline has passed.
    room.visit(second + 3 * 24 * 3_600);
}

/// The number of bytes this process has read so far.
fn bytes_read() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").expect("the kernel counts them");
    let line = io.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.expect("a count").parse().expect("a number")
}

/// The bytes read to find an old approved review, one that waits for a person, and an agent's open requests; also how
/// many there are of the first two.
fn asked(room: &Room) -> (u64, [u64; 2]) {
    let before = bytes_read();
    let (index, folded) = LedgerIndex::read(room.root()).expect("a ledger");
    let [approved, waiting] = ["7", "8"].map(|pr| pr.parse().expect("a number"));
    assert_eq!(index.state().reviews_of(&approved).count(), 1);
    let claude = "claude".parse().expect("a name");
    let statuses = ReviewStatuses::read(room.root(), &claude).expect("a ledger");
    assert_eq!(statuses.mine(Some(&waiting), None).count(), 1);
    // As a reviewer's commands do.
    let codex = "codex".parse().expect("a name");
    let open = ask::open(room.root(), &codex, DateTime::UNIX_EPOCH).expect("a ledger");
    assert_eq!(open.len(), 0);
    let bytes = bytes_read() - before;
    assert_eq!(folded.snapshot, Some(folded.verified.records));
    // Nobody searches the ledger for the refusal that was the first of all messages.
    assert_eq!(index.refusals.iter().count(), 1);
    let phases = index.state().phases();
    (bytes, ["approved", "escalated"].map(|phase| phases[phase]))
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_read_to_find_one_review_does_not_grow_with_the_others() {
    let room = Room::new();
    let config = "[limits]\nmessages_per_hour = 10000\n\n[ledger]\nsnapshot_records = 1\n";
    std::fs::write(room.path("settled.toml"), config).expect("a config");
    room.put("agents/claude/outbox/refused.yaml", "no message\n");
    finish_reviews(&room, 1..201, 60);
    let (few_bytes, few) = asked(&room);
    finish_reviews(&room, 201..1001, 4 * 24 * 3_600);
    let (many_bytes, many) = asked(&room);
    assert_eq!((few, many), ([100; 2], [500; 2]));
    let ledger = spool::verify(room.root()).expect("a whole ledger").bytes;
    assert!(
        many_bytes < few_bytes + 48 * 1024 && many_bytes * 8 < ledger,
        "{few_bytes} bytes beside {few:?} reviews, {many_bytes} beside {many:?}, whose ledger has {ledger}"
    );
}
