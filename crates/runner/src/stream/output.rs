//! The result of reading an output, and the form in which the end of a run records it.

use message_schema::spend::Spend;
use serde::{Deserialize, Serialize};

use super::cause::{Cause, ProgramFailure};
use super::unreadable::Unreadable;

/// The result of reading an output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "OutputLine", into = "OutputLine")]
pub struct AgentOutput {
    /// The last words.
    pub text: String,
    /// The reason the last words are no answer, if they are none.
    pub unreadable: Option<Unreadable>,
    /// The turns that were begun; all of them end with the output.
    pub turns: u16,
    /// The spend, as far as the program reports it.
    pub spend: Spend,
}

/// An output as the end of a run records it. Another version of the program may read it: the reason is its sentence.
#[derive(Serialize, Deserialize)]
struct OutputLine {
    text: String,
    unreadable: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    cause: Option<Cause>,
    turns: u16,
    #[serde(skip_serializing_if = "Spend::is_nothing", default)]
    spend: Spend,
}

impl From<AgentOutput> for OutputLine {
    fn from(output: AgentOutput) -> Self {
        Self {
            text: output.text,
            cause: output.unreadable.as_ref().and_then(Unreadable::cause),
            unreadable: output.unreadable.map(|reason| reason.to_string()),
            turns: output.turns,
            spend: output.spend,
        }
    }
}

impl From<OutputLine> for AgentOutput {
    fn from(line: OutputLine) -> Self {
        let cause = line.cause;
        let reason = |why| Unreadable::of(ProgramFailure { why, cause });
        Self {
            text: line.text,
            unreadable: line.unreadable.map(reason),
            turns: line.turns,
            spend: line.spend,
        }
    }
}
