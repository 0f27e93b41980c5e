//! Tests what an agent writes and how it finds out what became of it: drafts, forecasts, fates, and what it was shown.
//! `golden/` has the texts; `UPDATE=1` rewrites them.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use chrono::TimeDelta;
use mailbox::compose::ask::{self, Ask};
use mailbox::compose::draft::{MessageDraft, PacketGiven};
use mailbox::compose::forecast::Forecast;
use mailbox::compose::lookout::{Lookout, MessageFate};
use mailbox::compose::post::{Composed, PostError, PostedMessage, Posting, SentBefore};
use mailbox::compose::sent_before::SentMessage;
use mailbox::mailboxes::{AgentMailboxes, MailboxPlace};
use mailbox::shown::{self, ShownRequest};
use mailbox::{alerts, answers};
use message_schema::envelope::{MessageType, Priority};
use message_schema::id::{AgentName, MessageId, PrNumber};
use message_schema::{Code, Report};
use validate_message::Violation;

use crate::recorded_workspace::{at, check, workspace};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

fn agent(name: &str) -> AgentName {
    name.parse().expect("a name")
}

fn pr(number: &str) -> PrNumber {
    number.parse().expect("a number")
}

fn id(id: &str) -> MessageId {
    id.parse().expect("an id")
}

fn kind(word: &str) -> MessageType {
    MessageType::from_word(word).expect("a type")
}

/// Makes the ledger unreadable, as it is to an agent with a user of its own.
fn without_ledger(root: &Path) {
    let ledger = root.join(".settled/ledger");
    fs::remove_dir_all(&ledger).expect("a ledger");
    fs::write(ledger, "").expect("no ledger");
}

/// The open request to codex: the second round of pull request 86.
fn open(root: &Path) -> Ask {
    let mut asks = ask::open(root, &agent("codex"), at(TimeDelta::zero())).expect("a policy");
    assert_eq!(asks.len(), 1);
    asks.remove(0)
}

/// What an agent gives for a message: its name, the type, the number, the recipient, the text and the packet.
type Given = (
    &'static str,
    &'static str,
    Option<&'static str>,
    Option<&'static str>,
    Option<&'static str>,
    PacketGiven,
);

fn drafts(root: &Path) -> Vec<(AgentName, MessageDraft)> {
    let findings = "findings:\n- {id: F-1, severity: P1, status: open, title: it still loops}\n";
    let outside = root.with_extension("outside.yaml");
    fs::write(&outside, "findings: []\n").expect("a file");
    let path = |path: &str| PacketGiven::Path(PathBuf::from(path));
    let text = |text: &str| PacketGiven::Text(text.to_owned());
    let none = || PacketGiven::None;
    let given: Vec<Given> = vec![
        (
            "codex",
            "review_feedback",
            Some("86"),
            None,
            None,
            text(findings),
        ),
        (
            "codex",
            "review_feedback",
            Some("86"),
            Some("claude"),
            None,
            path("packets/findings/f2.yaml"),
        ),
        (
            "codex",
            "review_feedback",
            Some("86"),
            None,
            None,
            PacketGiven::Path(outside),
        ),
        (
            "codex",
            "review_feedback",
            Some("86"),
            None,
            None,
            path("packets/findings/none.yaml"),
        ),
        (
            "codex",
            "review_lgtm",
            Some("86"),
            None,
            Some("validated_head: 0badcafe\n"),
            none(),
        ),
        (
            "codex",
            "review_lgtm",
            Some("86"),
            None,
            Some("fine\n"),
            none(),
        ),
        (
            "claude",
            "review_addressed",
            Some("86"),
            None,
            Some("F-1 is mended\n"),
            none(),
        ),
        (
            "claude",
            "review_request",
            Some("86"),
            Some("codex"),
            None,
            none(),
        ),
        (
            "claude",
            "review_request",
            Some("90"),
            Some("gemini"),
            Some("branch: new\ndiff_summary: a lexer\n"),
            none(),
        ),
        (
            "claude",
            "review_request",
            Some("90"),
            Some("gemini"),
            Some("a lexer"),
            none(),
        ),
        (
            "claude",
            "question",
            Some("86"),
            None,
            Some("Which port?"),
            none(),
        ),
        (
            "claude",
            "task_request",
            None,
            Some("gemini"),
            Some("Measure it."),
            none(),
        ),
        (
            "claude",
            "question",
            None,
            None,
            Some("Which port?"),
            none(),
        ),
    ];
    let drafts = given
        .into_iter()
        .map(|(me, word, number, to, text, packet)| {
            let mut draft = MessageDraft::new(kind(word));
            draft.pr = number.map(pr);
            draft.to = to.map(agent).into_iter().collect();
            draft.text = text.map(str::to_owned);
            draft.packet = packet;
            (agent(me), draft)
        });
    let mut drafts: Vec<_> = drafts.collect();
    let mut foreign = MessageDraft::new(kind("review_lgtm"));
    foreign.pr = Some(pr("86"));
    foreign.body.put("branch", "fix");
    drafts.push((agent("codex"), foreign));
    let mut urgent = MessageDraft::new(kind("notification"));
    urgent.to = vec![agent("codex"), agent("gemini")];
    urgent.priority = Some(Priority::P0);
    urgent.subject = Some("Stop".to_owned());
    urgent.text = Some("The build is broken.".to_owned());
    urgent.envelope.put("conversation_id", "c-1");
    drafts.push((agent("claude"), urgent));
    drafts
}

