//! Tests a probe with a stand-in for `settled`, and the sentences for a person with failures of every kind.

use super::*;

#[test]
fn who_is_not_logged_in_within_walls_is_told_what_passes_them() {
    let why = "it ended with code 1, it is not logged in: no key".to_owned();
    let why = &ProbeFailure::Run(FailureCause::NotLoggedIn, why);
    let variables = ["KEY".to_owned(), "TOKEN".to_owned()];
    let claude = Some(KnownProgram::Claude);
    assert!(fix(why, claude, None).contains("`claude`"));
    let walled = fix(why, claude, Some(&variables));
    assert!(walled.starts_with("set KEY or TOKEN for the daemon: "));
    assert!(fix(why, claude, Some(&[])).contains("`env` of its sandbox"));
}

/// Probes a program that reports these states of the review in turn; true if its daemon still runs.
fn probed(reviews: &[&str]) -> (ProbeOutcome, bool) {
    let place = tempfile::tempdir().expect("a directory");
    let settled = place.path().join("settled");
    let stand_in = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/settled");
    std::os::unix::fs::symlink(stand_in, &settled).expect("a link");
    let config = "[agents.codex]\ncommand = [\"true\"]\n";
    std::fs::write(place.path().join(FILE), config).expect("a file");
    let lines: String = reviews.iter().map(|review| format!("{review}\n")).collect();
    std::fs::write(place.path().join("reviews"), lines).expect("a file");
    let codex = "codex".parse().expect("a name");
    let outcome = probe(&settled, place.path(), &codex).expect("the program can be run");
    let pid = std::fs::read_to_string(place.path().join("pid")).expect("it served");
    (outcome, Path::new("/proc").join(pid.trim()).exists())
}

#[test]
fn the_fix_is_that_of_the_cause_whatever_words_the_program_uses() {
    let codex = "codex".parse().expect("a name");
    for (cause, words, fix) in [
        (
            "crashed",
            "the certificate is not trusted",
            "reaches the program's service",
        ),
        (
            "crashed",
            "Connection failed: timed out",
            "reaches the program's service",
        ),
        (
            "crashed",
            "Not inside a trusted directory",
            "in the folder and trust it",
        ),
        (
            "crashed",
            "the thinking budget is too small",
            "by hand in its workdir",
        ),
        (
            "unreadable",
            "I found that nobody is not logged in",
            "by hand in its workdir",
        ),
        (
            "not_logged_in",
            "no key for this network",
            "log the program in",
        ),
        (
            "quota",
            "the certificate of the quota",
            "until the quota is renewed",
        ),
        ("missing", "No such file", "install the program"),
    ] {
        let failed = format!(
            r#"{{"phase": "escalated", "failed": {{"cause": "{cause}", "why": "it ended with code 1: {words}"}}}}"#
        );
        let (outcome, _) = probed(&[&failed]);
        let found = finding(&codex, (None, None), None, &outcome);
        let told = found.fix.expect("a fix");
        assert!(told.contains(fix), "{cause}, {words}: {told}");
        std::fs::remove_dir_all(found.folder.expect("a folder")).expect("it was kept");
    }
}

#[test]
fn a_command_that_lacks_its_tree_gets_its_own_fix_unless_it_has_run() {
    let place = tempfile::tempdir().expect("a directory");
    let failure = |failed: Value| {
        let review = serde_json::json!({ "failed": failed });
        failure(&review, true, place.path()).expect("a reason")
    };
    let why = "it cannot be prepared";
    let unprepared = failure(serde_json::json!({ "cause": "crashed", "why": why }));
    assert_eq!(unprepared, ProbeFailure::NoTree(why.to_owned()));
    assert!(fix(&unprepared, None, None).contains("with a commit (`workdir`)"));
    let ran = failure(serde_json::json!({ "cause": "crashed", "why": why, "folder": "1" }));
    assert_eq!(
        ran,
        ProbeFailure::Run(FailureCause::Crashed, why.to_owned())
    );
}

#[test]
fn an_answer_and_its_files_are_waited_for_and_the_daemon_ends_with_the_probe() {
    let (outcome, is_there) = probed(&[
        "null",
        r#"{"phase": "reviewing"}"#,
        r#"{"phase": "fixing"}"#,
        r#"{"phase": "fixing"}"#,
    ]);
    let ProbeOutcome::Answered { seconds } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(
        seconds < SECONDS_MAX && !is_there,
        "{seconds} s, {is_there}"
    );
}

#[test]
fn a_command_that_failed_is_told_with_the_folder_of_its_probe() {
    let why = "it ended with code 1";
    let failed = format!(r#"{{"phase": "escalated", "failed": {{"why": "{why}"}}}}"#);
    let (outcome, is_there) = probed(&[&failed]);
    let ProbeOutcome::Failed { why: told, folder } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(told.to_string() == why && !is_there, "{told:?}, {is_there}");
    let log = folder.join("daemon.log");
    assert!(log.exists(), "{log:?}");
    std::fs::remove_dir_all(folder).expect("it was kept");
}

#[test]
fn the_failure_of_a_command_that_has_ended_is_told_at_once() {
    let mailroom = tempfile::tempdir().expect("a directory");
    let run = folder::Folder::make(mailroom.path(), "1").expect("a folder");
    let end = r#"{"how": {"code": 1}, "said": {"text": "", "unreadable": "no key", "turns": 0}}"#;
    std::fs::write(run.path().join("end.json"), end).expect("a file");
    let asked = Instant::now();
    let complaint = last_complaint(mailroom.path()).expect("a readable folder");
    assert_eq!(
        complaint.map(|complaint| complaint.why).as_deref(),
        Some("no key")
    );
    assert!(asked.elapsed() < ENDING_MAX / 2);
}
