//! Describes the result of a step, one fact per line: stable, greppable, and in the words in which a scenario states
//! what it expects.

use std::collections::BTreeMap;

use message_schema::envelope::DAEMON;
use message_schema::line::escaped;
use message_schema::{Code, Level, ReportedViolation};
use review::{
    Alert, DaemonMessage, DeclinedEvent, EventRecord, Fault, Handoff, Judgement, Notice, Origin,
    Phase, Record, RefusedMessage, Review, ReviewKey, ReviewStep, Says, Task, Thread,
};
use serde::Serialize;
use serde_json::{Value, json};

/// One fact about a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// The line.
    pub line: String,
    /// The code it is about, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// The fact in a sentence, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Its kind.
    #[serde(rename = "weight")]
    pub kind: FactKind,
    /// The values in the line, by key: `review`, `phase`, `round`, `thread`, `clause`, `field`, counters.
    #[serde(flatten)]
    pub keys: Keys,
}

/// Named values of a fact.
pub type Keys = BTreeMap<&'static str, Value>;

fn keys<const N: usize>(named: [(&'static str, Value); N]) -> Keys {
    named
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .collect()
}

/// The relation of a fact to its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// The step was done.
    Yes,
    /// The step was refused.
    No,
    /// A consequence of the step.
    Note,
}

impl Fact {
    /// Makes the fact that the step was done.
    pub(super) fn yes(line: impl Into<String>) -> Self {
        Self::new(FactKind::Yes, line)
    }

    /// Makes the fact that the step was refused.
    pub(super) fn no(line: impl Into<String>, code: Code) -> Self {
        Self {
            code: Some(code),
            ..Self::new(FactKind::No, line)
        }
    }

    /// Makes a fact about a consequence of the step.
    pub(super) fn note(line: impl Into<String>) -> Self {
        Self::new(FactKind::Note, line)
    }

    fn new(kind: FactKind, line: impl Into<String>) -> Self {
        // Reasons, ids and warnings may quote what agents wrote.
        Self {
            line: escaped(&line.into()),
            code: None,
            message: None,
            kind,
            keys: Keys::new(),
        }
    }

    fn keyed(self, keys: Keys) -> Self {
        Self { keys, ..self }
    }

    pub(super) fn with(self, code: Option<Code>, message: impl Into<String>) -> Self {
        Self {
            code: code.or(self.code),
            message: Some(message.into()),
            ..self
        }
    }
}

/// A violation: `refused CODE [clause=…] [thread=…] [field=…] [line=…]`.
pub(super) fn violation(violation: &ReportedViolation, fault: Option<&Fault>) -> Fact {
    let details = Details {
        clause: fault
            .and_then(|fault| fault.clause)
            .map(review::Clause::as_str),
        thread: fault
            .and_then(|fault| fault.thread.as_ref())
            .map(ToString::to_string),
        field: violation.field.as_deref(),
        line: violation.line,
    };
    let fact = match violation.level {
        Level::Error => Fact::no(
            format!("refused {}{details}", violation.code),
            violation.code,
        ),
        Level::Warning => Fact::note(format!("warning {}{details}", violation.code)),
    };
    fact.with(Some(violation.code), &violation.message)
        .keyed(details.keys())
}

/// A fault without a file.
pub(super) fn fault(fault: &Fault) -> Fact {
    let details = Details {
        clause: fault.clause.map(review::Clause::as_str),
        thread: fault.thread.as_ref().map(ToString::to_string),
        field: fault.field.as_deref(),
        line: None,
    };
    Fact::no(format!("refused {}{details}", fault.code), fault.code)
        .with(None, &fault.message)
        .keyed(details.keys())
}

struct Details<'a> {
    clause: Option<&'a str>,
    thread: Option<String>,
    field: Option<&'a str>,
    line: Option<u32>,
}

impl Details<'_> {
    fn keys(&self) -> Keys {
        keys([
            ("clause", json!(self.clause)),
            ("thread", json!(self.thread)),
            ("field", json!(self.field)),
        ])
    }
}

