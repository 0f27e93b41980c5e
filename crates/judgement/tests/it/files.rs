//! Every file that a record makes, word by word: messages and events in, `files.txt` out. `UPDATE=1` writes the page again.

use std::fmt::Write as _;
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use judgement::{RequestFile, Submission, Tentative, UsedNames, alerts_file};
use message_schema::id::{AgentName, FindingId, MessageId};
use message_schema::limit::Rounds;
use review::{
    Act, Event, FailureCause, HandoffMode, Policy, PullAction, ReportedEvent, RunFailure, RunSpend,
    SentDiffers, SpendLimit,
};
use spool::{Body, Content, EntryDraft, FileName, Mailbox, OutboxFile, PacketRead, Unfit};

use crate::table::{Note, Table, agent, claude, codex, packet, text, which};

/// The daemon's view of a workspace without a disk, and the page of everything that its records make.
struct Desk {
    tentative: Tentative,
    now: DateTime<Utc>,
    seq: u64,
    ids: u32,
    sent: u32,
    page: String,
}

impl Desk {
    fn new(title: &str, change: impl FnOnce(&mut Policy)) -> Self {
        let Table {
            state, mut policy, ..
        } = Table::default();
        change(&mut policy);
        let agents: Vec<AgentName> = policy.agents.keys().cloned().collect();
        let mut tentative = Tentative::new(state, UsedNames::default(), policy.clone());
        tentative.reconfigure(policy, agents);
        Self {
            tentative,
            now: DateTime::from_timestamp(1_771_000_000, 0).expect("an instant"),
            seq: 0,
            ids: 0,
            sent: 0,
            page: format!("# {title}\n"),
        }
    }

    /// Judges a message with a fresh id.
    fn send(&mut self, note: &Note<'_>) {
        self.sent += 1;
        let text = text(note, &format!("m-{}", self.sent));
        self.post(note.from, Body::message(text.into_bytes()), note.packet);
    }

    fn post(&mut self, outbox: &str, body: Body, packet: Option<&str>) {
        self.begin();
        let name = FileName::new("a.yaml").expect("a name");
        let found = OutboxFile::finished(outbox, name, body);
        let outbox = agent(outbox);
        let submission = Submission {
            found: &found,
            outbox: &outbox,
            user: None,
        };
        let at = (self.seq, self.now);
        let judge = self.tentative.judge(self.now);
        let read = judgement::read(submission);
        let packet = packet.map(|text| PacketRead::Bytes(text.as_bytes().to_vec()));
        let (message, stop) = match &read {
            Ok(read) => match judge.message(read, packet.as_ref()) {
                Ok(decided) => {
                    let (draft, _) =
                        self.tentative
                            .add_decided(submission, &read.message, decided.decision, at);
                    return self.keep(&draft);
                }
                Err(stop) => (Some(&read.message), stop.rejection),
            },
            Err(_) => (None, read.expect_err("a stop").rejection),
        };
        let ids = &mut self.ids;
        let refused = judge.refuse(&outbox, message, *stop, &mut || fresh(ids));
        let (draft, _) = self.tentative.add_refused(submission, message, refused, at);
        self.keep(&draft);
    }

    fn hear(&mut self, event: &Event) {
        self.begin();
        let order = "order-1".parse().expect("an id");
        let reported = ReportedEvent {
            order: Some(&order),
            event,
        };
        let ids = &mut self.ids;
        let judge = self.tentative.judge(self.now);
        let record = judge.event(reported, &mut || fresh(ids));
        let request = RequestFile {
            file: FileName::new("request.yaml").expect("a name"),
            text: "the request\n".to_owned(),
        };
        let at = (self.seq, self.now);
        let (draft, _) = self.tentative.add_event(record, Some(request), at);
        self.keep(&draft);
    }

    /// Lets the next deadline pass.
    fn wait(&mut self) {
        let (at, _) = self.tentative.state().next_deadline().expect("a deadline");
        self.now = at;
        self.seq += 1;
        let ids = &mut self.ids;
        let record = self.tentative.judge(at).due(&mut || fresh(ids));
        let record = record.expect("a deadline that has come makes a record");
        let (draft, _) = self.tentative.add_event(record, None, (self.seq, at));
        self.keep(&draft);
    }

    fn begin(&mut self) {
        self.now += TimeDelta::seconds(1);
        self.seq += 1;
    }

