//! Whole reviews, record by record: what each message and event makes, word by word, and what may come next.
//! `records.txt` has all of it; `UPDATE=1` writes it again.

use std::fmt::Write as _;
use std::path::Path;

use chrono::TimeDelta;
use message_schema::id::DiffDigest;
use message_schema::limit::Rounds;
use message_schema::spend::Spend;
use review::{
    Act, Event, EvidenceMode, FailureCause, FilesPerHour, HumanPaths, ObservedRun, OpenReviews,
    Policy, PullAction, RunFailure, RunSpend, SpendLimit, approval_barred,
};

use crate::table::{Note, Table, agent, claude, codex, packet, which};

/// A table whose records are written down.
struct Story {
    table: Table,
    page: String,
    written: usize,
}

impl Story {
    fn new(title: &str, change: impl FnOnce(&mut Policy)) -> Self {
        let mut table = Table::default();
        change(&mut table.policy);
        Self {
            table,
            page: format!("# {title}\n"),
            written: 0,
        }
    }

    /// Makes a move and writes down all that it made.
    fn then<T: std::fmt::Debug>(&mut self, make: impl FnOnce(&mut Table) -> T) {
        self.table.faults.clear();
        let said = make(&mut self.table);
        writeln!(self.page, "\n{said:?}").expect("a text");
        for (record, _) in &self.table.records[self.written..] {
            let json = serde_json::to_string(record).expect("records are JSON");
            writeln!(self.page, "  {json}").expect("a text");
        }
        self.written = self.table.records.len();
        for fault in &self.table.faults {
            writeln!(self.page, "  {fault:?}").expect("a text");
        }
        let Table { state, policy, .. } = &self.table;
        for (key, review) in state.reviews() {
            for next in state.legal_next(key, review) {
                writeln!(self.page, "  {key}: {next}").expect("a text");
            }
            for why in approval_barred(policy, key, review) {
                writeln!(self.page, "  {key}: no approval, {why}").expect("a text");
            }
        }
        assert_eq!(self.table.restored(self.written), *state);
    }
}

const ASKED: &str = "declared_head: abc1234\nbase_sha: def5678\nchanged_files: [src/a.rs, src/b.rs, src/c.rs, src/d.rs]\n\
                     diff_digest: sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn examined(digit: &str, more: &str) -> String {
    let digest = digit.repeat(64);
    format!("validated_head: abc1234\nexamined: {{diff_digest: \"sha256:{digest}\"{more}}}")
}

fn ran(command: &str, exit: i32) -> Event {
    Event::Ran {
        which: which(),
        run: ObservedRun {
            command: command.to_owned(),
            exit: Some(exit),
            duration_ms: 5,
            output: DiffDigest::new(format!("sha256:{}", "0".repeat(64))).expect("a digest"),
            head: Some("abc1234".parse().expect("a commit")),
        },
    }
}

fn observed(files: &[&str]) -> Event {
    let path = |file: &&str| file.parse().expect("a path");
    Event::Observed {
        which: which(),
        files: files.iter().map(path).collect(),
    }
}

fn evidence(mode: EvidenceMode) -> String {
    let mut story = Story::new(
        &format!("An approval and its evidence: {mode:?}"),
        |policy| {
            policy.gate.evidence = mode;
            policy.gate.validation_commands = vec!["make".to_owned()];
        },
    );
    story.then(|table| table.request_with(ASKED));
    story.then(|table| table.tell(&observed(&["src/a.rs", "other.rs"])));
    story.then(|table| table.tell(&observed(&["src/a.rs"])));
    story.then(|table| table.tell(&ran("make", 0)));
    story.then(|table| table.tell(&ran("rm", 0)));
    let (files, none) = (
        ", declared: [src/b.rs], served: [src/c.rs], observed: [src/d.rs, src/a.rs]",
        "",
    );
    if mode == EvidenceMode::Require {
        story.then(|table| table.lgtm("validated_head: abc1234", None));
        story.then(|table| table.lgtm(&examined("b", files), None));
        story.then(|table| table.lgtm(&examined("a", files), Some("ran pass lint")));
    } else {
        story.then(|table| table.lgtm(&examined("b", none), Some("ran pass lint\nran pass make")));
    }
    story.page
}

