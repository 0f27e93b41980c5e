//! A workspace with a real spool and the state of its reviews: events in, files out.
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use judgement::{Submission, Tentative, UsedNames};
use message_schema::envelope::Recipients;
use message_schema::id::{AgentName, CommitSha, FindingId, MessageId, PrNumber};
use message_schema::parse;
use review::{
    Act, Event, PersonsDecision, Policy, PullAction, PullEvent, Record, ReportedEvent, State, Which,
};
use spool::{Body, FileName, Layout, Os, OutboxFile, PacketRead, Spool};
use tempfile::TempDir;
use validate_message::{PacketInput, Valid, check_delivered};

pub(crate) const REQUEST: &str = include_str!("../../../../packets/valid/review_request.yaml");
pub(crate) const FEEDBACK: &str = include_str!("../../../../packets/valid/review_feedback.yaml");
pub(crate) const PACKET: &str =
    include_str!("../../../../packets/findings/20260213_review_loop_codex_r1.yaml");
pub(crate) const ADDRESSED: &str = include_str!("../../../../packets/valid/review_addressed.yaml");

/// A workspace, the state of its reviews, and a clock that the test moves.
pub(crate) struct Room {
    pub(crate) root: TempDir,
    pub(crate) spool: Spool,
    pub(crate) tentative: Tentative,
    pub(crate) now: DateTime<Utc>,
    messages: u32,
}

pub(crate) fn agent(name: &str) -> AgentName {
    AgentName::new(name).expect("an agent name")
}

impl Room {
    pub(crate) fn new() -> Self {
        let agents = ["claude", "codex", "gemini", "gpt"];
        let root = tempfile::tempdir().expect("a directory");
        Layout::init(root.path(), &agents).expect("a tree");
        let spool = Spool::open(root.path(), Arc::new(Os), &mut |_| Ok(()))
            .expect("a start")
            .spool;
        let now = DateTime::parse_from_rfc3339("2026-02-13T10:00:00Z")
            .expect("an instant")
            .to_utc();
        let policy = Policy {
            agents: agents.map(|name| (agent(name), [].into())).into(),
            ..Policy::default()
        };
        let mut tentative = Tentative::new(State::default(), UsedNames::default(), policy.clone());
        tentative.reconfigure(policy, agents.map(agent).to_vec());
        Self {
            root,
            spool,
            tentative,
            now,
            messages: 0,
        }
    }

    /// Continues under another policy, for the agents it knows.
    pub(crate) fn under(&mut self, change: impl FnOnce(&mut Policy)) {
        let mut policy = self.tentative.policy().clone();
        change(&mut policy);
        let agents: Vec<AgentName> = policy.agents.keys().cloned().collect();
        self.tentative.reconfigure(policy, agents);
    }

    /// Returns the review of pull request 86 after its first feedback was addressed and the next review requested.
    pub(crate) fn in_round_two() -> Self {
        let mut room = Self::new();
        room.post(REQUEST, None);
        room.post(FEEDBACK, Some(PACKET));
        room.post(ADDRESSED, None);
        room.post(&REQUEST.replace("-001", "-003"), None);
        room
    }

    pub(crate) fn post(&mut self, text: &str, packet: Option<&str>) {
        self.now += TimeDelta::seconds(1);
        let from = text.lines().find_map(|line| line.strip_prefix("from: "));
        let outbox = AgentName::new(from.expect("a sender")).expect("a name");
        let name = FileName::new("message.yaml").expect("a name");
        let body = Body::message(text.as_bytes().to_vec());
        let found = OutboxFile::finished(outbox.as_str(), name, body);
        let submission = Submission {
            found: &found,
            outbox: &outbox,
            user: None,
        };
        let read = judgement::read(submission).expect("readable");
        let packet = packet.map(|text| PacketRead::Bytes(text.as_bytes().to_vec()));
        let judge = self.tentative.judge(self.now);
        let decided = judge.message(&read, packet.as_ref());
        let decided = decided.unwrap_or_else(|stop| panic!("{text}\n{:?}", stop.rejection));
        let at = (self.spool.next_seq(), self.now);
        let _ = self
            .tentative
            .add_decided(submission, &read.message, decided.decision, at);
        self.tentative.commit();
    }

    /// Judges the event, commits its record and delivers its files.
    pub(crate) fn hear(&mut self, event: &Event) -> Record {
        self.now += TimeDelta::seconds(1);
        let messages = &mut self.messages;
        let mut ids = || {
            *messages += 1;
            MessageId::new(format!("settled-{messages}")).expect("an id")
        };
        let reported = ReportedEvent { order: None, event };
        let record = self.tentative.judge(self.now).event(reported, &mut ids);
        let seq = self.spool.next_seq();
        let (draft, record) = self.tentative.add_event(record, None, (seq, self.now));
        self.spool.commit(seq, vec![draft]).expect("a commit");
        self.tentative.commit();
        let pass = self.spool.deliver(0).expect("a pass");
        assert!(pass.parked.is_empty(), "{:?}", pass.parked);
        record
    }

    /// Lets the reviewer take the request and exceed its runtime.
    pub(crate) fn overrun(&mut self) {
        self.hear(&Event::Taken(which()));
        self.now += TimeDelta::seconds(600);
        let (_, key) = self.tentative.state().next_deadline().expect("a deadline");
        let which = review::Deadline::Runtime;
        self.hear(&Event::Deadline {
            review: key.clone(),
            which,
        });
    }

    pub(crate) fn pull(&mut self, action: PullAction) -> Record {
        self.hear(&Event::Pull(PullEvent {
            repo: None,
            pr: PrNumber::new("86").expect("a number"),
            action,
            author: Some("a-person".to_owned()),
            head: Some(CommitSha::new("def5678").expect("a commit")),
        }))
    }

    pub(crate) fn person(&mut self, act: Act) -> Record {
        let (by, reason) = ("alice".to_owned(), "the release\nwaits for it".to_owned());
        self.hear(&Event::Person(PersonsDecision {
            which: which(),
            by,
            reason,
            act,
        }))
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.path().join(relative)
    }

    pub(crate) fn names(&self, directory: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(directory)) else {
            return Vec::new();
        };
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a text")
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }

    /// Returns the last message in the inbox, checked against every rule for delivered messages.
    pub(crate) fn message(&self, to: &str) -> (String, Valid) {
        let inbox = format!("agents/{to}/inbox");
        let file = self.names(&inbox).pop().expect("a message");
        let text = read(&self.path(&inbox).join(file));
        let message = parse(text.as_bytes()).expect("readable");
        let packet = message
            .packet_path()
            .map(|path| read(&self.path(path.as_str())));
        let input = packet.as_ref().map_or(PacketInput::NotNamed, |text| {
            PacketInput::Bytes(text.as_bytes())
        });
        let valid = check_delivered(&message, input).unwrap_or_else(|violations| {
            panic!("{text}\n{violations:?}");
        });
        assert!(
            valid.warnings().is_empty(),
            "{text}\n{:?}",
            valid.warnings()
        );
        assert_eq!(valid.envelope().to, Recipients::One(agent(to)));
        (text, valid)
    }
}

pub(crate) fn which() -> Which {
    Which {
        pr: PrNumber::new("86").expect("a number"),
        repo: None,
        reviewer: Some(agent("codex")),
    }
}

pub(crate) fn finding(id: &str) -> FindingId {
    FindingId::new(id).expect("an id")
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
