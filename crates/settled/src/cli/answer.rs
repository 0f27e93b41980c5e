//! What a command prints: text for people, and for programs one envelope that is the same everywhere.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write as _;

use message_schema::line::{escaped, is_trap};
use serde::Serialize;

use super::failure::Failure;
use crate::exit::Exit;

/// The version of the envelope and of every `data` in it. Fields are added, never changed.
pub(super) const SCHEMA_VERSION: u32 = 1;

/// What a command found out or did.
#[derive(Debug)]
pub(super) struct CommandOutput<T> {
    pub(super) data: T,
    alerts: Vec<Note>,
    next: Vec<Next>,
}

/// Something that was not asked for and should be known.
#[derive(Debug, Serialize)]
pub(super) struct Note {
    /// In snake_case, stable.
    code: Cow<'static, str>,
    message: String,
}

/// A command that can be run as it stands.
#[derive(Debug, Serialize)]
pub(super) struct Next {
    pub(super) run: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
}

/// The one JSON form.
#[derive(Serialize)]
struct JsonDocument<'a, T> {
    schema_version: u32,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Error<'a>>,
    alerts: &'a [Note],
    next: &'a [Next],
}

#[derive(Serialize)]
struct Error<'a> {
    /// The exit code.
    exit: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    message: &'a str,
}

impl<T> CommandOutput<T> {
    /// The same alerts and commands, with other data.
    pub(super) fn map<U>(self, into: impl FnOnce(T) -> U) -> CommandOutput<U> {
        CommandOutput {
            data: into(self.data),
            alerts: self.alerts,
            next: self.next,
        }
    }
}

impl<T: Serialize> CommandOutput<T> {
    pub(super) fn new(data: T) -> Self {
        Self {
            data,
            alerts: Vec::new(),
            next: Vec::new(),
        }
    }

    /// Adds something that should be known.
    pub(super) fn alert(&mut self, code: impl Into<Cow<'static, str>>, message: impl Into<String>) {
        self.alerts.push(Note {
            code: code.into(),
            message: message.into(),
        });
    }

    /// Adds a command that comes next, and why.
    pub(super) fn next(&mut self, run: String, why: impl Into<String>) {
        self.next.push(Next {
            run,
            why: Some(why.into()),
        });
    }

    /// The whole answer on one line of JSON, for those that come one after the other.
    pub(super) fn line(&self) -> String {
        let line =
            serde_json::to_string(&self.envelope()).expect("text keys and plain values are JSON");
        escaped_json(&line) + "\n"
    }

    /// The whole answer as JSON.
    pub(super) fn json(&self) -> String {
        pretty(&self.envelope())
    }

    /// The answer for people: what the command says of its data, then alerts and what comes next.
    pub(super) fn text(&self, said: &str) -> String {
        let mut text = said.to_owned();
        for Note { message, .. } in &self.alerts {
            text += &format!("note: {}\n", escaped(message));
        }
        // A message in whose id something steers a terminal is none that was delivered; its command is shown, not run.
        let next: Vec<(String, &Option<String>)> = self
            .next
            .iter()
            .map(|Next { run, why }| (escaped(run), why))
            .collect();
        let width = next
            .iter()
            .map(|(run, _)| run.chars().count())
            .max()
            .unwrap_or(0);
        for (run, why) in next {
            let why = why
                .as_ref()
                .map_or_else(String::new, |why| format!("   # {why}"));
            text += &format!("next: {run:width$}{why}\n");
        }
        text
    }

    fn envelope(&self) -> JsonDocument<'_, T> {
        JsonDocument {
            schema_version: SCHEMA_VERSION,
            ok: true,
            data: Some(&self.data),
            error: None,
            alerts: &self.alerts,
            next: &self.next,
        }
    }
}

/// A failure that does not end the command, on one line of JSON among its answers.
pub(super) fn failure_line(failure: &Failure) -> String {
    let line =
        serde_json::to_string(&document(failure)).expect("text keys and plain values are JSON");
    escaped_json(&line) + "\n"
}

/// A failure in the same form.
pub(super) fn failure(failure: &Failure) -> String {
    pretty(&document(failure))
}

fn document(failure: &Failure) -> JsonDocument<'_, serde_json::Value> {
    JsonDocument {
        schema_version: SCHEMA_VERSION,
        ok: false,
        data: failure.data.as_deref(),
        error: Some(Error {
            exit: failure.exit as u8,
            code: failure.code,
            message: &failure.message,
        }),
        alerts: &[],
        next: &failure.next,
    }
}

fn pretty(document: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(document).expect("text keys and plain values are JSON");
    escaped_json(&text) + "\n"
}

/// JSON in which every character is escaped that could reorder or break the line it is shown on: such a character stands
/// only inside a string, and the escape means the same to a reader.
fn escaped_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && is_trap(c) {
            write!(escaped, "\\u{:04x}", u32::from(c)).expect("memory takes text");
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Prints to standard output; a reader that went away ends the command quietly.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let written = std::io::stdout().write_all(text.as_bytes());
    match written.map_err(|error| Failure::new(Exit::Failed, &error)) {
        Err(failure) if !failure.is_broken_pipe => Err(failure),
        Ok(()) | Err(_) => Ok(()),
    }
}
