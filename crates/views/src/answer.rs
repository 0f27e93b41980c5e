//! The output of a command: text for people, and for programs one envelope that is the same everywhere.

use std::borrow::Cow;
use std::fmt::Write as _;

use message_schema::line::{escaped, is_trap};
use serde::Serialize;

use crate::failure::Failure;
use screen::Screen;

/// The version of the envelope and of every `data` in it. Fields are added, never changed.
pub const SCHEMA_VERSION: u32 = 1;

/// The result of a command.
#[derive(Debug)]
pub struct CommandOutput<T> {
    /// The data of the answer.
    pub data: T,
    alerts: Vec<Note>,
    /// The commands that come next.
    pub next: Vec<Next>,
}

/// Something that was not asked for and should be known.
#[derive(Debug, Serialize)]
pub struct Note {
    /// In snake_case, stable.
    code: Cow<'static, str>,
    message: String,
}

/// A command that can be run unchanged.
#[derive(Debug, Serialize)]
pub struct Next {
    /// The command.
    pub run: String,
    /// The purpose of the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
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

impl<T: Serialize> CommandOutput<T> {
    /// An answer without alerts and commands.
    pub fn new(data: T) -> Self {
        Self {
            data,
            alerts: Vec::new(),
            next: Vec::new(),
        }
    }

    /// Adds something that should be known.
    pub fn alert(&mut self, code: impl Into<Cow<'static, str>>, message: impl Into<String>) {
        self.alerts.push(Note {
            code: code.into(),
            message: message.into(),
        });
    }

    /// Adds a command that comes next, and why.
    pub fn next(&mut self, run: String, why: impl Into<String>) {
        self.next.push(Next {
            run,
            why: Some(why.into()),
        });
    }

    /// The whole answer on one line of JSON, for those that come one after the other.
    pub fn line(&self) -> String {
        let line =
            serde_json::to_string(&self.envelope()).expect("text keys and plain values are JSON");
        escaped_json(&line) + "\n"
    }

    /// The whole answer as JSON.
    pub fn json(&self) -> String {
        pretty(&self.envelope())
    }

    /// The answer for people: what the command says of its data, then alerts and what comes next.
    pub fn text(&self, said: &str) -> String {
        let screen = Screen::of_output();
        let mut text = said.to_owned();
        for Note { message, .. } in &self.alerts {
            text += &screen.wrap(6, &format!("note: {}", escaped(message)));
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
            let Some(why) = why else {
                text += &format!("next: {run}\n");
                continue;
            };
            let line = format!("next: {run:width$}   # {why}");
            // A command stays on its line, however long: somebody copies it.
            text += &if screen.has_room_for(&line) {
                line + "\n"
            } else {
                format!("next: {run}\n") + &screen.wrap(8, &format!("      # {why}"))
            };
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
pub fn failure_line(failure: &Failure) -> String {
    let line =
        serde_json::to_string(&document(failure)).expect("text keys and plain values are JSON");
    escaped_json(&line) + "\n"
}

/// A failure in the same form.
pub fn failure(failure: &Failure) -> String {
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

/// JSON in which every character is escaped that could reorder or break the line it is shown on: such a character
/// occurs only inside a string, and the escape means the same to a reader.
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
