//! The daemon's work at quiet moments: snapshots, which the next start uses, and the removal of old files; and what
//! `settled gc` and `settled ledger verify` report on both.

use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{names, seed, wait};

const EAGER: &str =
    "[ledger]\nsnapshot_records = 1\n\n[retention]\nsent_days = 1\nautomatic = true\n";

fn ask(mailroom: &Mailroom, id: &str) {
    mailroom.post(
        "claude",
        &format!("{id}.yaml"),
        &seed::note("question", id, "claude", "codex", "?"),
    );
    mailroom.delivered("codex", &format!("{id}.yaml"));
    mailroom.cleared("claude");
}

fn snapshots(mailroom: &Mailroom) -> Vec<String> {
    let names = names(mailroom.root().join(".settled/snapshots"));
    names
        .into_iter()
        .filter(|name| name.ends_with(".snapshot"))
        .collect()
}

#[test]
fn a_daemon_that_is_killed_after_a_snapshot_goes_on_from_it() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.put("settled.toml", EAGER);
    let daemon = mailroom.serve();
    ask(&mailroom, "q-1");
    wait::until("a snapshot of the first record", || {
        snapshots(&mailroom) == ["00000000000000000001.snapshot"]
    });
    ask(&mailroom, "q-2");
    daemon.kill();
    let before = mailroom.status();
    let daemon = mailroom.serve();
    assert!(
        daemon.log().contains("read the ledger records=2 snapshot="),
        "{}",
        daemon.log()
    );
    ask(&mailroom, "q-3");
    wait::until("a snapshot of the third record", || {
        snapshots(&mailroom).contains(&"00000000000000000003.snapshot".to_owned())
    });
    assert!(daemon.terminate().success());
    assert_eq!(
        (&before["accepted"], &mailroom.status()["accepted"]),
        (&2.into(), &3.into())
    );
    let verified = mailroom.run(&["ledger", "verify"]);
    let text = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(
        verified.status.success() && text.contains("the snapshot at 3 agrees with the records\n"),
        "{text}"
    );

    // The snapshot alone recognizes the repeated message.
    mailroom.post(
        "claude",
        "again.yaml",
        &seed::note("question", "q-1", "claude", "codex", "?"),
    );
    let once = mailroom.once();
    assert!(
        String::from_utf8_lossy(&once.stdout).contains("1 duplicates"),
        "{}",
        said(&once)
    );
}

#[test]
fn mail_that_never_pauses_keeps_no_snapshot_from_being_made() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.put(
        "settled.toml",
        "[ledger]\nsnapshot_records = 5\n\n[limits]\nmessages_per_hour = 10000\n",
    );
    let daemon = mailroom.serve();
    let mut number = 0;
    wait::until("a snapshot beside mail that goes on", || {
        number += 1;
        ask(&mailroom, &format!("q-{number}"));
        !snapshots(&mailroom).is_empty()
    });
    assert!(daemon.terminate().success());
}

#[test]
fn a_mailbox_that_is_closed_before_its_files_are_synced_keeps_no_snapshot_from_being_made() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.put("settled.toml", "[ledger]\nsnapshot_records = 1\n");
    let inbox = mailroom.agent("codex", "inbox");
    let away = inbox.with_extension("away");
    let cursor = mailroom.root().join(".settled/cursors/codex.inbox.cursor");
    let daemon = mailroom.serve();
    let open = || {
        std::fs::remove_file(&inbox).expect("what was in the way");
        std::fs::rename(&away, &inbox).expect("an inbox");
    };
    let is_told = || daemon.log().contains("could not sync delivered files");
    // The daemon syncs a second after a delivery: if it was faster than this test, the test tries again.
    let last = (1..).find(|number: &u32| {
        ask(&mailroom, &format!("q-{number}"));
        std::fs::rename(&inbox, &away).expect("an inbox");
        std::fs::write(&inbox, "closed").expect("a file");
        let synced = format!("durable   {number:020}.");
        wait::until("a checkpoint", || {
            is_told() || settled_tests::read(&cursor).contains(&synced)
        });
        is_told() || {
            open();
            false
        }
    });
    let last = last.expect("there is no end of numbers");
    wait::until("a snapshot of the last record", || {
        snapshots(&mailroom).contains(&format!("{last:020}.snapshot"))
    });
    daemon.kill();
    open();
    let daemon = mailroom.serve();
    let log = daemon.log();
    assert!(
        log.contains(&format!("read the ledger records={last} snapshot={last}")),
        "{log}"
    );
    assert_eq!(names(&inbox).len(), usize::try_from(last).expect("few"));
    assert!(daemon.terminate().success());
}

