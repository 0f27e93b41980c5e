//! Tests what agents see of a recorded workspace: their mail, their reviews, their open requests and what was said, and
//! the responses they could give. `golden/` has the texts; `UPDATE=1` rewrites them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use chrono::TimeDelta;
use mailbox::answers;
use mailbox::awaiting::{Awaited, MailWait, WaitEnd};
use mailbox::compose::ask::{self, Ask};
use mailbox::compose::draft::MessageDraft;
use mailbox::compose::forecast::Forecast;
use mailbox::compose::lookout::MessageFate;
use mailbox::compose::omissions::{self, Omission, ResponseKind};
use mailbox::compose::post::{Composed, Posting};
use mailbox::compose::response::{self, Unwritten};
use mailbox::compose::response_file::ResponseFile;
use mailbox::compose::review_status::{ReviewStatuses, newest_feedback};
use mailbox::compose::sent_before;
use mailbox::compose::words_from::WordsFrom;
use mailbox::mailboxes::{AgentMailboxes, MailboxEntry, MailboxPlace};
use mailbox::my_reviews;
use mailbox::said::Said;
use message_schema::Code;
use message_schema::envelope::{MessageType, ReviewKind, TextKind};
use message_schema::id::{AgentName, PrNumber};
use review::{ObservedRun, Review, TaskId};
use serde_json::json;
use workspace::config::{Config, GateSection};
use workspace::index::LedgerIndex;

use crate::recorded_workspace::{at, check, workspace};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

const AGENTS: [&str; 3] = ["claude", "codex", "gemini"];

fn agent(name: &str) -> AgentName {
    name.parse().expect("a name")
}

fn pr(number: &str) -> PrNumber {
    number.parse().expect("a number")
}

/// The open request to codex: the second round of pull request 86, with two open threads.
fn open(root: &Path) -> Ask {
    let mut asks = ask::open(root, &agent("codex"), at(TimeDelta::zero())).expect("a policy");
    assert_eq!(asks.len(), 1);
    asks.remove(0)
}

#[test]
fn each_mailbox_lists_its_messages_and_what_they_answer() {
    let root = workspace();
    let mut text = String::new();
    for name in AGENTS {
        let me = agent(name);
        let mailboxes = AgentMailboxes::new(root.path(), &me);
        let (index, _) = LedgerIndex::read(root.path()).expect("a ledger");
        let reviews = my_reviews::of(index.state(), &me);
        for place in [
            MailboxPlace::Inbox,
            MailboxPlace::Taken,
            MailboxPlace::Outbox,
            MailboxPlace::Sent,
            MailboxPlace::DeadLetter,
        ] {
            for message in mailboxes.messages(place).expect("a mailbox") {
                let file = message.path.file_name().expect("a name").to_string_lossy();
                let is_verdict = answers::is_verdict(&message, &me, &mailboxes).expect("mailboxes");
                let is_dealt_with = answers::is_dealt_with(&message, &reviews, &mailboxes);
                writeln!(
                    text,
                    "{name} {place:?} {file}: verdict {is_verdict}, dealt with {is_dealt_with}"
                )
                .expect("memory");
            }
        }
        text += &(serde_json::to_string_pretty(&reviews).expect("plain values") + "\n");
    }
    check(GOLDEN, "mailboxes.txt", root.path(), &text);
}

#[test]
fn mail_is_found_by_name_and_id_and_taken_and_put_away() {
    let root = workspace();
    let mailboxes = AgentMailboxes::new(root.path(), &agent("codex"));
    for what in ["req-86-2", "req-86-2.yaml"] {
        assert_eq!(mailboxes.find(what).expect("mailboxes").len(), 1, "{what}");
    }
    assert!(mailboxes.find("req").expect("mailboxes").is_empty());
    let inbox = || {
        mailboxes
            .names(MailboxPlace::Inbox)
            .expect("an inbox")
            .len()
    };
    let before = inbox();
    let message = mailboxes.find("req-86-2").expect("mailboxes").remove(0);
    assert!(mailboxes.take(&message).expect("it can be taken").is_file());
    let taken = mailboxes.find("req-86-2").expect("mailboxes").remove(0);
    assert_eq!((taken.place, inbox()), (MailboxPlace::Taken, before - 1));
    assert!(
        mailboxes
            .put_away(&taken)
            .expect("it can be archived")
            .is_file()
    );
    let archived = mailboxes.find("req-86-2").expect("mailboxes").remove(0);
    assert_eq!(archived.place, MailboxPlace::Archive);
    let some = |most| {
        mailboxes
            .newest(MailboxPlace::Inbox, most)
            .expect("an inbox")
            .len()
    };
    assert_eq!((some(1), some(100)), (1, before - 1));
    let notice = answers::refusal_notice(&mailboxes, "fb-86-2").expect("an inbox");
    assert!(notice.is_some_and(|notice| notice.from.as_deref() == Some("settled")));
    assert!(
        answers::refusal_notice(&mailboxes, "req-86")
            .expect("an inbox")
            .is_none()
    );
}

