//! Reads the action of a scenario's step: a message, an event, time passing, a restart, another config, or a move in
//! the part of the rules that the profile exercises.

use chrono::TimeDelta;
use message_schema::id::{AgentName, DiffDigest, Repo};
use message_schema::limit::MESSAGE_BYTES_MAX;
use message_schema::spend::{Spend, micro_usd};
use message_schema::yaml::{Content, Node, Style};
use review::{
    Act, Event, FailureCause, ObservedRun, PersonsDecision, PullAction, PullEvent, ReviewKey,
    RunFailure, RunSpend, RunState, Which,
};
use serde_json::Value;
use workspace::config::Config;

use super::format::{Profile, Setup};
use super::reader::{ParseError, Parsed, fields, optional, parsed, required, span, text, word};
use super::settings;
use crate::github;

/// The action of a step.
#[derive(Clone, Debug)]
pub(super) enum StepAction {
    /// An agent sends the described message.
    Send(Node),
    /// An outbox holds a file of these bytes, or an entry that is not a file.
    Raw(RawFile),
    /// An event happens.
    Event(Box<Event>),
    /// A forge reports an event that moves no review.
    Ignored,
    /// Time passes.
    Wait(TimeDelta),
    /// The daemon restarts and rebuilds its state from its records.
    Restart,
    /// The daemon restarts with another config, or refuses an unusable one.
    Config(Result<Box<Config>, ParseError>),
    /// The reviewer opens threads and acts on them (profile `threads`).
    Cycle(Node),
    /// The reviewer approves (profile `gate`).
    Lgtm(Node),
    /// A run goes from one state to another (profile `run`).
    Transition { from: RunState, to: RunState },
    /// A command of the pair acts (profile `run`).
    Pair(PairAction),
}

/// An entry of an outbox.
#[derive(Clone, Debug)]
pub(super) struct RawFile {
    pub(super) outbox: AgentName,
    pub(super) content: RawContent,
}

/// The kind of entry in an outbox.
#[derive(Clone, Debug)]
pub(super) enum RawContent {
    /// A file of these bytes.
    Bytes(Vec<u8>),
    /// An entry the daemon does not read.
    Unfit(spool::Unfit),
    /// A file that another user owns.
    Foreign,
    /// A message beyond the limit on messages of one outbox that wait for a packet.
    Overflow,
}

/// An action of a pair of commands.
#[derive(Clone, Debug)]
pub(super) enum PairAction {
    Started,
    StartFailed,
    /// The running command ends with this output.
    Output(String),
    Crashed,
    Interrupted,
}

const EVERYWHERE: [&str; 3] = ["wait", "restart", "config"];

