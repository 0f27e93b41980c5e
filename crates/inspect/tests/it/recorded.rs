//! The texts about a recorded workspace: its reviews and problems, the threads of one, what each waits for, the life of
//! each message, the refusals, and the proof of an approval. `UPDATE=1` rewrites them in `golden/`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use chrono::TimeDelta;
use inspect::filter::RecordFilter;
use inspect::status::overview::{ListedReviews, Status};
use inspect::status::threads::Histories;
use inspect::status::{WorkspaceStatus, validation_of};
use inspect::{dead_letter, ledger, log, trace, verdict};
use message_schema::id::{AgentName, MessageId, PrNumber};
use review::{Policy, Which};
use serde::Serialize;
use workspace::index;

use crate::recorded_workspace::{at, check, workspace};
use crate::rewritten::rewrite;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("plain values") + "\n"
}

fn spelled(agent: Option<&AgentName>, words: &str) -> String {
    let agent = agent.map_or_else(String::new, |agent| format!(" --agent {agent}"));
    format!("settled {words}{agent}")
}

#[test]
fn the_status_shows_each_review_what_waits_and_what_was_refused() {
    let root = workspace();
    let status = WorkspaceStatus::read(root.path()).expect("a workspace");
    check(
        GOLDEN,
        "status.json",
        root.path(),
        &json(&Status::of(&status, None, ListedReviews::Current)),
    );
}

#[test]
fn every_problem_has_a_command_that_fixes_it() {
    let root = workspace();
    let status = WorkspaceStatus::read(root.path()).expect("a workspace");
    let mut text = String::new();
    // Before and after the deadline of the request that was taken, and after every deadline.
    for hours in [0, 1, 1_000] {
        let problems = status.problems(&Policy::default(), at(TimeDelta::hours(hours)), &spelled);
        text += &format!("after {hours} h: {}", json(&problems));
    }
    check(GOLDEN, "problems.json", root.path(), &text);
}

#[test]
fn each_review_says_what_it_waits_for_and_what_comes_otherwise() {
    let root = workspace();
    let status = WorkspaceStatus::read(root.path()).expect("a workspace");
    let mut text = String::new();
    for (key, review) in status.index.state().reviews() {
        for hours in [0, 1_000] {
            let why = status.why(
                key,
                review,
                &Policy::default(),
                at(TimeDelta::hours(hours)),
                &spelled,
            );
            text += &format!("after {hours} h: {}", json(&why));
        }
    }
    check(GOLDEN, "why.json", root.path(), &text);
}

#[test]
fn threads_show_their_history_and_what_each_side_may_do() {
    let root = workspace();
    let status = WorkspaceStatus::read(root.path()).expect("a workspace");
    let reviews: Vec<_> = status.index.state().reviews().collect();
    let mut histories = Histories::of(reviews.iter().map(|(key, _)| *key));
    spool::read_ledger(root.path(), &mut |entry| {
        histories.note(entry).map_err(Into::into)
    })
    .expect("a ledger");
    let mut text = String::new();
    for (key, review) in reviews {
        text += &json(&histories.threads(key, review, &key.pr.to_string(), &spelled));
    }
    check(GOLDEN, "threads.json", root.path(), &text);
}

#[test]
fn the_pull_request_names_the_review_that_is_meant() {
    let root = workspace();
    let status = WorkspaceStatus::read(root.path()).expect("a workspace");
    let selected = |pr: &str, reviewer: Option<&str>| {
        let which = Which {
            repo: None,
            pr: pr.parse().expect("a number"),
            reviewer: reviewer.map(|name| name.parse().expect("a name")),
        };
        status.selected(&which).len()
    };
    assert_eq!(selected("86", None), 1);
    assert_eq!(selected("086", Some("codex")), 1);
    assert_eq!(selected("86", Some("gemini")), 0);
    assert_eq!(selected("99", None), 0);
}

#[test]
fn each_message_has_a_life_from_its_outbox_to_its_reader() {
    let root = workspace();
    let mut text = String::new();
    for id in [
        "req-86", "fb-86", "bad-1", "fb-86-2", "req-87", "n-1", "never",
    ] {
        let id: MessageId = id.parse().expect("an id");
        text += &json(&trace::of(root.path(), &id, None));
    }
    check(GOLDEN, "trace.json", root.path(), &text);
    let id: MessageId = "fb-86".parse().expect("an id");
    let from = |name: &str| name.parse::<AgentName>().expect("a name");
    let of = |name| {
        trace::of(root.path(), &id, Some(&from(name)))
            .messages
            .len()
    };
    assert_eq!((of("codex"), of("gemini")), (1, 0), "by its sender");
}

