//! `settled demo`: plays a whole review between two scripted agents and prints each step.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use demo::{Demo, DemoResult};
use serde::Serialize;

use super::answer::{CommandOutput, print};
use super::context::{Context, quoted};
use super::failure::Failure;
use crate::exit::Exit;
use screen::Screen;

/// Shows a review.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled demo                          a review in a temporary workspace
  settled demo --dir ./demo --pace 2s   slowly; watch it in another terminal:
  settled watch --root ./demo
  settled demo --svg demo.svg           also as a picture")]
pub(super) struct Args {
    /// Create this workspace and keep it [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The pause before each step, as in 800ms or 2s
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = pace)]
    pace: Duration,
    /// Also write the demo as an SVG picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// One step, as JSON.
#[derive(Debug, Serialize)]
struct DemoLine {
    step: usize,
    who: &'static str,
    says: &'static str,
    command: String,
    exit: i32,
    lines: Vec<String>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let failed = |error: &(dyn std::error::Error + 'static)| Failure::new(Exit::Failed, error);
    let (root, temporary) = workspace(args)?;
    let program = std::env::current_exe().map_err(|error| failed(&error))?;
    let told = hold(&program, &root, args, context);
    if temporary {
        // The system cleans up what cannot be removed.
        let _ = std::fs::remove_dir_all(&root);
    }
    let told = told?;
    if let Some(path) = &args.svg {
        std::fs::write(path, demo::svg(&told)).map_err(|error| {
            Failure::plain(Exit::Failed, format!("{}: {error}", path.display()))
        })?;
    }
    if !temporary && !context.json {
        print(&format!(
            "it is in {}: settled status {}\n",
            root.display(),
            quoted(root.as_os_str())
        ))?;
    }
    Ok(Exit::Ok)
}

/// Makes a directory that nobody else uses.
fn workspace(args: &Args) -> Result<(PathBuf, bool), Failure> {
    let Some(dir) = &args.dir else {
        let name = format!("settled-demo-{}", std::process::id());
        return Ok((std::env::temp_dir().join(name), true));
    };
    let is_free = std::fs::read_dir(dir).map_or_else(
        |error| error.kind() == std::io::ErrorKind::NotFound,
        |mut entries| entries.next().is_none(),
    );
    if is_free {
        return Ok((dir.clone(), false));
    }
    let message = format!(
        "{} is not empty: the demonstration makes a workspace of its own",
        dir.display()
    );
    Err(Failure::plain(Exit::Usage, message))
}

/// Plays the review and prints each step when it is done.
fn hold(
    program: &std::path::Path,
    root: &std::path::Path,
    args: &Args,
    context: &Context,
) -> Result<String, Failure> {
    let demo = Demo::start(program, root, Screen::of_output().width)?;
    if !args.pace.is_zero() && !context.json {
        let watch = format!("settled watch --root {}", quoted(root.as_os_str()));
        // The hint is not part of the story, so it goes to standard error.
        let _ = writeln!(std::io::stderr(), "in another terminal: {watch}");
    }
    let mut all = String::new();
    for (at, step) in demo::steps().iter().enumerate() {
        std::thread::sleep(args.pace);
        let told = demo.step(step)?;
        let text = told.text(at + 1);
        print(&if context.json {
            CommandOutput::new(line(at + 1, told)).line()
        } else {
            text.clone()
        })?;
        all += &text;
    }
    Ok(all)
}

fn line(number: usize, told: DemoResult) -> DemoLine {
    let DemoResult { step, lines, .. } = told;
    DemoLine {
        step: number,
        who: step.name(),
        says: step.says,
        command: step.command(),
        exit: step.exit,
        lines,
    }
}

fn pace(text: &str) -> Result<Duration, String> {
    let expected = || format!("`{text}` is not a time: expected as in 800ms or 2s");
    let (digits, factor) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(digits), _) => (digits, 1),
        (None, Some(digits)) => (digits, 1000),
        (None, None) => return Err(expected()),
    };
    let number: u64 = digits.parse().map_err(|_| expected())?;
    match number.checked_mul(factor) {
        Some(ms) if ms <= 60_000 => Ok(Duration::from_millis(ms)),
        Some(_) | None => Err("a step waits a minute at the most".to_owned()),
    }
}
