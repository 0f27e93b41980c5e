//! Whole reviews, record by record: what each message and event makes, word by word, and what may come next.
//! `records.txt` has all of it; `UPDATE=1` writes it again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use chrono::TimeDelta;
use message_schema::id::DiffDigest;
use message_schema::limit::Rounds;
use message_schema::spend::Spend;
use review::{
    Act, Deadline, Event, EvidenceMode, FailureCause, FilesPerHour, Handoff, HandoffMode,
    HumanPaths, ObservedRun, OpenReviews, PersonsDecision, Policy, PullAction, PullEvent, Rank,
    Record, Review, ReviewKey, RunFailure, RunSpend, SentDiffers, SpendLimit, State, Which,
    always_costs, approval_barred, commands_so_far,
};

use crate::table::{Note, Table, agent, claude, codex, packet, which};

/// A table whose records are written down.
struct Story {
    table: Table,
    page: String,
    written: usize,
    /// The lines of each review after the last move that changed them.
    told: BTreeMap<ReviewKey, String>,
}

impl Story {
    fn new(title: &str, change: impl FnOnce(&mut Policy)) -> Self {
        let mut table = Table::default();
        change(&mut table.policy);
        Self {
            table,
            page: format!("# {title}\n"),
            written: 0,
            told: BTreeMap::new(),
        }
    }

    /// Makes a move and writes down all that it made.
    fn then<T: std::fmt::Debug>(&mut self, make: impl FnOnce(&mut Table) -> T) {
        self.table.faults.clear();
        let said = make(&mut self.table);
        writeln!(self.page, "\n{said:?}").expect("a text");
        for (record, _) in &self.table.records[self.written..] {
            let json = serde_json::to_string(record).expect("records are JSON");
            let (steps, messages) = (record.steps().len(), record.messages().len());
            let word = record.word();
            writeln!(
                self.page,
                "  {word}, {steps} steps, {messages} messages: {json}"
            )
            .expect("a text");
            for left in handed_off(record).iter().flat_map(|handoff| &handoff.left) {
                let (word, why) = (left.why.word(), left.why.reason());
                writeln!(self.page, "  {}: {word}, {why}", left.id).expect("a text");
            }
        }
        self.written = self.table.records.len();
        for fault in &self.table.faults {
            let costs = match always_costs(fault.code) {
                true => ", always at a cost",
                false => "",
            };
            let again = match self.table.is_retryable {
                true => "",
                false => ", not to be corrected",
            };
            writeln!(self.page, "  {fault:?}{costs}{again}").expect("a text");
        }
        let Table {
            state, policy, now, ..
        } = &self.table;
        for (agent, used_up) in state.used_up_today(policy, *now) {
            writeln!(self.page, "  {agent:?}: {used_up}").expect("a text");
        }
        for (key, review) in state.reviews() {
            let mut lines = format!("  {key}: {}\n", described(state, key, review));
            for (command, run) in commands_so_far(policy, review) {
                let exit = run.map(|run| run.exit);
                writeln!(lines, "  {key}: {command} {exit:?}").expect("a text");
            }
            for next in state.legal_next(key, review) {
                writeln!(lines, "  {key}: {next}").expect("a text");
            }
            for why in approval_barred(policy, key, review) {
                writeln!(lines, "  {key}: no approval, {why}").expect("a text");
            }
            // A move leaves most reviews as they were.
            if self.told.get(key) != Some(&lines) {
                self.page += &lines;
                self.told.insert(key.clone(), lines);
            }
        }
        assert_eq!(self.table.restored(self.written), *state);
    }

    /// The id of the message that was just accepted.
    fn last_id(&self) -> String {
        let accepted = self.table.last_record().accepted();
        accepted.expect("an accepted message").id.to_string()
    }
}

/// The findings that a record handed off, and those that it left.
fn handed_off(record: &Record) -> Option<&Handoff> {
    record.happened()?.handoff.as_ref()
}