#[test]
fn a_notice_of_the_daemon_has_a_life_too() {
    let root = workspace();
    let id = "settled-01M83PS8E55YR422A2KM9KVV8S".parse().expect("an id");
    let text = json(&trace::of(root.path(), &id, None));
    assert!(text.contains("\"from\": \"settled\""), "{text}");
}

#[test]
fn an_answer_is_known_by_its_parent_its_review_or_its_conversation() {
    // Each case replaces words in records between codex and claude, and asks what answered one of them.
    const FEEDBACK: &str = r#""type":"review_feedback""#;
    const QUESTION: &str = r#""type":"question""#;
    const ADDRESSED: &str = r#""type":"review_addressed""#;
    const SUBJECT: &str = r"\nsubject:";
    let of =
        |kind: &str, number: u8| format!(r#"{kind},"conversation":"conv-20261123-codex-{number}""#);
    let below = |id: &str| format!(r"\nparent_message_id: {id}{SUBJECT}");
    for (id, changes, answer) in [
        ("q-1", vec![], None),
        (
            "q-1",
            vec![(8, SUBJECT, below("q-1"))],
            Some("a-86 names it as its parent"),
        ),
        ("q-1", vec![(8, SUBJECT, below("q-2"))], None),
        (
            "q-1",
            vec![
                (7, QUESTION, of(QUESTION, 1)),
                (8, ADDRESSED, of(ADDRESSED, 1)),
            ],
            Some("a-86 is of the same conversation"),
        ),
        (
            "q-1",
            vec![
                (7, QUESTION, of(QUESTION, 1)),
                (8, ADDRESSED, of(ADDRESSED, 2)),
            ],
            None,
        ),
        ("q-1", vec![(8, ADDRESSED, of(ADDRESSED, 1))], None),
        ("fb-86", vec![], Some("a-86 is the review's next response")),
        // A message in between is not a response and does not hide one.
        (
            "fb-86",
            vec![
                (6, FEEDBACK, of(FEEDBACK, 1)),
                (8, ADDRESSED, of(QUESTION, 1)),
            ],
            Some("req-86-2 is the review's next response"),
        ),
    ] {
        let root = workspace();
        for (record, from, to) in &changes {
            rewrite(root.path(), *record, from, to);
        }
        let trace = trace::of(root.path(), &id.parse().expect("an id"), None);
        let text = json(&trace);
        assert!(trace.without_ledger.is_none(), "{text}");
        let is_answered = text.contains("\"step\": \"answered\",\n          \"state\": \"yes\"");
        assert_eq!(is_answered, answer.is_some(), "{id} {changes:?}: {text}");
        assert!(
            text.contains(answer.unwrap_or_default()),
            "{id} {changes:?}: {text}"
        );
    }
}

#[test]
fn a_refusal_is_corrected_by_the_name_of_its_file_where_the_id_is_another() {
    let root = workspace();
    rewrite(root.path(), 6, r#""id":"fb-86""#, r#""id":"fb-86-again""#);
    let dead = dead_letter::of(root.path(), &["codex".parse().expect("a name")]);
    let message = dead
        .messages
        .iter()
        .find(|message| message.is_called("fb-86.yaml"));
    let text = json(message.expect("the refused message"));
    assert!(text.contains("\"corrected_by\": 6"), "{text}");
    assert!(text.contains("\"corrected_same\": \"file\""), "{text}");
}

#[test]
fn an_open_refusal_is_one_whose_file_is_there_whatever_else_is() {
    let root = workspace();
    let open = || {
        let status = WorkspaceStatus::read(root.path()).expect("a workspace");
        let files = status
            .dead
            .iter()
            .map(|dead| (dead.agent().to_string(), dead.file()));
        files.collect::<Vec<_>>()
    };
    let all = open();
    let stray = root.path().join("agents/gemini/dead_letter/stray.yaml");
    fs::write(stray, "no record tells of it").expect("a file");
    assert_eq!(open(), all);
    let (agent, file) = all.first().expect("an open refusal");
    let path = root
        .path()
        .join(format!("agents/{agent}/dead_letter/{file}"));
    fs::remove_file(path).expect("its file");
    assert_eq!(open(), all[1..]);
}

#[test]
fn dead_letters_say_what_became_of_them_and_are_found_by_name_and_id() {
    let root = workspace();
    let agents = ["claude", "codex", "gemini"].map(|name| name.parse().expect("a name"));
    let dead = dead_letter::of(root.path(), &agents);
    let mut text = String::new();
    for message in &dead.messages {
        let original = dead_letter::retry::original(root.path(), message).ok();
        let outlook =
            original.map(|bytes| dead_letter::retry::outlook(root.path(), message, &bytes));
        text += &message.text();
        text += &json(message);
        writeln!(text, "{outlook:#?}").expect("memory");
    }
    check(GOLDEN, "dead_letters.txt", root.path(), &text);
    assert_eq!(dead.unread(), [""; 0]);
    let called = |word: &str| {
        dead.messages
            .iter()
            .filter(|message| message.is_called(word))
            .count()
    };
    for (word, found) in [
        ("bad-1", 1),
        ("bad-1.yaml", 1),
        ("bad-1.report.yaml", 1),
        ("fb-86", 1),
        ("fb", 0),
        ("yaml", 0),
    ] {
        assert_eq!(called(word), found, "{word}");
    }
}

#[test]
fn an_original_that_can_be_no_message_is_told_from_one_that_is_gone() {
    let root = workspace();
    let agents = ["claude", "codex", "gemini"].map(|name| name.parse().expect("a name"));
    let dead = dead_letter::of(root.path(), &agents);
    let message = dead.messages.iter().find(|message| message.file.is_some());
    let message = message.expect("an original");
    let directory = dead_letter::directory(root.path(), &message.agent);
    let path = directory.join(message.file.as_ref().expect("its name"));
    let file = fs::File::create(&path).expect("its file");
    file.set_len(5 << 30).expect("a sparse file");
    let original = dead_letter::retry::original(root.path(), message);
    assert!(
        matches!(original, Err(dead_letter::retry::NoOriginal::Unfit)),
        "{original:?}"
    );
}

#[test]
fn the_log_has_a_line_for_each_record() {
    let root = workspace();
    let mut text = String::new();
    spool::read_ledger(root.path(), &mut |entry| {
        let (record, _) = index::decision(entry)?;
        let line = log::LogLine::of(entry, record);
        text += &line.text();
        text += &json(&line);
        Ok(())
    })
    .expect("a ledger");
    check(GOLDEN, "log.txt", root.path(), &text);
}

/// The numbers of the records that a filter lets through.
fn selected(root: &Path, words: &str) -> Vec<u64> {
    let mut filter = RecordFilter::default();
    for word in words.split_whitespace() {
        match word.split_once('=') {
            Some(("pr", pr)) => filter.pr = Some(pr.parse().expect("a number")),
            Some(("of", name)) => filter.of = Some(name.parse().expect("a name")),
            _ => filter.verdict = Some(word.to_owned()),
        }
    }
    let mut found = Vec::new();
    spool::read_ledger(root, &mut |entry| {
        let (record, _) = index::decision(entry)?;
        if filter.lets(entry, &record) {
            found.push(entry.seq);
        }
        Ok(())
    })
    .expect("a ledger");
    found
}

#[test]
fn records_are_selected_by_pull_request_agent_and_verdict() {
    let root = workspace();
    let all: Vec<u64> = (1..=12).collect();
    for (words, expected) in [
        ("", &all[..]),
        // A message that names it, and refusals whose reports do, belong to it too.
        ("pr=86", &[1, 6, 7, 8, 9, 11]),
        ("pr=87", &[3, 12]),
        ("pr=88", &[2, 4]),
        ("pr=8", &[]),
        ("of=gemini", &[3, 12]),
        ("of=codex", &[1, 2, 4, 5, 6, 7, 8, 9, 11]),
        ("refused", &[5, 10, 11]),
        ("refused of=claude", &[5, 10, 11]),
        ("accepted pr=86 of=claude", &[1, 6, 7, 8, 9]),
        ("taken", &[12]),
    ] {
        assert_eq!(selected(root.path(), words), expected, "{words}");
    }
}

#[test]
fn a_record_is_of_the_review_that_the_daemon_found_before_the_one_that_a_text_names() {
    let root = workspace();
    let root = root.path();
    rewrite(root, 6, r#"related_pr: \"86\""#, r#"related_pr: \"88\""#);
    rewrite(
        root,
        11,
        "review: '#86 claude -> codex'",
        "review: '#88 codex -> claude'",
    );
    // This refusal cost nothing, so only its report names a review.
    let retryable = r"retryable: true\n";
    let of_87 = format!(r"{retryable}review: '#87 claude -> gemini'\n");
    rewrite(root, 10, retryable, &of_87);
    for (words, expected) in [
        ("pr=86", &[1, 6, 7, 8, 9, 11][..]),
        ("pr=87", &[3, 10, 12]),
        ("pr=88", &[2, 4]),
    ] {
        assert_eq!(selected(root, words), expected, "{words}");
    }
}

#[test]
fn an_open_request_names_its_validation_commands() {
    let root = workspace();
    let root = root.path();
    let commands = |pr: &str, reviewer: Option<&str>| {
        let which = Which {
            repo: None,
            pr: pr.parse().expect("a number"),
            reviewer: reviewer.map(|name| name.parse().expect("a name")),
        };
        validation_of(root, &which)
    };
    assert_eq!(commands("86", None), Ok(vec![]));
    let head = r#""head":"0badcafe""#;
    let with_command = format!(r#"{head},"validation_commands":["cargo test"]"#);
    rewrite(root, 11, head, &with_command);
    assert_eq!(commands("86", None), Ok(vec!["cargo test".to_owned()]));
    fs::write(
        root.join("settled.toml"),
        "[gate]\nvalidation_commands = [\"make\"]\n",
    )
    .expect("a config");
    let both = vec!["cargo test".to_owned(), "make".to_owned()];
    assert_eq!(commands("86", Some("codex")), Ok(both));
    let none = "pull request 88 has no open request".to_owned();
    assert_eq!(commands("88", None), Err(none));
    // Gemini reviews the same pull request.
    for record in [3, 12] {
        rewrite(
            root,
            record,
            r#""review":{"pr":"87""#,
            r#""review":{"pr":"86""#,
        );
    }
    let several =
        "pull request 86 has several open requests; name the reviewer or the repository".to_owned();
    assert_eq!(commands("86", None), Err(several));
    assert_eq!(commands("86", Some("gemini")), Ok(vec!["make".to_owned()]));
}

#[test]
fn a_whole_ledger_is_verified_and_a_cut_or_changed_one_is_not() {
    let root = workspace();
    let whole = ledger::check(root.path(), &[]).expect("a ledger");
    assert_eq!(whole.verified.records, 12);
    assert!(whole.wrong.is_none(), "{:?}", whole.wrong);
    let heads = [ledger::KeptHead {
        record: Some(whole.verified.records),
        digest: whole.verified.last,
    }];
    let kept = ledger::check(root.path(), &heads).expect("a ledger");
    assert!(kept.wrong.is_none(), "{:?}", kept.wrong);

    let segment = root
        .path()
        .join(".settled/ledger/00000000000000000001.jsonl");
    let text = fs::read_to_string(&segment).expect("a ledger");
    let cut: String = text.split_inclusive('\n').take(11).collect();
    fs::write(&segment, cut).expect("written");
    let cut = ledger::check(root.path(), &heads).expect("a ledger");
    assert!(cut.wrong.is_some(), "a record is gone");
    fs::write(&segment, text.replacen("change-86", "change-68", 1)).expect("written");
    assert!(
        ledger::check(root.path(), &[]).is_err(),
        "a record is changed"
    );
}

#[test]
fn a_text_that_does_not_have_its_digest_is_wrong_also_where_the_chain_is_whole() {
    for (from, to, says) in [
        ("Feedback 86", "Feedback 87", "its text has the digest"),
        (
            r#""id":"fb-86","digest":"12abe"#,
            r#""id":"fb-86","digest":"02abe"#,
            "its decision is about a text with another digest",
        ),
    ] {
        let root = workspace();
        rewrite(root.path(), 6, from, to);
        let wrong = ledger::check(root.path(), &[]).expect("a chain").wrong;
        let wrong = wrong.unwrap_or_else(|| panic!("`{to}` goes unnoticed"));
        assert_eq!((wrong.first, wrong.last), (6, 6));
        assert!(wrong.what.contains(says), "{}", wrong.what);
    }
}

#[test]
fn the_records_of_an_approval_prove_it_from_a_file_alone() {
    let root = workspace();
    let pr: PrNumber = "88".parse().expect("a number");
    let exported =
        verdict::export(root.path(), &pr, None, &[], at(TimeDelta::zero())).expect("a verdict");
    let read = verdict::VerdictFile::read(&exported.bytes).expect("it is whole");
    let proof = verdict::prove(&read).expect("its records follow");
    assert_eq!(proof.state().reviews().count(), 1);
    let text = String::from_utf8(exported.bytes).expect("it is text");
    let changed = text.replacen("lgtm-88", "lgtm-89", 1);
    assert!(verdict::VerdictFile::read(changed.as_bytes()).is_err());
}
