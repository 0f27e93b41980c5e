//! Deadlines in a replay, on ledgers whose times the test chooses.

use review::{Profile, RuntimeClock};
use spool::FileName;

use super::*;

const REQUEST: &str = "id: r-1\nfrom: claude\nto: codex\ntype: review_request\npriority: P2\n\
    created_at_utc: \"2026-02-13T10:00:00Z\"\nsubject: x\nbody: |\n  pr: 86\n  branch: fix\n  diff_summary: x\n  \
    max_runtime_s_reviewer: 60\n";

const LGTM: &str = "id: l-1\nfrom: codex\nto: claude\ntype: review_lgtm\npriority: P2\n\
    created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"86\"\nsubject: x\nbody: |\n  quality_gate_result: pass\n  \
    merge_ready: true\n";

/// A ledger as a daemon writes it, at times the test chooses, in seconds after the start.
struct Book {
    policy: Policy,
    state: State,
    entries: Vec<Entry>,
}

fn policy() -> Policy {
    let agents =
        ["claude", "codex"].map(|name| (name.parse().expect("an agent name"), BTreeSet::new()));
    Policy {
        agents: BTreeMap::from(agents),
        profile: Profile::Gate,
        ..Policy::default()
    }
}

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_770_000_000 + seconds, 0).expect("an instant")
}

impl Book {
    fn new() -> Self {
        Self {
            policy: policy(),
            state: State::default(),
            entries: Vec::new(),
        }
    }

    fn post(&mut self, seconds: i64, outbox: &str, text: &str) {
        let outbox: AgentName = outbox.parse().expect("an agent name");
        let written = SequentialIds::default();
        let judge = Judge {
            state: &self.state,
            policy: &self.policy,
            now: at(seconds),
        };
        let ids = &mut || written.next();
        let record = submit::text(
            judge,
            &outbox,
            text.as_bytes(),
            |_| PacketRead::Missing,
            ids,
        );
        let file: FileName = "m.yaml".parse().expect("a file name");
        let original = Original {
            outbox: outbox.to_string(),
            file: file.clone(),
            digest: Some(Digest::of(text.as_bytes())),
            stamp: None,
            away: Away::Sent(file),
            text: Some(text.to_owned()),
        };
        self.keep(seconds, &record.into(), Some(original));
    }

    /// Records a deadline as late as a daemon would.
    fn keep_deadline(&mut self, seconds: i64) {
        let written = SequentialIds::default();
        let due = review::due(&self.state, &self.policy, at(seconds), &mut || {
            written.next()
        });
        self.keep(seconds, &due.expect("a deadline has come").into(), None);
    }

    fn keep(&mut self, seconds: i64, record: &Record, original: Option<Original>) {
        review::apply(&mut self.state, record, at(seconds));
        self.entries.push(Entry {
            seq: self.entries.len() as u64 + 1,
            prev: Digest::ZERO,
            batch: 1,
            host: None,
            at: at(seconds).to_rfc3339_opts(SecondsFormat::Millis, true),
            kind: "any".to_owned(),
            rules: Some(review::RULES),
            review: None,
            id: None,
            original,
            deliveries: Vec::new(),
            decision: serde_json::value::to_raw_value(record).expect("records are JSON"),
        });
    }

    fn again(&self, policy: Policy) -> Replay {
        let mut states = SideBySide::new(Path::new("/nowhere"), policy);
        self.entries
            .iter()
            .for_each(|entry| states.entry(entry).expect("readable"));
        states.end()
    }
}

#[test]
fn a_deadline_that_was_kept_late_is_kept_as_late_again() {
    let two_days = 48 * 3600;
    let mut book = Book::new();
    book.post(0, "claude", REQUEST);
    book.keep_deadline(two_days + 500);
    book.post(two_days + 600, "codex", LGTM);
    let replay = book.again(policy());
    // The late answer is in no dead_letter here.
    assert_eq!(
        (replay.same, &replay.not_replayed[..]),
        (2, &[3][..]),
        "{replay:?}"
    );
    assert!(
        replay.different.is_empty() && replay.reviews.is_empty(),
        "{replay:?}"
    );
}

#[test]
fn an_answer_after_a_deadline_that_nobody_had_kept_counts_again() {
    let mut book = Book::new();
    book.post(0, "claude", REQUEST);
    book.post(48 * 3600 + 5, "codex", LGTM);
    assert_eq!(book.again(policy()).same, 2);
}

#[test]
fn a_deadline_that_only_the_other_policy_has_is_kept_at_its_instant() {
    let mut book = Book::new();
    book.post(0, "claude", REQUEST);
    book.post(3600, "codex", LGTM);
    let replay = book.again(Policy {
        runtime_clock: RuntimeClock::Delivery,
        ..policy()
    });
    let [own, lgtm] = &replay.different[..] else {
        panic!("two differences: {replay:?}")
    };
    let due = at(60).to_rfc3339_opts(SecondsFormat::Millis, true);
    assert_eq!((own.seq, &own.at), (None, &due));
    assert_eq!(
        own.now[1],
        "review #86 claude -> codex: escalated round 1 reviewer_budget_exceeded"
    );
    assert_eq!(lgtm.now[0], "refused invocation_closed");
    assert_eq!(
        replay.reviews[0].then.as_deref(),
        Some("approved round 1 unbound")
    );
}

#[test]
fn a_deadline_that_was_kept_is_not_kept_for_a_review_that_has_another() {
    let two_days = 48 * 3600;
    let mut book = Book::new();
    book.post(0, "claude", REQUEST);
    book.keep_deadline(two_days + 1);
    let replay = book.again(Policy {
        runtime_clock: RuntimeClock::Delivery,
        ..policy()
    });
    let [own, gone] = &replay.different[..] else {
        panic!("two differences: {replay:?}")
    };
    assert_eq!((own.seq, gone.seq), (None, Some(2)));
    assert!(gone.now.is_empty(), "{gone:?}");
}
