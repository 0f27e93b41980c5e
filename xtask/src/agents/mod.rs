//! `cargo xtask agents`: the real programs, installed from npm, against a scripted model server on loopback. Plays each
//! row of the table in `docs/agents.md` and prints that table.

mod bench;
mod by_hand;
mod clients;
mod home;
mod install;
mod long;
mod page;
mod programs;
mod rows;
mod script;
mod server;
mod under_daemon;
mod wire;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args as ClapArgs;
use settled_tests::{binaries, repository, write};

use self::bench::{Bench, Outcome};
use self::page::Figures;
use self::programs::Program;
use self::rows::Row;

/// Play every row with the real programs, and print the table
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Play only these programs: claude, codex, gemini, opencode
    #[arg(long, value_name = "PROGRAM", value_delimiter = ',')]
    only: Vec<String>,
    /// Play only rows whose name contains one of these
    #[arg(long, value_name = "ROW", value_delimiter = ',')]
    row: Vec<String>,
    /// Number of rows to play at a time
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs: usize,
    /// Repeat the rows for so many minutes beside scripts that fork; count their effect on others
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
    /// Write `docs/agents.md` from this run, or its figure with --minutes; whole runs only
    #[arg(long, conflicts_with_all = ["only", "row"])]
    write: bool,
}

impl Args {
    fn is_asked(&self, row: &str) -> bool {
        let mut words = self.row.iter();
        self.row.is_empty() || words.any(|word| row.contains(word.as_str()))
    }
}

/// The result of one program in one row.
pub(crate) struct Played {
    program: Program,
    row: &'static Row,
    outcome: Outcome,
}

/// The rows to play, in turn.
struct Queue {
    rows: Vec<(Program, &'static Row)>,
    next: AtomicUsize,
    /// The time until which they are repeated.
    until: Option<Instant>,
}

impl Queue {
    fn new(args: &Args) -> Self {
        let is_asked = |program: &Program| {
            args.only.is_empty() || args.only.iter().any(|word| word == program.word())
        };
        let is_row = |row: &&Row| args.is_asked(row.name);
        let minutes = args
            .minutes
            .map(|minutes| Duration::from_secs(60 * minutes));
        let with_each = |row: &'static Row| {
            let asked = Program::ALL.into_iter().filter(is_asked);
            asked.map(move |program| (program, row))
        };
        let rows = rows::ROWS.iter().filter(is_row).flat_map(with_each);
        let is_played = |(program, row): &(Program, &Row)| {
            minutes.is_none() || rows::missing(row, *program).is_none()
        };
        Self {
            rows: rows.filter(is_played).collect(),
            next: AtomicUsize::new(0),
            until: minutes.map(|minutes| Instant::now() + minutes),
        }
    }

    /// Returns the next row, and how many times it was played before.
    fn take(&self) -> Option<(Program, &'static Row, usize)> {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        let (program, row) = *self.rows.get(at % self.rows.len().max(1))?;
        let turn = at / self.rows.len();
        let goes_on = match self.until {
            None => turn == 0,
            Some(until) => Instant::now() < until,
        };
        goes_on.then_some((program, row, turn))
    }

    /// Plays the rows, `jobs` in parallel.
    fn play(&self, bench: &Bench, jobs: usize) -> Vec<Played> {
        let done = Mutex::new(Vec::new());
        // Repeated rows have no last one.
        let of = match self.until {
            None => format!("/{}", self.rows.len()),
            Some(_) => String::new(),
        };
        thread::scope(|scope| {
            for _ in 0..jobs.max(1) {
                scope.spawn(|| {
                    while let Some((program, row, turn)) = self.take() {
                        let start = Instant::now();
                        let outcome = bench.play(program, row, turn);
                        let took = start.elapsed();
                        let mut done = done.lock().expect("no thread panics with it");
                        println!(
                            "{:>3}{of}  {:8}  {:24}  {:5.1} s  {outcome}",
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
        done.into_inner().expect("no thread panics with it")
    }
}

/// Plays the rows; returns true if every playable one passes.
pub(crate) fn run(args: &Args) -> Result<bool, String> {
    let began = Instant::now();
    let bin = install::programs(binaries::target())?;
    let definitions = if args.minutes.is_none() && args.is_asked("mcp") {
        Some(clients::play(&bin)?)
    } else {
        None
    };
    let folder = match args.minutes {
        None => "agents/last",
        Some(_) => "agents/again",
    };
    let bench = Bench::new(bin, folder)?;
    let queue = Queue::new(args);
    let beside = args
        .minutes
        .map(|_| long::Beside::start(bench.place()))
        .transpose()?;
    let done = queue.play(&bench, args.jobs);
    let failed: Vec<&Played> = done
        .iter()
        .filter(|played| played.outcome.is_failed())
        .collect();
    if let Some(beside) = beside {
        let counted = beside.end(bench.installed())?;
        let (rows, minutes) = (done.len(), began.elapsed().as_secs() / 60);
        let figure = counted.sentence(rows, &failed, args.jobs, minutes);
        println!("\n{figure}");
        if args.write {
            write(long::figure(), &format!("{figure}\n"));
        }
        return Ok(failed.is_empty() && counted.is_clean());
    }
    let figures = Figures { definitions };
    if args.write {
        write(
            repository().join("docs/agents.md"),
            &page::page(&done, &figures),
        );
        println!("wrote docs/agents.md");
    } else {
        println!("\n{}", page::table(&done));
        println!("{}", page::figures(&done, &figures));
    }
    println!(
        "{} rows, {} failed, {} s; requests and folders of runs are in {}",
        done.len(),
        failed.len(),
        began.elapsed().as_secs(),
        bench.place().display()
    );
    Ok(failed.is_empty())
}
