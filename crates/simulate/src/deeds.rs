//! What a step of a scenario does: a message, an event, time passing, a restart, another config, or
//! a move in the part of the rules that its profile exercises.

use chrono::TimeDelta;
use message_schema::id::AgentName;
use message_schema::limit::MESSAGE_BYTES_MAX;
use message_schema::yaml::{Content, Node, Style};
use review::{Act, Event, PersonsDecision, PullAction, PullEvent, RunState, Which};
use serde_json::Value;
use workspace::config::Config;

use super::format::{Profile, Setup};
use super::reader::{Read, Wrong, fields, optional, parsed, required, span, text, word};
use super::settings;
use crate::github;

/// What a step does.
#[derive(Clone, Debug)]
pub(super) enum Deed {
    /// A message is sent, as described.
    Send(Node),
    /// A file lies in an outbox, as written.
    Raw(Raw),
    /// Something else happens.
    Event(Box<Event>),
    /// A forge tells of something that does not matter.
    Ignored,
    /// Time passes.
    Wait(TimeDelta),
    /// The daemon starts again: everything it knows is read anew from its records.
    Restart,
    /// The daemon starts again with another config; or does not, with one it cannot use.
    Config(Result<Box<Config>, Wrong>),
    /// The reviewer opens threads and acts on them (profile `threads`).
    Cycle(Node),
    /// The reviewer approves (profile `gate`).
    Lgtm(Node),
    /// A run goes from one state to another (profile `run`).
    Transition { from: RunState, to: RunState },
    /// Something happens to the pair of commands (profile `run`).
    Pair(PairDeed),
}

/// A file in an outbox.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    pub(super) outbox: AgentName,
    pub(super) content: RawContent,
}

/// What the entry in the outbox is.
#[derive(Clone, Debug)]
pub(super) enum RawContent {
    /// A file of these bytes.
    Bytes(Vec<u8>),
    /// Something that is not read at all.
    Unfit(spool::Unfit),
    /// A file of another user than the agent's.
    Foreign,
}

/// What happens to a pair of commands.
#[derive(Clone, Debug)]
pub(super) enum PairDeed {
    Started,
    StartFailed,
    /// The command whose turn it is ends with this output.
    Output(String),
    Crashed,
    Interrupted,
}

const EVERYWHERE: [&str; 3] = ["wait", "restart", "config"];

