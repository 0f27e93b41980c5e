//! Random batches, committed or rolled back, compared with a model that is too simple to be wrong: the fold of the
//! committed records alone. A second host judges each committed record again.

use chrono::TimeDelta;
use message_schema::id::{AgentName, FindingId, MessageId, PrNumber};
use proptest::prelude::*;
use review::{
    Act, Event, EventRecord, FailureCause, HandoffMode, PairId, PairReport, PairStep,
    PersonsDecision, PullAction, PullEvent, ReportedEvent, RunFailure, Which,
};
use spool::{Body, Content, Digest, Entry, FileName, OutboxFile, PacketRead};

use super::*;

/// One step of a random run; many are refused or declined.
#[derive(Clone, Debug)]
enum Play {
    /// A file in that agent's outbox, under one of a few names.
    File {
        outbox: &'static str,
        name: &'static str,
        text: String,
    },
    /// An event, ordered under one of a few ids or without an order.
    Event(Option<u8>, Event),
    /// Lets seconds pass and applies the deadlines that are due then.
    Wait(u16),
    /// The ledger takes the batch.
    Commit,
    /// The ledger does not take the batch.
    RollBack,
}

const PACKET: &str = "findings:
- {id: F-001, severity: P1, status: open, title: A leak, file: a.rs, target: gemini}
- {id: F-002, severity: P3, status: open, title: Wording, file: b.rs}
";

fn agent(name: &str) -> AgentName {
    AgentName::new(name).expect("a name")
}

fn message(kind: &str, from: &str, to: &str, id: u8, pr: u8, body: &str) -> String {
    format!(
        "id: \"m-{id}\"\nfrom: {from}\nto: {to}\ntype: {kind}\npriority: P1\nconversation_id: \"conv-20260213-claude-{}\"\n\
         created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"{pr}\"\nsubject: \"{kind}\"\nbody: |\n  {body}\n",
        id % 2
    )
}

fn file() -> impl Strategy<Value = Play> {
    let kinds = prop::sample::select(vec![
        "request",
        "feedback",
        "addressed",
        "lgtm",
        "question",
        "to_two",
        "broken",
    ]);
    let name = prop::sample::select(vec!["a.yaml", "b.yaml", "c.yaml"]);
    (kinds, name, 0..20_u8, 86..88_u8, 1..3_u8).prop_map(|(kind, name, id, pr, round)| {
        let (outbox, text) = match kind {
            "request" => {
                let body = format!("pr: {pr}\n  branch: x\n  diff_summary: y");
                let text = message("review_request", "claude", "codex", id, pr, &body);
                ("claude", text)
            }
            "feedback" => {
                let body = format!(
                    "findings_packet: packets/findings/f.yaml\n  round: {round}\n  blocking_count: 1"
                );
                let text = message("review_feedback", "codex", "claude", id, pr, &body);
                ("codex", text)
            }
            "addressed" => {
                let body = format!(
                    "commit_sha: abc123{round}\n  changes_summary: x\n  round: {round}\n  \
                     addressed_finding_ids: [F-001, F-002]"
                );
                let text = message("review_addressed", "claude", "codex", id, pr, &body);
                ("claude", text)
            }
            "lgtm" => {
                let body = "quality_gate_result: pass\n  merge_ready: true";
                ("codex", message("review_lgtm", "codex", "claude", id, pr, body))
            }
            "question" => ("claude", message("question", "claude", "codex", id, pr, "Why?")),
            "to_two" => {
                let text = message("notification", "codex", "[claude, gemini]", id, pr, "Look.");
                ("codex", text)
            }
            _ => ("gemini", "no message".to_owned()),
        };
        Play::File { outbox, name, text }
    })
}

fn which(pr: u8) -> Which {
    Which {
        pr: PrNumber::new(pr.to_string()).expect("a number"),
        repo: None,
        reviewer: None,
    }
}

fn failed(which: Which, cause: FailureCause) -> Event {
    let failure = RunFailure {
        cause,
        why: "exit code 1".to_owned(),
        retry_after: None,
        run: None,
    };
    Event::Failed { which, failure }
}

/// The file of a request that passes to another reviewer.
fn handed_request() -> RequestFile {
    RequestFile {
        file: FileName::new("request.yaml").expect("a name"),
        text: "the request".to_owned(),
    }
}

