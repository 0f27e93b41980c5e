//! Brings a review into a state with real messages and events, and tries one more input.
use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use judgement::Judge;
use message_schema::id::{AgentName, MessageId};
use review::{
    Act, ContentDigest, Event, EventRecord, Judgement, PersonsDecision, Policy, Posted, PullAction,
    PullEvent, ReportedEvent, Review, State, Which,
};
use spool::dirs;
use validate_message::PacketInput;

macro_rules! listed {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $title:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum $name { $($variant),+ }

        impl $name {
            pub(super) const ALL: [Self; [$($title),+].len()] = [$(Self::$variant),+];

            pub(super) fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),+ }
            }
        }
    };
}

listed!(
    /// The state a review is in before the input.
    StartState {
        Unopened = "none",
        Reviewing = "reviewing",
        LastRound = "reviewing, last round",
        Fixing = "fixing, something blocks",
        Unblocked = "fixing, nothing blocks",
        Addressed = "addressed",
        Approved = "approved",
        Stale = "approved, stale",
        Escalated = "escalated",
        Awaiting = "awaiting",
        Closed = "closed with its pull request",
        PullReopened = "closed, pull request open again",
    }
);

listed!(
    /// A message or event to try.
    Input {
        Request = "request",
        Supersede = "request that replaces",
        Feedback = "feedback",
        Lgtm = "lgtm",
        Addressed = "addressed",
        Deadline = "deadline",
        LastTurn = "last turn",
        Synchronize = "new head",
        ClosePull = "closed",
        MergePull = "merged",
        Reopen = "a person reopens",
        Grant = "a person grants a round",
    }
);

impl Input {
    pub(super) const MESSAGES: [Self; 5] = [
        Self::Request,
        Self::Supersede,
        Self::Feedback,
        Self::Lgtm,
        Self::Addressed,
    ];
    pub(super) const EVENTS: [Self; 7] = [
        Self::Deadline,
        Self::LastTurn,
        Self::Synchronize,
        Self::ClosePull,
        Self::MergePull,
        Self::Reopen,
        Self::Grant,
    ];

    /// Returns the label of an arrow.
    pub(super) fn edge(self) -> &'static str {
        match self {
            Self::Request | Self::Supersede => "request",
            Self::ClosePull | Self::MergePull => "pull request closed",
            Self::Reopen | Self::Grant => "a person",
            Self::LastTurn | Self::Deadline => "deadline or budget",
            Self::Feedback | Self::Lgtm | Self::Addressed | Self::Synchronize => self.title(),
        }
    }

    /// True if the input can lead to another phase; a new head only makes an approval stale.
    pub(super) fn is_edge(self) -> bool {
        self != Self::Synchronize
    }
}

impl StartState {
    /// Returns the phase's word.
    pub(super) fn phase(self) -> &'static str {
        self.title()
            .split(',')
            .next()
            .and_then(|title| title.split(' ').next())
            .unwrap_or("none")
    }
}

/// A workspace with at most one review: of pull request 86, by claude with codex.
pub(super) struct Probe {
    state: State,
    policy: Policy,
    now: DateTime<Utc>,
    sent: u32,
}

