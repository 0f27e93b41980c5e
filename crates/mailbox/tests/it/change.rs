//! Tests what git adds to a request, and what a reviewer's own checkout of the change shows and records.

use std::fs;
use std::path::Path;

use chrono::TimeDelta;
use judgement::brief::BriefChange;
use mailbox::compose::ask::{self, Ask};
use mailbox::compose::change::{Described, describe};
use mailbox::compose::draft::MessageDraft;
use mailbox::compose::message::Fields;
use mailbox::compose::omissions::ResponseKind;
use mailbox::compose::post::{Composed, Posting};
use mailbox::compose::response;
use mailbox::compose::response_file::ResponseFile;
use mailbox::compose::words_from::WordsFrom;
use mailbox::served::{self, NoDiff, Served, ServedFile};
use message_schema::envelope::MessageType;
use message_schema::id::{AgentName, MessageId, RepoPath};
use serde_json::{Value, json};

use crate::recorded_workspace::{at, workspace};
use crate::sh::sh;

/// A repository whose branch `fix` changes these files of `main`.
fn repository(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    sh(
        directory.path(),
        "git init --quiet --initial-branch=main; git commit --quiet --allow-empty --message=a; git checkout --quiet -b fix",
    );
    for (name, bytes) in files {
        fs::write(directory.path().join(name), bytes).expect("a file");
    }
    sh(
        directory.path(),
        "git add .; git commit --quiet --allow-empty --message=b",
    );
    directory
}

const TWO: [(&str, &[u8]); 2] = [("a.rs", b"fn a() {}\n"), ("b.bin", b"\0\x01")];

fn fields(given: &[(&str, &str)]) -> Fields {
    let given = given.iter();
    given
        .map(|(name, value)| ((*name).to_owned(), Value::from(*value)))
        .collect()
}

#[test]
fn a_request_describes_the_change_of_its_branch() {
    let repository = repository(&TWO);
    let commit = |name: &str| sh(repository.path(), &format!("git rev-parse {name}"));
    let (base, head) = (commit("main"), commit("fix"));
    for given in [
        fields(&[("branch", "fix")]),
        fields(&[("declared_head", &head[..8])]),
        fields(&[("branch", "fix"), ("base_sha", &base[..8])]),
    ] {
        let mut body = given.clone();
        let described = describe(&mut body, repository.path());
        assert_eq!(described, Described::default(), "{given:?}");
        let value = |name: &str| body.get(name).cloned();
        assert_eq!(value("base_sha"), Some(json!(base)), "{given:?}");
        assert_eq!(value("declared_head"), Some(json!(head)), "{given:?}");
        assert_eq!(value("changed_files"), Some(json!(["a.rs", "b.bin"])));
        assert!(value("diff_digest").is_some());
    }
}

#[test]
fn what_git_cannot_tell_is_told_and_what_the_author_says_is_kept() {
    let repository = repository(&TWO);
    let elsewhere = tempfile::tempdir().expect("a directory");
    for (directory, given, missing) in [
        (
            repository.path(),
            &[("branch", "none")][..],
            Some("branch none is not in the repository"),
        ),
        (repository.path(), &[], Some("the request names no branch")),
        (
            repository.path(),
            &[("branch", "main")],
            Some("adds nothing to its base"),
        ),
        (
            repository.path(),
            &[("branch", "fix"), ("changed_files", "mine")],
            None,
        ),
        (
            repository.path(),
            &[("branch", "fix"), ("diff_digest", "mine")],
            None,
        ),
        (elsewhere.path(), &[("branch", "fix")], None),
    ] {
        let mut body = fields(given);
        let described = describe(&mut body, directory);
        assert_eq!(described.packet, None);
        let told = described.missing;
        assert_eq!(told.is_some(), missing.is_some(), "{given:?}: {told:?}");
        assert!(
            told.unwrap_or_default()
                .contains(missing.unwrap_or_default()),
            "{given:?}"
        );
        if missing.is_none() {
            assert_eq!(body, fields(given));
        }
    }
}