impl std::fmt::Display for Details<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(clause) = self.clause {
            write!(f, " clause={clause}")?;
        }
        if let Some(thread) = &self.thread {
            write!(f, " thread={thread}")?;
        }
        if let Some(field) = self.field {
            write!(f, " field={field}")?;
        }
        self.line.map_or(Ok(()), |line| write!(f, " line={line}"))
    }
}

/// The facts of a record: its decision and the consequences.
pub(super) fn record(record: &Record) -> Vec<Fact> {
    match record {
        Record::Judged(judgement) => self::judgement(judgement),
        Record::Event(record) => event(record),
    }
}

/// The facts of the decision about a message.
pub(super) fn judgement(judgement: &Judgement) -> Vec<Fact> {
    match judgement {
        Judgement::Accepted(accepted) => match &accepted.step {
            Some(step) => {
                let verdict = Fact::yes(format!("accepted -> {}", phase(&step.phase, step.round)))
                    .keyed(step_keys(step));
                let alerts = accepted.alerts.iter().map(alert);
                std::iter::once(verdict)
                    .chain(threads(step))
                    .chain(alerts)
                    .collect()
            }
            None => {
                let to: Vec<&str> = accepted.to.iter().map(|name| name.as_str()).collect();
                vec![Fact::yes(format!(
                    "accepted -> delivered to {}",
                    to.join(", ")
                ))]
            }
        },
        Judgement::Duplicate(_) => {
            vec![Fact {
                code: Some(Code::Duplicate),
                ..Fact::yes(Code::Duplicate.as_str())
            }]
        }
        Judgement::Refused(refused) => {
            let verdict = Fact::no(format!("refused {}", refused.code), refused.code);
            std::iter::once(verdict).chain(cost(refused)).collect()
        }
    }
}

/// The fact of an alert: `alert CODE [thread=…]`.
fn alert(alert: &Alert) -> Fact {
    let thread = alert
        .thread()
        .map_or_else(String::new, |thread| format!(" thread={thread}"));
    Fact::note(format!("alert {}{thread}", alert.code())).with(None, alert.to_string())
}

/// The facts of the decision about an event.
pub(super) fn event(record: &EventRecord) -> Vec<Fact> {
    match record {
        EventRecord::Happened(happened) => {
            let mut all = vec![Fact::yes(format!("recorded {}", happened.event.sentence()))];
            for step in &happened.steps {
                all.push(
                    Fact::note(format!(
                        "review {}: {}",
                        step.review,
                        phase(&step.phase, step.round)
                    ))
                    .keyed(step_keys(step)),
                );
                all.extend(threads(step));
            }
            all.extend(happened.handoff.iter().flat_map(handoff));
            all.extend(happened.messages.iter().map(message));
            all
        }
        EventRecord::Declined(DeclinedEvent { code, why, .. }) => {
            vec![Fact::no(format!("declined {code}"), *code).with(None, why)]
        }
    }
}

/// The facts of a refusal's cost: the attempt it used, and the notice to its sender.
pub(super) fn cost(refused: &RefusedMessage) -> Vec<Fact> {
    let RefusedMessage {
        from, cost, notice, ..
    } = refused;
    let mut all = Vec::new();
    if let Some(cost) = cost {
        let counted = keys([
            ("attempts_left", json!(cost.attempts_left)),
            ("round", json!(cost.step.round)),
        ]);
        all.push(Fact::note(format!("attempts_left {}", cost.attempts_left)).keyed(counted));
        if cost.attempts_left == 0 {
            let ReviewStep { review, round, .. } = &cost.step;
            all.push(Fact::note(format!(
                "review {review}: {}",
                phase(&cost.step.phase, *round)
            )));
        }
        all.extend(cost.messages.iter().map(message));
    }
    all.push(Fact::note(match notice {
        Notice::Sent { summed_up: 0, .. } => format!("{DAEMON} -> {from} notification refused"),
        Notice::Sent { summed_up, .. } => {
            format!("{DAEMON} -> {from} notification refused summed_up={summed_up}")
        }
        Notice::Withheld => "notice withheld".to_owned(),
        Notice::Never => "notice never".to_owned(),
    }));
    all
}