fn without_a_diff() -> String {
    let mut page = String::new();
    for (title, asked, said) in [
        ("Nothing is named", "", ""),
        (
            "Only a file is named by the reviewer",
            "",
            "examined: {declared: [src/a.rs]}",
        ),
        ("Only the files are named", "changed_files: [src/a.rs]", ""),
    ] {
        let mut story = Story::new(title, |policy| policy.gate.evidence = EvidenceMode::Require);
        story.then(|table| table.request_with(asked));
        story.then(|table| table.lgtm(said, None));
        page += &story.page;
    }
    page
}

fn barred() -> String {
    let mut story = Story::new("An approval that only a person can give", |policy| {
        policy.gate.human_paths = HumanPaths::new(vec!["src/".to_owned()]).expect("a pattern");
        policy.gate.reviewer_other_vendor = true;
        let vendors = ["claude", "codex"].map(|name| (agent(name), "acme".to_owned()));
        policy.vendors = vendors.into();
    });
    story.then(|table| table.request_with(ASKED));
    story.then(|table| table.lgtm(&examined("a", ""), None));
    story.then(|table| table.pull(PullAction::Synchronize, Some("abc1234")));
    story.then(|table| table.person(Act::Approve { head: None }));
    story.then(|table| table.person(Act::Cancel));
    story.then(|table| table.person(Act::Approve { head: None }));
    story.then(|table| table.pull(PullAction::Synchronize, Some("def5678")));
    story.then(|table| table.pull(PullAction::Merged, None));
    story.then(|table| table.person(Act::Reopen));
    story.then(|table| table.request());
    let mut other = Story::new("A request that names no files", |policy| {
        policy.gate.human_paths = HumanPaths::new(vec!["src/".to_owned()]).expect("a pattern");
    });
    other.then(|table| table.request());
    story.page + &other.page
}

fn replaced() -> String {
    let mut story = Story::new("A request that is replaced", |policy| {
        policy.rounds = Rounds::new(1).expect("a limit");
    });
    let failed = Event::Failed {
        which: which(),
        failure: RunFailure {
            cause: FailureCause::Crashed,
            why: "exit code 1".to_owned(),
            retry_after: None,
            run: None,
        },
    };
    story.then(|table| table.request_with("max_rounds: 3"));
    story.then(|table| table.supersede());
    story.then(|table| table.tell(&Event::Started(which())));
    story.then(|table| table.tell(&failed));
    story.then(|table| {
        table.tell(&Event::Turns {
            which: which(),
            count: 2,
        })
    });
    story.then(|table| table.supersede());
    story.then(|table| table.supersede());
    // The reviewer answers the first request.
    story.then(|table| {
        table.send(&Note {
            envelope: "related_pr: 86\nparent_message_id: msg-1\n",
            body: "quality_gate_result: pass\nmerge_ready: true",
            ..codex("review_lgtm")
        })
    });
    story.then(|table| table.tell(&Event::Started(which())));
    story.then(|table| table.feedback(1, ""));
    story.then(|table| table.feedback(1, "F-001 P1 open title: A leak; action: reply"));
    story.then(|table| table.feedback(1, "F-001 P1 open title: A leak"));
    story.then(|table| table.person(Act::Grant { rounds: 1 }));
    story.then(|table| table.person(Act::Grant { rounds: 2 }));
    story.then(|table| table.person(Act::Hold("F-001".parse().expect("an id"))));
    story.then(|table| table.request());
    story.then(|table| table.person(Act::Release("F-001".parse().expect("an id"))));
    story.then(|table| table.wait(TimeDelta::days(30)));
    story.then(|table| table.person(Act::Reopen));
    story.then(|table| table.supersede());
    story.page
}

