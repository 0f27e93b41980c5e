//! Old ledgers stay readable: each sample is a ledger as some version wrote it, and still adds up to the same state. A
//! sample never changes; a new form gets a new sample.
//!
//! `UPDATE=1` writes missing samples and replaces none.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::room::Room;
use daemon::mailroom::{Mailroom, accept_ledger};
use serde_json::Value;
use spool::Fold as _;
use workspace::index::LedgerIndex;

/// Writes the ledger of a sample.
type Story = fn() -> String;

/// Every sample, with the story that writes it.
const SAMPLES: [(&str, Story); 4] = [
    ("v1", story),
    ("v1.pairs", story_of_pairs),
    ("v1.accepted", story_of_an_acceptance),
    ("v1.sent", story_of_a_changed_original),
];

const SEGMENT: &str = ".settled/ledger/00000000000000000001.jsonl";

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/ledgers")
}

/// Reads a kept text. If it is missing and `UPDATE` is set, `make` writes it.
fn kept(path: &Path, make: impl FnOnce() -> String) -> String {
    if !path.exists() && std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, make()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    std::fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("{}: {error}; UPDATE=1 writes it", path.display()))
}

/// The events of a ledger: each record's kind and its special parts.
fn words(ledger: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for line in ledger.lines() {
        let record: Value = serde_json::from_str(line).expect("a line of JSON");
        let kind = record["kind"].as_str().expect("a kind");
        words.insert(kind.to_owned());
        let decision = &record["decision"];
        for (what, is_so) in [
            ("cost", !decision["refused"]["cost"].is_null()),
            ("notice never", decision["refused"]["notice"] == "never"),
            (
                "notice withheld",
                decision["refused"]["notice"] == "withheld",
            ),
            ("packet", !decision["accepted"]["packet"].is_null()),
            ("letters", !decision["happened"]["letters"].is_null()),
            (
                "handoff",
                !decision["happened"]["handoff"]["tasks"].is_null(),
            ),
            (
                "withdrawn",
                record["deliveries"].to_string().contains("withdrawn"),
            ),
            (
                "text",
                record["deliveries"].to_string().contains("\"text\""),
            ),
        ] {
            if is_so {
                words.insert(format!("{kind}: {what}"));
            }
        }
    }
    words
}

const EVERYTHING: [&str; 23] = [
    "accepted",
    "accepted: packet",
    "accepted: text",
    "deadline",
    "deadline: letters",
    "deadline: text",
    "decided",
    "decided: letters",
    "decided: text",
    "declined",
    "duplicate",
    "pull",
    "pull: handoff",
    "pull: letters",
    "pull: text",
    "refused",
    "refused: cost",
    "refused: notice never",
    "refused: notice withheld",
    "refused: text",
    "refused: withdrawn",
    "taken",
    "turns",
];

