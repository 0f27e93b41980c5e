//! `settled watch`: shows the state of the workspace, and again whenever something happens. On a terminal it becomes
//! `settled-watch`, or draws plain text if that is not installed. In a pipe and with `--json` it prints one document
//! per line.

use std::io::{IsTerminal as _, Write as _, stdin, stdout};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use cockpit::{Follower, Overview, ReviewDetail};
use file_events::Changes;
use message_schema::id::PrNumber;
use review::Which;
use serde::Serialize;
use spool::{Layout, Mailbox, SpoolError};
use tokio::signal::unix::{SignalKind, signal};
use workspace::{clock, directory};

use super::answer::{CommandOutput, print};
use super::context::{Context, Root};
use super::failure::Failure;
use super::status;
use crate::exit::Exit;
use screen::{AlternateScreen, Screen, is_dumb};

/// The program that draws the screen.
const SCREEN: &str = "settled-watch";

/// The interval between two ticks of the clock on the screen.
const TICK: Duration = Duration::from_secs(1);

/// The longest time between two looks without an event: a killed daemon leaves none, and some file systems report none.
const SWEEP: Duration = Duration::from_secs(5);

/// The pause after a look, as a multiple of the time it took, so that a large ledger takes no more than a fifth of a
/// core.
const REST: u32 = 4;

/// The time to gather changes that are shown together.
const GATHER: Duration = Duration::from_millis(100);

/// Shows the state of the workspace continuously.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled watch ./mailroom
  settled watch ./mailroom --once
  settled watch ./mailroom --json | jq -c '.data.status.reviews[]'
  settled watch ./mailroom --once --json | jq -c '.data.needs[]'

Ctrl-C ends it.")]
pub(super) struct Args {
    #[command(flatten)]
    root: Root,
    /// Print one frame and exit
    #[arg(long)]
    once: bool,
    /// Select this pull request first; with --json, print its reviews in full
    #[arg(long, value_name = "PR")]
    review: Option<PrNumber>,
    /// Redraw plain text on a terminal, without keys and panes
    #[arg(long)]
    plain: bool,
}

/// The JSON form. Fields are added, never changed.
#[derive(Debug, Serialize)]
struct WatchView {
    #[serde(flatten)]
    overview: Overview,
    /// The full details of the selected reviews.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    selected: Vec<ReviewDetail>,
}

/// The destination of the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    /// A screen that is redrawn.
    Live,
    /// One document per line, or one frame after another on a terminal that cannot place text.
    Lines,
}

pub(super) fn run(args: &Args, context: Context) -> Result<Exit, Failure> {
    let context = context.at(&args.root);
    let root = context.workspace()?;
    let is_live = stdout().is_terminal() && !context.json && !args.once && !is_dumb();
    if is_live && stdin().is_terminal() && !args.plain {
        become_screen(args, root, &context)?;
    }
    let mut watched = Watched {
        follower: open(root, &context)?,
        pr: args.review.clone(),
    };
    if args.once {
        let now = clock::now();
        let seen = watched.view(now, &context);
        let text = if context.json {
            seen.line()
        } else {
            frame(&seen, now, Screen::of_output())
        };
        print(&text)?;
        return Ok(Exit::Ok);
    }
    let output = if is_live { Output::Live } else { Output::Lines };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let ended = runtime.block_on(follow(root, &mut watched, &context, output));
    match ended {
        Err(failure) if failure.is_broken_pipe() => Ok(Exit::Ok),
        Err(failure) => Err(failure),
        Ok(()) => Ok(Exit::Ok),
    }
}

/// Becomes the screen program, a separate one that keeps its dependencies out of `settled`. Returns if it is not
/// installed.
fn become_screen(args: &Args, root: &Path, context: &Context) -> Result<(), Failure> {
    let program = std::env::current_exe()?.with_file_name(SCREEN);
    if !program.is_file() {
        return Ok(());
    }
    let mut screen = Command::new(&program);
    screen.arg("--root").arg(root);
    if let Some(me) = context.me_if_told()? {
        screen.args(["--agent", me.agent.as_str()]);
    }
    if let Some(pr) = &args.review {
        screen.args(["--review", pr.as_str()]);
    }
    Err(screen.exec().into())
}