/// Replaces a text in the snapshot's head by one of the same length, and recomputes all checksums.
fn resum(path: &std::path::Path, old: &str, new: &str) {
    let bytes = std::fs::read(path).expect("a snapshot");
    let end = bytes.windows(5).position(|line| line == b"\nend ");
    let (head, rest) = bytes.split_at(end.expect("a head ends") + 1);
    let head = String::from_utf8(head.to_vec()).expect("a head is text");
    let sum = settled_tests::ledger::digest(head.as_bytes());
    let head = head.replace(old, new);
    let new_sum = settled_tests::ledger::digest(head.as_bytes());
    let (rest, footer) = rest.split_at(rest.len() - 512);
    let line = rest.iter().position(|byte| *byte == b'\n').expect("a line");
    let (end, rows) = rest.split_at(line);
    let end = String::from_utf8(end.to_vec()).expect("text");
    let footer = String::from_utf8(footer.to_vec()).expect("text");
    let inner = footer
        .trim_end()
        .split_once("{\"footer\":")
        .expect("a footer")
        .1;
    let inner = inner.rsplit_once(",\"sum\":").expect("its checksum").0;
    let inner = inner.replace(&sum, &new_sum);
    let own = settled_tests::ledger::digest(inner.as_bytes());
    let footer = format!("{{\"footer\":{inner},\"sum\":\"sha256:{own}\"}}");
    let (end, footer) = (end.replace(&sum, &new_sum), format!("{footer:<511}\n"));
    let bytes = [head.as_bytes(), end.as_bytes(), rows, footer.as_bytes()];
    std::fs::write(path, bytes.concat()).expect("a snapshot");
}

#[test]
fn a_snapshot_that_says_something_else_than_the_records_is_told() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.put("settled.toml", "[ledger]\nsnapshot_records = 1\n");
    mailroom.post(
        "claude",
        "q-1.yaml",
        &seed::note("question", "q-1", "claude", "codex", "?"),
    );
    assert!(mailroom.once().status.success());
    let path = mailroom
        .root()
        .join(".settled/snapshots/00000000000000000001.snapshot");
    resum(&path, "state {\"accepted\":1}", "state {\"accepted\":2}");
    assert_eq!(
        mailroom.status()["accepted"],
        2,
        "it is whole, so a start would take it up"
    );
    let verified = mailroom.run(&["ledger", "verify"]);
    assert_eq!(verified.status.code(), Some(1), "{}", said(&verified));
    assert!(
        said(&verified).contains("its snapshot at 1 is wrong"),
        "{}",
        said(&verified)
    );
    std::fs::remove_dir_all(mailroom.root().join(".settled/snapshots")).expect("snapshots");
    assert_eq!(mailroom.status()["accepted"], 1);
}

#[test]
fn the_daemon_removes_old_files_only_where_it_is_told_to() {
    for (config, is_told) in [(EAGER, true), ("[retention]\nsent_days = 1\n", false)] {
        let mailroom = Mailroom::new(&["claude", "codex"]);
        mailroom.put("settled.toml", config);
        let daemon = mailroom.serve();
        ask(&mailroom, "q-1");
        if is_told {
            wait::until("a look for old files", || {
                daemon.log().contains("old files were removed files=0")
            });
        }
        assert!(daemon.terminate().success());
        assert_eq!(
            names(mailroom.agent("claude", "sent")),
            ["q-1.yaml"],
            "it is not a day old"
        );
    }
    let mailroom = Mailroom::new(&["claude"]);
    mailroom.put("settled.toml", "[retention]\nsent_days = 36501\n");
    let output = mailroom.run(&["gc", "--dry-run"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        said(&output).contains("retention.sent_days is 36501, expected 0 to 36500"),
        "{}",
        said(&output)
    );
    mailroom.put("settled.toml", "");
    let document = mailroom.json(&["gc"]);
    let gone = &document["data"]["folders"][0]["removed"]["files"];
    assert_eq!((&document["schema_version"], gone), (&1.into(), &0.into()));
}
