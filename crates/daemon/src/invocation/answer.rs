//! Turns the answer of an agent's command into a message in the agent's outbox, or says why there is none. The message
//! is composed as `settled feedback` and `settled lgtm` do it, and judged like any other file.

use std::path::Path;

use chrono::{DateTime, Utc};
use judgement::brief::{NotAResponse, TerminalResponse};
use mailbox::compose::ask::Ask;
use mailbox::compose::message::Fields;
use mailbox::compose::omissions::ResponseKind;
use mailbox::compose::post::{PostError, Posting};
use mailbox::compose::response::{self, Unwritten};
use mailbox::compose::response_file::{NotAResponseFile, ResponseFile};
use mailbox::compose::sent_before;
use mailbox::compose::words_from::WordsFrom;
use message_schema::Malformed;
use message_schema::body::Examined;
use message_schema::id::MessageId;
use message_schema::line::escaped;
use review::{Signal, SignalWords};
use runner::checkout::Reviewed;
use runner::stream::AgentOutput;
use serde::de::IgnoredAny;
use serde_json::json;

/// The answer of an agent's command.
#[derive(Debug)]
pub enum AgentAnswer {
    /// A response to send, with its verdict.
    Response(ResponseKind, Box<ResponseFile>),
    /// The agent gives up.
    GivenUp,
    /// No answer, with the reason.
    Nothing(String),
}

/// Adds the commit of the run's tree to a response that is only a word, since a word names no commit. Keeps an
/// `examined` field that is already there.
fn name_reviewed(reviewed: &Reviewed, body: &mut Fields) {
    body.put("validated_head", reviewed.commit.as_str());
    if let Some(digest) = reviewed
        .diff
        .clone()
        .filter(|_| body.get("examined").is_none())
    {
        let examined = Examined {
            diff_digest: Some(digest),
            ..Examined::default()
        };
        body.put("examined", json!(examined));
    }
}