impl Probe {
    /// Brings a review into a state.
    pub(super) fn at(start: StartState) -> Self {
        let agents = ["claude", "codex"].map(|name| (agent(name), BTreeSet::new()));
        let policy = Policy {
            agents: BTreeMap::from(agents),
            ..Policy::default()
        };
        let mut probe = Self {
            state: State::default(),
            policy,
            now: DateTime::UNIX_EPOCH,
            sent: 0,
        };
        let fix = [Input::Request, Input::Feedback];
        let steps: &[Input] = match start {
            StartState::Unopened => &[],
            StartState::Reviewing | StartState::Unblocked => &[Input::Request],
            StartState::LastRound => &[
                Input::Request,
                Input::Feedback,
                Input::Addressed,
                Input::Request,
            ],
            StartState::Fixing => &fix,
            StartState::Addressed => &[Input::Request, Input::Feedback, Input::Addressed],
            StartState::Approved => &[Input::Request, Input::Lgtm],
            StartState::Stale => &[Input::Request, Input::Lgtm, Input::Synchronize],
            StartState::Escalated => &[
                Input::Request,
                Input::Feedback,
                Input::Addressed,
                Input::Request,
                Input::Feedback,
            ],
            StartState::Awaiting => &[Input::Request, Input::Deadline, Input::Reopen],
            StartState::Closed | StartState::PullReopened => &[Input::Request, Input::ClosePull],
        };
        for input in steps {
            probe.try_input(*input);
        }
        match start {
            StartState::Unblocked => {
                let packet = "findings: [{id: F-001, severity: P3, status: open}]\n";
                probe.post(&feedback(1, ""), Some(packet));
            }
            StartState::PullReopened => drop(probe.pull(PullAction::Reopened)),
            StartState::Unopened
            | StartState::Reviewing
            | StartState::LastRound
            | StartState::Fixing
            | StartState::Addressed
            | StartState::Approved
            | StartState::Stale
            | StartState::Escalated
            | StartState::Awaiting
            | StartState::Closed => {}
        }
        assert_eq!(
            probe.phase(),
            start.phase(),
            "the probe reached its start state"
        );
        probe
    }

    pub(super) fn review(&self) -> Option<&Review> {
        self.state.reviews().next().map(|(_, review)| review)
    }

    /// Tries an input; returns the phase's word after it, or the code of the refusal.
    pub(super) fn try_input(&mut self, input: Input) -> String {
        let round = self.review().map_or(1, |review| review.round);
        let open = self.review().and_then(|review| review.phase.invocation());
        let open = open.map_or_else(|| "msg-0".to_owned(), |open| open.request.to_string());
        let packet = |status| {
            format!(
                "findings:\n  - {{id: F-001, severity: P1, status: {status}, title: a bug, file: a.rs}}\n"
            )
        };
        match input {
            Input::Request => self.post(&request(""), None),
            Input::Supersede => self.post(
                &request(&format!("  supersedes_message_id: {open}\n")),
                None,
            ),
            Input::Feedback => {
                let packet = packet("open");
                self.post(&feedback(round, &packet), Some(&packet))
            }
            Input::Lgtm => self.post(&lgtm(), Some(&packet("fixed"))),
            Input::Addressed => self.post(&addressed(round), None),
            Input::Deadline => self.deadline(),
            Input::LastTurn => {
                let which = which();
                self.event(&Event::Turns { which, count: 8 })
            }
            Input::Synchronize => self.pull(PullAction::Synchronize),
            Input::ClosePull => self.pull(PullAction::Closed),
            Input::MergePull => self.pull(PullAction::Merged),
            Input::Reopen => self.person(Act::Reopen),
            Input::Grant => self.person(Act::Grant { rounds: 1 }),
        }
    }