#[test]
fn a_list_of_files_that_is_too_long_for_a_body_goes_into_a_packet() {
    // 40 names of 200 characters, which with four more each are longer than 8 000.
    for (length, is_packed) in [(195, false), (197, true)] {
        let names: Vec<String> = (10..50)
            .map(|n| format!("{n}{}", "n".repeat(length - 2)))
            .collect();
        let files: Vec<(&str, &[u8])> =
            names.iter().map(|name| (name.as_str(), &b""[..])).collect();
        let repository = repository(&files);
        let mut body = fields(&[("branch", "fix")]);
        let described = describe(&mut body, repository.path());
        assert_eq!(described.packet.is_some(), is_packed, "{length}");
        assert_eq!(body.get("changed_files").is_none(), is_packed, "{length}");
        if let Some(packet) = described.packet {
            assert!(packet.contains(&names[39]), "{packet}");
        }
    }
}

/// The recorded request to codex, about the change of `fix`.
fn asked(root: &Path, repository: &Path) -> Ask {
    let me = AgentName::new("codex").expect("a name");
    let mut ask = ask::open(root, &me, at(TimeDelta::zero()))
        .expect("a policy")
        .remove(0);
    let mut body = fields(&[("branch", "fix")]);
    describe(&mut body, repository);
    let text = |name: &str| body.get(name).and_then(Value::as_str).expect("a text");
    ask.brief.head = Some(text("declared_head").parse().expect("a commit"));
    ask.brief.change = Some(BriefChange {
        base_sha: Some(text("base_sha").parse().expect("a commit")),
        diff_digest: Some(text("diff_digest").parse().expect("a digest")),
        count: 2,
        changed_files: vec!["a.rs".parse().expect("a path")],
        edits_tests: Vec::new(),
    });
    ask
}

#[test]
fn a_reviewer_sees_the_change_of_the_request_or_why_its_checkout_has_another() {
    let root = workspace();
    let repository = repository(&TWO);
    let found = |edit: &dyn Fn(&mut BriefChange)| {
        let mut ask = asked(root.path(), repository.path());
        edit(ask.brief.change.as_mut().expect("a change"));
        served::change(&ask, repository.path())
    };
    for count in [2, 0] {
        let own = found(&|change| change.count = count).expect("the same change");
        let shown: Vec<String> = own
            .parts
            .iter()
            .map(|part| ServedFile::of(part, None).line())
            .collect();
        assert_eq!(shown, ["-       a.rs\n", "binary  b.bin\n"]);
    }
    let unsaid = found(&|change| change.diff_digest = None);
    assert!(matches!(unsaid, Err(NoDiff::NotSaid)));
    let absent = found(&|change| change.base_sha = "abc1234".parse().ok());
    assert!(matches!(absent, Err(NoDiff::Absent { .. })));
    let other =
        found(&|change| change.diff_digest = format!("sha256:{}", "0".repeat(64)).parse().ok());
    assert!(matches!(other, Err(NoDiff::Other { .. })));
    let more = found(&|change| change.count = 3);
    assert!(matches!(
        more,
        Err(NoDiff::OtherFiles {
            listed: 3,
            found: 2
        })
    ));
    let named = found(&|change| change.changed_files = vec!["b.bin".parse().expect("a path")]);
    assert!(matches!(
        named,
        Err(NoDiff::OtherFiles {
            listed: 2,
            found: 2
        })
    ));
}