/// The parts of a review that no record shows, in a line.
fn described(state: &State, key: &ReviewKey, review: &Review) -> String {
    let Rank {
        generations,
        rounds,
        phase,
        reviewers,
        attempts,
        supersessions,
        turns,
        starts,
        untaken,
    } = review.rank();
    let mut line = format!(
        "since {}, rank {generations} {rounds} {phase} {reviewers} {attempts} {supersessions} {turns} {starts} {untaken}",
        review.since.format("%d. %H:%M:%S")
    );
    let commit = review.commit.as_ref().map(|it| format!("fixed in {it}"));
    let failed = review.failed.as_ref();
    let failed = failed.map(|it| format!("{} failed", it.reviewer));
    let approved = review.phase.approved_commit();
    let approved = approved.map(|it| format!("approved {it}"));
    let left: Vec<&str> = state
        .left_to_person(key, review)
        .map(|id| id.as_str())
        .collect();
    let left = (!left.is_empty()).then(|| format!("left to a person {}", left.join(" ")));
    for part in [commit, failed, approved, left].into_iter().flatten() {
        line += ", ";
        line += &part;
    }
    line
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
        (
            "The digest is named on both sides and no file",
            "diff_digest: sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "examined: {diff_digest: \"sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
        ),
    ] {
        let mut story = Story::new(title, |policy| policy.gate.evidence = EvidenceMode::Require);
        story.then(|table| table.request_with(asked));
        story.then(|table| table.lgtm(said, None));
        page += &story.page;
    }
    let mut story = Story::new("All files were observed, and none needs a name", |policy| {
        policy.gate.evidence = EvidenceMode::Require;
    });
    story.then(|table| table.request_with("changed_files: [src/a.rs]"));
    story.then(|table| table.tell(&observed(&["src/a.rs"])));
    story.then(|table| table.lgtm("", None));
    page + &story.page
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

fn spent_on(table: &mut Table, run: &str, tokens: u64) -> Result<(), String> {
    let (key, _) = table.state.reviews().next().expect("a review");
    let event = Event::Spent(RunSpend {
        review: key.clone(),
        agent: agent("codex"),
        run: run.to_owned(),
        spend: Spend::tokens(tokens),
    });
    table.tell(&event)
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
    story.then(|table| spent_on(table, "r-1", 30));
    story.then(|table| spent_on(table, "r-1", 60));
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
    story.then(|table| spent_on(table, "r-2", 50));
    story.then(|table| spent_on(table, "r-2", 55));
    story.page
}

fn failed(which: Which, cause: FailureCause) -> Event {
    Event::Failed {
        which,
        failure: RunFailure {
            cause,
            why: "exit code 1".to_owned(),
            retry_after: None,
            run: None,
        },
    }
}

/// The review of one reviewer.
fn at(reviewer: &str) -> Which {
    Which {
        reviewer: Some(agent(reviewer)),
        ..which()
    }
}

fn granted(which: Which) -> Event {
    Event::Person(PersonsDecision {
        which,
        by: "ada".to_owned(),
        reason: "seen".to_owned(),
        act: Act::Grant { rounds: 1 },
    })
}

fn next_reviewers() -> String {
    let list = |policy: &mut Policy| {
        policy.reviewers = ["codex", "gemini", "gpt", "opus"].map(agent).into();
        for name in ["gpt", "opus"] {
            policy.agents.insert(agent(name), [].into());
        }
    };
    let ask = |to: &'static str, more: &'static str| {
        move |table: &mut Table| {
            table.send(&Note {
                to,
                body: &format!("pr: 86\nbranch: fix\ndiff_summary: a fix\n{more}"),
                ..claude("review_request")
            })
        }
    };
    let mut story = Story::new("The next reviewer has a review of its own", list);
    story.then(ask("gemini", ""));
    story.then(ask("codex", ""));
    story.then(|table| table.tell(&Event::Started(at("codex"))));
    story.then(|table| table.tell(&failed(at("codex"), FailureCause::Crashed)));
    story.then(|table| table.lgtm("", Some("F-001 P0 open")));
    story.then(|table| table.tell(&failed(at("codex"), FailureCause::NotLoggedIn)));
    story.then(|table| table.tell(&granted(at("codex"))));
    story.then(|table| table.tell(&granted(at("gpt"))));
    story.then(|table| table.tell(&granted(which())));
    // The open request keeps its own list of reviewers, whatever the project lists by then.
    story.table.policy.reviewers.pop();
    story.then(ask("codex", "supersedes_message_id: msg-2"));
    story.then(ask("gpt", "supersedes_message_id: msg-2"));
    story.then(|table| table.tell(&failed(at("gpt"), FailureCause::ProviderUnavailable)));
    story.then(|table| {
        table.send(&Note {
            from: "opus",
            body: "quality_gate_result: pass\nmerge_ready: true\nunbound: true",
            ..codex("review_lgtm")
        })
    });
    story.then(ask("codex", "declared_head: def5678"));
    let mut page = story.page;
    let mut story = Story::new(
        "The next reviewers took over or gave up another review",
        list,
    );
    story.then(ask("gemini", ""));
    story.then(|table| table.tell(&failed(at("gemini"), FailureCause::NotLoggedIn)));
    story.then(ask("codex", ""));
    story.then(|table| table.tell(&failed(at("codex"), FailureCause::NotLoggedIn)));
    page += &story.page;
    let mut story = Story::new("The next reviewers are of the author's vendor", |policy| {
        list(policy);
        policy.gate.reviewer_other_vendor = true;
        let vendors = [
            ("claude", "a"),
            ("codex", "b"),
            ("gemini", "a"),
            ("gpt", "a"),
            ("opus", "a"),
        ];
        policy.vendors = vendors
            .map(|(name, vendor)| (agent(name), vendor.to_owned()))
            .into();
    });
    story.then(|table| table.request());
    story.then(|table| table.tell(&failed(which(), FailureCause::NotLoggedIn)));
    page += &story.page;
    let mut story = Story::new("Turns without a response, and a budget that shrank", |_| {});
    story.then(|table| table.request());
    story.then(|table| {
        let (which, count) = (which(), 99);
        table.tell(&Event::Turns { which, count })
    });
    story.then(|table| table.person(Act::Reopen));
    story.then(|table| table.request());
    story.then(|table| spent_on(table, "r-1", 30));
    story.table.policy.budget.per_review.tokens = Some(20);
    story.then(|table| table.tell(&Event::Started(which())));
    page + &story.page
}

/// One of many pull requests of claude's.
#[derive(Clone, Copy)]
struct Its(u8);

impl Its {
    fn say(self, table: &mut Table, note: &Note<'_>) -> Result<String, Vec<String>> {
        let envelope = format!("related_pr: {}\n", self.0);
        table.send(&Note {
            envelope: &envelope,
            ..*note
        })
    }

    fn ask(self, table: &mut Table, to: &str, more: &str) -> Result<String, Vec<String>> {
        let body = format!("pr: {}\nbranch: fix\ndiff_summary: a fix\n{more}", self.0);
        let note = Note {
            to,
            body: &body,
            ..claude("review_request")
        };
        self.say(table, &note)
    }

    fn answer(
        self,
        table: &mut Table,
        round: u32,
        blocking: u8,
        findings: &str,
    ) -> Result<String, Vec<String>> {
        let body = format!(
            "findings_packet: packets/findings/p.yaml\nround: {round}\nblocking_count: {blocking}"
        );
        let note = Note {
            body: &body,
            packet: Some(&packet(findings)),
            ..codex("review_feedback")
        };
        self.say(table, &note)
    }

    fn addressed(self, table: &mut Table, round: u32) -> Result<String, Vec<String>> {
        let body = format!("commit_sha: def5678\nchanges_summary: fixed\nround: {round}");
        let note = Note {
            body: &body,
            ..claude("review_addressed")
        };
        self.say(table, &note)
    }

    /// Is reviewed once, in a generation of its own.
    fn is_approved(self, table: &mut Table, head: u32) -> Result<String, Vec<String>> {
        self.ask(table, "codex", &format!("declared_head: {head:07}"))?;
        let note = Note {
            body: "quality_gate_result: pass\nmerge_ready: true",
            ..codex("review_lgtm")
        };
        self.say(table, &note)
    }

    fn moved(self, table: &mut Table, action: PullAction) -> Result<(), String> {
        table.tell(&Event::Pull(PullEvent {
            repo: None,
            pr: self.0.to_string().parse().expect("a number"),
            action,
            author: Some("claude-dev".to_owned()),
            head: None,
        }))
    }
}

fn tasks() -> String {
    let mut story = Story::new("Tasks that are handed off, and their fixes", |policy| {
        policy.handoff.mode = HandoffMode::Full;
        policy.handoff.target = Some(agent("claude"));
        policy.rounds = Rounds::MAX;
    });
    let findings = "F-001 P1 open title: A leak; file: a.rs\nF-002 P1 open title: A race; file: b.rs\nF-003 P3 open title: Wording; file: c.rs";
    let named = "handoff_ref: handoff-pr86-1";
    story.then(|table| table.request_with("handoff_ref: handoff-pr1-1"));
    story.then(|table| table.feedback(1, findings));
    story.then(|table| table.pull(PullAction::Merged, Some("abc1234")));
    story.then(|table| Its(87).ask(table, "codex", named));
    story.then(|table| {
        Its(88).ask(
            table,
            "codex",
            "handoff_ref: packets/handoff/handoff-pr86-1.yaml",
        )
    });
    story.then(|table| Its(87).answer(table, 1, 1, "F-001 P1 not_fixed action: reply"));
    story.then(|table| Its(87).addressed(table, 1));
    story.then(|table| Its(87).ask(table, "codex", "handoff_ref: handoff-pr86-2"));
    // Its first request does not name the task; the one that replaces it may, and a later one may not.
    story.then(|table| Its(89).ask(table, "codex", ""));
    let replaces = "handoff_ref: handoff-pr86-3\nsupersedes_message_id: msg-8";
    story.then(|table| Its(89).ask(table, "codex", replaces));
    let again = "handoff_ref: handoff-pr86-3\nsupersedes_message_id: msg-9";
    story.then(|table| Its(89).ask(table, "codex", again));
    story.then(|table| Its(89).answer(table, 1, 0, ""));
    story.then(|table| Its(89).moved(table, PullAction::Merged));
    story.then(|table| Its(90).ask(table, "codex", ""));
    story.then(|table| Its(90).answer(table, 1, 1, "F-009 P1 open title: Slow; file: z.rs"));
    story.then(|table| Its(90).addressed(table, 1));
    story.then(|table| Its(90).ask(table, "codex", "handoff_ref: handoff-pr86-2"));
    // Closed and opened again, it claims its task once more and no other, and has its threads already. The fifth review
    // is its last.
    story.then(|table| Its(87).moved(table, PullAction::Closed));
    story.then(|table| Its(87).ask(table, "codex", named));
    story.then(|table| Its(87).moved(table, PullAction::Reopened));
    story.then(|table| Its(87).ask(table, "codex", "handoff_ref: handoff-pr86-2"));
    let open = story.last_id();
    let again = format!("{named}\nsupersedes_message_id: {open}");
    story.then(|table| Its(87).ask(table, "codex", &again));
    let accepts = "F-001 P1 not_fixed action: reply; stance: accepts";
    story.then(|table| Its(87).answer(table, 3, 1, accepts));
    story.then(|table| Its(87).addressed(table, 3));
    story.then(|table| Its(87).ask(table, "codex", ""));
    let late = "F-001 P1 fixed\nF-004 P0 open title: Worse; file: a.rs";
    story.then(|table| Its(87).answer(table, 4, 1, late));
    story.then(|table| Its(87).addressed(table, 4));
    story.then(|table| Its(87).ask(table, "codex", ""));
    story.page
}

fn last_reviews() -> String {
    let mut story = Story::new("The fifth review of a fix is its last", |policy| {
        policy.handoff.mode = HandoffMode::Full;
        policy.handoff.target = Some(agent("claude"));
    });
    story.then(|table| table.request());
    let findings = "F-001 P1 open title: A leak; file: a.rs";
    story.then(|table| table.feedback(1, findings));
    story.then(|table| table.pull(PullAction::Merged, None));
    let named = "handoff_ref: handoff-pr86-1";
    // After five reviews that fix nothing it takes up no task, and after four the fifth is the last.
    story.then(|table| [1, 2, 3].map(|head| Its(88).is_approved(table, head)));
    story.then(|table| Its(88).ask(table, "codex", "declared_head: abc1234"));
    story.then(|table| Its(88).answer(table, 4, 1, findings));
    story.then(|table| Its(88).addressed(table, 4));
    story.then(|table| Its(88).is_approved(table, 5));
    story.then(|table| Its(88).ask(table, "gemini", named));
    story.then(|table| [1, 2, 3, 4].map(|head| Its(87).is_approved(table, head)));
    story.then(|table| Its(87).ask(table, "gemini", named));
    let replaces = format!("supersedes_message_id: {}", story.last_id());
    story.then(|table| Its(87).ask(table, "gemini", &replaces));
    story.page
}

fn heads() -> String {
    let mut story = Story::new("Heads that come while a review is open", |policy| {
        policy.rounds = Rounds::MAX;
    });
    let pushed = |head: &'static str| {
        move |table: &mut Table| table.pull(PullAction::Synchronize, Some(head))
    };
    story.then(|table| table.request_with("declared_head: abc1234"));
    story.then(pushed("abc1234"));
    story.then(pushed("bbb2222"));
    story.then(pushed("bbb2222"));
    story.then(|table| table.feedback(1, "F-001 P1 open title: A leak; file: a.rs"));
    story.then(|table| table.addressed(1, &["F-001"]));
    story.then(pushed("abc1234"));
    story.then(pushed("ccc3333"));
    story.then(pushed("ccc3333"));
    story.then(|table| table.addressed(1, &[]));
    story.then(|table| table.request());
    story.then(|table| table.supersede());
    let lgtm = |parent: &'static str| {
        move |table: &mut Table| {
            table.send(&Note {
                envelope: &format!("related_pr: 86\nparent_message_id: {parent}\n"),
                body: "quality_gate_result: pass\nmerge_ready: true\nvalidated_head: abc1234",
                ..codex("review_lgtm")
            })
        }
    };
    story.then(lgtm("msg-5"));
    story.then(lgtm("msg-6"));
    story.then(pushed("abc1234"));
    story.then(pushed("ddd4444"));
    story.then(|table| table.request_with("declared_head: ddd4444"));
    story.then(|table| table.feedback(3, "F-002 P1 open title: A race; file: b.rs"));
    story.then(|table| table.addressed(3, &[]));
    // A person takes it over and gives it back: what was fixed is still in the same commit.
    story.then(|table| table.person(Act::Hold("F-002".parse().expect("an id"))));
    story.then(|table| table.person(Act::Reopen));
    story.then(|table| table.request());
    story.page
}

