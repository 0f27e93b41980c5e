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
    probed_with(reviews, "\"true\"", &[], &PATIENCE)
}

/// The words of a command with the tools, and what their server lists.
const WITH_TOOLS: &str = "\"codex\", \"-c\", 'mcp_servers.settled.args=[\"mcp\"]'";
const TOOL_LIST: &str = r#"{"result": {"tools":[{"name": "next"}]}}"#;

/// Like [`probed`], with the words of the agent's command, with files for the stand-in, and with less patience.
fn probed_with(
    reviews: &[&str],
    command: &str,
    files: &[(&str, &str)],
    patience: &Patience,
) -> (ProbeOutcome, bool) {
    let place = tempfile::tempdir().expect("a directory");
    let settled = place.path().join("settled");
    let stand_in = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/settled");
    std::os::unix::fs::symlink(stand_in, &settled).expect("a link");
    let lines: String = reviews.iter().map(|review| format!("{review}\n")).collect();
    let config = format!("[agents.codex]\ncommand = [{command}]\n");
    for (name, text) in [(FILE, &*config), ("reviews", &*lines)].iter().chain(files) {
        std::fs::write(place.path().join(name), text).expect("a file");
    }
    let codex = "codex".parse().expect("a name");
    let outcome = probe_within(&settled, place.path(), &codex, patience);
    let pid = std::fs::read_to_string(place.path().join("pid")).unwrap_or_default();
    let is_there = !pid.is_empty() && Path::new("/proc").join(pid.trim()).exists();
    (outcome.expect("the program can be run"), is_there)
}

/// The reason why a probe failed, whose folder is removed.
fn why(outcome: ProbeOutcome) -> ProbeFailure {
    let ProbeOutcome::Failed { why, folder } = outcome else {
        panic!("{outcome:?}");
    };
    std::fs::remove_dir_all(folder).expect("it was kept");
    why
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
        failure(&review, true, place.path(), PATIENCE.ending).expect("a reason")
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
    let complaint = last_complaint(mailroom.path(), PATIENCE.ending).expect("a readable folder");
    assert_eq!(
        complaint.map(|complaint| complaint.why).as_deref(),
        Some("no key")
    );
    assert!(asked.elapsed() < PATIENCE.ending / 2);
}