fn told_of(violation: &Violation) -> String {
    format!("{}: {}", violation.code, violation.message)
}

#[test]
fn what_is_left_out_of_a_message_comes_from_its_review_its_packet_and_its_type() {
    for (golden, is_readable) in [("drafts.txt", true), ("drafts_without_ledger.txt", false)] {
        let root = workspace();
        if !is_readable {
            without_ledger(root.path());
        }
        let now = at(TimeDelta::zero());
        let mut text = String::new();
        for (me, draft) in drafts(root.path()) {
            let posting = Posting {
                root: root.path(),
                agent: &me,
                draft: &draft,
                id: &id("m-1"),
                at: now,
                is_id_given: false,
            };
            writeln!(text, "=== {me} {}", draft.kind).expect("memory");
            match draft.to_message(root.path(), &me, posting.id, now) {
                Err(error) => writeln!(text, "{error}").expect("memory"),
                Ok((message, packet)) => {
                    writeln!(text, "{}--- {packet:?}", message.text()).expect("memory");
                }
            }
            let told = match posting.compose() {
                Ok(Composed::Ready(checked)) => {
                    let forecast = Forecast::of(root.path(), &me, &checked, now);
                    let mut told = forecast.lines();
                    assert!(checked.text().starts_with("id: m-1\n"));
                    told.extend(checked.warnings().iter().map(told_of));
                    told.push(serde_json::to_string(&forecast).expect("plain values"));
                    told
                }
                Ok(Composed::SentBefore(_)) => panic!("the id is new"),
                Err(PostError::Invalid(violations)) => violations.iter().map(told_of).collect(),
                Err(error) => vec![error.to_string()],
            };
            writeln!(text, "--- {}", told.join("\n    ")).expect("memory");
        }
        check(GOLDEN, golden, root.path(), &text);
    }
}

#[test]
fn of_two_writers_of_one_id_the_second_finds_the_message_of_the_first() {
    let root = workspace();
    let me = agent("claude");
    let mut draft = MessageDraft::new(kind("question"));
    draft.to = vec![agent("codex")];
    draft.subject = Some("Port".to_owned());
    draft.text = Some("80?".to_owned());
    // Both looked for the id before either wrote.
    let posting = Posting {
        root: root.path(),
        agent: &me,
        draft: &draft,
        id: &id("m-1"),
        at: at(TimeDelta::zero()),
        is_id_given: false,
    };
    let outbox = root.path().join("agents/claude/outbox");
    let first = posting.write().expect("the first");
    assert!(
        matches!(&first, PostedMessage::Written(path, _) if *path == outbox.join("m-1.yaml")),
        "{first:?}"
    );
    let second = posting.write().expect("the second");
    assert!(matches!(second, PostedMessage::SentBefore(_)), "{second:?}");
    fs::remove_dir_all(&outbox).expect("no outbox");
    assert!(matches!(posting.write(), Err(PostError::Io { .. })));
}

/// A report that this text was refused.
fn report(root: &Path, text: &str, code: Code) -> Report {
    let recorded = root.join("agents/codex/dead_letter/fb-86.report.yaml");
    let recorded = fs::read(recorded).expect("a report");
    let mut report = Report::from_yaml(&recorded).expect("a report");
    report.digest = spool::Digest::of(text.as_bytes()).to_string();
    report.refused = code;
    report
}

