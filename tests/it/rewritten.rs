//! A rewritten ledger with a recomputed chain: `ledger verify` names the first wrong record, the daemon does not
//! continue against its snapshot, and a person can make it.

use settled_tests::ledger::{records, reworded, rewrite};
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{names, read, seed};

const CONFIG: &str = "[ledger]\nsnapshot_records = 1\n";

/// A mailroom with three accepted questions, and what `ledger verify` printed after each.
fn asked(config: &str) -> (Mailroom, String) {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.put("settled.toml", config);
    let mut heads = String::new();
    for id in ["q-1", "q-2", "q-3"] {
        let text = seed::note("question", id, "claude", "codex", "Which one?");
        mailroom.post("claude", &format!("{id}.yaml"), &text);
        assert!(mailroom.once().status.success());
        heads += &String::from_utf8_lossy(&mailroom.run(&["ledger", "verify"]).stdout);
    }
    (mailroom, heads)
}

/// Changes the words of the second question.
fn reword(mailroom: &Mailroom) {
    rewrite(mailroom.root(), |record, line| {
        if record["seq"] == 2 {
            reworded(record, line, "Which one?", "The other?")
        } else {
            line.to_owned()
        }
    });
    records(mailroom.root());
}

/// The exit code of `ledger verify`, and its output.
fn verified(mailroom: &Mailroom, more: &[&str]) -> (Option<i32>, String) {
    let output = mailroom.run(&[&["ledger", "verify"], more].concat());
    (output.status.code(), said(&output))
}

fn head(mailroom: &Mailroom) -> String {
    let data = mailroom.json(&["ledger", "verify"])["data"].take();
    data["last"].as_str().expect("a digest").to_owned()
}

#[test]
fn a_text_that_is_not_the_one_its_digest_is_of_is_named() {
    let (mailroom, _) = asked("");
    let digest_of = |text: &str| settled_tests::ledger::digest(text.as_bytes());
    let text = records(mailroom.root())[1]["original"]["text"]
        .as_str()
        .expect("a text")
        .to_owned();
    rewrite(mailroom.root(), |_, line| {
        line.replace("id: \\\"q-2\\\"", "id: \\\"q-9\\\"")
    });
    let (code, says) = verified(&mailroom, &[]);
    assert_eq!(code, Some(1), "{says}");
    let found = format!(
        "record 2 has changed: its text has the digest sha256:{}, and the record says sha256:{}",
        digest_of(&text.replace("q-2", "q-9")),
        digest_of(&text)
    );
    assert!(says.contains(&found), "{says}");
    // With the record's digest corrected, the decision's is still the old one.
    rewrite(mailroom.root(), |_, line| {
        let [old, new] = [text.clone(), text.replace("q-2", "q-9")].map(|text| digest_of(&text));
        line.replace(&format!("sha256:{old}"), &format!("sha256:{new}"))
    });
    let (code, says) = verified(&mailroom, &[]);
    assert_eq!(code, Some(1), "{says}");
    assert!(
        says.contains("record 2 has changed: its decision is about a text with another digest"),
        "{says}"
    );
}

#[test]
fn a_kept_head_shows_what_was_rewritten_behind_it() {
    let (mailroom, heads) = asked("");
    mailroom.put("heads.txt", &heads);
    let from = mailroom.root().join("heads.txt").display().to_string();
    let last = head(&mailroom);
    let both = ["--from", &from, "--expect", &last];
    assert_eq!(verified(&mailroom, &both).0, Some(0));
    // The ledger grows, and the kept head is still in it.
    mailroom.post(
        "codex",
        "q-4.yaml",
        &seed::note("question", "q-4", "codex", "claude", "Why?"),
    );
    assert!(mailroom.once().status.success());
    assert_eq!(verified(&mailroom, &both).0, Some(0));

    reword(&mailroom);
    let (code, says) = verified(&mailroom, &[]);
    assert_eq!(code, Some(0), "nothing else can show it: {says}");
    let (code, says) = verified(&mailroom, &["--from", &from]);
    assert_eq!(code, Some(1), "{says}");
    assert!(
        says.contains("record 2 has changed: its digest is sha256:"),
        "{says}"
    );
    let (code, says) = verified(&mailroom, &["--expect", &last]);
    assert_eq!(code, Some(1), "{says}");
    let found = format!(
        "the first wrong record is one of 1 to 4; record 4 is wrong: no record has the digest {last}"
    );
    assert!(says.contains(&found), "{says}");
    mailroom.put("heads.txt", "nothing of that\n");
    assert_eq!(verified(&mailroom, &["--from", &from]).0, Some(2));
}