#[test]
fn what_never_comes_is_waited_for_only_so_long() {
    // The daemon ends the command at the end of its time, and the review after it.
    let budget = Duration::from_secs(SECONDS_MAX);
    assert!(PATIENCE.review > budget && PATIENCE.review < 2 * budget);
    let none = Patience {
        review: Duration::ZERO,
        files: Duration::ZERO,
        ending: Duration::ZERO,
    };
    let answer = [("answer", "whatever it liked to say\n")];
    // Its findings are there, and the message that says how they came is not.
    let fixing = [r#"{"phase": "fixing"}"#];
    let files = [("tools", TOOL_LIST), ("packet", ""), answer[0]];
    let (outcome, is_there) = probed_with(&fixing, WITH_TOOLS, &files, &none);
    assert_eq!((why(outcome), is_there), (ProbeFailure::Unread, false));
    for (review, files, failure) in [
        (
            r#"{"phase": "reviewing"}"#,
            &[][..],
            ProbeFailure::Ended("no answer".to_owned()),
        ),
        (r#"{"phase": "approved"}"#, &answer, ProbeFailure::Unread),
        (
            r#"{"phase": "escalated", "reason": "reviewer_budget_exceeded"}"#,
            &[],
            ProbeFailure::OverBudget(None),
        ),
        (
            r#"{"phase": "escalated", "reason": "reviewer_gave_up"}"#,
            &[],
            ProbeFailure::Ended("reviewer_gave_up".to_owned()),
        ),
    ] {
        let (outcome, is_there) = probed_with(&[review], "\"true\"", files, &none);
        assert_eq!((why(outcome), is_there), (failure, false), "{review}");
    }
}

#[test]
fn an_agent_with_tools_answers_by_them_and_not_by_what_its_command_prints() {
    let fixing = [r#"{"phase": "fixing"}"#; 3];
    let tools = ("tools", TOOL_LIST);
    let probed = |files: &[(&str, &str)]| probed_with(&fixing, WITH_TOOLS, files, &PATIENCE);

    // Without its server there is nothing to probe: the daemon is not even started.
    let (outcome, is_there) = probed(&[]);
    let no_server = ProbeFailure::NoServer("it is not installed".to_owned());
    assert_eq!((why(outcome), is_there), (no_server, false));

    // Its findings appear one look before the message that says how they came.
    let packet = ("packet", "");
    let (outcome, _) = probed(&[tools, packet, ("answer", "id: run-1\n")]);
    assert_eq!(why(outcome), ProbeFailure::WithoutTools);
    let (outcome, _) = probed(&[tools, packet, ("answer", "id: msg-1\n")]);
    assert!(
        matches!(outcome, ProbeOutcome::Answered { .. }),
        "{outcome:?}"
    );
    // A command without them prints its answer.
    let files = [packet, ("answer", "id: run-1\n")];
    let (outcome, _) = probed_with(&fixing, "\"true\"", &files, &PATIENCE);
    assert!(
        matches!(outcome, ProbeOutcome::Answered { .. }),
        "{outcome:?}"
    );
}

#[test]
fn a_failure_is_told_in_a_sentence_with_its_fix() {
    let codex: AgentName = "codex".parse().expect("a name");
    let printed = |why: &str, cause| {
        let why = why.to_owned();
        ProbeFailure::OverBudget(Some(ProgramFailure { why, cause }))
    };
    let budget = "it gave no answer within its budget of 120 s and 10 turns";
    for (why, what, fix) in [
        (
            ProbeFailure::NoServer("no file".to_owned()),
            "`settled mcp` lists no tools: no file".to_owned(),
            "install `settled-mcp` in the directory of `settled`",
        ),
        (
            ProbeFailure::Unread,
            "it answered, but not what its brief asks for: it may have read nothing".to_owned(),
            "let it read the folder of its run ({run})",
        ),
        (
            ProbeFailure::WithoutTools,
            "it answered, but not by the tools of `settled mcp`, with which it is set up"
                .to_owned(),
            "`settled mcp` itself works, so the program did not start it",
        ),
        (
            ProbeFailure::NoTree("no commit".to_owned()),
            "no commit".to_owned(),
            "let it review a repository with a commit (`workdir`)",
        ),
        (
            ProbeFailure::OverBudget(None),
            budget.to_owned(),
            "the program is slow or waits for somebody: start its command by hand",
        ),
        (
            printed("no key", Some(Cause::NotLoggedIn)),
            format!("{budget}, no key"),
            "`codex login`, or set CODEX_API_KEY for the daemon",
        ),
        (
            printed("too much", Some(Cause::Quota { retry: None })),
            format!("{budget}, too much"),
            "wait until the quota is renewed, or let another agent review",
        ),
        (
            printed("Network unreachable", None),
            format!("{budget}, Network unreachable"),
            "see whether this machine reaches the program's service",
        ),
        (
            ProbeFailure::Ended("no answer".to_owned()),
            "no answer".to_owned(),
            BY_HAND,
        ),
    ] {
        let outcome = ProbeOutcome::Failed {
            why,
            folder: PathBuf::from("/tmp/it"),
        };
        let found = finding(&codex, (Some(KnownProgram::Codex), None), None, &outcome);
        assert_eq!((found.ok, found.what), (false, what));
        let told = found.fix.expect("a fix");
        assert!(told.starts_with(fix), "{told}");
        assert_eq!(found.folder.as_deref(), Some(Path::new("/tmp/it")));
    }
}

#[test]
fn an_answer_is_told_with_the_versions_of_its_program() {
    let codex: AgentName = "codex".parse().expect("a name");
    let known = KnownProgram::Codex;
    let version = Versions {
        installed: Some("9.9.9".to_owned()),
        tried: known.tried(),
    };
    let answered = ProbeOutcome::Answered { seconds: 7 };
    let found = finding(
        &codex,
        (Some(known), None),
        Some(version.clone()),
        &answered,
    );
    let found = serde_json::to_value(found).expect("a finding");
    assert_eq!(
        found,
        serde_json::json!({
            "agent": "codex",
            "ok": true,
            "what": "its program started, read its brief and gave an answer that counts, in 7 s",
            "version": version,
            "note": version.note(known),
        })
    );
    assert!(found["note"].is_string(), "{found}");
}

#[test]
fn a_probe_takes_the_section_of_its_agent_alone_with_paths_that_hold_elsewhere() {
    let place = tempfile::tempdir().expect("a directory");
    let config = "profile = \"gate\"\n[agents.codex]\ncommand = [\"codex\"]\nworkdir = \"code\"\nprompt = \"/p.md\"\n\
                  uid = 61001\nleave_out = [\".codex\"]\n[agents.other]\ncommand = [\"other\"]\nleave_out = []\n";
    std::fs::write(place.path().join(FILE), config).expect("a file");
    let code = place.path().join("code");
    let own = own_config(place.path(), "codex").expect("a section");
    assert_eq!(
        own.text,
        format!(
            "[agents]\n[agents.codex]\ncommand = [\"codex\"]\nworkdir = \"{}\"\nprompt = \"/p.md\"\nleave_out = [\".codex\"]\n",
            code.display()
        )
    );
    assert_eq!((own.workdir, own.leaves_out), (Some(code), true));
    let other = own_config(place.path(), "other").expect("a section");
    assert_eq!(
        other.text,
        "[agents]\n[agents.other]\ncommand = [\"other\"]\nleave_out = []\n"
    );
    assert_eq!((other.workdir, other.leaves_out), (None, false));
}