#[test]
fn what_is_asked_and_what_was_said_is_read_from_the_own_mailboxes() {
    let root = workspace();
    let mut text = String::new();
    for name in AGENTS {
        let me = agent(name);
        for ask in ask::open(root.path(), &me, at(TimeDelta::zero())).expect("a policy") {
            writeln!(
                text,
                "{name} is asked in {}: {}, round {} ({} of {}, last: {}), lgtm possible: {}",
                ask.key(),
                ask.brief.request,
                ask.brief.round,
                ask.brief.round_of_generation,
                ask.brief.rounds_of_generation,
                ask.brief.last_round,
                ask.brief.lgtm_possible
            )
            .expect("memory");
            let budget = &ask.brief.budget;
            writeln!(
                text,
                "  {} turns, {} s, {} attempts; fix: {}",
                budget.turns_left,
                budget.runtime_s_left,
                budget.attempts_left,
                ask.known()
                    .is_some_and(|(review, _)| review.fixes.is_some())
            )
            .expect("memory");
            for open in &ask.brief.open_threads {
                let silent = (ask.feedback_resolves(open), ask.lgtm_resolves(open));
                writeln!(
                    text,
                    "  {} {:?} blocks: {}, {:?}, silence resolves {silent:?}, legal {:?}",
                    open.id,
                    open.severity,
                    open.blocking,
                    open.title,
                    open.legal(None)
                )
                .expect("memory");
            }
        }
    }
    for (me, other) in [
        ("claude", "codex"),
        ("codex", "claude"),
        ("gemini", "claude"),
    ] {
        for number in ["86", "87"] {
            let said = Said::read(root.path(), &agent(me), &agent(other), &pr(number));
            writeln!(text, "{me} and {other} about {number}: {said:#?}").expect("memory");
        }
    }
    check(GOLDEN, "asked.txt", root.path(), &text);
}

#[test]
fn what_was_sent_before_is_found_by_its_id_whatever_its_file_is_called() {
    let root = workspace();
    let sent = root.path().join("agents/claude/sent");
    std::fs::rename(sent.join("req-87.yaml"), sent.join("other.yaml")).expect("renamed");
    std::fs::write(sent.join("half.tmp"), "id: half\n").expect("a file that is not finished");
    for (id, found) in [
        ("req-86", Some(("req-86.yaml", true))),
        ("req-87", Some(("other.yaml", true))),
        ("n-1", Some(("n-1.yaml", false))),
        // These were refused, belong to another agent, or only begin like an id.
        ("bad-1", None),
        ("fb-86", None),
        ("req", None),
        ("half", None),
    ] {
        let id = id.parse().expect("an id");
        let before = sent_before::find(root.path(), &agent("claude"), &id).expect("mailboxes");
        let before = before.map(|message| {
            let file = message.path.file_name().expect("a name");
            (file.to_string_lossy().into_owned(), message.accepted)
        });
        let found = found.map(|(file, accepted)| (file.to_owned(), accepted));
        assert_eq!(before, found, "{id}");
    }
}

#[test]
fn what_a_command_sent_is_found_under_the_name_of_its_id_alone() {
    let root = workspace();
    let sent = root.path().join("agents/claude/sent");
    let found = |id: &str| {
        let id = id.parse().expect("an id");
        let before = sent_before::find_named(root.path(), &agent("claude"), &id)?;
        Some((before.path, before.accepted))
    };
    assert_eq!(found("req-86"), Some((sent.join("req-86.yaml"), true)));
    let waits = root.path().join("agents/claude/outbox/n-1.yaml");
    assert_eq!(found("n-1"), Some((waits, false)));
    std::fs::copy(sent.join("req-86.yaml"), sent.join("bad-1.yaml")).expect("copied");
    assert_eq!(found("bad-1"), None, "it has another id");
    std::fs::rename(sent.join("req-87.yaml"), sent.join("other.yaml")).expect("renamed");
    assert_eq!(found("req-87"), None);
    assert_eq!(found("req"), None);
}

