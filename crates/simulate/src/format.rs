//! Reads the file of a scenario: its setup, steps and expectations. `docs/scenarios.md` shows the format by example,
//! `schemas/scenario.schema.json` describes it for editors, and `steps` reads what a step does.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use message_schema::Place;
use message_schema::envelope::Timestamp;
use message_schema::id::{AgentName, PrNumber};
use message_schema::yaml::Node;
use review::{ITERATIONS, SignalWords};
use workspace::config::Config;

use super::reader::{
    ParseError, Parsed, fields, instant, one_or_many, optional, parsed, required, text, value, word,
};
use super::settings;
use super::steps::{self, StepAction};

/// A parsed scenario, ready to run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The rule it tests, in one line.
    pub title: String,
    /// The part of the rules it exercises.
    pub profile: Profile,
    pub(super) setup: Setup,
    pub(super) steps: Vec<ScenarioStep>,
    /// The lines expected at the end.
    pub(super) expected: Vec<Expected>,
}

/// The part of the rules a scenario exercises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// All rules: messages, deadlines, pull requests, people.
    Full,
    /// The threads of one reviewer, without messages and without a round limit.
    Threads,
    /// The quality gate.
    Gate,
    /// The handoff of findings after their pull request is merged.
    Handoff,
    /// The states of a run and the signals of a pair of commands.
    Run,
}

/// The setup of a scenario.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) config: Config,
    /// The agents with a mailbox, at least one; the first is the author unless a step says otherwise.
    pub(super) agents: Vec<AgentName>,
    pub(super) start: DateTime<Utc>,
    /// The pull request of steps that name none.
    pub(super) pr: PrNumber,
    /// The initial threads (profiles `gate` and `handoff`).
    pub(super) threads: Option<Node>,
    /// The pair of commands (profile `run`).
    pub(super) pair: PairSetup,
}

/// The pair of commands of profile `run`.
#[derive(Clone, Debug)]
pub(super) struct PairSetup {
    pub(super) has_reviewer: bool,
    pub(super) iterations: u8,
    pub(super) words: SignalWords,
}

/// A step of a scenario.
#[derive(Clone, Debug)]
pub(super) struct ScenarioStep {
    pub(super) place: Place,
    /// Its time, if given; otherwise it happens at the time of the step before.
    pub(super) at: Option<DateTime<Utc>>,
    pub(super) action: StepAction,
    /// The lines its facts must include; `None` if it has no expectation.
    pub(super) expected: Option<Vec<Expected>>,
}

/// An expected line.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    pub(super) place: Place,
    pub(super) line: String,
}

/// A scenario that cannot be read, or whose config cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}", file = file.display())]
pub struct ScenarioError {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The error and what would have been accepted.
    pub message: String,
}

impl Scenario {
    /// Reads a scenario from the bytes of its file; `file` is for errors only.
    pub fn parse(bytes: &[u8], file: &Path) -> Result<Self, ScenarioError> {
        let read = message_schema::parse_packet(bytes)
            .map_err(|malformed| {
                ParseError::at(
                    malformed.place.unwrap_or(Place::START),
                    malformed.to_string(),
                )
            })
            .and_then(|root| scenario(&root));
        read.map_err(|ParseError { place, message }| ScenarioError {
            file: file.to_owned(),
            line: place.line,
            column: place.column,
            message,
        })
    }
}

const START: &str = "2026-02-13T10:00:00Z";
const PR: &str = "86";
const AGENTS: [&str; 2] = ["claude", "codex"];

fn scenario(root: &Node) -> Parsed<Scenario> {
    let known = [
        "title", "profile", "config", "agents", "start", "pr", "threads", "pair", "steps", "final",
    ];
    fields(root, "a scenario", &known)?;
    let profile = value(root, "profile").map_or(Ok(Profile::Full), word)?;
    let setup = setup(root, profile)?;
    let list = required(root, "a scenario", "steps")?;
    let steps: Parsed<Vec<ScenarioStep>> = list
        .items()
        .iter()
        .map(|node| step(node, profile, &setup))
        .collect();
    Ok(Scenario {
        title: text(required(root, "a scenario", "title")?)?
            .trim()
            .to_owned(),
        profile,
        steps: steps?,
        expected: value(root, "final").map_or(Ok(Vec::new()), expectations)?,
        setup,
    })
}

