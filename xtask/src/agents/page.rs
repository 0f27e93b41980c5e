//! The page `docs/agents.md`, printed from a run.

use std::fmt::Write as _;

use settled_tests::{read, repository};

use super::Played;
use super::install::version;
use super::programs::Program;
use super::rows::ROWS;

const HEAD: &str = "# The real agents

`cargo xtask agents --write` writes this page. It installs the programs below from npm into the build folder, starts a
scripted model server on loopback, and runs each row with each program in an empty home directory, with telemetry and
updates off. No real model takes part: the rows test the programs and Settled, not a model's answers. `--only codex
--row pass` runs one row with one program. The scripts are in `tests/agents`.

";

/// The whole page.
pub(super) fn page(done: &[Played]) -> String {
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
    page += "\n## The set-ups\n\n[runner.md](runner.md#placeholders) explains the placeholders. Start with `command`.\n";
    for program in Program::ALL {
        let path = format!("crates/setup/src/programs/{}.toml", program.word());
        let text = read(repository().join(path));
        let _ = write!(page, "\n### {}\n\n```toml\n{text}```\n", program.title());
    }
    page
}

/// The table alone.
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