#[test]
fn a_message_is_sent_once_under_its_id_and_its_fate_is_found_again() {
    let root = workspace();
    let me = agent("claude");
    let send = |id: &str, text: &str| {
        let mut draft = MessageDraft::new(MessageType::Text(TextKind::Question));
        draft.to = vec![agent("codex")];
        draft.subject = Some("Which port?".to_owned());
        draft.text = Some(text.to_owned());
        let posting = Posting {
            root: root.path(),
            agent: &me,
            draft: &draft,
            id: &id.parse().expect("an id"),
            at: at(TimeDelta::zero()),
            is_id_given: true,
        };
        let outcome = posting.send(Some(Duration::ZERO)).expect("it is sent");
        (outcome.fate, outcome.again, outcome.written.is_some())
    };
    let first = send("which-port", "80 or 8080?");
    assert!(
        matches!(first, (MessageFate::Waiting(_), false, true)),
        "{first:?}"
    );
    let again = send("which-port", "80 or 8080?");
    assert!(
        matches!(again, (MessageFate::Waiting(_), true, false)),
        "{again:?}"
    );
    let other = send("which-port", "none");
    assert!(
        matches!(other, (MessageFate::IdUsed(_), true, false)),
        "{other:?}"
    );
    let boxes = root.path().join("agents/claude");
    let [waiting, sent] = ["outbox", "sent"].map(|name| boxes.join(name).join("which-port.yaml"));
    std::fs::rename(waiting, &sent).expect("the daemon's move");
    let accepted = send("which-port", "80 or 8080?");
    assert!(
        matches!(&accepted, (MessageFate::Accepted(path), true, false) if *path == sent),
        "{accepted:?}"
    );
}

#[test]
fn an_accepted_message_is_found_by_its_type_and_pull_request() {
    let root = workspace();
    let me = agent("claude");
    let found = |id: &str, kind, number: Option<&str>| {
        let (id, number) = (id.parse().expect("an id"), number.map(pr));
        let kind = MessageType::Review(kind);
        let found = sent_before::accepted((root.path(), &me), &id, kind, number.as_ref());
        found.map(|(_, about)| about.expect("a pull request").to_string())
    };
    let eighty_six = Some("86".to_owned());
    assert_eq!(found("req-86", ReviewKind::Request, None), eighty_six);
    assert_eq!(found("req-86", ReviewKind::Request, Some("86")), eighty_six);
    assert_eq!(found("req-86", ReviewKind::Request, Some("87")), None);
    assert_eq!(found("req-86", ReviewKind::Addressed, None), None);
    assert_eq!(found("bad-1", ReviewKind::Request, None), None);
}

#[test]
fn each_finding_of_a_file_has_its_place_in_it() {
    let places = |text: &str| -> Vec<(u32, u32)> {
        let places = ResponseFile::places(text).into_iter();
        places
            .map(|node| ResponseFile::own_place(text, node.place))
            .collect()
    };
    let mapping = "findings:\n- severity: P1\n  title: a\n- {severity: P9, title: b}\n";
    assert_eq!(places(mapping), [(2, 3), (4, 3)]);
    let structured = "response:\n  findings:\n  - {severity: P1}\n";
    assert_eq!(places(structured), [(3, 5)]);
    let list = "- severity: P1\n  title: a\n- severity: P9\n";
    assert_eq!(places(list), [(1, 3), (3, 3)]);
    assert_eq!(
        places(&format!("\u{feff}# mine\n---\n{list}")),
        [(3, 3), (5, 3)]
    );
    assert_eq!(
        places("[{severity: P1},\n {severity: P9}]\n"),
        [(1, 2), (2, 2)]
    );
    assert_eq!(places("findings: []\n"), []);
}

