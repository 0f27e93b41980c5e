//! `cargo xtask agents`: the real programs, installed from npm, against a scripted model server on loopback: each row of
//! the table in `docs/agents.md`, which this prints.

mod bench;
mod clients;
mod install;
mod page;
mod programs;
mod rows;
mod script;
mod server;
mod wire;

use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use clap::Args as ClapArgs;
use settled_tests::{binaries, repository, write};

use self::bench::{Bench, Outcome};
use self::programs::Program;
use self::rows::Row;

/// Play every row with the real programs, and print the table
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Only these programs: claude, codex, gemini, opencode
    #[arg(long, value_name = "PROGRAM", value_delimiter = ',')]
    only: Vec<String>,
    /// Only rows whose name contains this
    #[arg(long, value_name = "ROW")]
    row: Option<String>,
    /// How many rows are played at a time
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs: usize,
    /// Write the page `docs/agents.md` from this run; only whole runs do
    #[arg(long, conflicts_with_all = ["only", "row"])]
    write: bool,
}

/// What one program did in one row.
pub(crate) struct Played {
    program: Program,
    row: &'static Row,
    outcome: Outcome,
}

/// Plays them; whether every row that can be played passes.
pub(crate) fn run(args: &Args) -> Result<bool, String> {
    let began = Instant::now();
    let bin = install::programs(binaries::target())?;
    if args
        .row
        .as_ref()
        .is_none_or(|name| "mcp".contains(name.as_str()))
    {
        clients::play(&bin)?;
    }
    let bench = Bench::new(bin)?;
    let is_asked = |program: &Program| {
        args.only.is_empty() || args.only.iter().any(|word| word == program.word())
    };
    let is_row = |row: &&Row| {
        args.row
            .as_ref()
            .is_none_or(|name| row.name.contains(name.as_str()))
    };
    let mut todo: Vec<(Program, &'static Row)> = rows::ROWS
        .iter()
        .filter(is_row)
        .flat_map(|row| {
            Program::ALL
                .into_iter()
                .filter(is_asked)
                .map(move |program| (program, row))
        })
        .collect();
    todo.reverse();
    let (count, todo, done) = (todo.len(), Mutex::new(todo), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let Some((program, row)) = todo.lock().expect("no thread panics with it").pop()
                    else {
                        break;
                    };
                    let start = Instant::now();
                    let outcome = bench.play(program, row);
                    let took = start.elapsed();
                    let mut done = done.lock().expect("no thread panics with it");
                    println!(
                        "{:>3}/{count}  {:8}  {:24}  {:5.1} s  {outcome}",
                        done.len() + 1,
                        program.word(),
                        row.name,
                        took.as_secs_f64(),
                    );
                    done.push(Played {
                        program,
                        row,
                        outcome,
                    });
                }
            });
        }
    });
    let done = done.into_inner().expect("no thread panics with it");
    let page = page::page(&done);
    if args.write {
        write(repository().join("docs/agents.md"), &page);
        println!("wrote docs/agents.md");
    } else {
        println!("\n{}", page::table(&done));
    }
    let failed = done
        .iter()
        .filter(|played| played.outcome.is_failed())
        .count();
    println!(
        "{} rows, {failed} failed, {} s; requests and folders of runs are in {}",
        done.len(),
        began.elapsed().as_secs(),
        bench.place().display()
    );
    Ok(failed == 0)
}