async fn follow(
    root: &Path,
    watched: &mut Watched,
    context: &Context,
    output: Output,
) -> Result<(), Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut resized = signal(SignalKind::window_change())?;
    // Without events, the sweep finds everything, only later.
    let changes = Changes::start();
    let _alternate = (output == Output::Live)
        .then(AlternateScreen::enter)
        .transpose()?;
    let mut shown = String::new();
    let mut next_look = Instant::now();
    let mut seen: Option<CommandOutput<WatchView>> = None;
    let mut is_woken = true;
    loop {
        let now = clock::now();
        if seen.is_none() || (is_woken && Instant::now() >= next_look) {
            changes.keep(shown_directories(root));
            let begun = Instant::now();
            watched.refresh(context)?;
            seen = Some(watched.view(now, context));
            next_look = Instant::now() + GATHER.max(begun.elapsed() * REST);
            is_woken = false;
        }
        let seen = seen.as_ref().expect("it was looked at above");
        match output {
            Output::Live => draw(&views::decisions::fitting(&frame(
                seen,
                now,
                Screen::of_output(),
            )))?,
            Output::Lines => {
                let line = seen.line();
                if line != shown {
                    let to_people = stdout().is_terminal() && !context.json;
                    let frame = || frame(seen, now, Screen::of_output());
                    draw(&to_people.then(frame).unwrap_or_else(|| line.clone()))?;
                    shown = line;
                }
            }
        }
        // A wakeup during the rest is handled after it.
        let pause = if is_woken {
            next_look.saturating_duration_since(Instant::now())
        } else {
            TICK
        };
        let is_due = next_look.elapsed() >= SWEEP;
        tokio::select! {
            _ = interrupt.recv() => return Ok(()),
            _ = terminate.recv() => return Ok(()),
            _ = resized.recv() => {}
            () = changes.changed(), if !is_woken => is_woken = true,
            () = tokio::time::sleep(pause.min(TICK)) => is_woken |= is_due,
        }
    }
}

/// The reviews to show.
struct Watched {
    follower: Follower,
    pr: Option<PrNumber>,
}

impl Watched {
    fn refresh(&mut self, context: &Context) -> Result<(), Failure> {
        let seen = self.follower.refresh();
        seen.map(drop).map_err(|error| unreadable(&error, context))
    }

    fn view(&self, now: DateTime<Utc>, context: &Context) -> CommandOutput<WatchView> {
        let spell = |agent: Option<&_>, words: &str| context.command_of(agent, words);
        let mut overview = self.follower.overview(now, &spell);
        overview.status.ledger.removable = status::removable(self.follower.root(), now);
        let which = self.pr.clone().map(|pr| Which {
            pr,
            repo: None,
            reviewer: None,
        });
        let keys = which.map_or_else(Vec::new, |which| self.follower.keys_of(&which));
        let selected = keys
            .into_iter()
            .filter_map(|key| self.follower.review(key, now, &spell))
            .collect();
        let problems = overview.problems.clone();
        let answer = CommandOutput::new(WatchView { overview, selected });
        status::with_problems(answer, &problems, context)
    }
}

fn open(root: &Path, context: &Context) -> Result<Follower, Failure> {
    Follower::open(root).map_err(|error| unreadable(&error, context))
}

fn unreadable(error: &SpoolError, context: &Context) -> Failure {
    Failure::new(Exit::Failed, error).next(context.command_of(None, "doctor"))
}

/// The directories in which a change may change what is shown.
fn shown_directories(root: &Path) -> Vec<PathBuf> {
    let layout = Layout::new(root);
    let mut directories = vec![layout.ledger(), layout.own(), layout.agents()];
    for agent in directory::agents(root).unwrap_or_default() {
        directories.push(layout.outbox(agent.as_str()));
        directories.push(layout.mailbox(&Mailbox::DeadLetter(agent.to_string())));
    }
    directories
}

fn frame(seen: &CommandOutput<WatchView>, now: DateTime<Utc>, screen: Screen) -> String {
    let Overview {
        status, decisions, ..
    } = &seen.data.overview;
    let board = views::board::text(status, now, screen);
    seen.text(&(board + &views::decisions::text(decisions, screen)))
}

fn draw(text: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