#[test]
fn the_other_side_and_the_round_come_from_the_ledger_or_the_mail() {
    let root = workspace();
    let (claude, codex) = (agent("claude"), agent("codex"));
    let statuses = ReviewStatuses::read(root.path(), &claude).expect("a ledger");
    assert_eq!(statuses.other_side(&pr("86"), None), Some(codex.clone()));
    assert_eq!(statuses.round(&pr("86"), None, &codex), Some(2));
    assert_eq!(statuses.round(&pr("86"), None, &agent("gemini")), None);
    assert_eq!(statuses.other_side(&pr("99"), None), None);
    let newest = |me: &AgentName, number| newest_feedback(root.path(), me, &pr(number));
    assert_eq!(newest(&claude, "86"), Some((codex.clone(), 1)));
    assert_eq!(newest(&claude, "87"), None);
    assert_eq!(newest(&codex, "86"), None);
    let mine = my_reviews::read(root.path(), &pr("86"), &claude);
    let mine: Vec<&str> = mine.iter().map(|mine| mine.review.as_str()).collect();
    assert_eq!(mine, ["#86 claude -> codex"]);
    let status = statuses.of_message(&"req-86-2".parse().expect("an id"));
    let status = status.expect("a review");
    assert_eq!(
        status.phrase(),
        "#86 claude -> codex: reviewing, round 2; codex moves"
    );
    assert_eq!(status.approval(), "");
}

#[test]
fn a_response_deals_with_each_open_thread_or_says_which_it_forgets() {
    let root = workspace();
    let ask = open(root.path());
    let mut text = String::new();
    for file in [
        "findings: []\n",
        "threads: {F-1: resolve, F-2: resolve}\n",
        "threads: {F-1: resolve}\n",
        "threads: {F-1: reply, F-2: resolve}\n",
        "threads: {F-1: veto, F-2: escalate}\n",
        "threads: {F-1: resolve, F-2: {action: defer, owner: claude, next_action: rename it}}\n",
        "threads: {F-1: {action: escalate, stance: seeks_change, evidence: it loops}, F-2: resolve}\n",
        "threads: {F-1: resolve, F-2: resolve, F-9: resolve}\n",
        "threads: {F-1: resolved, F-2: nonsense}\n",
        "threads:\n- {id: F-1, action: veto}\n- {id: F-1, action: resolve}\n",
        "threads: {F-1: resolve, F-2: resolve}\nfindings:\n- {severity: P0, title: a key leaks, file: src/key.rs, line: 3}\n",
        "threads: {F-1: resolve, F-2: resolve}\nfindings:\n- {severity: P2, title: a typo, blocking: false, action: reword}\n",
        "findings:\n- {severity: P1, title: the parser loops on empty input, file: src/parse.rs, line: 10}\n",
        "findings:\n- {id: F-1, severity: P1, status: resolved, title: a}\n- {id: F-2, severity: P2, status: resolved, title: b}\n",
        "findings:\n- {id: F-1, status: wont_fix}\n- {id: F-2, status: wont_fix}\n",
        "threads: {F-1: resolve}\nnits:\n- {source: F-2, summary: rename it}\n",
        "threads: {F-1: resolve}\nfindings:\n- {id: F-2, action: defer, title: a name}\n",
        "threads: {F-1: resolve}\nfindings:\n- {id: F-2, action: defer, evidence: it is short}\n",
        "threads: {F-1: resolve, F-2: {action: resolve, owner: claude}}\n",
        "threads: {F-1: resolve, F-2: resolve}\nfindings:\n- {id: F-1, action: veto}\n",
        "reviewer: codex\nround: 2\nreviewed_sha: 0badcafe\nsummary: {P1: 7}\nmerge_ready: false\nfindings:\n- {id: F-1, severity: P1, status: fixed}\n- {id: F-2, severity: P2, status: fixed, mood: odd}\n",
        "threads: {F-1: resolve, F-2: resolve}\ncommands_run: [{command: cargo test, result: pass}]\nexamined: {declared: [src/parse.rs]}\n",
        "threads: {F-1: resolve, F-2: veto}\nescalation: reviewer_budget_exceeded\n",
        "commands_run: [{command: cargo test, result: pass}]\n",
        "findings:\n- {severity: P1, status: fixed, title: the parser loops on empty input, file: src/parse.rs, line: 10}\n",
        r#"{"response": {"type": "review_lgtm", "commands_run": [], "examined": {"diff_digest": "", "declared": []}, "threads": {"F-1": {"stance": "accepts", "evidence": "", "action": "resolve"}, "F-2": {"action": "defer", "owner": "", "next_action": ""}}, "nits": [], "validated_head": "", "merge_ready": true}}"#,
        "response:\n  type: review_feedback\n  commands_run: []\n  examined: {diff_digest: '', declared: [src/key.rs]}\n  threads:\n    F-1: {stance: accepts, evidence: '', action: resolve}\n    F-2: {stance: seeks_change, evidence: '', action: veto}\n  findings:\n  - {severity: P1, blocking: true, title: 'true', file: src/key.rs, lines: '3', category: '', evidence: it leaks, recommendation: '', introduced_by: ''}\n  validated_head: ''\n  escalation: ''\n",
    ] {
        let sheet = ResponseFile::read(file).expect("a response file");
        for kind in [ResponseKind::Feedback, ResponseKind::Lgtm] {
            let response = response::write(
                &ask,
                &sheet,
                kind,
                WordsFrom::default(),
                None,
                at(TimeDelta::zero()),
            );
            writeln!(text, "--- {kind:?}\n{file}\n{response:#?}").expect("memory");
            if let Err(why) = response {
                writeln!(text, "{:?}: {why}", why.code()).expect("memory");
            }
        }
    }
    check(GOLDEN, "responses.txt", root.path(), &text);
}