/// The mailboxes of claude, to put files into as the daemon does.
struct Boxes(PathBuf);

impl Boxes {
    fn put(&self, file: &str, text: &str) -> PathBuf {
        let path = self.0.join(file);
        fs::write(&path, text).expect("a mailbox");
        path
    }
}

const TEXT: &str =
    "id: m-1\nfrom: claude\nto: codex\ntype: question\nsubject: s\nbody: |\n  why?\n";

#[test]
fn the_fate_of_a_message_is_where_the_daemon_put_its_file_since() {
    let root = workspace();
    let boxes = Boxes(root.path().join("agents/claude"));
    // Older files of the same name and text say nothing about this message.
    boxes.put("sent/m-1.yaml", TEXT);
    boxes.put("dead_letter/m-1.yaml", TEXT);
    let refused = report(root.path(), TEXT, Code::UnknownRecipient).to_yaml();
    boxes.put("dead_letter/m-1.report.yaml", &refused);
    let lookout = Lookout::new(root.path(), &agent("claude"), &id("m-1")).expect("mailboxes");
    let fate = || {
        let fate = lookout.wait(TEXT, Duration::ZERO).expect("mailboxes");
        let path = |path: &Path| {
            let path = path.strip_prefix(&boxes.0).expect("a mailbox");
            path.display().to_string()
        };
        match fate {
            MessageFate::Waiting(at) => format!("waiting {}", path(&at)),
            MessageFate::Accepted(at) => format!("accepted {}", path(&at)),
            MessageFate::Refused(at, report) => format!("{} {}", report.refused, path(&at)),
            MessageFate::IdUsed(at) => format!("used {}", path(&at)),
        }
    };
    let waiting = "waiting outbox/m-1.yaml";
    assert_eq!(fate(), waiting);
    boxes.put("sent/m-1.2.yaml", "another text");
    boxes.put("sent/other.yaml", TEXT);
    assert_eq!(fate(), waiting);
    boxes.put("dead_letter/m-1.2.yaml", "another text");
    boxes.put("dead_letter/m-1.2.report.yaml", &refused);
    assert_eq!(fate(), waiting, "the report lacks its message");
    boxes.put("dead_letter/m-1.3.yaml", TEXT);
    assert_eq!(fate(), "unknown_recipient dead_letter/m-1.3.yaml");
    let other = report(root.path(), "another text", Code::UnknownRecipient);
    boxes.put("dead_letter/m-1.2.report.yaml", &other.to_yaml());
    assert_eq!(fate(), waiting, "the report is about another text");
    boxes.put("sent/m-1.3.yaml", TEXT);
    assert_eq!(fate(), "accepted sent/m-1.3.yaml");
    boxes.put("outbox/m-1.yaml", TEXT);
    assert_eq!(fate(), waiting, "it is not judged yet");
}

#[test]
fn a_mailbox_that_cannot_be_read_is_an_error_and_one_that_is_missing_is_empty() {
    let root = workspace();
    let boxes = root.path().join("agents/claude");
    let watch = || Lookout::new(root.path(), &agent("claude"), &id("m-1"));
    fs::create_dir(boxes.join("sent/m-1.yaml")).expect("a directory");
    fs::remove_dir_all(boxes.join("dead_letter")).expect("it is there");
    assert!(watch().is_ok());
    fs::create_dir(boxes.join("dead_letter")).expect("a mailbox");
    let lookout = watch().expect("mailboxes");
    fs::create_dir(boxes.join("sent/m-1.2.yaml")).expect("a directory");
    assert!(lookout.wait(TEXT, Duration::ZERO).is_err());
    fs::remove_dir_all(boxes.join("dead_letter")).expect("it is there");
    fs::write(boxes.join("dead_letter"), "").expect("a file");
    assert!(watch().is_err());
}