fn spent() -> String {
    let mut story = Story::new("Budgets of money and tokens", |policy| {
        policy.budget.per_review.tokens = Some(100);
        policy.budget.per_day = SpendLimit {
            tokens: Some(50),
            micro_usd: None,
        };
        policy.reviewers = ["codex", "gemini"].map(agent).into();
    });
    story.then(|table| table.request());
    let used = |table: &mut Table, run: &str, tokens| {
        let (key, _) = table.state.reviews().next().expect("a review");
        let event = Event::Spent(RunSpend {
            review: key.clone(),
            agent: agent("codex"),
            run: run.to_owned(),
            spend: Spend::tokens(tokens),
        });
        table.tell(&event)
    };
    story.then(|table| used(table, "r-1", 30));
    story.then(|table| used(table, "r-1", 60));
    story.then(|table| table.tell(&Event::Started(which())));
    let failed = |cause| Event::Failed {
        which: which(),
        failure: RunFailure {
            cause,
            why: "no more".to_owned(),
            retry_after: None,
            run: None,
        },
    };
    story.then(|table| table.tell(&failed(FailureCause::ProviderUnavailable)));
    story.then(|table| table.wait(TimeDelta::hours(20)));
    story.then(|table| table.tell(&Event::Started(which())));
    story.then(|table| table.tell(&failed(FailureCause::Missing)));
    story.then(|table| table.tell(&Event::Started(which())));
    story.then(|table| used(table, "r-2", 50));
    story.then(|table| used(table, "r-2", 55));
    story.page
}

fn limits() -> String {
    let mut story = Story::new("Limits of an outbox", |policy| {
        policy.open_reviews = OpenReviews::new(1).expect("a limit");
        policy.files_per_hour = FilesPerHour::new(3).expect("a limit");
    });
    let ask = |table: &mut Table, pr: u8| {
        let body = format!("pr: {pr}\nbranch: fix\ndiff_summary: a fix");
        table.send(&Note {
            envelope: &format!("related_pr: {pr}\n"),
            body: &body,
            ..claude("review_request")
        })
    };
    let note = |table: &mut Table| {
        table.send(&Note {
            body: "Why?",
            ..claude("question")
        })
    };
    story.then(|table| ask(table, 86));
    story.then(|table| ask(table, 87));
    story.then(note);
    story.then(note);
    story.then(note);
    story.then(|table| table.feedback(1, "F-001 P1 open title: A leak; file: a.rs"));
    story.then(|table| table.addressed(1, &[]));
    story.then(|table| table.wait(TimeDelta::hours(2)));
    story.then(note);
    story.page
}

fn late() -> String {
    let mut story = Story::new(
        "A feedback that asks nothing, and late findings",
        |policy| {
            policy.rounds = Rounds::MAX;
            policy.late_findings = review::LateFindings::Defer;
        },
    );
    story.then(|table| table.request_with("declared_head: abc1234"));
    story.then(|table| table.feedback(1, ""));
    story.then(|table| {
        table.send(&Note {
            body: "findings_packet: packets/findings/p.yaml\nround: 1\nblocking_count: 0\nescalation: Who owns this?",
            packet: Some(&packet("")),
            ..codex("review_feedback")
        })
    });
    story.then(|table| table.person(Act::Reopen));
    story.then(|table| table.request_with("declared_head: abc1234"));
    story.then(|table| {
        table.feedback_with(
            2,
            "validated_head: def5678",
            "F-001 P1 open title: A leak; file: a.rs\nF-002 P3 open title: Wording; file: b.rs",
        )
    });
    let touched = "commit_sha: def5678\nchanges_summary: fixed\nround: 2\ntouched_files: [a.rs]\naddressed_finding_ids: [F-001]";
    story.then(|table| {
        table.send(&Note {
            body: touched,
            ..claude("review_addressed")
        })
    });
    story.then(|table| table.request_with("declared_head: def5678"));
    story.then(|table| {
        table.feedback(
            3,
            "F-003 P1 open title: Elsewhere; file: z.rs\nF-004 P1 open title: In it; file: a.rs\nF-001 P3 open action: resolve\nF-002 P3 open action: resolve",
        )
    });
    story.then(|table| table.person(Act::Resolve("F-004".parse().expect("an id"))));
    story.then(|table| table.person(Act::WontFix("F-003".parse().expect("an id"))));
    story.then(|table| table.request());
    story.then(|table| table.lgtm("", None));
    story.then(|table| table.request_with("declared_head: def5678"));
    story.page
}

#[test]
fn every_record_of_these_reviews_is_as_it_was() {
    let pages = [
        evidence(EvidenceMode::Warn),
        evidence(EvidenceMode::Require),
        without_a_diff(),
        barred(),
        replaced(),
        spent(),
        limits(),
        late(),
    ];
    let page = pages.join("\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/records.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).expect("a file to write");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = kept
        .lines()
        .zip(page.lines())
        .find(|(kept, now)| kept != now);
    assert!(kept == page, "{differs:#?}; UPDATE=1 rewrites the page");
}