/// The daemon's decision about codex's response, if it is written.
fn judged(
    root: &Path,
    ask: &Ask,
    sheet: &ResponseFile,
    kind: ResponseKind,
) -> Result<String, Unwritten> {
    let now = at(TimeDelta::zero());
    let draft =
        response::write(ask, sheet, kind, WordsFrom::default(), None, now)?.draft(ask, kind);
    let posting = Posting {
        root,
        agent: &ask.brief.reviewer,
        draft: &draft,
        id: &"answer".parse().expect("an id"),
        at: now,
        is_id_given: false,
    };
    match posting.compose().expect("it is valid") {
        Composed::Ready(checked) => {
            let forecast = Forecast::of(root, &ask.brief.reviewer, &checked, now);
            Ok(forecast.lines().join("\n"))
        }
        Composed::SentBefore(_) => panic!("the id is new"),
    }
}

#[test]
fn what_the_daemon_accepts_is_written() {
    const ASKS_FOR_ACTIONS: &str = "[gate]\nrequire_actions = true\n";
    for (config, file, kind) in [
        // The gate compares commands without the spaces around them, which an option keeps.
        (
            "[gate]\nvalidation_commands = [\"cargo test\"]\n",
            "threads: {F-1: resolve, F-2: resolve}\n",
            ResponseKind::Lgtm,
        ),
        // A nit that names no thread covers one of its tier.
        (
            ASKS_FOR_ACTIONS,
            "threads: {F-1: resolve}\nnits:\n- {tier: P2, summary: the name could say more}\n",
            ResponseKind::Lgtm,
        ),
        // A reviewer whose budget is spent leaves the threads as they are.
        (
            ASKS_FOR_ACTIONS,
            "findings: []\nescalation: reviewer_budget_exceeded\n",
            ResponseKind::Feedback,
        ),
    ] {
        let root = workspace();
        fs::write(root.path().join("settled.toml"), config).expect("a config");
        let mut sheet = ResponseFile::read(file).expect("a response file");
        if let (ResponseFile::Loose(loose), ResponseKind::Lgtm) = (&mut sheet, kind) {
            let run = json!({ "command": "cargo test ", "result": "pass" });
            loose.commands_run.push(run);
        }
        let told = judged(root.path(), &open(root.path()), &sheet, kind);
        let told = told.unwrap_or_else(|why| panic!("{file}{why:?}"));
        assert!(
            told.starts_with("the daemon would accept it now"),
            "{file}{told}"
        );
    }
}

#[test]
fn what_the_gate_refuses_is_not_written() {
    // The profile only advises, but not on pull requests of bots.
    let config = "profile = \"advisory\"\n[handoff]\nbots = [\"claude\"]\n";
    let root = workspace();
    fs::write(root.path().join("settled.toml"), config).expect("a config");
    let file = "threads: {F-1: escalate, F-2: resolve}\n";
    let sheet = ResponseFile::read(file).expect("a response file");
    let told = judged(root.path(), &open(root.path()), &sheet, ResponseKind::Lgtm);
    assert!(matches!(told, Err(Unwritten::Gate(_))), "{told:?}");
}