/// The keys of a step in a profile: those of which a step has one, and those that stand beside it.
pub(super) fn keys(profile: Profile) -> (Vec<&'static str>, &'static [&'static str]) {
    let (own, beside): (&[&str], &[&str]) = match profile {
        Profile::Full => (
            &[
                "send", "raw", "take", "turn", "start", "fail", "pr", "github", "decide",
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

/// Reads what a step does; `step` has the key.
pub(super) fn read(key: &str, step: &Node, setup: &Setup) -> Read<Deed> {
    let node = &step.field(key).expect("the caller has found it").value;
    Ok(match key {
        "send" => Deed::Send(node.clone()),
        "raw" => Deed::Raw(raw(node, setup)?),
        "take" => event(Event::Taken(which(node, setup, &[])?)),
        "turn" => event(turn(node, setup)?),
        "start" => event(Event::Started(which(node, setup, &[])?)),
        "fail" => event(failed(node, setup)?),
        "pr" => event(Event::Pull(pull(node, setup)?)),
        "github" => match github::read(json(node).to_string().as_bytes()) {
            Ok(github::Read::Event(pull)) => event(Event::Pull(pull)),
            Ok(github::Read::Other(_)) => Deed::Ignored,
            Err(why) => {
                return Err(Wrong::at(
                    node.place,
                    format!("no pull_request payload: {why}"),
                ));
            }
        },
        "decide" => event(Event::Person(decision(node, setup)?)),
        "wait" => Deed::Wait(span(node)?),
        "restart" => Deed::Restart,
        "config" => Deed::Config(settings::read(node).map(Box::new)),
        "cycle" => Deed::Cycle(node.clone()),
        // Its packet stands beside it, so the whole step is kept.
        "lgtm" => Deed::Lgtm(step.clone()),
        "transition" => {
            fields(node, "transition", &["from", "to"])?;
            Deed::Transition {
                from: run(required(node, key, "from")?)?,
                to: run(required(node, key, "to")?)?,
            }
        }
        "output" => Deed::Pair(PairDeed::Output(text(node)?.to_owned())),
        "pair" => Deed::Pair(pair(node)?),
        _ => unreachable!("every key of a profile is read"),
    })
}

fn event(event: Event) -> Deed {
    Deed::Event(Box::new(event))
}

fn raw(node: &Node, setup: &Setup) -> Read<Raw> {
    fields(node, "raw", &["outbox", "text", "hex", "entry"])?;
    let hex = |node: &Node| {
        let digits: Vec<u8> = text(node)?
            .bytes()
            .filter(|byte| !byte.is_ascii_whitespace())
            .collect();
        let pair = |pair: &[u8]| {
            std::str::from_utf8(pair)
                .ok()
                .and_then(|pair| u8::from_str_radix(pair, 16).ok())
        };
        let bytes: Option<Vec<u8>> = digits.chunks(2).map(pair).collect();
        bytes.ok_or_else(|| Wrong::at(node.place, "expected hexadecimal digits, two for each byte"))
    };
    // An empty text is a text: that of an empty file.
    let content = match (node.field("text"), node.field("hex"), node.field("entry")) {
        (Some(field), None, None) => RawContent::Bytes(text(&field.value)?.as_bytes().to_vec()),
        (None, Some(field), None) => RawContent::Bytes(hex(&field.value)?),
        (None, None, Some(field)) if text(&field.value)?.trim() == "foreign" => RawContent::Foreign,
        (None, None, Some(field)) => RawContent::Unfit(unfit(&field.value)?),
        _ => {
            return Err(Wrong::at(
                node.place,
                "raw has one of `text`, `hex` and `entry`",
            ));
        }
    };
    let outbox = optional(node, "outbox")?.unwrap_or_else(|| setup.author().clone());
    Ok(Raw { outbox, content })
}

fn unfit(node: &Node) -> Read<spool::Unfit> {
    Ok(match text(node)?.trim() {
        "symlink" => spool::Unfit::Symlink,
        "directory" => spool::Unfit::Directory,
        "special" => spool::Unfit::Special,
        "hard_link" => spool::Unfit::HardLink,
        "too_large" => spool::Unfit::TooLarge(MESSAGE_BYTES_MAX + 1),
        other => {
            let expected = "symlink, directory, special, hard_link, foreign or too_large";
            return Err(Wrong::at(
                node.place,
                format!("`{other}`: expected {expected}"),
            ));
        }
    })
}

/// A review as people name it: a number, or a mapping.
fn which(node: &Node, setup: &Setup, beside: &[&str]) -> Read<Which> {
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

/// A bare number is a count, since turns are what is counted.
fn turn(node: &Node, setup: &Setup) -> Read<Event> {
    if node.scalar().is_some() && !node.is_absent() {
        let which = Which {
            pr: setup.pr.clone(),
            repo: None,
            reviewer: None,
        };
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

/// A bare text is what became of the command.
fn failed(node: &Node, setup: &Setup) -> Read<Event> {
    let unsaid = "it came to nothing";
    if !matches!(node.content, Content::Map(_)) {
        let which = Which {
            pr: setup.pr.clone(),
            repo: None,
            reviewer: None,
        };
        let why = if node.is_absent() {
            unsaid
        } else {
            text(node)?
        };
        return Ok(Event::Failed {
            which,
            why: why.to_owned(),
        });
    }
    let which = which(node, setup, &["why"])?;
    Ok(Event::Failed {
        which,
        why: optional(node, "why")?.unwrap_or_else(|| unsaid.to_owned()),
    })
}

fn pull(node: &Node, setup: &Setup) -> Read<PullEvent> {
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

fn decision(node: &Node, setup: &Setup) -> Read<PersonsDecision> {
    let (by, reason) = ("maintainer".to_owned(), "because".to_owned());
    if node.scalar().is_some() {
        let which = Which {
            pr: setup.pr.clone(),
            repo: None,
            reviewer: None,
        };
        return Ok(PersonsDecision {
            which,
            by,
            reason,
            act: act(node, node)?,
        });
    }
    let which = which(node, setup, &["act", "thread", "rounds", "by", "reason"])?;
    Ok(PersonsDecision {
        which,
        by: optional(node, "by")?.unwrap_or(by),
        reason: optional(node, "reason")?.unwrap_or(reason),
        act: act(required(node, "decide", "act")?, node)?,
    })
}

fn act(word: &Node, decision: &Node) -> Read<Act> {
    let thread = || parsed(required(decision, "this decision", "thread")?);
    Ok(match text(word)?.trim() {
        "reopen" => Act::Reopen,
        "cancel" => Act::Cancel,
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
            let expected = "reopen, cancel, grant, resolve, wont_fix, queue, hold, release or drop";
            return Err(Wrong::at(
                word.place,
                format!("`{other}`: expected {expected}"),
            ));
        }
    })
}

fn run(node: &Node) -> Read<RunState> {
    let name = text(node)?.trim();
    RunState::from_word(name).ok_or_else(|| {
        let words: Vec<&str> = RunState::ALL.iter().map(|run| run.word()).collect();
        Wrong::at(
            node.place,
            format!("`{name}`: expected one of {}", words.join(", ")),
        )
    })
}

fn pair(node: &Node) -> Read<PairDeed> {
    Ok(match text(node)?.trim() {
        "started" => PairDeed::Started,
        "start_failed" => PairDeed::StartFailed,
        "crashed" => PairDeed::Crashed,
        "interrupted" => PairDeed::Interrupted,
        other => {
            let expected = "started, start_failed, crashed or interrupted";
            return Err(Wrong::at(
                node.place,
                format!("`{other}`: expected {expected}"),
            ));
        }
    })
}

/// A payload as JSON; written in YAML, bare numbers and truths are not texts.
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
    /// The agent that opens reviews unless a step says otherwise.
    pub(super) fn author(&self) -> &AgentName {
        self.agents.first().expect("a scenario has an agent")
    }

    /// The agent that reviews unless a step says otherwise.
    pub(super) fn reviewer(&self) -> &AgentName {
        self.agents.get(1).unwrap_or_else(|| self.author())
    }
}