fn event() -> impl Strategy<Value = Play> {
    let finding = || FindingId::new("F-001").expect("an id");
    let events = (0..13_u8, 86..88_u8).prop_map(move |(kind, pr)| {
        let which = which(pr);
        let person = |act| {
            Event::Person(PersonsDecision {
                which: which.clone(),
                by: "ann".to_owned(),
                reason: "it has to be".to_owned(),
                act,
            })
        };
        let pull = |action| {
            Event::Pull(PullEvent {
                repo: None,
                pr: which.pr.clone(),
                action,
                author: None,
                head: None,
            })
        };
        match kind {
            0 => Event::Taken(which),
            1 => Event::Turns { which, count: 2 },
            2 => Event::Started(which),
            3 => failed(which, FailureCause::Crashed),
            11 => failed(which, FailureCause::NotLoggedIn),
            4 => pull(PullAction::Opened),
            5 => pull(PullAction::Merged),
            6 => person(Act::Reopen),
            7 => person(Act::Cancel),
            8 => person(Act::Grant { rounds: 1 }),
            9 => person(Act::Hold(finding())),
            10 => person(Act::Queue(finding())),
            _ => Event::Pair(PairReport {
                pair: PairId(MessageId::new("pair-1").expect("an id")),
                what: PairStep::Started,
            }),
        }
    });
    (prop::option::of(0..4_u8), events).prop_map(|(order, event)| Play::Event(order, event))
}

fn play() -> impl Strategy<Value = Play> {
    prop_oneof![
        8 => file(),
        4 => event(),
        1 => (0..u16::MAX).prop_map(Play::Wait),
        3 => Just(Play::Commit),
        2 => Just(Play::RollBack),
    ]
}

/// The tentative state under test, the fold of the committed records, and another host that follows them.
struct Table {
    tentative: Tentative,
    follower: Tentative,
    batch: Vec<(Record, EntryDraft, DateTime<Utc>)>,
    state: State,
    names: UsedNames,
    /// The number of committed records.
    seq: u64,
    now: DateTime<Utc>,
    ids: u32,
}

impl Table {
    fn new() -> Self {
        let agents = ["claude", "codex", "gemini"].map(agent);
        let mut policy = Policy {
            agents: agents
                .iter()
                .map(|agent| (agent.clone(), [].into()))
                .collect(),
            ..Policy::default()
        };
        policy.handoff.mode = HandoffMode::Full;
        policy.reviewers = ["codex", "gemini"].map(agent).into();
        let host = || {
            let (state, names) = (State::default(), UsedNames::default());
            let mut tentative = Tentative::new(state, names, policy.clone());
            tentative.reconfigure(policy.clone(), agents.to_vec());
            tentative
        };
        Self {
            tentative: host(),
            follower: host(),
            batch: Vec::new(),
            state: State::default(),
            names: UsedNames::default(),
            seq: 0,
            now: DateTime::from_timestamp(1_771_000_000, 0).expect("an instant"),
            ids: 0,
        }
    }

    fn make(&mut self, play: &Play) {
        match play {
            Play::File { outbox, name, text } => self.submit(outbox, name, text),
            Play::Event(order, event) => self.report(*order, event),
            Play::Wait(seconds) => {
                self.now += TimeDelta::seconds(i64::from(*seconds));
                self.keep_deadlines();
            }
            Play::Commit => self.commit(),
            Play::RollBack => {
                self.tentative.roll_back();
                self.batch.clear();
            }
        }
    }

    /// Returns the number and the time of the next record.
    fn place(&self) -> (u64, DateTime<Utc>) {
        (self.seq + self.batch.len() as u64 + 1, self.now)
    }

