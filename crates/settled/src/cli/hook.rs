//! `settled hook`: tells an agent's own program that mail waits; it takes milliseconds and never fails the program.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use clap::Subcommand;
use mailbox::hooks::payload::{PAYLOAD_MAX, payload};
use mailbox::hooks::{self, Moment, Program, install};
use mailbox::mailboxes::{AgentMailboxes, MailboxEntry, MailboxPlace};
use message_schema::line::escaped;
use serde::Serialize;
use workspace::{atomic_file, operator_alerts};

use super::answer::{CommandOutput, print};
use super::context::{Context, Me, quoted};
use super::failure::Failure;
use super::words::programs;
use crate::exit::Exit;

/// The most messages of one mailbox that are read to name them.
const READ_MAX: usize = 50;

/// The trust that Codex requires before it runs a project's hooks.
const CODEX_TRUST: &str = "note: Codex runs a project's hooks only if you trust the project and the hooks: start \
                           `codex` there once and confirm both\n";

/// The trust that Gemini CLI requires before it runs a project's hooks.
const GEMINI_TRUST: &str = "note: Gemini CLI reads a project's settings only if you trust the folder: start `gemini` \
                            there once and confirm\n";

/// Hooks of agents' programs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled hook install claude --dir ~/project   writes .claude/settings.json
  settled hook install codex --dir ~/project    writes .codex/hooks.json
  settled hook install gemini --dir ~/project   writes .gemini/settings.json
  settled hook install claude --dir ~/project --uninstall
  settled hook turn-end --for codex             the command that the hook runs")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// At the start of a session: report waiting mail
    SessionStart(For),
    /// At the end of a turn: report waiting mail once, then let the agent stop
    TurnEnd(For),
    /// Add both hooks to the settings of an agent's program, for this workspace and agent
    #[command(after_help = "Examples:
  settled hook install claude --dir ~/project --root ./mailroom --agent claude
  settled hook install codex --dir ~/project --uninstall")]
    Install(Install),
}

/// The program that runs the hook.
#[derive(Debug, clap::Args)]
struct For {
    /// The program that runs the hook; it determines the output format
    #[arg(
        long = "for",
        value_name = "PROGRAM",
        default_value = "claude",
        value_parser = programs()
    )]
    program: Program,
}

/// The settings that get the hooks.
#[derive(Debug, clap::Args)]
struct Install {
    /// The program
    #[arg(value_name = "PROGRAM", value_parser = programs())]
    program: Program,
    /// The project whose settings to change
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Remove the hooks
    #[arg(long)]
    uninstall: bool,
}

/// The change to the settings.
#[derive(Debug, Serialize)]
struct Installed {
    path: String,
    program: Program,
    changed: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let asked = match &args.command {
        Command::SessionStart(asked) | Command::TurnEnd(asked) => Some(asked.program),
        Command::Install(_) => None,
    };
    // A program that the daemon or a pair started works on one request. Other mail is not for this run, and a turn that
    // continued would bury its answer.
    if let Some(program) = asked.filter(|_| std::env::var_os("SETTLED_RUN").is_some()) {
        let _ = print(&hooks::quiet(program));
        return Ok(Exit::Ok);
    }
    match &args.command {
        Command::SessionStart(asked) => Ok(announce(asked.program, Moment::SessionStart, context)),
        Command::TurnEnd(asked) => Ok(announce(asked.program, Moment::TurnEnd, context)),
        Command::Install(args) => install(args, context),
    }
}

/// Reports waiting mail. Any error goes to standard error and the exit code is 0: mail must never stop an agent.
fn announce(program: Program, moment: Moment, context: &Context) -> Exit {
    let goes_on_already =
        moment == Moment::TurnEnd && hooks::goes_on_already(&payload(&std::io::stdin()));
    let (messages, waiting) = context
        .me()
        .and_then(|me| waiting(&me))
        .unwrap_or_else(|failure| {
            // If standard error is closed as well, there is nowhere to report it.
            let _ = writeln!(std::io::stderr(), "settled: {}", escaped(&failure.message));
            (Vec::new(), 0)
        });
    let _ = print(&hooks::output(
        program,
        moment,
        &messages,
        waiting,
        goes_on_already,
        context.root().is_ok_and(operator_alerts::is_cut_off),
    ));
    Exit::Ok
}

/// The taken and the waiting messages, and their number. It does not read all of them, because even an agent with
/// thousands of unread messages needs the answer in milliseconds.
fn waiting(me: &Me) -> Result<(Vec<MailboxEntry>, usize), Failure> {
    let mailboxes = AgentMailboxes::new(&me.root, &me.agent);
    let some = |place| mailboxes.first_messages(place, READ_MAX);
    let ((mut messages, taken), (waiting, count)) =
        (some(MailboxPlace::Taken)?, some(MailboxPlace::Inbox)?);
    messages.extend(waiting);
    Ok((messages, taken + count))
}

fn install(args: &Install, context: &Context) -> Result<Exit, Failure> {
    if !args.dir.is_dir() {
        let message = format!("{} is not a directory", args.dir.display());
        return Err(Failure::plain(Exit::NotFound, message));
    }
    let path = args.dir.join(args.program.settings());
    let failed = |error: &std::io::Error| {
        Failure::plain(Exit::Failed, format!("{}: {error}", path.display()))
    };
    let command = if args.uninstall {
        None
    } else {
        Some(command(context)?)
    };
    let before = match std::fs::File::open(&path) {
        Ok(file) => {
            let mut text = String::new();
            file.take(PAYLOAD_MAX)
                .read_to_string(&mut text)
                .map_err(|error| failed(&error))?;
            text
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(&error)),
    };
    let after = install::settings(&before, args.program, command.as_deref()).map_err(|why| {
        Failure::plain(
            Exit::Failed,
            format!("{}: {why}; nothing was changed", path.display()),
        )
    })?;
    let is_nothing = before.is_empty() && args.uninstall;
    let changed = after != before && !is_nothing;
    if changed {
        atomic_file::replace(&path, &after).map_err(|error| failed(&error))?;
    }
    let answer = CommandOutput::new(Installed {
        path: spool::path_text::shown(&path),
        program: args.program,
        changed,
    });
    context.say(&answer, Installed::text)?;
    Ok(Exit::Ok)
}

impl Installed {
    fn text(&self) -> String {
        let what = if self.changed {
            "changed"
        } else {
            "nothing to change in"
        };
        let note = match self.program {
            Program::Codex if self.changed => CODEX_TRUST,
            Program::Gemini if self.changed => GEMINI_TRUST,
            Program::Claude | Program::Codex | Program::Gemini => "",
        };
        format!("{what} {}\n{note}", self.path)
    }
}

/// The command with our absolute path and the agent's name, for a shell that has neither our PATH nor our environment.
fn command(context: &Context) -> Result<String, Failure> {
    let me = context.me()?;
    let program = std::env::current_exe()?;
    let root = std::path::absolute(&me.root)?;
    Ok(format!(
        "{} --root {} --agent {}",
        quoted(program.as_os_str()),
        quoted(root.as_os_str()),
        me.agent
    ))
}
