//! Outputs in the documented forms (`tests/fixtures/stream`), whole and in pieces.

use super::*;

const CLAUDE: &str = include_str!("../../../../tests/fixtures/stream/claude.jsonl");
const CODEX: &str = include_str!("../../../../tests/fixtures/stream/codex.jsonl");
const GEMINI: &str = include_str!("../../../../tests/fixtures/stream/gemini.jsonl");

/// What an output in pieces of so many bytes comes to, and the turns that were completed before its end.
fn read(form: OutputFormat, output: &str, piece: usize) -> (AgentOutput, u16) {
    let mut reader = OutputReader::new(form);
    output
        .as_bytes()
        .chunks(piece)
        .for_each(|bytes| reader.read(bytes));
    let completed = reader.completed();
    (reader.finish(), completed)
}

fn whole(form: OutputFormat, output: &str) -> AgentOutput {
    read(form, output, usize::MAX).0
}

#[test]
fn turns_and_last_words_are_read_whatever_pieces_they_come_in() {
    for (form, output, turns, text) in [
        (OutputFormat::Claude, CLAUDE, 2, "Nothing is left.\n\nPASS"),
        (OutputFormat::Codex, CODEX, 1, "Nothing is left.\nPASS"),
        (OutputFormat::Gemini, GEMINI, 2, "Nothing is left.\nPASS"),
    ] {
        for piece in [1, 7, 100, usize::MAX] {
            let said = AgentOutput {
                text: text.to_owned(),
                unreadable: None,
                turns,
            };
            assert_eq!(
                read(form, output, piece),
                (said, turns - 1),
                "{form:?} in pieces of {piece}"
            );
        }
    }
}

#[test]
fn an_output_by_a_schema_is_the_answer() {
    let output = include_str!("../../../../tests/fixtures/stream/claude_schema.jsonl");
    assert_eq!(
        whole(OutputFormat::Claude, output).text,
        r#"{"response":{"verdict":"lgtm"}}"#
    );
}

#[test]
fn an_older_codex_is_read_too() {
    let output = include_str!("../../../../tests/fixtures/stream/codex_old.jsonl");
    assert_eq!(whole(OutputFormat::Codex, output).text, "FAIL");
}

#[test]
fn an_output_that_ends_in_an_error_or_not_at_all_is_unreadable_whatever_it_says() {
    let cut = |output: &str| {
        output
            .rsplit_once('{')
            .map_or_else(String::new, |(head, _)| head.to_owned())
    };
    for (form, output) in [
        (
            OutputFormat::Claude,
            include_str!("../../../../tests/fixtures/stream/claude_error.jsonl").to_owned(),
        ),
        (
            OutputFormat::Codex,
            include_str!("../../../../tests/fixtures/stream/codex_failed.jsonl").to_owned(),
        ),
        (
            OutputFormat::Gemini,
            include_str!("../../../../tests/fixtures/stream/gemini_failed.jsonl").to_owned(),
        ),
        (OutputFormat::Claude, cut(CLAUDE)),
        (OutputFormat::Gemini, cut(GEMINI)),
        (OutputFormat::Codex, "PASS\n".to_owned()),
        (OutputFormat::Claude, String::new()),
    ] {
        assert!(
            whole(form, &output).unreadable.is_some(),
            "{form:?}: {output}"
        );
    }
}

#[test]
fn of_text_the_last_is_kept_and_a_cut_is_told() {
    let said = whole(OutputFormat::Text, "all good\nPASS\n");
    assert_eq!(
        (said.text.as_str(), said.unreadable),
        ("all good\nPASS\n", None)
    );
    let flood = "x".repeat(SAID_MAX + 1);
    let said = whole(OutputFormat::Text, &flood);
    assert!(said.text.len() == SAID_MAX && said.unreadable.is_some());
    assert!(
        OutputReader::new(OutputFormat::Text)
            .finish()
            .unreadable
            .is_none(),
        "silence is no output to be read"
    );
}

#[test]
fn a_line_without_end_costs_no_memory_and_hides_nothing_behind_it() {
    let output = format!("{}\n{CLAUDE}", "x".repeat(LINE_MAX + 1));
    assert_eq!(read(OutputFormat::Claude, &output, 64 * 1024).0.turns, 2);
}

#[test]
fn files_that_a_tool_or_a_plain_command_reads_are_told_once_it_went_well() {
    let reads = |form, output: &str| {
        let mut reader = OutputReader::new(form);
        reader.read(output.as_bytes());
        let reads = reader.take_reads();
        assert!(reader.take_reads().is_empty(), "told once");
        reads
    };
    for (form, output) in [
        (OutputFormat::Claude, CLAUDE),
        (OutputFormat::Codex, CODEX),
        (OutputFormat::Gemini, GEMINI),
    ] {
        assert_eq!(reads(form, output), ["brief.yaml"], "{form:?}");
        let failed = output
            .replace(
                "\"tool_use_id\":\"toolu_01\"",
                "\"tool_use_id\":\"toolu_01\",\"is_error\":true",
            )
            .replace("\"exit_code\":0", "\"exit_code\":1")
            .replace(
                "\"tool_1\",\"status\":\"success\"",
                "\"tool_1\",\"status\":\"error\"",
            );
        assert!(reads(form, &failed).is_empty(), "{form:?}");
    }
}
