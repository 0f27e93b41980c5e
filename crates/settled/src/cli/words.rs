//! Command-line words for values of rooms that know no command line.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use logs::LogFormat;
use mailbox::hooks::Program;

/// The programs whose hooks are known.
pub(super) fn programs() -> impl TypedValueParser<Value = Program> {
    words([
        ("claude", "Claude Code", Program::Claude),
        ("codex", "Codex", Program::Codex),
        ("gemini", "Gemini CLI", Program::Gemini),
    ])
}

/// The formats of the log.
pub(super) fn log_forms() -> impl TypedValueParser<Value = LogFormat> {
    words([
        ("text", "For people", LogFormat::Text),
        ("json", "One JSON object a line", LogFormat::Json),
        ("journald", "For the journal", LogFormat::Journald),
    ])
}

fn words<T, const N: usize>(
    known: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let values = known.map(|(word, help, _)| PossibleValue::new(word).help(help));
    PossibleValuesParser::new(values).map(move |said| {
        let found = known.iter().find(|(word, _, _)| *word == said);
        found.expect("the parser admits no other word").2
    })
}