/// The open request to codex, with another state of its review.
fn changed(root: &Path, gate: GateSection, change: impl FnOnce(&mut Review)) -> Ask {
    let (index, _) = LedgerIndex::read(root).expect("a ledger");
    let mut reviews = index.state().requested_reviews();
    let (key, review) = reviews
        .find(|(key, _)| key.reviewer == agent("codex"))
        .expect("a review");
    let mut review = review.clone();
    change(&mut review);
    let config = Config {
        gate,
        ..Config::default()
    };
    let policy = config.policy(AGENTS.map(agent));
    let now = at(TimeDelta::zero());
    let ask = ask::of_review(root, (index.state(), &policy), (key, &review), now);
    ask.expect("a request")
}

#[test]
fn a_run_that_the_daemon_saw_needs_no_record() {
    let root = workspace();
    let gate = GateSection {
        validation_commands: vec!["cargo test".to_owned()],
        ..GateSection::default()
    };
    let ask = changed(root.path(), gate, |review| {
        let head = review.phase.invocation().and_then(|open| open.head.clone());
        review.reading.runs.push(ObservedRun {
            command: "cargo test".to_owned(),
            exit: Some(0),
            duration_ms: 1,
            output: format!("sha256:{}", "0".repeat(64))
                .parse()
                .expect("a digest"),
            head,
        });
    });
    let sheet = ResponseFile::read("threads: {F-1: resolve, F-2: resolve}\n").expect("a file");
    // The response names no commit, so it is about that of the request.
    let now = at(TimeDelta::zero());
    let response = response::write(
        &ask,
        &sheet,
        ResponseKind::Lgtm,
        WordsFrom::default(),
        None,
        now,
    );
    assert!(response.is_ok(), "{response:?}");
}

