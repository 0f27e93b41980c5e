//! Refused messages whose files, reports or owners are not as the daemon left them: what is listed, what is still open,
//! and who may send one again.

use std::fs::{self, File};
use std::path::Path;

use inspect::dead_letter::{self, DeadLetter, retry};
use inspect::unjudged;
use message_schema::id::AgentName;

use crate::recorded_workspace::workspace;

const CODEX: &str = "agents/codex/dead_letter";

fn agent(name: &str) -> AgentName {
    name.parse().expect("a name")
}

/// The dead letter of an agent that has this report.
fn dead_letter(root: &Path, of: &str, report: &str) -> DeadLetter {
    let messages = dead_letter::of(root, &[agent(of)]).messages;
    let found = messages.into_iter().find(|it| it.report_file == report);
    found.expect("a dead letter")
}

#[test]
fn what_cannot_be_read_is_named_and_a_missing_directory_has_none() {
    let root = workspace();
    let root = root.path();
    let agents = ["claude", "codex", "gemini"].map(agent);
    let gemini = root.join("agents/gemini/dead_letter");
    fs::remove_dir(&gemini).expect("an empty directory");
    let dead = dead_letter::of(root, &agents);
    assert_eq!((dead.messages.len(), dead.unread()), (3, vec![]));

    fs::write(&gemini, "").expect("a file");
    let segment = root.join(".settled/ledger/00000000000000000001.jsonl");
    fs::remove_file(&segment).expect("a segment");
    fs::create_dir(&segment).expect("a directory");
    let dead = dead_letter::of(root, &agents);
    let [ledger, mailbox] = &dead.unread()[..] else {
        panic!("{:?}", dead.unread());
    };
    assert!(
        ledger.starts_with("the ledger cannot be read, so corrections are not known: "),
        "{ledger}"
    );
    let unread = format!("cannot read {}: ", gemini.display());
    assert!(mailbox.starts_with(&unread), "{mailbox}");
    assert_eq!(dead.messages.len(), 3);
}

#[test]
fn a_report_is_about_the_file_beside_it_that_has_its_digest() {
    let root = workspace();
    let root = root.path();
    let report = root.join(CODEX).join("fb-86-2.report.yaml");
    let as_judged = fs::read_to_string(&report).expect("a report");
    let digest = as_judged.lines().find(|line| line.starts_with("digest: "));
    let unread = as_judged.replace(digest.expect("a digest"), "digest: unread");
    for (text, size, file) in [
        (&as_judged, 3, "fb-86-2.yaml"),
        (&as_judged, 2 << 20, "fb-86-2.yaml"),
        // The daemon read nothing of it, and its name is the first.
        (&unread, 3, "fb-86-2.json"),
        (&unread, 2 << 20, "fb-86-2.json"),
    ] {
        fs::write(&report, text).expect("a report");
        let other = File::create(root.join(CODEX).join("fb-86-2.json"));
        other.and_then(|other| other.set_len(size)).expect("a file");
        let found = dead_letter(root, "codex", "fb-86-2.report.yaml");
        assert_eq!(found.file.as_deref(), Some(file), "{size} bytes");
    }
}

#[test]
fn only_a_file_with_the_name_of_a_report_is_one() {
    let root = workspace();
    let directory = root.path().join(CODEX);
    for name in ["fb-86-2.report.txt", "copy.yaml"] {
        fs::copy(directory.join("fb-86-2.report.yaml"), directory.join(name)).expect("a copy");
    }
    let messages = dead_letter::of(root.path(), &[agent("codex")]).messages;
    let reports: Vec<&str> = messages.iter().map(|it| it.report_file.as_str()).collect();
    assert_eq!(reports, ["fb-86.report.yaml", "fb-86-2.report.yaml"]);
}

#[test]
fn a_refusal_whose_file_is_gone_is_over_and_one_that_was_corrected_is_not_asked_for() {
    let root = workspace();
    let root = root.path();
    let asked_for = |of: &str| -> Vec<String> {
        let messages = unjudged::refused(root, &agent(of)).into_iter();
        messages.map(|it| it.report_file).collect()
    };
    assert_eq!(asked_for("claude"), ["bad-1.report.yaml"]);
    assert_eq!(asked_for("codex"), ["fb-86-2.report.yaml"]);
    let is_over = "  over: its file was removed, its review is closed, or its sender was refused often since\n";
    let text = || dead_letter(root, "codex", "fb-86-2.report.yaml").text();
    assert!(!text().contains(is_over), "{}", text());
    fs::remove_file(root.join(CODEX).join("fb-86-2.yaml")).expect("a file");
    assert!(text().ends_with(is_over), "{}", text());
    assert_eq!(asked_for("codex"), [""; 0]);
}

#[test]
fn a_refusal_that_no_correction_can_fix_is_not_asked_for() {
    let root = workspace();
    let report = root.path().join(CODEX).join("fb-86-2.report.yaml");
    let text = fs::read_to_string(&report).expect("a report");
    let text = text.replace("retryable: true", "retryable: false");
    fs::write(&report, text).expect("a report");
    let asked_for = unjudged::refused(root.path(), &agent("codex"));
    assert!(asked_for.is_empty(), "{asked_for:?}");
}

#[test]
fn only_the_user_of_its_sender_may_put_a_message_back() {
    let root = workspace();
    let root = root.path();
    fs::write(root.join("settled.toml"), "[agents.claude]\nuid = 54321\n").expect("a config");
    let ours = rustix::process::geteuid().as_raw();
    let why = format!(
        "claude is uid 54321 and you are uid {ours}: files that you write do not count as its files"
    );
    let of_claude = dead_letter(root, "claude", "bad-1.report.yaml");
    assert_eq!(retry::not_its_user(root, &of_claude), Some(why));
    // The config names no user for codex.
    let of_codex = dead_letter(root, "codex", "fb-86.report.yaml");
    assert_eq!(retry::not_its_user(root, &of_codex), None);
}

#[test]
fn a_name_has_one_spelling_by_which_it_is_found() {
    let root = workspace();
    let place = root.path().join(CODEX);
    for (old, new) in [
        ("fb-86-2.yaml", "bad\nname.yaml"),
        ("fb-86-2.report.yaml", "bad\nname.report.yaml"),
    ] {
        fs::rename(place.join(old), place.join(new)).expect("a rename");
    }
    let found = dead_letter(root.path(), "codex", "bad\nname.report.yaml");
    assert_eq!(found.name(), "bad%0Aname.yaml");
    assert!(
        found.text().contains("codex/bad%0Aname.yaml"),
        "{}",
        found.text()
    );
    let json = serde_json::to_value(&found).expect("JSON");
    assert_eq!(json["file"], "bad%0Aname.yaml");
    assert_eq!(json["report_file"], "bad%0Aname.report.yaml");
    for word in ["bad%0Aname.yaml", "bad%0Aname", "bad\nname.yaml"] {
        assert!(found.is_called(word), "{word}");
    }
    assert!(!found.is_called("bad%0Dname"));
}