fn setup(root: &Node, profile: Profile) -> Parsed<Setup> {
    let config = value(root, "config").map_or(Ok(Config::default()), settings::read);
    let config = config.map_err(|wrong| ParseError {
        message: format!("config_invalid: {}", wrong.message),
        ..wrong
    })?;
    let agents = match value(root, "agents") {
        Some(node) => one_or_many(node)
            .iter()
            .map(parsed)
            .collect::<Parsed<_>>()?,
        None => AGENTS
            .map(|name| name.parse().expect("an agent name"))
            .to_vec(),
    };
    if let (true, Some(node)) = (agents.is_empty(), value(root, "agents")) {
        return Err(ParseError::at(node.place, "expected at least one agent"));
    }
    let standard = Timestamp::parse(START).expect("an instant").utc();
    let pr = optional(root, "pr")?;
    let threads = value(root, "threads").cloned();
    match (profile, &threads) {
        (Profile::Gate | Profile::Handoff, _) | (_, None) => {}
        (Profile::Full | Profile::Threads | Profile::Run, Some(node)) => {
            return Err(ParseError::at(
                node.place,
                "only the profiles gate and handoff begin with threads",
            ));
        }
    }
    Ok(Setup {
        config,
        agents,
        start: value(root, "start").map_or(Ok(standard), |node| instant(node, standard))?,
        pr: pr.unwrap_or_else(|| PR.parse().expect("a number")),
        threads,
        pair: pair(value(root, "pair"))?,
    })
}

fn pair(node: Option<&Node>) -> Parsed<PairSetup> {
    let mut words = SignalWords::default();
    let Some(node) = node else {
        return Ok(PairSetup {
            has_reviewer: true,
            iterations: ITERATIONS,
            words,
        });
    };
    fields(
        node,
        "pair",
        &["reviewer", "iterations", "done", "pass", "fail"],
    )?;
    for (key, word) in [
        ("done", &mut words.done),
        ("pass", &mut words.pass),
        ("fail", &mut words.fail),
    ] {
        if let Some(value) = value(node, key) {
            text(value)?.trim().clone_into(word);
        }
    }
    let SignalWords { done, pass, fail } = &words;
    if done == pass || pass == fail || fail == done {
        return Err(ParseError::at(
            node.place,
            "`done`, `pass` and `fail` are three words",
        ));
    }
    let iterations = optional(node, "iterations")?.unwrap_or(ITERATIONS);
    if iterations == 0 {
        return Err(ParseError::at(
            node.place,
            "`iterations` is 0, expected at least 1",
        ));
    }
    Ok(PairSetup {
        has_reviewer: optional(node, "reviewer")?.unwrap_or(true),
        iterations,
        words,
    })
}

fn step(node: &Node, profile: Profile, setup: &Setup) -> Parsed<ScenarioStep> {
    let (keys, beside) = steps::keys(profile);
    let known: Vec<&str> = keys
        .iter()
        .chain(beside)
        .chain(&["at", "expect"])
        .copied()
        .collect();
    let all = fields(node, "a step", &known)?;
    let done: Vec<&str> = all
        .iter()
        .map(|field| field.key.as_str())
        .filter(|key| keys.contains(key))
        .collect();
    let &[key] = done.as_slice() else {
        return Err(ParseError::at(
            node.place,
            format!("a step does one of {}", keys.join(", ")),
        ));
    };
    let action = steps::read(key, node, setup)?;
    let at = value(node, "at")
        .map(|at| instant(at, setup.start))
        .transpose()?;
    if let (StepAction::Wait(_), Some(_)) = (&action, at) {
        return Err(ParseError::at(
            node.place,
            "a step that waits ends when it ends: leave out `at`",
        ));
    }
    let expected = node
        .field("expect")
        .map(|field| expectations(&field.value))
        .transpose()?;
    Ok(ScenarioStep {
        place: node.place,
        at,
        action,
        expected,
    })
}

fn expectations(node: &Node) -> Parsed<Vec<Expected>> {
    let line = |node: &Node| {
        let line = text(node)?.trim().to_owned();
        Ok(Expected {
            place: node.place,
            line,
        })
    };
    one_or_many(node).iter().map(line).collect()
}