    fn keep(&mut self, draft: &EntryDraft) {
        self.tentative.commit();
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let (review, id) = (or_none(&draft.review), or_none(&draft.id));
        let seq = self.seq;
        let page = &mut self.page;
        writeln!(page, "\n{seq}: {} {id} of {review}", draft.kind).expect("a text");
        let mut report = String::new();
        for made in &draft.deliveries {
            let content = match &made.content {
                Content::Original => " has the original\n".to_owned(),
                Content::Withdrawn(_) => " is withdrawn\n".to_owned(),
                Content::Text(text) if matches!(made.mailbox, Mailbox::DeadLetter(_)) => {
                    report = text.lines().map(|line| format!("  {line}\n")).collect();
                    shown(text)
                }
                // A notice repeats the report.
                Content::Text(text) if !report.is_empty() => {
                    shown(&text.replace(&report, "  (the report)\n"))
                }
                Content::Text(text) => shown(text),
            };
            write!(page, "  {}/{}{content}", made.mailbox, made.file).expect("a text");
        }
        if let Some(original) = &draft.original {
            let read = original.text.as_ref().map_or("", |_| " with its text");
            writeln!(page, "  original: {}{read}", original.away).expect("a text");
        }
    }

    fn person(&mut self, act: Act) {
        let (by, reason) = ("ada".to_owned(), "seen".to_owned());
        self.hear(&Event::Person(review::PersonsDecision {
            which: which(),
            by,
            reason,
            act,
        }));
    }

    fn pull(&mut self, action: PullAction, head: Option<&str>) {
        self.hear(&Event::Pull(review::PullEvent {
            repo: None,
            pr: "86".parse().expect("a number"),
            action,
            author: Some("claude-dev".to_owned()),
            head: head.map(|head| head.parse().expect("a commit")),
        }));
    }

    fn request(&mut self, fields: &str) {
        let body = format!("pr: 86\nbranch: fix\ndiff_summary: a fix\n{fields}");
        self.send(&Note {
            body: &body,
            ..claude("review_request")
        });
    }

    fn feedback(&mut self, round: u32, blocking: usize, findings: &str) {
        let body = format!(
            "findings_packet: packets/findings/p.yaml\nround: {round}\nblocking_count: {blocking}"
        );
        self.send(&Note {
            body: &body,
            packet: Some(&packet(findings)),
            ..codex("review_feedback")
        });
    }

    fn addressed(&mut self, round: u32) {
        let body = format!("commit_sha: abc1234\nchanges_summary: fixed\nround: {round}");
        self.send(&Note {
            body: &body,
            ..claude("review_addressed")
        });
    }
}

/// Returns a text below the name of its file; a schema is compared elsewhere.
fn shown(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once(": ") {
        Some(("response_schema", _)) => "    response_schema: …\n".to_owned(),
        Some(("digest", _)) => "    digest: …\n".to_owned(),
        Some(_) | None if line.is_empty() => "\n".to_owned(),
        Some(_) | None => format!("    {line}\n"),
    });
    std::iter::once("\n".to_owned()).chain(lines).collect()
}

fn fresh(ids: &mut u32) -> MessageId {
    *ids += 1;
    MessageId::new(format!("settled-{ids}")).expect("an id")
}

fn finding(id: &str) -> FindingId {
    id.parse().expect("an id")
}

/// Findings with everything that a later packet or task repeats of them.
const FINDINGS: &str = "F-001 P1 open title: A leak; file: src/a.rs; lines: 4-9; category: memory; target: gemini; recommendation: Close it.; fingerprint: leak-1
    F-002 P2 open blocking: false; title: A name; file: src/a.rs; lines: 12
    F-003 P3 open expected: a shorter word; file: docs/b.md";

fn failed(cause: FailureCause) -> Event {
    Event::Failed {
        which: which(),
        failure: RunFailure {
            cause,
            why: "exit code 1".to_owned(),
            retry_after: None,
            run: Some("run-1".to_owned()),
        },
    }
}

/// Messages that are refused: what their senders read, and what the refusals cost.
fn refusals() -> String {
    let mut desk = Desk::new("What is refused", |_| {});
    let broken = || Body::message(b"no message".to_vec());
    desk.post("claude", broken(), None);
    desk.post("claude", Body::Unfit(Unfit::Directory), None);
    desk.request("");
    desk.request("");
    // The sender put a copy into the inbox itself, and one into that of an agent that does not exist.
    let stray = Note {
        to: "[codex, nobody]",
        body: "Look.",
        ..claude("review_lgtm")
    };
    desk.send(&stray);
    desk.send(&Note {
        to: "settled",
        body: "Look.",
        ..claude("review_lgtm")
    });
    desk.feedback(1, 7, FINDINGS);
    for round in [2, 3, 2] {
        desk.feedback(round, 1, FINDINGS);
    }
    desk.page
}