#[test]
fn a_message_of_the_same_id_is_the_same_message_or_uses_the_id_up() {
    let same = TEXT.to_owned() + "# sent again\n";
    let other = TEXT.replace("why", "how");
    // What is in the mailboxes, the text sent before, and what becomes of sending it again.
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, bool, &'a str);
    let cases: [Case<'_>; 6] = [
        (&[], &other, false, "used"),
        (&[], &same, true, "accepted"),
        (&[("outbox/m-1.yaml", TEXT)], TEXT, false, "waiting"),
        (&[("dead_letter/m-1.yaml", TEXT)], TEXT, false, "refused"),
        (
            &[("dead_letter/m-1.yaml", TEXT), ("sent/m-1.yaml", &other)],
            TEXT,
            false,
            "refused",
        ),
        (
            &[("dead_letter/m-1.yaml", TEXT), ("sent/m-1.yaml", &same)],
            TEXT,
            false,
            "accepted",
        ),
    ];
    for (files, known, accepted, expected) in cases {
        let root = workspace();
        let boxes = Boxes(root.path().join("agents/claude"));
        let me = agent("claude");
        let lookout = Lookout::new(root.path(), &me, &id("m-1")).expect("mailboxes");
        let draft = MessageDraft::new(kind("question"));
        let posting = Posting {
            root: root.path(),
            agent: &me,
            draft: &draft,
            id: &id("m-1"),
            at: at(TimeDelta::zero()),
            is_id_given: true,
        };
        for (file, text) in files {
            boxes.put(file, text);
        }
        // Another message with the id was accepted before.
        let is_sent = |(file, _): &(&str, &str)| file.starts_with("sent/");
        let code = match files.iter().any(is_sent) {
            true => Code::IdCollision,
            false => Code::UnknownRecipient,
        };
        let refused = report(root.path(), TEXT, code).to_yaml();
        boxes.put("dead_letter/m-1.report.yaml", &refused);
        let notice =
            "id: n-9\nfrom: settled\nto: claude\ntype: notification\nparent_message_id: m-1\n";
        let notice = boxes.put("inbox/notice.yaml", notice);
        let before = || SentBefore {
            text: TEXT.to_owned(),
            known: SentMessage {
                path: boxes.0.join("outbox/m-1.yaml"),
                text: known.to_owned(),
                accepted,
            },
        };
        let unwaited = posting.again(before(), None).expect("mailboxes");
        assert!(unwaited.again);
        let is_decided = matches!(
            unwaited.fate,
            MessageFate::IdUsed(_) | MessageFate::Accepted(_)
        );
        assert_eq!(
            is_decided,
            files.is_empty(),
            "{expected}: {:?}",
            unwaited.fate
        );
        let wait = Some((&lookout, Duration::ZERO));
        let outcome = posting.again(before(), wait).expect("mailboxes");
        let fate = match outcome.fate {
            MessageFate::Accepted(_) => "accepted",
            MessageFate::Refused(..) => "refused",
            MessageFate::Waiting(_) => "waiting",
            MessageFate::IdUsed(_) => "used",
        };
        assert_eq!((fate, outcome.again), (expected, true), "{files:?}");
        // The sender reads the report now, so the notice of it is no news.
        assert_eq!(notice.exists(), expected != "refused", "{files:?}");
    }
}

