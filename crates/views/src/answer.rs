//! The output of a command: text for people, and for programs one envelope that all commands share.

use std::borrow::Cow;
use std::io::{self, Write};

use message_schema::line::{escaped, escaped_in_json};
use serde::Serialize;

use crate::exit::Exit;
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

/// Something worth knowing that the command was not asked for.
#[derive(Debug, Serialize)]
pub struct Note {
    /// Snake case, and stable.
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
    /// Makes an answer without alerts and commands.
    pub fn new(data: T) -> Self {
        Self {
            data,
            alerts: Vec::new(),
            next: Vec::new(),
        }
    }

    /// Adds an alert.
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

    /// Returns the answer as one line of JSON, for commands that print several.
    pub fn line(&self) -> String {
        let line =
            serde_json::to_string(&self.envelope()).expect("text keys and plain values are JSON");
        escaped_in_json(&line) + "\n"
    }

    /// Returns the answer as JSON.
    pub fn json(&self) -> String {
        pretty(&self.envelope())
    }

    /// Returns the answer for people: the data in the command's own words, then alerts and next commands.
    pub fn text(&self, said: &str) -> String {
        let screen = Screen::of_output();
        let mut text = said.to_owned();
        for Note { message, .. } in &self.alerts {
            text += &screen.wrap(6, &format!("note: {}", escaped(message)));
        }
        // No delivered message has an id that steers a terminal; show such a command escaped.
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
            // A command stays on one line, however long, so that it can be copied.
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

/// Returns one line of JSON for a failure that does not end the command.
pub fn failure_line(failure: &Failure) -> String {
    let line =
        serde_json::to_string(&document(failure)).expect("text keys and plain values are JSON");
    escaped_in_json(&line) + "\n"
}

/// Returns a failure as JSON.
pub fn failure(failure: &Failure) -> String {
    pretty(&document(failure))
}

/// Returns a failure for people, as this program or command reports it, with the commands that come next.
pub fn complaint(program: &str, failure: &Failure) -> String {
    // A message may have several lines, each with text of others.
    let lines: Vec<String> = failure.message.lines().map(escaped).collect();
    let mut text = format!("{program}: {}\n", lines.join("\n"));
    for next in &failure.next {
        text += &format!("  try: {}\n", escaped(&next.run));
    }
    text
}

/// Writes an answer; a closed pipe ends the command quietly.
pub fn write(output: &mut impl Write, text: &str) -> Result<(), Failure> {
    match output.write_all(text.as_bytes()) {
        // The output is not in the workspace: if its disk is full, the workspace needs no check.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::plain(Exit::Failed, error.to_string()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
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
    escaped_in_json(&text) + "\n"
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// An answer whose every line fits the narrowest screen, with characters that could reorder or break a line.
    fn answer() -> CommandOutput<Value> {
        let mut answer = CommandOutput::new(json!({"title": "a\u{202e}\u{e0041}\nb"}));
        answer.alert("stale", "\u{1b}[2J");
        answer.next("a".to_owned(), "b");
        answer.next("abc".to_owned(), "d");
        answer.next.push(Next {
            run: "e".to_owned(),
            why: None,
        });
        answer
    }

    #[test]
    fn people_read_the_answer_then_its_alerts_then_the_commands() {
        assert_eq!(
            answer().text("said\n"),
            "said\nnote: \\u{1b}[2J\nnext: a     # b\nnext: abc   # d\nnext: e\n"
        );
    }

    #[test]
    fn programs_read_an_answer_as_json_whose_every_line_is_harmless() {
        let line = r#"{"schema_version":1,"ok":true,"data":{"title":"a\u202e\udb40\udc41\nb"},"alerts":[{"code":"stale","message":"\u001b[2J"}],"next":[{"run":"a","why":"b"},{"run":"abc","why":"d"},{"run":"e"}]}"#;
        assert_eq!(answer().line(), format!("{line}\n"));
        let json = answer().json();
        let parsed: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(parsed, serde_json::from_str::<Value>(line).expect("JSON"));
        let title = json.lines().nth(4).expect("one field on a line");
        assert_eq!(title, r#"    "title": "a\u202e\udb40\udc41\nb""#);
    }

    #[test]
    fn programs_read_a_failure_in_the_same_form() {
        let failure = Failure::plain(Exit::NotFound, "no\u{202e} review".to_owned())
            .next("settled status".to_owned())
            .code("unknown_review")
            .data(&["#86"]);
        let line = r##"{"schema_version":1,"ok":false,"data":["#86"],"error":{"exit":3,"code":"unknown_review","message":"no\u202e review"},"alerts":[],"next":[{"run":"settled status"}]}"##;
        assert_eq!(failure_line(&failure), format!("{line}\n"));
        let json = super::failure(&failure);
        let parsed: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(parsed, serde_json::from_str::<Value>(line).expect("JSON"));
        assert!(json.contains("\n    \"exit\": 3,\n"), "{json}");
    }
}