fn verify_runs() -> String {
    let mut story = Story::new("A verify run that has begun goes on", |policy| {
        policy.handoff.verify_agents = [agent("claude")].into();
    });
    let (verify, replaces) = ("run_trigger: verify", "supersedes_message_id: msg-");
    story.then(|table| table.request());
    story.then(|table| table.request_with(&format!("{replaces}1\n{verify}")));
    story.then(|table| table.request_with(&format!("{replaces}2")));
    story.then(|table| {
        let (agent, file, seq) = (agent("codex"), "a.yaml".to_owned(), 2);
        table.tell(&Event::SentDiffers(SentDiffers { agent, file, seq }))
    });
    story.page
}

fn repositories() -> String {
    let mut story = Story::new("One number in two repositories", |_| {});
    let pushed = |repo: Option<&'static str>| {
        move |table: &mut Table| {
            table.tell(&Event::Pull(PullEvent {
                repo: repo.map(|repo| repo.parse().expect("a repository")),
                pr: which().pr,
                action: PullAction::Synchronize,
                author: None,
                head: Some("abc1234".parse().expect("a commit")),
            }))
        }
    };
    story.then(|table| table.request_with("repo: acme/one"));
    story.then(pushed(None));
    story.then(|table| table.request_with("repo: acme/two"));
    story.then(pushed(None));
    story.then(pushed(Some("acme/two")));
    story.page
}