#[test]
fn a_response_is_for_the_request_that_its_reviewer_has_read() {
    let root = workspace();
    let (root, codex) = (root.path(), agent("codex"));
    let ask = open(root);
    let archive = root.join("agents/codex/archive");
    let brief = |name: &str| root.join("packets/briefs").join(name);
    let instead =
        |brief: Option<&Path>| shown::read_instead(root, &ask, brief).map(|id| id.to_string());
    let note = |request: &str, number: &str, author: &str| {
        let shown = ShownRequest {
            request: id(request),
            pr: pr(number),
            author: agent(author),
        };
        shown::note(root, &codex, &shown);
    };
    let age = |request: &str, days: u64| {
        let file = File::options()
            .write(true)
            .open(archive.join(format!(".shown-{request}.json")));
        let then = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
        file.and_then(|file| file.set_modified(then))
            .expect("a receipt");
    };
    let receipts = || {
        let names = fs::read_dir(&archive).expect("an archive");
        let names = names.map(|entry| entry.expect("a file").file_name().into_string());
        let mut names: Vec<String> = names.map(|name| name.expect("a text")).collect();
        names.sort();
        names
    };
    assert_eq!(instead(None), None, "nothing was shown");
    note("req-87", "87", "claude");
    note("req-85", "86", "gemini");
    assert_eq!(instead(None), None, "these are other reviews");
    let mailboxes = AgentMailboxes::new(root, &codex);
    for message in mailboxes.messages(MailboxPlace::Inbox).expect("an inbox") {
        if message.id.as_deref() != Some("req-86-2") {
            shown::note_message(root, &codex, &message);
        }
    }
    assert_eq!(
        instead(None).as_deref(),
        Some("req-86"),
        "its message was read"
    );
    note("req-86-1", "0086", "claude");
    age("req-86", 1);
    assert_eq!(
        instead(None).as_deref(),
        Some("req-86-1"),
        "the last one counts"
    );
    // A run answers the request of its own brief.
    let own = brief("86_claude_codex_r2.yaml");
    assert_eq!(instead(Some(&own)), None);
    let earlier = brief("86_claude_codex_r1.yaml");
    assert_eq!(instead(Some(&earlier)).as_deref(), Some("req-86"));
    let other = brief("87_claude_gemini_r1.yaml");
    assert_eq!(instead(Some(&other)).as_deref(), Some("req-86-1"));
    shown::note(root, &codex, &ShownRequest::from(&ask));
    assert_eq!(instead(None), None, "the open one was read as well");
    assert_eq!(instead(Some(&earlier)).as_deref(), Some("req-86"));

    fs::write(archive.join("kept.yaml"), "mail").expect("a file");
    age("req-87", 13);
    age("req-85", 15);
    assert_eq!(instead(None), None);
    let known = ["req-86-1", "req-86-2", "req-86", "req-87"].map(|id| format!(".shown-{id}.json"));
    let mail = ["kept.yaml".to_owned()];
    assert_eq!(
        receipts(),
        [&known[..], &mail].concat(),
        "an old receipt is removed"
    );
    let answer = |word: &str, number: &str, to: &str| {
        let mut draft = MessageDraft::new(kind(word));
        draft.pr = Some(pr(number));
        draft.to = vec![agent(to)];
        shown::forget(root, &codex, &draft);
        receipts().len()
    };
    assert_eq!(answer("review_request", "86", "claude"), 5);
    assert_eq!(answer("review_lgtm", "86", "gemini"), 5);
    assert_eq!(answer("review_lgtm", "86", "claude"), 2);
    assert_eq!(answer("review_feedback", "87", "claude"), 1);
}

#[test]
fn without_the_ledger_the_newest_brief_that_is_not_answered_is_the_request() {
    let root = workspace();
    without_ledger(root.path());
    let briefs = root.path().join("packets/briefs");
    let text = |name: &str| fs::read_to_string(briefs.join(name)).expect("a brief");
    let second = text("86_claude_codex_r2.yaml");
    for (name, request) in [
        ("86_claude_codex_r2.2.yaml", "req-86-4"),
        ("86_claude_codex_r2.1.yaml", "req-86-3"),
        (".86_claude_codex_r2.9.yaml", "hidden"),
        ("86_claude_other_r2.8.yaml", "others"),
    ] {
        let text = second.replace("request: req-86-2", &format!("request: {request}"));
        fs::write(briefs.join(name), text).expect("a brief");
    }
    // Its name has the agent, but it is for another.
    fs::write(
        briefs.join("87_x_codex_r9.yaml"),
        text("87_claude_gemini_r1.yaml"),
    )
    .expect("a brief");
    let mut told = String::new();
    for name in ["claude", "codex", "gemini"] {
        let now = at(TimeDelta::zero());
        for ask in ask::open(root.path(), &agent(name), now).expect("briefs") {
            let review = ask.review(now);
            writeln!(
                told,
                "{name}: {} {} {}, first round {}, explicit {}, advised {}, {:?}, brief of {}",
                ask.key(),
                ask.brief.request,
                ask.brief.round,
                review.first_round,
                ask.explicit,
                ask.advised,
                ask.round_kind(),
                ask.whole["request"]
            )
            .expect("memory");
            for (id, thread) in &review.threads {
                writeln!(told, "  {id}: {thread:?}").expect("memory");
            }
            for open in &ask.brief.open_threads {
                assert!(!ask.feedback_resolves(open) && !ask.lgtm_resolves(open));
            }
        }
    }
    check(GOLDEN, "asked_without_ledger.txt", root.path(), &told);
    fs::remove_dir_all(&briefs).expect("briefs");
    let now = at(TimeDelta::zero());
    assert!(
        ask::open(root.path(), &agent("codex"), now)
            .expect("no briefs")
            .is_empty()
    );
    fs::write(&briefs, "").expect("a file");
    assert!(ask::open(root.path(), &agent("codex"), now).is_err());
}