    fn phase(&self) -> &'static str {
        self.review().map_or("none", |review| review.phase.word())
    }

    fn post(&mut self, (from, kind, body): &(&str, &str, String), packet: Option<&str>) -> String {
        self.sent += 1;
        self.now += TimeDelta::seconds(1);
        let to = if *from == "claude" { "codex" } else { "claude" };
        let text = format!(
            "id: msg-{}\nfrom: {from}\nto: {to}\ntype: {kind}\npriority: P1\nrelated_pr: 86\n\
             created_at_utc: \"2026-02-13T10:00:00Z\"\nsubject: change 86\nbody: |\n{body}",
            self.sent
        );
        let message =
            message_schema::parse(text.as_bytes()).expect("a probe's message is well-formed");
        let packet = packet.map_or(PacketInput::NotNamed, |packet| {
            PacketInput::Bytes(packet.as_bytes())
        });
        let valid =
            validate_message::check(&message, packet).expect("a probe's message is correct");
        let outbox = agent(from);
        let posted = Posted {
            outbox: &outbox,
            digest: ContentDigest([0; 32]),
            valid: &valid,
        };
        let mut ids = self.ids();
        let (record, refused) = match self.judge().checked(posted) {
            Ok(decision) => (decision.into_judgement(), None),
            Err(refusal) => {
                let costs = refusal.review.as_deref().map(|key| (key, refusal.costs));
                let code = refusal.code();
                let judge = self.judge();
                let record = judge.refuse_checked(&outbox, code, costs, &mut ids);
                (Judgement::Refused(record), Some(code))
            }
        };
        review::apply(&mut self.state, &record.into(), self.now);
        refused.map_or_else(|| self.phase().to_owned(), |code| format!("`{code}`"))
    }

    fn judge(&self) -> Judge<'_> {
        Judge {
            state: &self.state,
            policy: &self.policy,
            now: self.now,
        }
    }

    fn deadline(&mut self) -> String {
        let Some((at, _)) = self.state.next_deadline() else {
            return "-".to_owned();
        };
        self.now = at;
        let mut ids = self.ids();
        let record = self.judge().due(&mut ids);
        let record = record.expect("a deadline that has come makes a record");
        review::apply(&mut self.state, &record.into(), self.now);
        self.phase().to_owned()
    }

    fn pull(&mut self, action: PullAction) -> String {
        let head = Some("fffffff".parse().expect("a commit"));
        let pr = which().pr;
        self.event(&Event::Pull(PullEvent {
            repo: None,
            pr,
            action,
            author: None,
            head,
        }))
    }

    fn person(&mut self, act: Act) -> String {
        let (by, reason) = ("a person".to_owned(), "to see what it does".to_owned());
        self.event(&Event::Person(PersonsDecision {
            which: which(),
            by,
            reason,
            act,
        }))
    }

    fn event(&mut self, event: &Event) -> String {
        self.now += TimeDelta::seconds(1);
        let mut ids = self.ids();
        let record = self
            .judge()
            .event(ReportedEvent { order: None, event }, &mut ids);
        let before = self.review().cloned();
        let declined = match &record {
            EventRecord::Happened(_) => None,
            EventRecord::Declined(declined) => Some(format!("`{}`", declined.code)),
        };
        review::apply(&mut self.state, &record.into(), self.now);
        let is_same = self.review() == before.as_ref();
        declined.unwrap_or_else(|| match &self.review().map(|review| &review.phase) {
            _ if is_same => "-".to_owned(),
            Some(review::Phase::Approved(approval)) if approval.stale => "stale".to_owned(),
            Some(_) | None => self.phase().to_owned(),
        })
    }

    fn ids(&mut self) -> impl FnMut() -> MessageId + use<> {
        let (id, mut count) = (self.id(), 0);
        move || {
            count += 1;
            MessageId::new(format!("{id}-{count}")).expect("letters and digits")
        }
    }

    fn id(&mut self) -> MessageId {
        self.sent += 1;
        MessageId::new(format!("settled-{}", self.sent)).expect("letters and digits")
    }
}

fn agent(name: &str) -> AgentName {
    AgentName::new(name).expect("an agent's name")
}

fn which() -> Which {
    Which {
        pr: "86".parse().expect("a number"),
        repo: None,
        reviewer: None,
    }
}

fn request(more: &str) -> (&'static str, &'static str, String) {
    let body =
        "  pr: 86\n  branch: change-86\n  diff_summary: a change\n  declared_head: abc1234\n";
    ("claude", "review_request", format!("{body}{more}"))
}

fn feedback(round: u32, packet: &str) -> (&'static str, &'static str, String) {
    let count = u8::from(!packet.is_empty());
    let folder = dirs::of_packets(dirs::FINDINGS);
    let body = format!(
        "  findings_packet: {folder}/f.yaml\n  round: {round}\n  blocking_count: {count}\n"
    );
    ("codex", "review_feedback", body)
}

fn lgtm() -> (&'static str, &'static str, String) {
    let folder = dirs::of_packets(dirs::FINDINGS);
    let body = format!(
        "  quality_gate_result: pass\n  merge_ready: true\n  findings_packet: {folder}/f.yaml\n"
    );
    ("codex", "review_lgtm", body)
}

fn addressed(round: u32) -> (&'static str, &'static str, String) {
    let body = format!("  commit_sha: abc1234\n  changes_summary: fixed\n  round: {round}\n");
    ("claude", "review_addressed", body)
}
