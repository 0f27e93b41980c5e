//! Reads `[runner]`, and the command in an agent's section.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::field;

/// `[runner]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct RunnerSection {
    /// The number of commands of all agents that may run at a time: 1 to 64.
    #[serde(deserialize_with = "concurrent")]
    pub concurrent: u64,
    /// The number of seconds before a command's deadline at which the log warns: 0 (never) to 86 400.
    #[serde(deserialize_with = "warn_s")]
    pub warn_s: u64,
    /// The seconds that each validation command may take in a run's own tree: 0 (run none) to 86 400.
    #[serde(deserialize_with = "validation_s")]
    pub validation_s: u64,
    /// The most that the files of a run's own tree may take on the disk, in MiB: 1 to 1 048 576.
    #[serde(deserialize_with = "tree_mib_max")]
    pub tree_mib_max: u64,
    /// The last line with which a reviewer approves.
    #[serde(deserialize_with = "word")]
    pub pass: String,
    /// The last line with which either gives up.
    #[serde(deserialize_with = "word")]
    pub fail: String,
    /// The last line with which an author says that it is ready; from a reviewer it is no verdict.
    #[serde(deserialize_with = "word")]
    pub done: String,
}

impl Default for RunnerSection {
    fn default() -> Self {
        let review::SignalWords { done, pass, fail } = review::SignalWords::default();
        Self {
            concurrent: 2,
            warn_s: 60,
            validation_s: 600,
            tree_mib_max: runner::checkout::MIB_MAX,
            pass,
            fail,
            done,
        }
    }
}

impl RunnerSection {
    /// The last lines that count as signals.
    pub fn words(&self) -> review::SignalWords {
        let Self {
            done, pass, fail, ..
        } = self.clone();
        review::SignalWords { done, pass, fail }
    }
}

/// Refuses equal words, because then giving up could approve.
pub(super) fn section<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<RunnerSection, D::Error> {
    let section = RunnerSection::deserialize(deserializer)?;
    if section.words().are_distinct() {
        return Ok(section);
    }
    Err(Error::custom(
        "two of done, pass and fail of [runner] are the same word, expected three",
    ))
}

/// The standard input of an agent's command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// The prompt is its input.
    #[default]
    Prompt,
    /// It is closed.
    Closed,
}

/// The files that an agent's command works on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckoutMode {
    /// The files of the commit under review, in a tree of the run's own, if there is a repository.
    #[default]
    Head,
    /// The files in the agent's working directory.
    Workdir,
}

/// The number of commands of one agent that may run at a time: 1 to 64, by default 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrent(pub u64);

impl Default for Concurrent {
    fn default() -> Self {
        Self(1)
    }
}

fn concurrent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    field::within(deserializer, "runner.concurrent", 1..=64)
}

pub(super) fn concurrent_of_agent<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Concurrent, D::Error> {
    field::within(deserializer, "concurrent", 1..=64).map(Concurrent)
}

fn warn_s<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    field::within(deserializer, "runner.warn_s", 0..=86_400)
}

fn validation_s<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    field::within(deserializer, "runner.validation_s", 0..=86_400)
}

fn tree_mib_max<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    field::within(deserializer, "runner.tree_mib_max", 1..=1_048_576)
}

/// Reads a signal word. It is compared with a whole line, so surrounding white space or a line break could never match.
fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let expected = "one word on a line of its own";
    let word = field::text(deserializer, "a word of [runner]", expected)?;
    if word.trim() != word || word.is_empty() || !message_schema::line::is_one_line(&word) {
        let found = message_schema::line::escaped(&word);
        return Err(Error::custom(format!(
            "a word of [runner] is `{found}`, expected {expected}"
        )));
    }
    Ok(word)
}

pub(super) fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let expected = "a list of texts: a program and its arguments";
    let command = Vec::<String>::deserialize(deserializer).map_err(|_| {
        Error::custom(format!(
            "command is not a list of texts, expected {expected}"
        ))
    })?;
    if command
        .first()
        .is_some_and(|program| program.trim().is_empty())
    {
        return Err(Error::custom(format!(
            "command names no program, expected {expected}"
        )));
    }
    no_nul(command.iter()).map_err(Error::custom)?;
    Ok(command)
}

pub(super) fn env<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let env = BTreeMap::<String, String>::deserialize(deserializer).map_err(|_| {
        Error::custom("env is not a table of texts, expected one, such as { LANG = \"C\" }")
    })?;
    if let Some(name) = env
        .keys()
        .find(|name| name.is_empty() || name.contains('='))
    {
        return Err(Error::custom(format!(
            "env names `{name}`, expected a name without `=`"
        )));
    }
    no_nul(env.iter().flat_map(|(name, value)| [name, value])).map_err(Error::custom)?;
    Ok(env)
}

pub(super) fn leave_out<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    let expected = "a list of names of files and directories, without `/`";
    let names = Vec::<String>::deserialize(deserializer)
        .map_err(|_| Error::custom(format!("leave_out is not {expected}")))?;
    let is_none = |name: &&String| {
        name.is_empty() || name.contains('/') || !message_schema::line::is_one_line(name)
    };
    match names.iter().find(is_none) {
        Some(name) => Err(Error::custom(format!(
            "leave_out names `{}`, expected {expected}",
            message_schema::line::escaped(name)
        ))),
        None => Ok(names),
    }
}

fn no_nul<'t>(mut texts: impl Iterator<Item = &'t String>) -> Result<(), &'static str> {
    if texts.any(|text| text.contains('\0')) {
        Err("a text has a NUL, expected none")
    } else {
        Ok(())
    }
}

pub(super) fn input<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Input, D::Error> {
    field::word(deserializer, "stdin", "\"prompt\" or \"closed\"")
}

pub(super) fn checkout<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<CheckoutMode, D::Error> {
    field::word(deserializer, "checkout", "\"head\" or \"workdir\"")
}
