//! What the daemon does at quiet moments: snapshots, which the next start takes up, and the removal of old files; and what
//! `settled gc` and `settled ledger verify` say of both.

use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{names, read, seed, wait, write};

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

    // The same message again is known from the snapshot alone.
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
    let text = read(&path).replace("state {\"accepted\":1}", "state {\"accepted\":2}");
    let body = text
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("end "))
        .collect::<String>();
    let sum = settled_tests::ledger::digest(body.as_bytes());
    let lines = body.lines().count();
    write(
        &path,
        &format!("{body}end {{\"lines\":{lines},\"sum\":\"sha256:{sum}\"}}\n"),
    );
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
    let gone = &document["data"]["shelves"][0]["removed"]["files"];
    assert_eq!((&document["schema_version"], gone), (&1.into(), &0.into()));
}