#[test]
fn a_new_blocker_in_a_fix_is_for_later_and_hinders_no_lgtm() {
    let root = workspace();
    let file =
        "threads: {F-1: resolve, F-2: resolve}\nfindings:\n- {severity: P1, title: it leaks}\n";
    let sheet = ResponseFile::read(file).expect("a response file");
    for is_fix in [false, true] {
        let ask = changed(root.path(), GateSection::default(), |review| {
            review.fixes = is_fix.then(|| TaskId::new(&pr("85"), 1));
        });
        let response = response::write(
            &ask,
            &sheet,
            ResponseKind::Lgtm,
            WordsFrom::default(),
            None,
            at(TimeDelta::zero()),
        );
        match response {
            Ok(_) => assert!(is_fix),
            Err(Unwritten::Gate(broken)) => {
                assert_eq!(
                    (is_fix, &broken[..]),
                    (false, &["F-2-001 is new and blocks".to_owned()][..])
                );
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_refused_message_is_dismissed_with_its_report_and_a_report_alone_as_well() {
    let root = workspace();
    let mailboxes = AgentMailboxes::new(root.path(), &agent("codex"));
    let place = |place| mailboxes.directory(place);
    let kept = |name: &str| {
        let is_there = |of| u8::from(place(of).join(name).exists());
        (
            is_there(MailboxPlace::DeadLetter),
            is_there(MailboxPlace::Archive),
        )
    };
    let dismissed = mailboxes.dismiss(Some("fb-86-2.yaml"), "fb-86-2.report.yaml");
    assert_eq!(dismissed.expect("they can be moved").len(), 2);
    for name in ["fb-86-2.yaml", "fb-86-2.report.yaml"] {
        assert_eq!(kept(name), (0, 1), "{name}");
    }
    fs::remove_file(place(MailboxPlace::DeadLetter).join("fb-86.yaml")).expect("it is there");
    let dismissed = mailboxes.dismiss(Some("fb-86.yaml"), "fb-86.report.yaml");
    let report = place(MailboxPlace::Archive).join("fb-86.report.yaml");
    assert_eq!(dismissed.expect("it can be moved"), [report]);
}

#[test]
fn a_new_finding_needs_a_title_and_a_word_near_it_may_be_meant() {
    let root = workspace();
    let ask = open(root.path());
    let text = "findings:\n- {title: x}\n- {id: F-1}\n- {id: F-9, title: ' '}\n- {titel: x}\n";
    let findings = [
        json!({"title": "x"}),
        json!({"id": "F-1", "action": "resolve"}),
        json!({"id": "F-9", "title": " "}),
        json!({"titel": "x"}),
    ];
    let findings = findings.map(|finding| finding.as_object().expect("a mapping").clone());
    let file = Path::new("f.yaml");
    let untitled = omissions::untitled(&ask, &findings, WordsFrom::Findings { file, text });
    let none = "finding_invalid: the finding has no `title`";
    assert_eq!(
        untitled,
        [
            format!("f.yaml:4:3: {none}\n    fix: add `title`, the problem in one line"),
            format!(
                "f.yaml:5:3: {none}, and `titel` is in its place\n    fix: rename it to `title`"
            ),
        ]
    );
}

#[test]
fn an_omission_is_one_line_with_what_is_legal() {
    let omission = |legal: &[&str]| Omission {
        code: Code::ActionMissing,
        id: "F-1\u{1b}".to_owned(),
        what: "it needs an action".to_owned(),
        legal: legal.iter().map(|&word| word.to_owned()).collect(),
    };
    assert_eq!(omission(&[]).line(), "F-1\\u{1b}: it needs an action");
    assert_eq!(
        omission(&["resolve", "veto"]).line(),
        "F-1\\u{1b}: it needs an action; legal: resolve, veto"
    );
}

#[test]
fn as_many_messages_are_read_as_are_asked_for_and_those_since_an_instant() {
    let root = workspace();
    let mailboxes = AgentMailboxes::new(root.path(), &agent("codex"));
    let first = |most| {
        let (some, count) = mailboxes
            .first_messages(MailboxPlace::Inbox, most)
            .expect("an inbox");
        (some.len(), count)
    };
    assert_eq!(
        [first(0), first(5), first(6), first(7)],
        [(0, 6), (5, 6), (6, 6), (6, 6)]
    );
    let since = |instant| {
        mailboxes
            .since(MailboxPlace::Inbox, instant)
            .expect("an inbox")
            .len()
    };
    let finished = mailboxes.find("a-86").expect("mailboxes").remove(0).arrived;
    let finished = finished.expect("a time");
    assert_eq!(since(finished - Duration::from_secs(1)), 6);
    assert_eq!(since(finished), 0);
}

#[test]
fn a_wait_ends_with_the_mail_it_is_for_or_when_nobody_else_has_to_move() {
    let root = workspace();
    let end = |name: &str, what: Awaited<'_>, number: Option<&str>| {
        let (me, number) = (agent(name), number.map(pr));
        let wait = MailWait {
            root: root.path(),
            agent: &me,
            mailboxes: &AgentMailboxes::new(root.path(), &me),
            what,
            pr: number.as_ref(),
        };
        match wait.check().expect("mailboxes") {
            Some(WaitEnd::Messages(all)) => all.iter().map(MailboxEntry::name).collect(),
            Some(WaitEnd::OwnMove(all)) => all.iter().map(|mine| mine.review.clone()).collect(),
            Some(WaitEnd::Refused(report)) => vec![report.display().to_string()],
            None => Vec::new(),
        }
    };
    assert_eq!(end("codex", Awaited::Any, None).len(), 6);
    assert_eq!(end("codex", Awaited::Any, Some("88")), ["lgtm-88"]);
    assert_eq!(end("codex", Awaited::Verdict, Some("88")), ["lgtm-88"]);
    assert!(end("codex", Awaited::Reply("q-1"), None).is_empty());
    assert!(end("gemini", Awaited::Any, None).is_empty());
    // A message that the agent has answered is not news, and another agent still owes it a verdict.
    let news = end("claude", Awaited::Any, Some("86"));
    assert!(news.contains(&"q-1".to_owned()) && !news.contains(&"fb-86".to_owned()));
    assert!(end("claude", Awaited::Verdict, Some("87")).is_empty());
    assert_eq!(
        end("gemini", Awaited::Verdict, None),
        ["#87 claude -> gemini"]
    );
    let report = root
        .path()
        .join("agents/claude/dead_letter/bad-1.report.yaml");
    assert_eq!(
        end("claude", Awaited::Reply("bad-1"), None),
        [report.display().to_string()]
    );
}