    fn submit(&mut self, outbox: &str, name: &str, text: &str) {
        let outbox = agent(outbox);
        let name = FileName::new(name).expect("a name");
        let body = Body::message(text.as_bytes().to_vec());
        let found = OutboxFile::finished(outbox.as_str(), name, body);
        let submission = Submission {
            found: &found,
            outbox: &outbox,
            user: None,
        };
        let at = self.place();
        let read = crate::read(submission);
        let (message, stop) = match &read {
            Ok(read) => {
                let packet = read.message.packet_path();
                let packet = packet.map(|_| PacketRead::Bytes(PACKET.as_bytes().to_vec()));
                match self
                    .tentative
                    .judge(self.now)
                    .message(read, packet.as_ref())
                {
                    Ok(decided) => {
                        let decision = decided.decision;
                        let (draft, record) =
                            self.tentative
                                .add_decided(submission, &read.message, decision, at);
                        self.batch.push((record, draft, self.now));
                        return;
                    }
                    Err(stop) => (Some(&read.message), stop.rejection),
                }
            }
            Err(_) => (None, read.expect_err("a stop").rejection),
        };
        let Self { tentative, ids, .. } = self;
        let judge = tentative.judge(self.now);
        let refused = judge.refuse(&outbox, message, *stop, &mut || id(ids));
        let (draft, record) = tentative.add_refused(submission, message, refused, at);
        self.batch.push((record, draft, self.now));
    }

    fn report(&mut self, order: Option<u8>, event: &Event) {
        let order = order.map(|id| MessageId::new(format!("o-{id}")).expect("an id"));
        if order
            .as_ref()
            .is_some_and(|id| self.tentative.state().has_order(id))
        {
            return;
        }
        let reported = ReportedEvent {
            order: order.as_ref(),
            event,
        };
        let Self { tentative, ids, .. } = self;
        let record = tentative.judge(self.now).event(reported, &mut || id(ids));
        self.add(record);
    }

    fn keep_deadlines(&mut self) {
        loop {
            let Self { tentative, ids, .. } = self;
            let Some(record) = tentative.judge(self.now).due(&mut || id(ids)) else {
                return;
            };
            self.add(record);
        }
    }

    fn add(&mut self, record: EventRecord) {
        let place = self.place();
        let (draft, record) = self
            .tentative
            .add_event(record, Some(handed_request()), place);
        self.batch.push((record, draft, self.now));
    }

    fn commit(&mut self) {
        self.tentative.commit();
        for (record, draft, at) in self.batch.drain(..) {
            review::apply(&mut self.state, &record, at);
            self.seq += 1;
            let entry = entry(draft, self.seq);
            self.names.note(&entry);
            follow(&mut self.follower, &entry, &record).unwrap_or_else(|differs| {
                panic!("{differs:?}\n{entry:#?}\n{record:#?}");
            });
            self.follower.commit();
        }
    }

    /// Returns the last record of the batch with its entry; the ledger does not take it.
    fn last(&mut self) -> (Entry, Record) {
        let seq = self.place().0 - 1;
        let (record, draft, _) = self.batch.pop().expect("a record");
        (entry(draft, seq), record)
    }
}

/// Judges the record again on another host.
fn follow(follower: &mut Tentative, entry: &Entry, record: &Record) -> Result<(), Differs> {
    let at = DateTime::parse_from_rfc3339(&entry.at).expect("an instant");
    follower.add_again(entry, record, RecordedMessage::of(entry), at.to_utc())
}

fn id(ids: &mut u32) -> MessageId {
    *ids += 1;
    MessageId::new(format!("settled-{ids}")).expect("an id")
}

fn entry(draft: EntryDraft, seq: u64) -> Entry {
    Entry {
        seq,
        prev: Digest::ZERO,
        batch: seq,
        host: None,
        at: draft.at,
        kind: draft.kind,
        rules: Some(draft.rules),
        review: draft.review,
        id: draft.id,
        original: draft.original,
        deliveries: draft.deliveries,
        decision: draft.decision,
    }
}

#[test]
fn a_refused_message_takes_back_what_its_sender_put_into_an_inbox_and_never_a_delivery() {
    let mut table = Table::new();
    let question = message("question", "claude", "codex", 1, 86, "Why?");
    table.submit("claude", "a.yaml", &question);
    table.commit();
    // No open review matches it.
    let stray = message("review_lgtm", "claude", "codex", 2, 86, "merge_ready: true");
    table.submit("claude", "a.yaml", &stray);
    table.submit("claude", "b.yaml", &stray);
    let withdrawn: Vec<Vec<String>> = table
        .batch
        .iter()
        .map(|(_, draft, _)| {
            let deliveries = draft.deliveries.iter();
            deliveries
                .filter(|delivery| matches!(delivery.content, Content::Withdrawn(_)))
                .map(|delivery| format!("{} {}", delivery.mailbox, delivery.file))
                .collect()
        })
        .collect();
    assert_eq!(withdrawn, [vec![], vec!["codex/inbox b.yaml".to_owned()]]);
}