#[test]
fn a_message_answers_its_parent_and_what_asked_for_it_in_the_same_review() {
    let root = workspace();
    let mailboxes = |name: &str| AgentMailboxes::new(root.path(), &agent(name));
    let answered = |me: &str, word: &str, number: Option<&str>, parent: Option<&str>| {
        let number = number.map(pr);
        let found = answers::answered(&mailboxes(me), kind(word), number.as_ref(), parent);
        let mut names: Vec<String> = found
            .expect("mailboxes")
            .iter()
            .map(|message| message.name())
            .collect();
        names.sort();
        names.join(" ")
    };
    let asked = "a-86 req-86 req-86-2";
    for (me, word, number, parent, expected) in [
        ("codex", "review_feedback", Some("86"), None, asked),
        ("codex", "review_lgtm", Some("0086"), None, asked),
        ("codex", "review_lgtm", Some("88"), None, ""),
        ("codex", "review_lgtm", None, Some("req-86"), "req-86"),
        ("codex", "review_request", Some("86"), None, ""),
        ("codex", "question", Some("86"), Some("lgtm-88"), "lgtm-88"),
        ("gemini", "review_lgtm", Some("87"), None, "req-87"),
        ("claude", "review_addressed", Some("86"), None, "fb-86"),
    ] {
        assert_eq!(
            answered(me, word, number, parent),
            expected,
            "{me} {word} {number:?} {parent:?}"
        );
    }
}

#[test]
fn a_message_that_came_before_its_answer_was_sent_is_dealt_with() {
    let root = workspace();
    let boxes = Boxes(root.path().join("agents/claude"));
    let me = agent("claude");
    let mailboxes = AgentMailboxes::new(root.path(), &me);
    let entry = |name: &str| mailboxes.find(name).expect("mailboxes").remove(0);
    let is_awaited = || answers::is_verdict(&entry("fb-86"), &me, &mailboxes).expect("mailboxes");
    let is_open = || !answers::is_dealt_with(&entry("q-1"), &[], &mailboxes);
    assert!(is_awaited() && is_open());
    let message = |kind: &str, number: &str, parent: &str| {
        format!(
            "id: m-1\nfrom: claude\nto: codex\ntype: {kind}\nrelated_pr: '{number}'\nparent_message_id: {parent}\n"
        )
    };
    boxes.put("sent/m-1.yaml", &message("review_addressed", "87", "x"));
    boxes.put("outbox/m-2.yaml", &message("question", "86", "x"));
    assert!(is_awaited() && is_open());
    boxes.put("sent/m-3.yaml", &message("follow_up", "86", "q-1"));
    assert!(is_awaited() && !is_open());
    boxes.put("outbox/m-4.yaml", &message("review_addressed", "0086", "x"));
    assert!(!is_awaited());
}

#[test]
fn a_notice_tells_of_the_refusal_with_its_file_and_digest() {
    let root = workspace();
    let mailboxes = AgentMailboxes::new(root.path(), &agent("codex"));
    let refused = |name: &str| {
        let path = root.path().join("agents/codex/dead_letter").join(name);
        Report::from_yaml(&fs::read(path).expect("a report")).expect("a report")
    };
    let notice = |id: &str| {
        let notice = answers::refusal_notice(&mailboxes, id).expect("an inbox");
        notice.expect("a notice")
    };
    let [first, second] = ["fb-86.report.yaml", "fb-86-2.report.yaml"].map(refused);
    assert!(answers::tells_of(&notice("fb-86"), &first));
    assert!(!answers::tells_of(&notice("fb-86"), &second));
    let mut other = first.clone();
    other.digest = second.digest;
    assert!(!answers::tells_of(&notice("fb-86"), &other));
    let mut copied = notice("fb-86");
    copied.from = Some("claude".to_owned());
    assert!(
        !answers::tells_of(&copied, &first),
        "only the daemon tells of refusals"
    );
}

#[test]
fn the_alerts_about_a_message_are_read_beside_the_briefs() {
    let root = workspace();
    let inbox = root.path().join("agents/codex/inbox");
    let codes = |file: &str| {
        let alerts = alerts::about_file(root.path(), &inbox.join(file)).into_iter();
        let codes: Vec<String> = alerts.map(|alert| alert.code).collect();
        codes.join(" ")
    };
    assert_eq!(codes("lgtm-88.yaml"), "evidence_missing approval_unbound");
    assert_eq!(codes("req-86.yaml"), "");
    assert_eq!(codes("none.yaml"), "");
}