/// The reason a response was not sent.
#[derive(Debug, thiserror::Error)]
pub enum NotPosted {
    /// The response leaves threads unanswered, or the gate would refuse it. The same answer would never be accepted.
    #[error("{0}")]
    Incomplete(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl From<String> for NotPosted {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}

/// Reads an answer. Structured output counts as a whole or not at all, a signal has to be the last line, and prose is
/// never searched.
pub fn read(said: &AgentOutput, words: &SignalWords) -> AgentAnswer {
    if let Some(why) = &said.unreadable {
        return AgentAnswer::Nothing(why.to_string());
    }
    let text = unfenced(&said.text);
    if text.starts_with('{') {
        if has_words_behind(text) {
            return AgentAnswer::Nothing(NOT_ALONE.to_owned());
        }
        return match ResponseFile::read(text) {
            Ok(sheet @ ResponseFile::Structured(_)) => {
                AgentAnswer::Response(verdict(&sheet), Box::new(sheet))
            }
            Ok(ResponseFile::Loose(_) | ResponseFile::Word) => {
                AgentAnswer::Nothing(unfit("`response` is missing, expected a mapping"))
            }
            Err(NotAResponseFile::Malformed(Malformed {
                place: Some(place),
                message,
                ..
            })) => AgentAnswer::Nothing(unfit(&format!("{place}: {message}"))),
            Err(error) => AgentAnswer::Nothing(unfit(&error.to_string())),
        };
    }
    match Signal::read(&said.text, words) {
        Signal::Pass => AgentAnswer::Response(ResponseKind::Lgtm, Box::new(ResponseFile::Word)),
        Signal::Fail => AgentAnswer::GivenUp,
        Signal::Done | Signal::NearMiss | Signal::Unsent | Signal::None => {
            let why = if said.text.lines().any(|line| line.starts_with(['{', FENCE])) {
                NOT_ALONE
            } else {
                "it ended without a verdict"
            };
            AgentAnswer::Nothing(why.to_owned())
        }
    }
}

/// The reason for JSON with words around it.
const NOT_ALONE: &str = "its output must be a single JSON object";

/// True if the text begins with a whole JSON object and continues after it.
fn has_words_behind(text: &str) -> bool {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    matches!(values.next(), Some(Ok(_))) && !text[values.byte_offset()..].trim().is_empty()
}

/// The reason for an answer that does not match the schema. It shows the wrong value, shortened to one line, because
/// the agent sees it at its next start.
fn unfit(why: &str) -> String {
    format!(
        "its answer does not match the schema of the brief: {}",
        escaped(why)
    )
}

const FENCE: char = '`';

/// Strips a code fence that encloses the whole answer: models fence JSON whatever the prompt says.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text
        .strip_prefix("```json")
        .or_else(|| text.strip_prefix("```"))
        .and_then(|inner| inner.strip_suffix("```"));
    inner
        .filter(|inner| inner.starts_with(['\n', '\r']) && !inner.contains("\n```"))
        .map_or(text, str::trim)
}

fn verdict(sheet: &ResponseFile) -> ResponseKind {
    match sheet {
        ResponseFile::Structured(response) => match response.response {
            TerminalResponse::Feedback(_) => ResponseKind::Feedback,
            TerminalResponse::Lgtm(_) => ResponseKind::Lgtm,
        },
        ResponseFile::Loose(_) | ResponseFile::Word => ResponseKind::Lgtm,
    }
}

/// Writes the response to an open request into the agent's outbox under this id, or returns why it cannot. Does nothing
/// if a daemon that was killed since has already written it under this id.
pub fn post(
    root: &Path,
    ask: &Ask,
    id: &MessageId,
    (verdict, sheet): (ResponseKind, &ResponseFile),
    reviewed: Option<&Reviewed>,
    now: DateTime<Utc>,
) -> Result<(), NotPosted> {
    let me = &ask.brief.reviewer;
    if sent_before::find_named(root, me, id).is_some() {
        return Ok(());
    }
    let response = response::write(ask, sheet, verdict, WordsFrom::default(), None, now);
    let response = response.map_err(|why| not_posted(&why))?;
    let mut draft = response.draft(ask, verdict);
    let names_commit = draft.body.get("validated_head").is_some();
    match (sheet, reviewed) {
        (ResponseFile::Word, Some(reviewed)) => name_reviewed(reviewed, &mut draft.body),
        // The author may have left the directory at another commit than it declares.
        (_, None) if verdict == ResponseKind::Lgtm && ask.brief.head.is_some() && !names_commit => {
            draft.body.put("unbound", true);
        }
        (ResponseFile::Word | ResponseFile::Structured(_) | ResponseFile::Loose(_), _) => {}
    }
    let posting = Posting {
        root,
        agent: me,
        draft: &draft,
        id,
        at: now,
        is_id_given: false,
    };
    match posting.write() {
        // Only this answer can have this id.
        Ok(_) | Err(PostError::Gone(_)) => Ok(()),
        Err(PostError::Invalid(violations)) => {
            let codes = violations.iter().map(|violation| violation.code.as_str());
            let codes: Vec<&str> = codes.collect();
            Err(format!("its answer is invalid: {}", codes.join(", ")).into())
        }
        Err(error @ PostError::Io { .. }) => {
            Err(format!("its answer cannot be written: {error}").into())
        }
        Err(PostError::NoPlace) => Err("no name is free for its packet".to_owned().into()),
        Err(error @ (PostError::Draft(_) | PostError::Mailboxes(_))) => {
            Err(error.to_string().into())
        }
    }
}

/// Explains in our own words why there is no message. Of the agent's text it quotes only a wrong value. An answer that
/// was understood but leaves something open is incomplete.
fn not_posted(why: &Unwritten) -> NotPosted {
    NotPosted::Incomplete(match why {
        Unwritten::Untitled(_) => "its answer has a finding without a title".to_owned(),
        Unwritten::Gaps(gaps) => {
            let codes: Vec<&str> = gaps.iter().map(|gap| gap.code.as_str()).collect();
            let codes = codes.join(", ");
            format!("its answer does not deal with every open thread: {codes}")
        }
        Unwritten::Gate(broken) => {
            let count = broken.len();
            format!("its approval does not pass the quality gate: {count} clauses are broken")
        }
        Unwritten::Empty => "its feedback raises no finding and keeps no thread open".to_owned(),
        Unwritten::Response(NotAResponse::Missing(id)) => {
            format!("its answer leaves the open thread {id} out")
        }
        Unwritten::Response(NotAResponse::NotOpen(id)) => {
            format!("its answer acts on {id}, which is not an open thread")
        }
        Unwritten::Response(
            error @ (NotAResponse::NotResolved(_) | NotAResponse::NotDeferrable(_)),
        ) => unfit(&error.to_string()),
        Unwritten::Response(error @ (NotAResponse::Form(_) | NotAResponse::Field { .. })) => {
            return NotPosted::Other(unfit(&error.to_string()));
        }
        Unwritten::Other(_) => {
            return NotPosted::Other("its answer is an approval and a refusal at once".to_owned());
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_code_fence_that_is_the_whole_answer_is_taken_off() {
        for (text, inner) in [
            ("```json\n{\"a\": 1}\n```\n", "{\"a\": 1}"),
            ("```\r\n{}\r\n```", "{}"),
            (" {} ", "{}"),
            (
                "Here it is:\n```json\n{}\n```",
                "Here it is:\n```json\n{}\n```",
            ),
            (
                "```json\n{}\n```\n```json\n{}\n```",
                "```json\n{}\n```\n```json\n{}\n```",
            ),
            ("```json\n{}\n```\nPASS", "```json\n{}\n```\nPASS"),
            ("```json5\n{}\n```", "```json5\n{}\n```"),
        ] {
            assert_eq!(unfenced(text), inner, "{text:?}");
        }
    }

    #[test]
    fn words_around_a_json_object_are_the_reason_that_is_given() {
        for (text, why) in [
            (
                "Here:\n```json\n{}\n```",
                "its output must be a single JSON object",
            ),
            (
                "Done.\n{\"response\": {}}",
                "its output must be a single JSON object",
            ),
            (
                "{\"response\": {}}\nDone.",
                "its output must be a single JSON object",
            ),
            ("I like it.", "it ended without a verdict"),
            (
                r#"{"response": {"type": "review_feedback", "threads": {}, "findings": [{"severity": "P9"}]}}"#,
                r#"its answer does not match the schema of the brief: `findings[0].severity` is "P9", expected one of P0, P1, P2, P3"#,
            ),
            (
                r#"{"findings": []}"#,
                "its answer does not match the schema of the brief: `response` is missing, expected a mapping",
            ),
            (
                r#"{"response": {"#,
                "its answer does not match the schema of the brief: 1:14: unclosed bracket '{'",
            ),
        ] {
            let said = AgentOutput {
                text: text.to_owned(),
                ..AgentOutput::default()
            };
            let AgentAnswer::Nothing(told) = read(&said, &SignalWords::default()) else {
                panic!("{text:?} is no answer");
            };
            assert_eq!(told, why, "{text:?}");
        }
    }
}