fn closed() -> String {
    let mut story = Story::new("What a person decides about a closed pull request", |_| {});
    let id = |id: &str| id.parse().expect("an id");
    let findings = "F-001 P1 open title: A leak; file: a.rs\nF-002 P1 open title: A race; file: b.rs\nF-003 P3 open title: Wording; file: c.rs";
    story.then(|table| table.request());
    for which in [Deadline::PickUp, Deadline::Runtime] {
        story.then(|table| {
            let (review, _) = table.state.reviews().next().expect("a review");
            let review = review.clone();
            table.tell(&Event::Deadline { review, which })
        });
    }
    story.then(|table| table.feedback(1, findings));
    story.then(|table| table.person(Act::Hold(id("F-001"))));
    story.then(|table| table.pull(PullAction::Closed, None));
    story.then(|table| table.request());
    story.then(|table| table.person(Act::Resolve(id("F-002"))));
    story.then(|table| table.pull(PullAction::Reopened, None));
    story.then(|table| table.request());
    story.then(|table| table.person(Act::Release(id("F-001"))));
    story.then(|table| table.request());
    story.then(|table| {
        table.feedback_with(
            2,
            "escalation: Who owns this?",
            "F-001 P1 open action: resolve\nF-003 P3 open action: reply",
        )
    });
    story.then(|table| table.pull(PullAction::Synchronize, Some("def5678")));
    story.then(|table| {
        let head = Some("abc1234".parse().expect("a commit"));
        table.person(Act::Approve { head })
    });
    story.then(|table| table.person(Act::Queue(id("F-003"))));
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
    story.then(|table| {
        table.send(&Note {
            to: "[codex, gemini]",
            body: "Why?",
            ..claude("question")
        })
    });
    story.then(|table| table.request());
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
        next_reviewers(),
        tasks(),
        last_reviews(),
        heads(),
        verify_runs(),
        repositories(),
        closed(),
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

#[test]
fn a_generation_takes_a_bounded_number_of_messages() {
    let rounds = [1, 2, 3].map(|number| Rounds::new(number).expect("a limit"));
    assert_eq!(rounds.map(review::messages_max), [4, 9, 14]);
}