#[test]
fn the_daemon_goes_on_from_a_rewritten_ledger_only_when_a_person_accepts_it() {
    let (mailroom, _) = asked(CONFIG);
    reword(&mailroom);
    let snapshot = "00000000000000000003.snapshot";
    let before = read(&settled_tests::list(mailroom.root().join(".settled/ledger"))[0]);
    let output = mailroom.once();
    assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    assert!(
        said(&output).contains(snapshot) && said(&output).contains("record 3 is another one"),
        "{}",
        said(&output)
    );
    assert_eq!(mailroom.run(&["status"]).status.code(), Some(1));
    let (code, says) = verified(&mailroom, &[]);
    assert_eq!(code, Some(1), "{says}");
    assert!(
        says.contains(
            "the first wrong record is one of 1 to 2; record 2 is wrong: the snapshot at 2"
        ) && says.contains("let a person accept it with `settled ledger accept --head sha256:"),
        "{says}"
    );
    let after = read(&settled_tests::list(mailroom.root().join(".settled/ledger"))[0]);
    assert_eq!(after, before, "nobody changed anything");

    let output = mailroom.run(&["ledger", "verify", "--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let last = answer["data"]["last"].as_str().expect("a digest");
    let accept = |head: &str| {
        mailroom.at_terminal(
            &["ledger", "accept", "--head", head, "--by", "ann"],
            "restored",
        )
    };
    let by_script = mailroom.run(&["ledger", "accept", "--head", last, "--reason", "mine"]);
    assert_eq!(by_script.status.code(), Some(5), "{}", said(&by_script));
    let other = accept(&format!("sha256:{}", "7".repeat(64)));
    assert_eq!(other.status.code(), Some(6), "{}", said(&other));
    let accepted = accept(last);
    assert!(accepted.status.success(), "{}", said(&accepted));
    assert_eq!(names(mailroom.root().join(".settled/torn")).len(), 2);
    let record = records(mailroom.root())[3].clone();
    assert_eq!(record["kind"], "ledger_accepted", "{record}");
    let event = &record["decision"]["happened"]["event"]["ledger_accepted"];
    assert_eq!(
        (&event["by"], &event["reason"], &event["head"]),
        (&"ann".into(), &"restored".into(), &last.into())
    );
    let log = said(&mailroom.run(&["log"]));
    assert!(
        log.contains(&format!(
            "ann: accepted the rewritten ledger up to {last} (restored)"
        )),
        "{log}"
    );
    assert!(mailroom.once().status.success());
    assert_eq!(verified(&mailroom, &[]).0, Some(0));
    assert_eq!(accept(last).status.code(), Some(1), "nothing to accept");
}

#[test]
fn a_snapshot_that_fails_its_own_checksum_proves_nothing_against_the_ledger() {
    let (mailroom, _) = asked(CONFIG);
    reword(&mailroom);
    for path in settled_tests::list(mailroom.root().join(".settled/snapshots")) {
        let mut bytes = std::fs::read(&path).expect("a snapshot");
        let at = bytes.windows(6).position(|word| word == b"state ");
        bytes[at.expect("a line of the state")] = b'S';
        std::fs::write(&path, bytes).expect("a snapshot");
    }
    assert!(mailroom.once().status.success());
    assert_eq!(mailroom.status()["accepted"], 3);
}