#[test]
fn the_printed_files_of_one_diff_add_up() {
    let root = workspace();
    let (root, me) = (root.path(), AgentName::new("codex").expect("a name"));
    let [request, other] = ["req-1", "req-2"].map(|id| MessageId::new(id).expect("an id"));
    let path = |name: &str| name.parse::<RepoPath>().expect("a path");
    let note = |digit: &str, files: &[&str]| {
        let served = Served {
            diff_digest: format!("sha256:{}", digit.repeat(64))
                .parse()
                .expect("a digest"),
            files: files.iter().map(|name| path(name)).collect(),
        };
        served::note(root, &me, &request, served).expect("an archive");
        served::read(root, &me, &request).expect("a receipt")
    };
    assert_eq!(note("1", &["b"]).files, [path("b")]);
    let both = note("1", &["a", "b"]);
    assert_eq!(both.files, [path("a"), path("b")]);
    assert_eq!(served::read(root, &me, &other), None);
    let part = |name: &str, has_content| git::changes::FileDiff {
        path: path(name),
        text: b"the diff".to_vec(),
        has_content,
    };
    for (name, has_content, line) in [
        ("a", true, "served  a\n"),
        ("a", false, "binary  a\n"),
        ("c", true, "-       c\n"),
    ] {
        let part = part(name, has_content);
        let file = ServedFile::with_diff(&part, Some(&both));
        assert_eq!(file.line(), line);
        let json = serde_json::to_value(&file).expect("plain values");
        let is_served = line.starts_with("served") || !has_content;
        let expected = json!({ "path": name, "served": is_served, "has_content": has_content, "diff": "the diff" });
        assert_eq!(json, expected);
    }
    assert_eq!(
        note("2", &["c"]).files,
        [path("c")],
        "another diff replaces it"
    );
}

#[test]
fn what_was_printed_is_declared_in_the_response_and_a_long_list_in_its_packet() {
    let root = workspace();
    let repository = repository(&TWO);
    let sheet = ResponseFile::read("threads: {F-1: resolve, F-2: resolve}\n").expect("a file");
    let mut ask = asked(root.path(), repository.path());
    let digest = ask
        .brief
        .change
        .as_ref()
        .and_then(|change| change.diff_digest.clone());
    let digest = digest.expect("a digest");
    // 40 names of 193 characters and 6 more each are as much as a body may have, and 41 are more.
    for (count, is_packed) in [(1, false), (40, false), (41, true)] {
        let names = (10..10 + count).map(|n: u32| format!("{n}{}", "n".repeat(192)));
        let files: Vec<RepoPath> = names.map(|name| name.parse().expect("a path")).collect();
        ask.served = Some(Served {
            diff_digest: digest.clone(),
            files: files.clone(),
        });
        let now = at(TimeDelta::zero());
        let response = response::write(
            &ask,
            &sheet,
            ResponseKind::Lgtm,
            WordsFrom::default(),
            None,
            now,
        );
        let response = response.expect("a response");
        let examined = json!({ "diff_digest": digest, "served": files });
        let expected = (!is_packed).then_some(&examined);
        assert_eq!(response.body.get("examined"), expected, "{count}");
        let packet = response.packet.expect("the threads are in a packet");
        assert_eq!(packet.contains("examined:"), is_packed, "{count}: {packet}");
    }
}

#[test]
fn a_request_whose_change_git_does_not_know_says_why() {
    let root = workspace();
    let repository = repository(&TWO);
    let me = AgentName::new("claude").expect("a name");
    for (branch, is_told) in [("fix", false), ("none", true)] {
        let request = MessageType::from_word("review_request").expect("a type");
        let mut draft = MessageDraft::new(request);
        draft.to = vec!["gemini".parse().expect("a name")];
        draft.pr = "90".parse().ok();
        draft.body.put("branch", branch);
        draft.body.put("diff_summary", "a lexer");
        draft.repository = Some(repository.path().to_owned());
        let posting = Posting {
            root: root.path(),
            agent: &me,
            draft: &draft,
            id: &"m-1".parse().expect("an id"),
            at: at(TimeDelta::zero()),
            is_id_given: false,
        };
        let Ok(Composed::Ready(checked)) = posting.compose() else {
            panic!("{branch}");
        };
        assert_eq!(checked.no_diff().is_some(), is_told, "{branch}");
        assert_eq!(checked.text().contains("diff_digest"), !is_told, "{branch}");
    }
}