/// A phase with its round and its own data: `escalated round 2 max_rounds_exceeded`.
pub(super) fn phase(phase: &Phase, round: u32) -> String {
    let more = match phase {
        Phase::Awaiting { .. }
        | Phase::Reviewing(_)
        | Phase::Fixing { .. }
        | Phase::Addressed { .. } => String::new(),
        Phase::Approved(approval) => {
            let commit = approval
                .commit
                .as_ref()
                .map_or_else(|| " unbound".to_owned(), |sha| format!(" {sha}"));
            let flags = [
                (approval.stale, " stale"),
                (approval.by_rule, " by_rule"),
                (!approval.merge_ready && !approval.by_rule, " waits"),
            ];
            let flags = flags
                .into_iter()
                .filter(|(is, _)| *is)
                .map(|(_, word)| word);
            let broken = approval
                .broken
                .iter()
                .map(|clause| format!(" broken={}", clause.as_str()));
            commit + &flags.collect::<String>() + &broken.collect::<String>()
        }
        Phase::Escalated(reason) => format!(" {reason}"),
        Phase::Closed(reason) => format!(" {}", reason.word()),
    };
    format!("{} round {round}{more}", phase.word())
}

fn threads(step: &ReviewStep) -> impl Iterator<Item = Fact> {
    step.threads.iter().map(|(id, changed)| {
        let named = keys([("thread", json!(id))]).into_iter();
        let keys = named.chain(thread_keys(changed)).collect();
        Fact::note(thread(id.as_str(), changed)).keyed(keys)
    })
}

/// The review's phase, round and budgets after a step, by key.
fn step_keys(step: &ReviewStep) -> Keys {
    let open = step.phase.invocation();
    keys([
        ("review", json!(step.review.to_string())),
        ("phase", json!(step.phase.word())),
        ("round", json!(step.round)),
        ("attempts_left", json!(open.map(|open| open.attempts_left))),
        (
            "turns_left",
            json!(open.map(review::Invocation::turns_left)),
        ),
    ])
}

/// A thread's state and counters, by key.
fn thread_keys(thread: &Thread) -> Keys {
    keys([
        ("state", json!(thread.state.word())),
        ("severity", json!(thread.severity)),
        ("blocking", json!(thread.blocking)),
        ("stance", json!(thread.dialogue.stance)),
        ("round_count", json!(thread.dialogue.round_count)),
        ("replies", json!(thread.dialogue.replies)),
    ])
}

/// A thread with its state, severity, counters and handoff.
pub(super) fn thread(id: &str, thread: &Thread) -> String {
    let Thread {
        severity,
        dialogue,
        origin,
        ..
    } = thread;
    let flags = [
        (thread.is_resolved_by_silence(), " resolved_by=silence"),
        (thread.was_reopened(), " reopened"),
        (thread.was_resolved_by_person(), " by_person"),
        (thread.is_queued(), " queued"),
        (thread.is_left_to_person(), " left_to_person"),
        (*origin == Origin::VerifyRun, " verify_run"),
        (*origin == Origin::CarriedOver, " carried"),
    ];
    let flags: String = flags
        .into_iter()
        .filter(|(is, _)| *is)
        .map(|(_, word)| word)
        .collect();
    let task = thread
        .task()
        .map_or_else(String::new, |task| format!(" task={task}"));
    format!(
        "thread {id} {} {severity}{} {} round_count={} replies={}{flags}{task}",
        thread.state.word(),
        if thread.blocking { " blocking" } else { "" },
        dialogue.stance,
        dialogue.round_count,
        dialogue.replies
    )
}

fn handoff(handoff: &Handoff) -> Vec<Fact> {
    let tasks = handoff.tasks.iter().map(|task| {
        let ids: Vec<&str> = task
            .findings
            .iter()
            .map(|finding| finding.id.as_str())
            .collect();
        Fact::note(format!(
            "handoff {} -> {} {}",
            task.id,
            task.target,
            ids.join(",")
        ))
    });
    let left = handoff
        .left
        .iter()
        .map(|left| Fact::note(format!("left {} {}", left.id, left.why.word())));
    let dropped = (handoff.dropped > 0).then(|| Fact::note(format!("dropped {}", handoff.dropped)));
    tasks.chain(left).chain(dropped).collect()
}