/// The last words about two of them.
const SETTLED: &str =
    "F-002 P2 open blocking: false; action: resolve\nF-003 P3 open action: resolve";

/// A sender of many broken files reads of the first ones, and later how many it did not read of.
fn withheld() -> String {
    let mut desk = Desk::new("Refusals without a notice", |_| {});
    let mut begins = 0;
    for _ in 0..60 {
        begins = desk.page.len();
        desk.post("claude", Body::message(b"no message".to_vec()), None);
    }
    let last = desk.page.split_off(begins);
    "# Refusals without a notice\n".to_owned()
        + &last
        + &{
            desk.page.clear();
            desk.now += TimeDelta::hours(2);
            desk.post("claude", Body::message(b"no message".to_vec()), None);
            desk.page
        }
}

fn to_second_round(desk: &mut Desk) {
    desk.request("");
    desk.feedback(1, 1, FINDINGS);
    desk.addressed(1);
    desk.request("");
}

/// Every way in which a review leaves its agents.
fn escalations() -> String {
    let mut pages = String::new();
    let mut tell = |title: &str, change: fn(&mut Policy), play: &dyn Fn(&mut Desk)| {
        let mut desk = Desk::new("", change);
        to_second_round(&mut desk);
        desk.page = format!("# {title}\n");
        play(&mut desk);
        pages += &desk.page;
        pages += "\n";
    };
    tell("The reviewer does not take the request", |_| {}, &|desk| {
        desk.wait();
    });
    tell("The reviewer overruns its time", |_| {}, &|desk| {
        desk.hear(&Event::Taken(which()));
        desk.wait();
    });
    tell("The reviewer uses all its turns", |_| {}, &|desk| {
        desk.hear(&Event::Turns {
            which: which(),
            count: 8,
        });
    });
    tell("The approval declares too many turns", |_| {}, &|desk| {
        desk.send(&Note {
            envelope: "related_pr: 86\nturns: 9\n",
            body: "quality_gate_result: pass\nmerge_ready: true",
            ..codex("review_lgtm")
        });
    });
    tell("The last round ends with a blocker", |_| {}, &|desk| {
        desk.feedback(
            2,
            2,
            &format!("{SETTLED}\nF-001 P1 open action: veto\nF-009 P1 open title: new; file: src/a.rs; introduced_by: abc1234"),
        );
        desk.person(Act::Resolve(finding("F-009")));
        desk.person(Act::Grant { rounds: 1 });
    });
    tell(
        "The last round leaves a blocker with a person",
        |_| {},
        &|desk| {
            desk.feedback(2, 1, &format!("{SETTLED}\nF-001 P1 open action: escalate"));
        },
    );
    tell("The command fails again and again", |_| {}, &|desk| {
        for _ in 0..3 {
            desk.hear(&Event::Started(which()));
            desk.hear(&failed(FailureCause::Crashed));
        }
    });
    tell(
        "The command fails and the next reviewer is asked",
        |policy| policy.reviewers = ["codex", "gemini"].map(agent).into(),
        &|desk| {
            desk.hear(&failed(FailureCause::NotLoggedIn));
            desk.hear(&failed(FailureCause::GaveUp));
        },
    );
    tell(
        "Nobody else can be asked",
        |policy| policy.reviewers = ["codex", "claude"].map(agent).into(),
        &|desk| desk.hear(&failed(FailureCause::Quota)),
    );
    tell(
        "The budget of the review is used up",
        |policy| {
            policy.budget.per_review = SpendLimit {
                tokens: Some(10),
                micro_usd: None,
            };
        },
        &|desk| {
            let (key, _) = desk.tentative.state().reviews().next().expect("a review");
            desk.hear(&Event::Spent(RunSpend {
                review: key.clone(),
                agent: agent("codex"),
                run: "run-1".to_owned(),
                spend: message_schema::spend::Spend {
                    tokens: 11,
                    micro_usd: 2_500_000,
                },
            }));
        },
    );
    tell("The reviewer asks for a person", |_| {}, &|desk| {
        desk.send(&Note {
            body: "findings_packet: packets/findings/p.yaml\nround: 2\nblocking_count: 1\nescalation: Who owns this?",
            packet: Some(&packet(&format!("{SETTLED}\nF-001 P1 open action: veto"))),
            ..codex("review_feedback")
        });
    });
    let mut desk = Desk::new("", |_| {});
    desk.request("");
    desk.feedback(1, 1, FINDINGS);
    desk.page = "# The author does not move\n".to_owned();
    desk.wait();
    pages + &desk.page
}