fn packet(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packets")
        .join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A ledger with every kind of record, as this version writes them.
fn story() -> String {
    let room = Room::new();
    let config = "[handoff]\nmode = \"full\"\ntarget = \"claude\"\n";
    std::fs::write(room.path("settled.toml"), config).expect("a config");
    room.put(
        "packets/findings/20260213_review_loop_codex_r1.yaml",
        &packet("findings/20260213_review_loop_codex_r1.yaml"),
    );
    let [request, feedback, addressed, lgtm] = ["request", "feedback", "addressed", "lgtm"]
        .map(|word| packet(&format!("valid/review_{word}.yaml")));
    let mut second = 0;
    let mut happens = |path: &str, text: &str| {
        second += 60;
        room.put(path, text);
        room.visit(second);
    };
    let order = |id: &str, event: &str| {
        format!(
            r#"{{"schema_version":1,"id":"{id}","asked_at":"2026-02-13T16:26:40Z","event":{event}}}"#
        )
    };
    let of_person = |act: &str| {
        format!(
            r#"{{"person":{{"pr":"86","by":"ann","reason":"the blocker was ours","act":{act}}}}}"#
        )
    };
    happens("agents/claude/outbox/request.yaml", &request);
    happens("agents/claude/outbox/again.yaml", &request);
    happens(
        ".settled/orders/1.json",
        &order("o-1", r#"{"taken":{"pr":"86"}}"#),
    );
    happens(
        ".settled/orders/2.json",
        &order("o-2", r#"{"turns":{"pr":"86","count":2}}"#),
    );
    // An approval passes if nothing was recorded as failing; one that itself reports a failing gate costs an attempt.
    happens(
        "agents/codex/outbox/wrong.yaml",
        &lgtm.replace("quality_gate_result: pass", "quality_gate_result: fail"),
    );
    happens("agents/codex/outbox/feedback.yaml", &feedback);
    happens(
        ".settled/orders/3.json",
        &order("o-3", &of_person(r#"{"release":"F-009"}"#)),
    );
    happens("agents/claude/outbox/addressed.yaml", &addressed);
    let lost = addressed
        .replace("to: codex", "to: [codex, nobody]")
        .replace("claude-002", "claude-009");
    room.put("agents/codex/inbox/lost.yaml", &lost);
    happens("agents/claude/outbox/lost.yaml", &lost);
    happens(
        "agents/claude/outbox/daemon.yaml",
        &addressed
            .replace("to: codex", "to: settled")
            .replace("claude-002", "claude-010"),
    );
    for number in 0..40 {
        room.ask("claude", "nobody", &format!("q-{number}"));
    }
    happens(
        "agents/codex/outbox/question.yaml",
        "id: \"c-1\"\nfrom: codex\nto: claude\ntype: question\npriority: P2\ncreated_at_utc: \"2026-02-13T10:00:00Z\"\nconversation_id: \"conv-20260213-codex-1\"\nsubject: \"Which?\"\nbody: \"?\"\n",
    );
    room.visit(3 * 24 * 3600);
    second = 3 * 24 * 3600;
    let mut happens = |path: &str, text: &str| {
        second += 60;
        room.put(path, text);
        room.visit(second);
    };
    happens(
        ".settled/orders/4.json",
        &order("o-4", &of_person("\"reopen\"")),
    );
    happens(
        ".settled/orders/5.json",
        &order("o-5", &of_person(r#"{"hold":"F-003"}"#)),
    );
    happens(
        ".settled/orders/6.json",
        &order(
            "o-6",
            r#"{"pull":{"pr":"86","action":"synchronize","repo":"owner/name","head":"9b2f41c"}}"#,
        ),
    );
    happens(
        ".settled/orders/7.json",
        &order(
            "o-7",
            r#"{"pull":{"pr":"86","action":"merged","author":"octocat"}}"#,
        ),
    );
    std::fs::read_to_string(room.path(SEGMENT)).expect("a segment")
}

/// A ledger with a pair that is over and one that can be resumed.
fn story_of_pairs() -> String {
    let room = Room::new();
    let mut second = 0;
    let mut report = |pair: &str, what: &str| {
        second += 60;
        let event = format!(r#"{{"pair":{{"pair":"{pair}","what":{what}}}}}"#);
        room.put(
            ".settled/orders/1.json",
            &format!(r#"{{"schema_version":1,"id":"o-{second}","asked_at":"2026-02-13T16:26:40Z","event":{event}}}"#),
        );
        room.visit(second);
    };
    let member = |agent: &str| format!(r#"{{"agent":"{agent}","command":"true","output":"text"}}"#);
    let setup = format!(
        r#"{{"opened":{{"author":{},"reviewer":{},"workdir":"/","task":"a task","iterations":20,"run_seconds":60,"seconds":600,"turns":40,"words":{{"done":"DONE","pass":"PASS","fail":"FAIL"}}}}}}"#,
        member("claude"),
        member("codex")
    );
    let run = |start: u8| {
        format!(r#"{{"start":{start},"ms":1500,"turns":2,"said":"a word\nDONE\n","length":12}}"#)
    };
    for pair in ["pair-1", "pair-2"] {
        report(pair, &setup);
        report(pair, "\"started\"");
        report(pair, r#"{"began":1}"#);
        report(
            pair,
            &format!(
                r#"{{"crashed":{{"why":"it ended with code 1","run":{}}}}}"#,
                run(1)
            ),
        );
        report(pair, r#"{"began":2}"#);
        report(
            pair,
            &format!(r#"{{"ended":{{"signal":"done","run":{}}}}}"#, run(2)),
        );
        report(pair, r#"{"began":3}"#);
    }
    report(
        "pair-1",
        &format!(r#"{{"ended":{{"signal":"pass","run":{}}}}}"#, run(3)),
    );
    report(
        "pair-2",
        &format!(
            r#"{{"interrupted":{{"why":"a person ended it","run":{}}}}}"#,
            run(3)
        ),
    );
    std::fs::read_to_string(room.path(SEGMENT)).expect("a segment")
}

/// A ledger that was rewritten and that a person accepted.
fn story_of_an_acceptance() -> String {
    let room = Room::new();
    let config = "[ledger]\nsnapshot_records = 1\n";
    std::fs::write(room.path("settled.toml"), config).expect("a config");
    room.ask("claude", "codex", "q-1");
    room.visit(60);
    let other = Room::new();
    other.ask("claude", "codex", "q-2");
    other.visit(60);
    std::fs::copy(other.path(SEGMENT), room.path(SEGMENT)).expect("a ledger");
    let head = spool::verify(room.root()).expect("a whole ledger").last;
    let [by, reason] = ["ann", "restored from a backup"].map(str::to_owned);
    let record = accept_ledger::accept(room.root(), head, by, reason);
    assert_eq!(record.expect("an acceptance"), 2);
    std::fs::read_to_string(room.path(SEGMENT)).expect("a segment")
}

/// A ledger with a message that its writer changed after it was judged.
fn story_of_a_changed_original() -> String {
    let room = Room::new();
    room.ask("claude", "codex", "q-1");
    room.visit(60);
    let sent = std::fs::File::options()
        .append(true)
        .open(room.path("agents/claude/sent/q-1.yaml"));
    sent.expect("the original")
        .write_all(b"more\n")
        .expect("room");
    room.visit(120);
    std::fs::read_to_string(room.path(SEGMENT)).expect("a segment")
}

/// The lines that a snapshot of this workspace's ledger would have.
fn added_up(root: &Path) -> String {
    let (index, _) = LedgerIndex::read(root).expect("a ledger this version reads");
    lines(&index)
}

fn lines(index: &LedgerIndex) -> String {
    let mut text = saved_lines(index);
    for (key, value) in index.new_rows() {
        let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        text += &format!("row {key} {}\n", value.escape_ascii());
    }
    text
}

fn saved_lines(index: &LedgerIndex) -> String {
    let mut text = String::new();
    let mut line = |line: &[u8]| {
        text += &String::from_utf8_lossy(line);
        text.push('\n');
        Ok(())
    };
    index.save(&mut line).expect("memory takes every line");
    text
}

fn workspace_with(ledger: &str) -> Room {
    let room = Room::new();
    std::fs::write(room.path(SEGMENT), ledger).expect("a segment");
    room
}

#[test]
fn the_sample_has_every_kind_of_record() {
    let ledger = kept(&samples().join("v1.jsonl"), story);
    let words = words(&ledger);
    let missing: Vec<&str> = EVERYTHING
        .into_iter()
        .filter(|word| !words.contains(*word))
        .collect();
    assert_eq!(missing, [""; 0], "found {words:?}");
}

#[test]
fn the_ledger_of_version_0_1_names_no_rules_and_a_new_one_names_them_in_every_record() {
    let of = |ledger: &str| -> BTreeSet<Option<u64>> {
        let read = |line| serde_json::from_str::<Value>(line).expect("a line of JSON");
        let records = ledger.lines().map(read);
        records.map(|record| record["rules"].as_u64()).collect()
    };
    let old = kept(&samples().join("v1.jsonl"), story);
    assert_eq!(of(&old), BTreeSet::from([None]));
    assert_eq!(of(&story()), BTreeSet::from([Some(review::RULES.into())]));
}

#[test]
fn what_is_written_today_has_no_kind_that_no_sample_has() {
    for (name, make) in SAMPLES {
        let ledger = kept(&samples().join(format!("{name}.jsonl")), make);
        let (then, now) = (words(&ledger), words(&make()));
        assert_eq!(
            now.difference(&then).collect::<Vec<_>>(),
            [""; 0],
            "keep a new sample beside the old ones"
        );
    }
}

#[test]
fn an_old_ledger_adds_up_to_what_it_did() {
    for (name, make) in SAMPLES {
        let ledger = kept(&samples().join(format!("{name}.jsonl")), make);
        let room = workspace_with(&ledger);
        let now = added_up(room.root());
        let form = LedgerIndex::default().form();
        let number = form
            .rsplit(' ')
            .next()
            .expect("a form ends with its number");
        let then = kept(&samples().join(format!("{name}.form-{number}.txt")), || {
            now.clone()
        });
        assert!(
            then == now,
            "{name} adds up otherwise, or is written otherwise, under the same form: raise FORM in index.rs, so that no \
             start takes up a snapshot of before\n--- then\n{then}\n--- now\n{now}"
        );
        let (verified, _) = spool::verify_with::<LedgerIndex>(room.root(), &mut |_| Ok(()))
            .expect("a whole ledger");
        assert_eq!(verified.records as usize, ledger.lines().count());
        Mailroom::open(room.root()).expect("a start");
    }
}

#[test]
fn a_snapshot_after_any_record_and_the_rest_are_the_whole() {
    SAMPLES.iter().for_each(|(name, make)| {
        every_snapshot_of(&kept(&samples().join(format!("{name}.jsonl")), make));
    });
}

fn every_snapshot_of(ledger: &str) {
    let of_all = workspace_with(ledger);
    let mut whole = LedgerIndex::default();
    let mut add = |entry: &spool::Entry| whole.add(entry);
    spool::read_ledger(of_all.root(), &mut add).expect("a ledger");
    let all: Vec<&str> = ledger.split_inclusive('\n').collect();
    for records in 1..=all.len() {
        // A start restores a snapshot of the first records beside the whole ledger.
        let room = workspace_with(&all[..records].concat());
        let opened = spool::Spool::open(room.root(), Arc::new(spool::Os), &mut |_| Ok(()));
        let mut spool = opened.expect("a start").spool;
        spool.deliver(0).expect("a delivery");
        spool.checkpoint().expect("a checkpoint");
        let maker = spool.snapshot_maker().expect("an answer");
        let made = maker
            .expect("nothing waits")
            .make(&mut LedgerIndex::default());
        made.expect("a snapshot");
        drop(spool);
        std::fs::write(room.path(SEGMENT), ledger).expect("a segment");
        let (index, folded) = LedgerIndex::read(room.root()).expect("a ledger");
        assert_eq!(
            folded.snapshot,
            Some(records as u64),
            "{:?}",
            folded.passed_over
        );
        assert!(
            index == whole,
            "a snapshot after record {records} loses something"
        );
        assert_eq!(
            saved_lines(&index),
            saved_lines(&whole),
            "a snapshot after record {records} is another one"
        );
    }
}

#[test]
fn a_snapshot_of_another_version_is_passed_over() {
    let room = workspace_with(&kept(&samples().join("v1.jsonl"), story));
    std::fs::write(
        room.path("settled.toml"),
        "[ledger]\nsnapshot_records = 1\n",
    )
    .expect("a config");
    room.visit(4 * 24 * 3600);
    let (now, folded) = LedgerIndex::read(room.root()).expect("a ledger");
    let records = folded.snapshot.expect("the visit made one");
    let path = room.path(&format!(".settled/snapshots/{records:020}.snapshot"));
    let bytes = std::fs::read(&path).expect("a snapshot");
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (text, rest) = bytes.split_at(end.expect("a head"));
    let text = String::from_utf8(text.to_vec()).expect("text");
    let head: Value = serde_json::from_str(&text).expect("JSON");
    let form = head["form"].as_str().expect("a form");
    for (ours, other) in [
        ("\"v\":2", "\"v\":1"),
        ("\"v\":2", "\"v\":3"),
        (form, "settled 9.9.9 7"),
    ] {
        assert!(text.contains(ours), "{text}");
        let text = text.replacen(ours, other, 1);
        std::fs::write(&path, [text.as_bytes(), rest].concat()).expect("a snapshot");
        let (mailroom, recovery) = Mailroom::open(room.root()).expect("a start");
        assert_eq!(
            (recovery.snapshot, recovery.passed_over.len()),
            (None, 1),
            "{other}"
        );
        drop(mailroom);
        let (again, _) = LedgerIndex::read(room.root()).expect("a ledger");
        assert!(again == now, "{other}");
    }
}

#[test]
fn a_ledger_of_a_newer_version_says_so() {
    let ledger = kept(&samples().join("v1.jsonl"), story);
    let newer = format!(
        "{ledger}{{\"v\":2,\"seq\":{}}}\n",
        ledger.lines().count() + 1
    );
    let room = workspace_with(&newer);
    let error = Mailroom::open(room.root())
        .err()
        .expect("a refusal")
        .to_string();
    assert!(
        error.ends_with("has format version 2, this program reads up to 1"),
        "{error}"
    );
    assert_eq!(
        std::fs::read_to_string(room.path(SEGMENT)).expect("a segment"),
        newer,
        "nothing was cut off"
    );
}
