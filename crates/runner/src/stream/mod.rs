//! Reads a command's output line by line while it runs: the completed turns, the spend, and the last words. It knows
//! the formats of command-line agents that print one JSON object per line; it starts nothing and judges nothing.

pub mod cause;
mod claude;
mod codex;
mod event;
mod gemini;
mod opencode;
mod output;
mod reads;
mod spend;
mod unreadable;

use std::collections::BTreeMap;

use message_schema::spend::Spend;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::cause::{Cause, NO_END, ProgramFailure};
use self::event::{StreamEvent, text};
use self::spend::SpendMeter;
use self::unreadable::SAID_MAX;

pub use self::output::AgentOutput;
pub use self::unreadable::Unreadable;

/// The longest line that is read, in bytes; a longer one is skipped.
const LINE_MAX: usize = 4 * 1024 * 1024;

/// The most open tool calls to remember.
const CALLS_MAX: usize = 1_000;

/// The format of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    /// Plain text: all of it is the answer, and turns cannot be counted.
    #[default]
    Text,
    /// `claude -p --output-format stream-json --verbose`.
    Claude,
    /// `codex exec --json`.
    Codex,
    /// `gemini --output-format stream-json`.
    Gemini,
    /// `opencode run --format json`.
    #[serde(rename = "opencode")]
    OpenCode,
}

impl OutputFormat {
    /// True if programs with this format report the tokens they use.
    pub fn tells_tokens(self) -> bool {
        self != Self::Text
    }

    /// True if they report the cost.
    pub fn tells_cost(self) -> bool {
        matches!(self, Self::Claude | Self::OpenCode)
    }
}

/// An output that is being read.
#[derive(Debug)]
pub struct OutputReader {
    form: OutputFormat,
    line: Vec<u8>,
    is_line_too_long: bool,
    /// The id of the last turn, if the format has one.
    last: Option<String>,
    begun: u16,
    words: Vec<u8>,
    is_cut: bool,
    end: Option<Result<(), ProgramFailure>>,
    stopped: Option<ProgramFailure>,
    cause: Option<Cause>,
    /// Tool calls that read files and have not ended.
    asked: BTreeMap<String, Vec<String>>,
    /// Files that were read and not reported yet.
    read: Vec<String>,
    spend: SpendMeter,
}

impl OutputReader {
    /// A reader for this format.
    pub fn new(form: OutputFormat) -> Self {
        let (line, words) = (Vec::new(), Vec::new());
        Self {
            form,
            line,
            is_line_too_long: false,
            last: None,
            begun: 0,
            words,
            is_cut: false,
            end: None,
            stopped: None,
            cause: None,
            asked: BTreeMap::new(),
            read: Vec::new(),
            spend: SpendMeter::default(),
        }
    }

    /// Reads the next bytes.
    pub fn read(&mut self, bytes: &[u8]) {
        if self.form == OutputFormat::Text {
            return self.keep(bytes);
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.split_last() {
                Some((b'\n', rest)) => {
                    self.gather(rest);
                    self.take_line();
                }
                Some(_) | None => self.gather(piece),
            }
        }
    }

    /// The files that the agent has read since the last call, named as the agent named them.
    pub fn take_reads(&mut self) -> Vec<String> {
        std::mem::take(&mut self.read)
    }

    /// The spend so far.
    pub fn spend(&self) -> Spend {
        self.spend.total()
    }

    /// True if the program has reported a successful end.
    pub fn is_done(&self) -> bool {
        matches!(self.end, Some(Ok(())))
    }

    /// The turns that are certainly completed, because another one followed. The turn with the answer counts only once
    /// the answer has been read.
    pub fn completed(&self) -> u16 {
        self.begun.saturating_sub(1)
    }

    /// Ends the output and returns the result.
    pub fn finish(mut self) -> AgentOutput {
        self.take_line();
        let unfinished = match (self.form, self.end) {
            (OutputFormat::Text, _) | (_, Some(Ok(()))) => None,
            (_, Some(Err(failure))) => Some(failure),
            (
                OutputFormat::Claude
                | OutputFormat::Codex
                | OutputFormat::Gemini
                | OutputFormat::OpenCode,
                None,
            ) => Some(ProgramFailure {
                why: NO_END.to_owned(),
                cause: None,
            }),
        };
        let reported = self
            .stopped
            .or(unfinished)
            .map(|failure| Unreadable::of(failure.announced(self.cause)));
        let cut = self.is_cut.then_some(Unreadable::TooLong);
        let text = String::from_utf8(self.words);
        let bytes = text.is_err().then_some(Unreadable::NotUtf8);
        AgentOutput {
            text: text.unwrap_or_default(),
            unreadable: reported.or(cut).or(bytes),
            turns: self.begun,
            spend: self.spend.total(),
        }
    }

    fn gather(&mut self, bytes: &[u8]) {
        if self.line.len() + bytes.len() > LINE_MAX {
            self.is_line_too_long = true;
            self.line.clear();
        }
        if !self.is_line_too_long {
            self.line.extend_from_slice(bytes);
        }
    }

    /// Reads the current line. Ignores a line that is no JSON object: agents print notes of their own in between.
    fn take_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let is_whole = !std::mem::take(&mut self.is_line_too_long);
        let Some(value) = serde_json::from_slice::<Value>(&line)
            .ok()
            .filter(|_| is_whole)
        else {
            return;
        };
        let read = match self.form {
            OutputFormat::Claude => claude::read(&value, &mut self.last),
            OutputFormat::Codex => codex::read(&value, &mut self.last),
            OutputFormat::OpenCode => opencode::read(&value),
            OutputFormat::Gemini => gemini::read(&value, &mut self.last),
            OutputFormat::Text => return,
        };
        let StreamEvent {
            begins_turn,
            words,
            end,
            stopped,
            cause,
            asked,
            answered,
            spend,
        } = read;
        if let Some(report) = spend {
            self.spend.add(report);
        }
        if self.asked.len() < CALLS_MAX {
            self.asked.extend(asked);
        }
        for (call, is_well) in answered {
            let files = self.asked.remove(&call).filter(|_| is_well);
            self.read.extend(files.into_iter().flatten());
        }
        self.begun = self.begun.saturating_add(u16::from(begins_turn));
        if let Some((words, goes_on)) = words {
            if !goes_on {
                self.words.clear();
                self.is_cut = false;
            }
            self.keep(words.as_bytes());
        }
        self.end = end.or(self.end.take());
        self.stopped = self.stopped.take().or(stopped);
        self.cause = cause.or(self.cause);
    }

    /// Appends words and keeps only their end.
    fn keep(&mut self, bytes: &[u8]) {
        self.words.extend_from_slice(bytes);
        if self.words.len() > SAID_MAX {
            self.is_cut = true;
            self.words.drain(..self.words.len() - SAID_MAX);
        }
    }
}

#[cfg(test)]
mod tests;