/// Every decision of a person, as the agents read it.
fn decisions() -> String {
    let mut desk = Desk::new("What a person decides", |_| {});
    to_second_round(&mut desk);
    desk.page = "# What a person decides\n".to_owned();
    desk.person(Act::Queue(finding("F-002")));
    desk.person(Act::Drop(finding("F-002")));
    desk.person(Act::Hold(finding("F-003")));
    desk.person(Act::Release(finding("F-003")));
    desk.person(Act::Resolve(finding("F-003")));
    desk.person(Act::WontFix(finding("F-002")));
    desk.person(Act::Resolve(finding("F-999")));
    desk.pull(PullAction::Synchronize, Some("abc1234"));
    desk.person(Act::Cancel);
    desk.person(Act::Reopen);
    desk.request("");
    desk.person(Act::Resolve(finding("F-001")));
    desk.person(Act::Approve { head: None });
    desk.page
}

/// What a merge makes of threads in every state.
fn merges() -> String {
    let mut desk = Desk::new("", |policy| {
        policy.handoff.mode = HandoffMode::Full;
        policy.handoff.target = Some(agent("gemini"));
    });
    desk.request("");
    desk.feedback(
        1,
        3,
        &format!(
            "{FINDINGS}
            F-004 P1 open title: Held; file: src/c.rs; lines: 1
            F-005 P1 open title: Escalated; file: src/c.rs"
        ),
    );
    desk.addressed(1);
    desk.request("");
    desk.person(Act::Hold(finding("F-004")));
    desk.person(Act::Queue(finding("F-003")));
    desk.person(Act::WontFix(finding("F-001")));
    desk.page = "# A merge with open findings\n".to_owned();
    desk.pull(PullAction::Merged, Some("def5678"));
    let mut closed = Desk::new("", |_| {});
    to_second_round(&mut closed);
    closed.person(Act::Queue(finding("F-002")));
    closed.page = "\n# A pull request that is closed\n".to_owned();
    closed.pull(PullAction::Closed, None);
    desk.page + &closed.page
}

#[test]
fn the_alerts_about_a_message_are_found_by_its_bytes() {
    let mut desk = Desk::new("", |policy| {
        policy.rounds = Rounds::new(1).expect("a limit");
    });
    desk.request("max_rounds: 2");
    let note = Note {
        body: "pr: 86\nbranch: fix\ndiff_summary: a fix\nmax_rounds: 2",
        ..claude("review_request")
    };
    let path = alerts_file::path(text(&note, "m-1").as_bytes());
    assert!(
        desk.page.contains(&format!("  {path}\n")),
        "{path}\n{}",
        desk.page
    );
    let alert = r#"{"code":"rounds_limited","message":"x"}"#;
    let file = |version| {
        let text = format!(
            r#"{{"schema_version":{version},"message":"m","from":"a","type":"b","alerts":[{alert}]}}"#
        );
        alerts_file::read(text.as_bytes())
    };
    assert_eq!(file(1), [serde_json::from_str(alert).expect("an alert")]);
    assert_eq!(file(2), []);
    assert_eq!(alerts_file::read(b"{"), []);
}

/// What else a record makes: the alerts about a message, its packet for other hosts, news about `sent/`.
fn others() -> String {
    let mut desk = Desk::new("Other files", |policy| {
        policy.rounds = Rounds::new(1).expect("a limit");
    });
    desk.tentative.share_packets();
    desk.request("max_rounds: 3\nbase_sha: abc1234\nhead_sha: def5678\nchanged_files: [src/a.rs, tests/a.rs]");
    desk.feedback(1, 1, FINDINGS);
    desk.hear(&Event::SentDiffers(SentDiffers {
        agent: agent("claude"),
        file: "a.yaml".to_owned(),
        seq: 1,
    }));
    desk.page
}

#[test]
fn the_page_of_files_has_every_word_that_a_record_makes() {
    let pages = [
        refusals(),
        withheld(),
        escalations(),
        decisions(),
        merges(),
        others(),
    ];
    let page = pages.join("\n");
    is_page("files.txt", &page);
}

/// Compares a page with the kept one in this folder; `UPDATE=1` writes it again.
pub(crate) fn is_page(name: &str, page: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let path = folder.join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, page).expect("a file to write");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = kept
        .lines()
        .zip(page.lines())
        .find(|(kept, now)| kept != now);
    assert!(kept == page, "{name}: {differs:#?}; UPDATE=1 rewrites it");
}