fn request() -> String {
    let body = "pr: 86\n  branch: x\n  diff_summary: y";
    message("review_request", "claude", "codex", 1, 86, body)
}

/// A change of an entry, with its name.
struct Change(&'static str, fn(&mut Entry));

/// Checks that another host takes the entry as it is, and with none of the changes: each makes other files.
fn follows_as_it_is(table: &mut Table, changes: &[Change]) {
    let (entry, record) = table.last();
    for Change(what, make) in changes {
        let mut changed = entry.clone();
        make(&mut changed);
        makes_other_files(table, &changed, &record, what);
    }
    follow(&mut table.follower, &entry, &record).expect("it follows");
}

/// Checks that another host does not take this entry because its files differ.
fn makes_other_files(table: &mut Table, changed: &Entry, record: &Record, what: &str) {
    let said = follow(&mut table.follower, changed, record);
    assert!(matches!(said, Err(Differs::Files(_))), "{what}: {said:?}");
    table.follower.roll_back();
}

#[test]
fn another_host_takes_a_message_with_the_files_that_follow_from_it_alone() {
    let mut table = Table::new();
    table.submit("claude", "a.yaml", &request());
    follows_as_it_is(
        &mut table,
        &[
            Change("another kind", |entry| {
                "refused".clone_into(&mut entry.kind);
            }),
            Change("another id", |entry| entry.id = Some("m-2".to_owned())),
            Change("no review", |entry| entry.review = None),
            Change("a file less", |entry| drop(entry.deliveries.pop())),
            Change("another name in an inbox", |entry| {
                entry.deliveries[0].file = FileName::new("z.yaml").expect("a name");
            }),
            Change("another text", |entry| {
                entry.deliveries.last_mut().expect("a brief").content =
                    Content::Text("x".to_owned());
            }),
            Change("another place for the original", |entry| {
                let file = FileName::new("z.yaml").expect("a name");
                entry.original.as_mut().expect("a file").away = Away::Sent(file);
            }),
            Change("another digest", |entry| {
                entry.original.as_mut().expect("a file").digest = Some(Digest::ZERO);
            }),
        ],
    );
}

#[test]
fn another_host_takes_a_refusal_with_its_report_and_notice_alone() {
    let mut table = Table::new();
    table.submit("claude", "a.yaml", "no message");
    let text = || Content::Text("x".to_owned());
    let (entry, record) = table.last();
    for (mailbox, content) in [
        (Mailbox::Inbox("codex".to_owned()), text()),
        (Mailbox::Inbox("claude".to_owned()), Content::Original),
        (Mailbox::DeadLetter("codex".to_owned()), text()),
        (Mailbox::Packets("findings".to_owned()), text()),
        (Mailbox::PullRequest("86".to_owned()), text()),
    ] {
        let mut changed = entry.clone();
        changed.deliveries.push(Delivery {
            mailbox,
            file: FileName::new("z.yaml").expect("a name"),
            content,
        });
        makes_other_files(&mut table, &changed, &record, &format!("{changed:#?}"));
    }
    let mut sent = entry.clone();
    let file = FileName::new("a.yaml").expect("a name");
    sent.original.as_mut().expect("a file").away = Away::Sent(file);
    makes_other_files(&mut table, &sent, &record, "a refused original in `sent/`");
    follow(&mut table.follower, &entry, &record).expect("it follows");
}

#[test]
fn another_host_takes_a_request_that_passes_to_the_next_reviewer() {
    let mut table = Table::new();
    table.submit("claude", "a.yaml", &request());
    table.commit();
    table.report(None, &failed(which(86), FailureCause::NotLoggedIn));
    let (_, draft, _) = table.batch.last().expect("a record");
    let inbox = Mailbox::Inbox("gemini".to_owned());
    let handed = draft.deliveries.iter().find(|file| file.mailbox == inbox);
    let expected = Content::Text(handed_request().text);
    assert_eq!(handed.map(|file| &file.content), Some(&expected));
    follows_as_it_is(
        &mut table,
        &[Change("its notice to another agent", |entry| {
            entry.deliveries[0].mailbox = Mailbox::Inbox("gemini".to_owned());
        })],
    );
}

/// Judges a record again on another host, and rolls that host back.
fn judged_again(table: &mut Table, entry: &Entry, record: &Record) -> Result<(), Differs> {
    let said = follow(&mut table.follower, entry, record);
    table.follower.roll_back();
    said
}

#[test]
fn another_host_takes_a_repeated_message_if_it_has_the_first() {
    let mut table = Table::new();
    table.submit("claude", "a.yaml", &request());
    table.commit();
    table.submit("claude", "a.yaml", &request());
    let (entry, record) = table.last();
    judged_again(&mut table, &entry, &record).expect("it follows");
    let original = |change: fn(&mut spool::Original)| {
        let mut changed = entry.clone();
        change(changed.original.as_mut().expect("a file"));
        changed
    };
    let elsewhere = original(|original| {
        original.away = Away::Sent(FileName::new("z.yaml").expect("a name"));
    });
    makes_other_files(&mut table, &elsewhere, &record, "another place");
    let kept = original(|original| original.text = Some("x".to_owned()));
    makes_other_files(&mut table, &kept, &record, "a text");
    let of_codex = original(|original| "codex".clone_into(&mut original.outbox));
    let said = judged_again(&mut table, &of_codex, &record);
    assert!(matches!(said, Err(Differs::OtherSender)), "{said:?}");
    let unread = original(|original| original.digest = None);
    let said = judged_again(&mut table, &unread, &record);
    assert!(matches!(said, Err(Differs::NoText)), "{said:?}");
    let other = original(|original| original.digest = Some(Digest::ZERO));
    let said = judged_again(&mut table, &other, &record);
    assert!(matches!(said, Err(Differs::NotRepeated)), "{said:?}");
}

#[test]
fn a_message_is_repeated_if_its_sender_had_these_bytes_accepted() {
    let mut table = Table::new();
    let is_repeated = |table: &Table, text: &str| {
        let body = Body::message(text.as_bytes().to_vec());
        let name = FileName::new("a.yaml").expect("a name");
        let found = OutboxFile::finished("claude", name, body);
        let outbox = agent("claude");
        let submission = Submission {
            found: &found,
            outbox: &outbox,
            user: None,
        };
        let read = crate::read(submission).expect("readable");
        table.tentative.judge(table.now).is_repeated(&read)
    };
    assert!(!is_repeated(&table, &request()));
    table.submit("claude", "a.yaml", &request());
    assert!(is_repeated(&table, &request()));
    assert!(!is_repeated(
        &table,
        &message("question", "claude", "codex", 2, 86, "Why?")
    ));
}

#[test]
fn a_decision_follows_if_all_that_moves_a_review_follows() {
    // The values that the rules know no more are not compared.
    let of_json = |record: &Record, from: &str, to: &str| -> Record {
        let json = serde_json::to_string(record).expect("a record is JSON");
        assert!(json.contains(from), "{json}");
        serde_json::from_str(&json.replace(from, to)).expect("a record")
    };
    let check = |table: &Table, entry: &Entry, then: &Record, follows: bool| {
        let judge = table.follower.judge(table.now);
        let said = rejudge::follows(judge, entry, then, RecordedMessage::of(entry));
        assert_eq!(said.is_ok(), follows, "{then:#?}");
        assert!(
            follows || matches!(said, Err(Differs::Decides(_))),
            "{then:#?}"
        );
    };
    let mut table = Table::new();
    table.submit("claude", "a.yaml", &request());
    let (_, draft, _) = table.batch.last().expect("a record").clone();
    let (record, entry) = (table.batch[0].0.clone(), entry(draft, 1));
    check(&table, &entry, &record, true);
    let mut accepted = record.accepted().expect("it is").clone();
    accepted.alerts.push(review::Alert::ApprovalUnbound);
    accepted.warnings.push("a warning".to_owned());
    check(
        &table,
        &entry,
        &Judgement::Accepted(Box::new(accepted.clone())).into(),
        true,
    );
    accepted.to = vec![agent("gemini")];
    check(
        &table,
        &entry,
        &Judgement::Accepted(Box::new(accepted)).into(),
        false,
    );
    table.commit();

    // A refusal that costs an attempt, with or without its notice.
    let body = "findings_packet: packets/findings/f.yaml\n  round: 2\n  blocking_count: 1";
    let wrong = message("review_feedback", "codex", "claude", 3, 86, body);
    table.submit("codex", "b.yaml", &wrong);
    let (entry, record) = table.last();
    table.tentative.roll_back();
    check(&table, &entry, &record, true);
    let Record::Judged(Judgement::Refused(mut refused)) = record else {
        panic!("{record:#?}");
    };
    refused.notice = review::Notice::Withheld;
    check(
        &table,
        &entry,
        &Judgement::Refused(refused.clone()).into(),
        true,
    );
    refused.cost.as_mut().expect("an attempt").attempts_left = 1;
    check(&table, &entry, &Judgement::Refused(refused).into(), false);

    // A merge that hands off findings, with other numbers for the tasks.
    let body = body.replace("round: 2", "round: 1");
    table.submit(
        "codex",
        "b.yaml",
        &message("review_feedback", "codex", "claude", 4, 86, &body),
    );
    table.commit();
    let pull = PullEvent {
        repo: None,
        pr: PrNumber::new("86").expect("a number"),
        action: PullAction::Merged,
        author: None,
        head: None,
    };
    table.report(None, &Event::Pull(pull));
    let (entry, record) = table.last();
    check(&table, &entry, &record, true);
    check(
        &table,
        &entry,
        &of_json(&record, "handoff-pr86-1", "handoff-pr86-7"),
        true,
    );
    check(
        &table,
        &entry,
        &of_json(&record, "\"no_target\"", "\"not_merged\""),
        false,
    );
    let Record::Event(EventRecord::Happened(mut happened)) = record else {
        panic!("{record:#?}");
    };
    happened.home_away = true;
    check(
        &table,
        &entry,
        &EventRecord::Happened(happened).into(),
        true,
    );
}

#[test]
fn a_snapshot_takes_all_rows_and_a_used_name_stays_used() {
    let mut table = Table::new();
    table.submit(
        "claude",
        "a.yaml",
        &message("question", "claude", "codex", 1, 86, "Why?"),
    );
    table.commit();
    let rows = |table: &Table| {
        let Tentative { state, names, .. } = &table.tentative;
        let rows = state.new_rows().chain(names.new_rows());
        let rows = rows.map(|(key, value)| (key, value.to_vec()));
        rows.collect::<std::collections::BTreeMap<_, _>>()
    };
    let all = rows(&table);
    assert_eq!(
        table.tentative.names.new_rows().count(),
        2,
        "an inbox and `sent/`"
    );
    table.tentative.begin_snapshot();
    assert_eq!(rows(&table).len(), 0);
    table.tentative.give_up_snapshot();
    assert_eq!(rows(&table), all);
    table.tentative.begin_snapshot();
    let stored: Arc<dyn StoredRows> = Arc::new(all);
    table.tentative.rest_on(&stored);
    assert_eq!(rows(&table).len(), 0);
    assert_eq!(table.tentative.names, table.names);
    table.tentative.give_up_snapshot();
    assert_eq!(rows(&table).len(), 0, "the snapshot is over");
    table.submit(
        "claude",
        "a.yaml",
        &message("question", "claude", "codex", 2, 86, "How?"),
    );
    let (_, draft, _) = table.batch.last().expect("a record");
    assert_eq!(draft.deliveries[0].file.to_string(), "a.2.yaml");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_committed_is_the_fold_of_its_records_and_what_is_not_leaves_nothing(
        plays in prop::collection::vec(play(), 1..80),
    ) {
        let mut table = Table::new();
        for play in &plays {
            table.make(play);
            if table.batch.is_empty() {
                prop_assert_eq!(table.tentative.state(), &table.state, "after {:?}", play);
                prop_assert_eq!(table.follower.state(), &table.state, "after {:?}", play);
                prop_assert_eq!(&table.tentative.names, &table.names, "after {:?}", play);
            }
        }
    }
}
