//! `settled notify`: tells people away from the machine that they are needed.

use std::path::Path;

use notifier::{LaneError, RunError};
use serde::Serialize;
use workspace::config::ConfigError;

use super::answer::CommandOutput;
use super::context::{Context, Root};
use super::failure::Failure;
use super::serve::LogForm;
use crate::exit::Exit;

/// Tells people that a review needs them or that the daemon stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled notify ./mailroom --test   try each channel of [notify]
  settled notify ./mailroom
  settled notify ./mailroom --once   exit code 9 if a notice could not be sent

It runs until you stop it, whether or not a daemon serves. More: docs/notify.md.")]
pub(super) struct Args {
    #[command(flatten)]
    root: Root,
    /// Send what waits, then exit
    #[arg(long)]
    once: bool,
    /// Send a test through every channel, then exit
    #[arg(long, conflicts_with = "once")]
    test: bool,
    #[command(flatten)]
    log: LogForm,
}

/// The JSON form. Fields are added, never changed.
#[derive(Debug, Serialize)]
struct NotifyView {
    /// The channels that were tested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tested: Vec<&'static str>,
    /// True if nothing waits to be sent.
    idle: bool,
}

pub(super) fn run(args: &Args, context: Context) -> Result<Exit, Failure> {
    let context = context.at(&args.root);
    let root = context.workspace()?;
    args.log.start();
    let failed = |error: RunError| failure(&error, &context);
    if args.test {
        let tested = notifier::test(root).map_err(failed)?;
        let view = NotifyView { tested, idle: true };
        context.say(&CommandOutput::new(view), |view| {
            format!("a test was sent: {}\n", view.tested.join(", "))
        })?;
        return Ok(Exit::Ok);
    }
    if args.once {
        return once(root, &context);
    }
    notifier::run(root).map_err(failed)?;
    Ok(Exit::Ok)
}

fn once(root: &Path, context: &Context) -> Result<Exit, Failure> {
    let idle = notifier::once(root).map_err(|error| failure(&error, context))?;
    let view = NotifyView {
        tested: Vec::new(),
        idle,
    };
    if !idle {
        let message = "some notices could not be sent, or wait for the end of the quiet hours; the log says more";
        return Err(Failure::plain(Exit::Temporary, message.to_owned())
            .data(&view)
            .next(context.command("notify --once")));
    }
    context.say(&CommandOutput::new(view), |_| {
        "no notice is waiting\n".to_owned()
    })?;
    Ok(Exit::Ok)
}

/// The failure to send notices, classified by who has to act.
fn failure(error: &RunError, context: &Context) -> Failure {
    let exit = match error {
        RunError::Config(ConfigError::Invalid { .. }) | RunError::NoChannel => Exit::Usage,
        RunError::Running | RunError::Send { .. } => Exit::Temporary,
        RunError::Config(ConfigError::Unreadable { .. })
        | RunError::Lock { .. }
        | RunError::Lane(LaneError::Ledger(_) | LaneError::Cursor { .. }) => Exit::Failed,
    };
    Failure::new(exit, error).next(context.command("doctor"))
}