fn message(message: &DaemonMessage) -> Fact {
    let DaemonMessage { to, says, .. } = message;
    let what = match says {
        Says::Escalated { reason, .. } => format!("notification escalated {reason}"),
        Says::BudgetSpent { .. } => "review_feedback reviewer_budget_exceeded".to_owned(),
        Says::Closed { reason, .. } => format!("notification closed {}", reason.word()),
        Says::Reassigned { to, .. } => format!("notification reassigned {to}"),
        Says::Decided { .. } => "notification decided".to_owned(),
        Says::Handoff { task } => format!("handoff {task}"),
        Says::SentDiffers { file } => format!("notification sent_differs {file}"),
    };
    Fact::note(format!("{DAEMON} -> {to} {what}"))
}

/// One part of the final state: a review, a task, or what else a profile has.
#[derive(Clone, Debug, Serialize)]
pub struct Ended {
    /// A review's `review`, `phase`, `round`, `run`, counters and `threads`, or a task's `task` and `target`.
    #[serde(flatten)]
    pub keys: Keys,
    /// The same facts as lines.
    pub lines: Vec<String>,
}

impl Ended {
    /// An entry with lines and no keys.
    pub(super) fn plain(lines: Vec<String>) -> Self {
        Self {
            keys: Keys::new(),
            lines,
        }
    }

    pub(super) fn task(task: &Task) -> Self {
        Self {
            keys: keys([("task", json!(task.id)), ("target", json!(task.target))]),
            lines: vec![format!("task {} -> {}", task.id, task.target)],
        }
    }

    pub(super) fn review(key: &ReviewKey, review: &Review) -> Self {
        let open = review.phase.invocation();
        let deadline = review.deadline();
        let threads: BTreeMap<&str, Keys> = review
            .threads
            .iter()
            .map(|(id, thread)| (id.as_str(), thread_keys(thread)))
            .collect();
        let named = [
            ("review", json!(key.to_string())),
            ("phase", json!(review.phase.word())),
            ("round", json!(review.round)),
            ("run", json!(review.run().stored())),
            ("generation", json!(review.generation)),
            ("rounds", json!(review.rounds.get())),
            ("granted", json!(review.granted)),
            ("attempts_left", json!(open.map(|open| open.attempts_left))),
            (
                "supersessions_left",
                json!(open.map(|open| open.supersessions_left)),
            ),
            (
                "turns_left",
                json!(open.map(review::Invocation::turns_left)),
            ),
            ("deadline", json!(deadline.map(|(_, which)| which.word()))),
            ("due_at", json!(deadline.map(|(at, _)| at))),
            ("threads", json!(threads)),
        ];
        Self {
            keys: keys(named),
            lines: self::review(key, review),
        }
    }
}

/// The final state of a review: its phase, counters and threads.
fn review(key: &ReviewKey, review: &Review) -> Vec<String> {
    let mut lines = vec![
        format!("review {key}: {}", phase(&review.phase, review.round)),
        format!("generation {}", review.generation),
        format!("rounds {} granted {}", review.rounds.get(), review.granted),
    ];
    if let Some(open) = review.phase.invocation() {
        lines.push(format!("attempts_left {}", open.attempts_left));
        lines.push(format!("supersessions_left {}", open.supersessions_left));
        lines.push(format!("turns_left {}", open.turns_left()));
    }
    if let Some((at, which)) = review.deadline() {
        lines.push(format!(
            "deadline {} {}",
            which.word(),
            at.format("%Y-%m-%dT%H:%M:%SZ")
        ));
    }
    lines.push(format!("run {}", review.run().word()));
    lines.extend(
        review
            .threads
            .iter()
            .map(|(id, one)| thread(id.as_str(), one)),
    );
    lines
}
