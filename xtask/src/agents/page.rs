//! The page `docs/agents.md`, printed from a run.

use std::fmt::Write as _;

use settled_tests::{read, repository};

use super::bench::Outcome;
use super::install::version;
use super::programs::Program;
use super::rows::ROWS;
use super::{Played, long};

const HEAD: &str = "# The real agents

`cargo xtask agents --write` writes this page. It installs the programs below from npm into the build folder, starts a
scripted model server on loopback, and runs each row with each program in an empty home directory, with telemetry and
updates off. No real model takes part: the rows test the programs and Settled, not a model's answers. `--only codex
--row pass` runs one row with one program; `.ci/run` runs all of them, and says so where npm's registry is not reached.
The scripts are in `tests/agents`.

";

/// Further measurements of a run.
pub(super) struct Figures {
    /// The most tokens of the definitions of `settled mcp`.
    pub definitions: Option<u64>,
}

/// Formats the whole page.
pub(super) fn page(done: &[Played], measured: &Figures) -> String {
    let mut page = HEAD.to_owned();
    page += &table(done);
    page += "\nIn every row that the daemon runs, no process of the program is left afterwards.\n";
    let mut notes = String::new();
    for played in done {
        if let Some(why) = played.outcome.note() {
            let _ = writeln!(
                notes,
                "- `{}`, {}: {why}",
                played.row.name,
                played.program.title()
            );
        }
    }
    if !notes.is_empty() {
        page += "\n## Rows that fail or do not apply\n\n";
        page += &notes;
    }
    page += "\n## Figures\n\n";
    page += &figures(done, measured);
    if let Ok(repeated) = std::fs::read_to_string(long::figure()) {
        page += &format!("- {repeated}");
    }
    page += "\n## The set-ups\n\n[runner.md](runner.md#placeholders) explains the placeholders. Start with `command`.\n\
             What an author of `settled pair` can and cannot do with these lines is in [pair.md](pair.md#permissions-of-an-author).\n";
    for program in Program::ALL {
        let path = format!("crates/setup/src/programs/{}.toml", program.word());
        let text = read(repository().join(path));
        let _ = write!(page, "\n### {}\n\n```toml\n{text}```\n", program.title());
    }
    page
}

/// Formats the figures as a list.
pub(super) fn figures(done: &[Played], measured: &Figures) -> String {
    let mut list = String::new();
    let mut medians = Vec::new();
    for program in Program::ALL {
        let of_program = done.iter().filter(|played| played.program == program);
        let mut seconds: Vec<f64> = of_program
            .filter_map(|played| match played.outcome {
                Outcome::Passed(first_byte) => Some(first_byte?.as_secs_f64()),
                Outcome::Failed(_) | Outcome::NotPlayed(_) => None,
            })
            .collect();
        seconds.sort_by(f64::total_cmp);
        if let (Some(median), Some(most)) = (seconds.get(seconds.len() / 2), seconds.last()) {
            medians.push(format!(
                "{} {median:.1} s (at most {most:.1})",
                program.title()
            ));
        }
    }
    if !medians.is_empty() {
        let _ = writeln!(
            list,
            "- From the request in the outbox to the first byte that the program prints, median of the rows: {}.",
            medians.join(", ")
        );
    }
    if let Some(tokens) = measured.definitions {
        let _ = writeln!(
            list,
            "- The definitions of the five tools of `settled mcp` take at most {tokens} tokens, at three bytes each."
        );
    }
    list
}

/// Formats only the table.
pub(super) fn table(done: &[Played]) -> String {
    let programs: Vec<Program> = Program::ALL
        .into_iter()
        .filter(|program| done.iter().any(|played| played.program == *program))
        .collect();
    let mut table = "| row | claim |".to_owned();
    for program in &programs {
        let _ = write!(
            table,
            " {} {} |",
            program.title(),
            version(program.package())
        );
    }
    let _ = write!(table, "\n|---|---|{}\n", "---|".repeat(programs.len()));
    for row in &ROWS {
        let cells: Vec<String> = programs
            .iter()
            .map(|program| {
                let played = done
                    .iter()
                    .find(|played| played.row.name == row.name && played.program == *program);
                played.map_or_else(String::new, |played| played.outcome.word().to_owned())
            })
            .collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            let _ = writeln!(
                table,
                "| `{}` | {} | {} |",
                row.name,
                row.claim,
                cells.join(" | ")
            );
        }
    }
    table
}
