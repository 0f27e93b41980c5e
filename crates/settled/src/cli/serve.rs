//! `settled serve`: serves a workspace in the foreground.

use std::path::Path;

use daemon::serve::{self, Until};
use logs::{self, LogFormat};
use workspace::config::Config;
use workspace::directory;

use super::answer::{CommandOutput, print};
use super::context::{Context, Root};
use super::failure::Failure;
use super::host;
use super::words::log_forms;
use crate::exit::Exit;
use views::serving::{self, of_daemon};

/// Serves a workspace.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled serve ./mailroom
  settled serve --once ./mailroom   judge what waits, then exit (7: one refused)")]
pub(super) struct Args {
    #[command(flatten)]
    root: Root,
    /// Judge and deliver all pending messages, then exit
    #[arg(long)]
    once: bool,
    /// Stop when standard input ends
    #[arg(long, hide = true, conflicts_with = "once")]
    until_eof: bool,
    #[command(flatten)]
    log: LogForm,
}

/// The option of the commands that log.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct LogForm {
    /// The log format: text, json or journald [default: journald under the journal, else text]
    #[arg(
        long,
        value_name = "FORM",
        env = "SETTLED_LOG_FORMAT",
        hide_env_values = true,
        hide_possible_values = true,
        value_parser = log_forms()
    )]
    log_format: Option<LogFormat>,
}

impl LogForm {
    /// Starts logging in the chosen format.
    pub(super) fn start(self) {
        logs::start(self.log_format);
    }
}

pub(super) fn run(args: &Args, context: Context) -> Result<Exit, Failure> {
    let context = context.at(&args.root);
    let root = context.workspace()?;
    let until = if args.until_eof {
        Until::EndOfInput
    } else {
        Until::Signal
    };
    if is_shared(root) {
        let form = args.log.log_format.map(LogFormat::word);
        return Err(host::serve(
            root,
            until,
            form,
            args.once.then_some(&context),
        ));
    }
    if args.once {
        args.log.start();
        once(root, &context)
    } else {
        foreground(root, until, args.log)
    }
}

/// Serves until a signal, logging in the chosen format.
pub(super) fn logged(root: &Path, log: LogForm) -> Result<Exit, Failure> {
    foreground(root, Until::Signal, log)
}

fn foreground(root: &Path, until: Until, log: LogForm) -> Result<Exit, Failure> {
    if is_shared(root) {
        let form = log.log_format.map(LogFormat::word);
        return Err(host::serve(root, until, form, None));
    }
    log.start();
    warn_of_strangers(root);
    serve::serve(
        root,
        until,
        |_| tracing::info!(root = %root.display(), "serving"),
    )
    .map_err(|error| of_daemon(&error, root))?;
    Ok(Exit::Ok)
}

/// True if several hosts share the ledger.
fn is_shared(root: &Path) -> bool {
    Config::load(root).is_ok_and(|config| config.ledger.log.is_some())
}

fn once(root: &Path, context: &Context) -> Result<Exit, Failure> {
    warn_of_strangers(root);
    let tally = serve::serve_once(root).map_err(|error| of_daemon(&error, root))?;
    let line = serving::judged(&tally);
    let exit = match serving::exit_of(&tally) {
        Ok(exit) => exit,
        Err(failure) => {
            if !context.json {
                print(&line)?;
            }
            return Err(failure.data(&tally).next(context.command("status")));
        }
    };
    context.say(&CommandOutput::new(&tally), |_| line)?;
    Ok(exit)
}

/// Warns of names in the config that belong to no agent of this workspace. The daemon reports what cannot be read.
fn warn_of_strangers(root: &Path) {
    if let (Ok(config), Ok(agents)) = (Config::load(root), directory::agents(root)) {
        for agent in config.strangers(&agents) {
            tracing::warn!(%agent, "settled.toml names an agent without a mailbox");
        }
    }
}
