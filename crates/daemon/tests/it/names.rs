//! No file that the daemon makes has a colon in its name: other systems allow none, but an id may have some.

use std::path::Path;

use daemon::mailroom::Mailroom;
use daemon::schedule::Wakeup;

use crate::room::{Room, at};

/// Every name below a directory.
fn names(directory: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let entry = entry.expect("an entry");
        found.push(entry.file_name().to_string_lossy().into_owned());
        if entry.path().is_dir() {
            names(&entry.path(), found);
        }
    }
}

/// Puts a message with this id into a file whose name has no colon.
fn put(room: &Room, agent: &str, id: &str, kind: &str, body: &str) {
    let to = if agent == "claude" { "codex" } else { "claude" };
    let text = format!(
        "id: \"{id}\"\nfrom: {agent}\nto: {to}\ntype: {kind}\npriority: P1\nrelated_pr: \"86\"\n\
         created_at_utc: \"2026-02-13T10:00:00Z\"\nsubject: \"Colons\"\nbody: |\n  {body}\n"
    );
    let file = id.replace(':', "-");
    room.put(&format!("agents/{agent}/outbox/{file}.yaml"), &text);
}

#[test]
fn no_file_that_the_daemon_makes_has_a_colon_in_its_name() {
    let room = Room::new();
    let request = "pr: 86\n  branch: main\n  diff_summary: A change.";
    put(&room, "claude", "urn:r:1", "review_request", request);
    // This request is refused, with a report and a notice.
    put(&room, "claude", "urn:r:2", "review_request", "pr: 86");
    let findings = "findings: [{id: F-001, severity: P1, status: open}]\n";
    room.put("packets/findings/f.yaml", findings);
    let body = "findings_packet: packets/findings/f.yaml\n  round: 1\n  blocking_count: 1";
    put(&room, "codex", "urn:f:1", "review_feedback", body);
    let order = r#"{"schema_version":1,"id":"o:1","asked_at":"2026-02-13T16:26:40Z","event":{"turns":{"pr":"86","count":2}}}"#;
    room.put(".settled/orders/o-1.json", order);
    let mut mailroom = Mailroom::open(room.root()).expect("a start").0;
    mailroom.sweep().expect("a sweep");
    for second in 1..20 {
        mailroom.pass(at(second)).expect("a pass");
        if mailroom.schedule(at(second)).at(Wakeup::Look).is_none() {
            break;
        }
    }
    mailroom.finish(at(20)).expect("deliveries");
    mailroom.checkpoint().expect("a checkpoint");
    mailroom.close();
    let mut found = Vec::new();
    names(room.root(), &mut found);
    for made in ["urn-r-2.report.yaml", "86_claude_codex_r1.yaml"] {
        assert!(found.iter().any(|name| name == made), "{made}: {found:#?}");
    }
    let with_colon: Vec<_> = found.iter().filter(|name| name.contains(':')).collect();
    assert!(with_colon.is_empty(), "{with_colon:#?}");
}
