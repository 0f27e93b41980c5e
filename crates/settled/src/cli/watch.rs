//! `settled watch`: how things stand, shown again whenever something happens. On a terminal a live screen, in a
//! pipe and with `--json` one document a line.

use std::io::{IsTerminal as _, Write as _, stdout};
use std::path::Path;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use daemon::watch::Watch;
use inspect::log::LogLine;
use inspect::status::overview::Status;
use serde::Serialize;
use spool::{Layout, Mailbox, Since, Tail};
use tokio::signal::unix::{SignalKind, signal};
use workspace::{clock, directory, index};

use super::answer::{CommandOutput, print};
use super::board;
use super::context::{Context, Root};
use super::failure::Failure;
use super::screen::Screen;
use super::status;
use crate::exit::Exit;

/// How often the clock on the screen goes on.
const TICK: Duration = Duration::from_secs(1);

/// How often things are looked at though no event came: a daemon that was killed leaves none, and some file
/// systems never tell.
const SWEEP: Duration = Duration::from_secs(5);

/// After a look, this many times as long as it took passes before the next: a large ledger takes no more
/// than a fifth of a core.
const REST: u32 = 4;

/// What comes together is shown together.
const GATHER: Duration = Duration::from_millis(100);

/// The newest decisions that are told.
const DECISIONS: u64 = 10;

/// Shows how things stand, again and again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled watch ./mailroom
  settled watch ./mailroom --once
  settled watch ./mailroom --json | jq -c '.data.status.reviews[] | [.review, .phase]'

Ctrl-C ends it.")]
pub(super) struct Args {
    #[command(flatten)]
    root: Root,
    /// Print one frame and exit
    #[arg(long)]
    once: bool,
}

/// The JSON form. Fields are added, never changed.
#[derive(Debug, Serialize)]
struct WatchView {
    status: Status,
    /// The newest decisions, oldest first.
    decisions: Vec<LogLine>,
}

/// Where the frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    /// A screen that is drawn over and over.
    Live,
    /// One document a line.
    Lines,
}

pub(super) fn run(args: &Args, context: Context) -> Result<Exit, Failure> {
    let context = context.at(&args.root);
    let root = context.workspace()?;
    if args.once {
        let now = clock::now();
        let seen = look(root, now, &context)?;
        let text = if context.json {
            seen.line()
        } else {
            frame(&seen, now, Screen::of_output())
        };
        print(&text)?;
        return Ok(Exit::Ok);
    }
    let is_live = stdout().is_terminal() && !context.json;
    let output = if is_live { Output::Live } else { Output::Lines };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Failure::new(Exit::Failed, &error))?;
    let ended = runtime.block_on(follow(root, &context, output));
    match ended {
        Err(failure) if failure.is_broken_pipe => Ok(Exit::Ok),
        Err(failure) => Err(failure),
        Ok(()) => Ok(Exit::Ok),
    }
}

async fn follow(root: &Path, context: &Context, output: Output) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::new(Exit::Failed, &error);
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut resized = signal(SignalKind::window_change()).map_err(failed)?;
    // Without events the sweep sees all, only later.
    let (mut watch, _) = Watch::start();
    let _alternate = (output == Output::Live)
        .then(Alternate::enter)
        .transpose()?;
    let mut shown = String::new();
    let mut next_look = Instant::now();
    let mut seen: Option<CommandOutput<WatchView>> = None;
    let mut is_rung = true;
    loop {
        let now = clock::now();
        if seen.is_none() || (is_rung && Instant::now() >= next_look) {
            keep(&mut watch, root);
            watch.take();
            let begun = Instant::now();
            seen = Some(look(root, now, context)?);
            next_look = Instant::now() + GATHER.max(begun.elapsed() * REST);
            is_rung = false;
        }
        let seen = seen.as_ref().expect("it was looked at above");
        match output {
            Output::Live => draw(&fitting(&frame(seen, now, Screen::of_output())))?,
            Output::Lines => {
                let line = seen.line();
                if line != shown {
                    draw(&line)?;
                    shown = line;
                }
            }
        }
        // What rang during the rest is looked at when it is over.
        let pause = if is_rung {
            next_look.saturating_duration_since(Instant::now())
        } else {
            TICK
        };
        let is_due = next_look.elapsed() >= SWEEP;
        tokio::select! {
            _ = interrupt.recv() => return Ok(()),
            _ = terminate.recv() => return Ok(()),
            _ = resized.recv() => {}
            () = watch.rings(), if !is_rung => is_rung = true,
            () = tokio::time::sleep(pause.min(TICK)) => is_rung |= is_due,
        }
    }
}

fn look(
    root: &Path,
    now: DateTime<Utc>,
    context: &Context,
) -> Result<CommandOutput<WatchView>, Failure> {
    let answer = status::look(root, now, context)?;
    let from = answer.data.ledger.records.saturating_sub(DECISIONS);
    let mut decisions = Vec::new();
    let read = Tail::open(root, Since::Record(from)).and_then(|mut tail| {
        tail.read(&mut |entry| {
            let (record, _) = index::decision(entry)?;
            decisions.push(LogLine::of(entry, record));
            Ok(())
        })
    });
    read.map_err(|error| Failure::new(Exit::Failed, &error))?;
    Ok(answer.map(|status| WatchView { status, decisions }))
}

/// Watches every directory in which something can happen.
fn keep(watch: &mut Watch, root: &Path) {
    let layout = Layout::new(root);
    let own = layout.own();
    let mut directories = vec![own.join("ledger"), own, layout.agents()];
    for agent in directory::agents(root).unwrap_or_default() {
        directories.push(layout.outbox(agent.as_str()));
        directories.push(layout.mailbox(&Mailbox::DeadLetter(agent.to_string())));
    }
    for directory in directories {
        // One that cannot be watched is seen by the sweep.
        let _ = watch.keep(&directory);
    }
}

fn frame(seen: &CommandOutput<WatchView>, now: DateTime<Utc>, screen: Screen) -> String {
    let WatchView { status, decisions } = &seen.data;
    let mut said = board::text(status, now, screen);
    if !decisions.is_empty() {
        said += "\n";
        decisions.iter().for_each(|line| said += &line.text());
    }
    seen.text(&said)
}

/// As much of a frame as the terminal has room for: what is cut off at the bottom is a line less, at the right an
/// ellipsis. Colours take no room.
fn fitting(frame: &str) -> String {
    let (width, height) = super::screen::terminal_size().unwrap_or((100, 24));
    let mut text = String::from("\u{1b}[H");
    for (n, line) in frame.lines().take(height).enumerate() {
        let line = if line.contains('\u{1b}') {
            line.to_owned()
        } else {
            super::screen::cut(line, width)
        };
        text += &format!("{}{line}\u{1b}[K", if n == 0 { "" } else { "\r\n" });
    }
    text + "\u{1b}[J"
}

fn draw(text: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Failure::new(Exit::Failed, &error))
}

/// The terminal's other screen, without a cursor; left with the value.
struct Alternate;

impl Alternate {
    fn enter() -> Result<Self, Failure> {
        draw("\u{1b}[?1049h\u{1b}[?25l").map(|()| Self)
    }
}

impl Drop for Alternate {
    fn drop(&mut self) {
        // If the terminal is gone, there is nothing to put back.
        let _ = draw("\u{1b}[?25h\u{1b}[?1049l");
    }
}