/// The keys of a step in a profile: exactly one of the first, and any of the second.
pub(super) fn keys(profile: Profile) -> (Vec<&'static str>, &'static [&'static str]) {
    let (own, beside): (&[&str], &[&str]) = match profile {
        Profile::Full => (
            &[
                "send", "raw", "take", "turn", "start", "fail", "spend", "observe", "ran", "pr",
                "github", "decide",
            ],
            &[],
        ),
        Profile::Threads => (&["cycle"], &[]),
        Profile::Gate => (&["lgtm"], &["packet"]),
        Profile::Handoff => (&["pr", "github", "decide"], &[]),
        Profile::Run => return (vec!["transition", "pair", "output"], &[]),
    };
    (own.iter().chain(&EVERYWHERE).copied().collect(), beside)
}

/// Reads a step's action; `step` must have the field `key`.
pub(super) fn read(key: &str, step: &Node, setup: &Setup) -> Parsed<StepAction> {
    let node = &step.field(key).expect("the caller has found it").value;
    Ok(match key {
        "send" => StepAction::Send(node.clone()),
        "raw" => StepAction::Raw(raw(node, setup)?),
        "take" => event(Event::Taken(which(node, setup, &[])?)),
        "turn" => event(turn(node, setup)?),
        "start" => event(Event::Started(which(node, setup, &[])?)),
        "fail" => event(failed(node, setup)?),
        "spend" => event(spent(node, setup)?),
        "observe" => event(observed(node, setup)?),
        "ran" => event(ran(node, setup)?),
        "pr" => event(Event::Pull(pull(node, setup)?)),
        "github" => match github::read(json(node).to_string().as_bytes()) {
            Ok(github::GithubEvent::Event(pull)) => event(Event::Pull(pull)),
            Ok(github::GithubEvent::Other(_)) => StepAction::Ignored,
            Err(why) => {
                return Err(ParseError::at(
                    node.place,
                    format!("no pull_request payload: {why}"),
                ));
            }
        },
        "decide" => event(Event::Person(decision(node, setup)?)),
        "wait" => StepAction::Wait(span(node)?),
        "restart" => StepAction::Restart,
        "config" => StepAction::Config(settings::read(node).map(Box::new)),
        "cycle" => StepAction::Cycle(node.clone()),
        // The packet is a key of the same step, so the whole step is kept.
        "lgtm" => StepAction::Lgtm(step.clone()),
        "transition" => {
            fields(node, "transition", &["from", "to"])?;
            StepAction::Transition {
                from: run(required(node, key, "from")?)?,
                to: run(required(node, key, "to")?)?,
            }
        }
        "output" => StepAction::Pair(PairAction::Output(text(node)?.to_owned())),
        "pair" => StepAction::Pair(pair(node)?),
        _ => unreachable!("every key of a profile is read"),
    })
}

fn event(event: Event) -> StepAction {
    StepAction::Event(Box::new(event))
}

fn raw(node: &Node, setup: &Setup) -> Parsed<RawFile> {
    fields(node, "raw", &["outbox", "text", "hex", "entry"])?;
    let hex = |node: &Node| {
        let digits: String = text(node)?.split_ascii_whitespace().collect();
        message_schema::hex::read(&digits).ok_or_else(|| {
            ParseError::at(node.place, "expected hexadecimal digits, two for each byte")
        })
    };
    // An empty text is given, not missing: it makes an empty file.
    let content = match (node.field("text"), node.field("hex"), node.field("entry")) {
        (Some(field), None, None) => RawContent::Bytes(text(&field.value)?.as_bytes().to_vec()),
        (None, Some(field), None) => RawContent::Bytes(hex(&field.value)?),
        (None, None, Some(field)) if text(&field.value)?.trim() == "foreign" => RawContent::Foreign,
        (None, None, Some(field)) if text(&field.value)?.trim() == "overflow" => {
            RawContent::Overflow
        }
        (None, None, Some(field)) => RawContent::Unfit(unfit(&field.value)?),
        _ => {
            return Err(ParseError::at(
                node.place,
                "raw has one of `text`, `hex` and `entry`",
            ));
        }
    };
    let outbox = optional(node, "outbox")?.unwrap_or_else(|| setup.author().clone());
    Ok(RawFile { outbox, content })
}

fn unfit(node: &Node) -> Parsed<spool::Unfit> {
    Ok(match text(node)?.trim() {
        "symlink" => spool::Unfit::Symlink,
        "directory" => spool::Unfit::Directory,
        "special" => spool::Unfit::Special,
        "hard_link" => spool::Unfit::HardLink,
        "too_large" => spool::Unfit::TooLarge(MESSAGE_BYTES_MAX + 1),
        other => {
            let expected = "symlink, directory, special, hard_link, foreign, overflow or too_large";
            return Err(ParseError::at(
                node.place,
                format!("`{other}`: expected {expected}"),
            ));
        }
    })
}

/// A review as people name it: a pull request number, or a mapping.
fn which(node: &Node, setup: &Setup, beside: &[&str]) -> Parsed<Which> {
    if !matches!(node.content, Content::Map(_)) {
        let pr = if node.is_absent() {
            setup.pr.clone()
        } else {
            parsed(node)?
        };
        return Ok(Which {
            pr,
            repo: None,
            reviewer: None,
        });
    }
    let known: Vec<&str> = ["pr", "repo", "reviewer"]
        .iter()
        .chain(beside)
        .copied()
        .collect();
    fields(node, "a step", &known)?;
    Ok(Which {
        pr: optional(node, "pr")?.unwrap_or_else(|| setup.pr.clone()),
        repo: optional(node, "repo")?,
        reviewer: optional(node, "reviewer")?,
    })
}

/// A turn report; a bare number counts turns.
fn turn(node: &Node, setup: &Setup) -> Parsed<Event> {
    if node.scalar().is_some() && !node.is_absent() {
        let which = of_setup(setup);
        return Ok(Event::Turns {
            which,
            count: parsed(node)?,
        });
    }
    let which = which(node, setup, &["count"])?;
    Ok(Event::Turns {
        which,
        count: optional(node, "count")?.unwrap_or(1),
    })
}

/// A failed start; a bare text is the reason, a mapping can name the cause.
fn failed(node: &Node, setup: &Setup) -> Parsed<Event> {
    let failure = |cause, why: Option<String>| RunFailure {
        cause,
        why: why.unwrap_or_else(|| "the run failed".to_owned()),
        retry_after: None,
        run: None,
    };
    if !matches!(node.content, Content::Map(_)) {
        let why = (!node.is_absent()).then(|| text(node)).transpose()?;
        return Ok(Event::Failed {
            which: of_setup(setup),
            failure: failure(FailureCause::default(), why.map(str::to_owned)),
        });
    }
    let which = which(node, setup, &["cause", "why"])?;
    let cause = node.field("cause").map(|field| word(&field.value));
    Ok(Event::Failed {
        which,
        failure: failure(
            cause.transpose()?.unwrap_or_default(),
            optional(node, "why")?,
        ),
    })
}

/// The tokens and money of a run. A bare number counts tokens; each step is a new run unless it names one.
fn spent(node: &Node, setup: &Setup) -> Parsed<Event> {
    let run = format!("run-{:05}", node.place.line);
    if node.scalar().is_some() {
        let reviewer = setup.reviewer().clone();
        return Ok(Event::Spent(RunSpend {
            review: ReviewKey::new(None, &setup.pr, setup.author().clone(), reviewer.clone()),
            agent: reviewer,
            run,
            spend: Spend {
                tokens: parsed(node)?,
                ..Spend::default()
            },
        }));
    }
    let field = |name| {
        let known = ["pr", "repo", "reviewer", "agent", "run", "tokens", "usd"];
        fields(node, "spend", &known).map(|_| node.field(name).map(|field| &field.value))
    };
    let reviewer = match field("reviewer")? {
        Some(name) => parsed(name)?,
        None => setup.reviewer().clone(),
    };
    let pr = optional(node, "pr")?.unwrap_or_else(|| setup.pr.clone());
    let repo: Option<Repo> = optional(node, "repo")?;
    let mut spend = Spend::default();
    if let Some(dollars) = field("usd")? {
        let amount = text(dollars)?.trim().parse().ok().and_then(micro_usd);
        let wrong = || ParseError::at(dollars.place, "`usd` is expected to be a number of dollars");
        spend.micro_usd = amount.ok_or_else(wrong)?;
    }
    spend.tokens = optional(node, "tokens")?.unwrap_or(0);
    Ok(Event::Spent(RunSpend {
        review: ReviewKey::new(repo.as_ref(), &pr, setup.author().clone(), reviewer.clone()),
        agent: optional(node, "agent")?.unwrap_or(reviewer),
        run: optional::<String>(node, "run")?.unwrap_or(run),
        spend,
    }))
}

/// The files that the runner saw being read: a list, or a mapping with `files`.
fn observed(node: &Node, setup: &Setup) -> Parsed<Event> {
    let is_mapping = matches!(node.content, Content::Map(_));
    let (which, list) = if is_mapping {
        (
            which(node, setup, &["files"])?,
            required(node, "observe", "files")?,
        )
    } else {
        (of_setup(setup), node)
    };
    let files = list.items().iter().map(parsed).collect::<Parsed<_>>()?;
    Ok(Event::Observed { which, files })
}

/// A validation command that ran. It passes and prints nothing unless the step says otherwise.
fn ran(node: &Node, setup: &Setup) -> Parsed<Event> {
    let which = which(node, setup, &["command", "exit", "head"])?;
    let exit: Option<u8> = optional(node, "exit")?;
    Ok(Event::Ran {
        which,
        run: ObservedRun {
            command: text(required(node, "ran", "command")?)?.to_owned(),
            exit: Some(exit.map_or(0, i32::from)),
            duration_ms: 0,
            output: DiffDigest::new(format!("sha256:{NOTHING}")).expect("64 digits"),
            head: optional(node, "head")?,
        },
    })
}

/// The SHA-256 of no bytes.
const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn of_setup(setup: &Setup) -> Which {
    Which {
        pr: setup.pr.clone(),
        repo: None,
        reviewer: None,
    }
}

fn pull(node: &Node, setup: &Setup) -> Parsed<PullEvent> {
    if node.scalar().is_some() {
        let action: PullAction = word(node)?;
        return Ok(PullEvent {
            repo: None,
            pr: setup.pr.clone(),
            action,
            author: None,
            head: None,
        });
    }
    fields(node, "pr", &["action", "pr", "repo", "head", "author"])?;
    Ok(PullEvent {
        repo: optional(node, "repo")?,
        pr: optional(node, "pr")?.unwrap_or_else(|| setup.pr.clone()),
        action: word(required(node, "pr", "action")?)?,
        author: optional(node, "author")?,
        head: optional(node, "head")?,
    })
}

fn decision(node: &Node, setup: &Setup) -> Parsed<PersonsDecision> {
    let (by, reason) = ("maintainer".to_owned(), "because".to_owned());
    if node.scalar().is_some() {
        let which = of_setup(setup);
        return Ok(PersonsDecision {
            which,
            by,
            reason,
            act: act(node, node)?,
        });
    }
    let which = which(
        node,
        setup,
        &["act", "thread", "rounds", "head", "by", "reason"],
    )?;
    Ok(PersonsDecision {
        which,
        by: optional(node, "by")?.unwrap_or(by),
        reason: optional(node, "reason")?.unwrap_or(reason),
        act: act(required(node, "decide", "act")?, node)?,
    })
}

fn act(word: &Node, decision: &Node) -> Parsed<Act> {
    let thread = || parsed(required(decision, "this decision", "thread")?);
    Ok(match text(word)?.trim() {
        "reopen" => Act::Reopen,
        "cancel" => Act::Cancel,
        "approve" => Act::Approve {
            head: optional(decision, "head")?,
        },
        "grant" => Act::Grant {
            rounds: optional(decision, "rounds")?.unwrap_or(1),
        },
        "resolve" => Act::Resolve(thread()?),
        "wont_fix" => Act::WontFix(thread()?),
        "queue" => Act::Queue(thread()?),
        "hold" => Act::Hold(thread()?),
        "release" => Act::Release(thread()?),
        "drop" => Act::Drop(thread()?),
        other => {
            let expected =
                "reopen, cancel, approve, grant, resolve, wont_fix, queue, hold, release or drop";
            return Err(ParseError::at(
                word.place,
                format!("`{other}`: expected {expected}"),
            ));
        }
    })
}

fn run(node: &Node) -> Parsed<RunState> {
    let name = text(node)?.trim();
    RunState::from_word(name).ok_or_else(|| {
        let words: Vec<&str> = RunState::ALL.iter().map(|run| run.word()).collect();
        ParseError::at(
            node.place,
            format!("`{name}`: expected one of {}", words.join(", ")),
        )
    })
}

fn pair(node: &Node) -> Parsed<PairAction> {
    Ok(match text(node)?.trim() {
        "started" => PairAction::Started,
        "start_failed" => PairAction::StartFailed,
        "crashed" => PairAction::Crashed,
        "interrupted" => PairAction::Interrupted,
        other => {
            let expected = "started, start_failed, crashed or interrupted";
            return Err(ParseError::at(
                node.place,
                format!("`{other}`: expected {expected}"),
            ));
        }
    })
}

/// Converts a payload to JSON. Unquoted numbers and booleans keep their type.
fn json(node: &Node) -> Value {
    match &node.content {
        Content::Scalar(scalar) if scalar.style == Style::Plain => {
            serde_json::from_str(&scalar.text).unwrap_or_else(|_| scalar.text.as_str().into())
        }
        Content::Scalar(scalar) => scalar.text.as_str().into(),
        Content::List(items) => items.iter().map(json).collect(),
        Content::Map(fields) => Value::Object(
            fields
                .iter()
                .map(|field| (field.key.clone(), json(&field.value)))
                .collect(),
        ),
    }
}

impl Setup {
    /// Returns the agent that opens reviews unless a step says otherwise.
    pub(super) fn author(&self) -> &AgentName {
        self.agents.first().expect("a scenario has an agent")
    }

    /// Returns the agent that reviews unless a step says otherwise.
    pub(super) fn reviewer(&self) -> &AgentName {
        self.agents.get(1).unwrap_or_else(|| self.author())
    }
}
