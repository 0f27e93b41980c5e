//! The command line: one thin file per command.

mod agent;
mod agents_md;
mod answer;
mod beside;
mod bodies;
mod brief;
mod command;
mod completions;
mod context;
mod dead_letter;
mod demo;
mod diff;
mod doctor;
mod explain;
mod gate;
mod gc;
mod help;
mod home;
mod hook;
mod host;
mod inbox;
mod init;
mod input;
mod keep;
mod ledger;
mod log;
mod mcp;
mod nearest;
mod notify;
mod order;
mod page;
mod pair;
mod person;
mod posting;
mod problems;
mod pull;
mod reply;
mod respond;
mod robot;
mod send;
mod separate;
mod serve;
mod service;
mod simulate;
mod states;
mod status;
mod threads;
mod trace;
mod turn;
mod up;
mod validate_run;
mod verdict;
mod wait;
mod watch;
mod why;
mod words;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use self::command::Command;
use self::context::{Context, Global};
use crate::exit::Exit;
use views::failure::{self, Failure};

/// The mailroom for AI code review.
#[derive(Debug, Parser)]
#[command(
    name = "settled",
    version = VERSION,
    about,
    after_help = EXAMPLES,
    help_template = help::OVERVIEW,
    max_term_width = 100
)]
pub struct SettledCli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Option<Command>,
}

/// The version, and the commit it was built from: see `packaging/revision.rs`.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("SETTLED_REVISION"),
    ")"
);

const EXAMPLES: &str = "\
Examples:
  settled up ./mailroom --agents claude,codex   create a workspace, serve it
  settled pr merged 86                          report that #86 was merged
Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 timed out, 5 not permitted,
6 action required, 7 refused, 8 not approved, 9 try again.";

/// The commands that agents' programs wait for. They have a parser of their own, because building the full one takes
/// twice as long as these commands.
#[derive(Debug, Parser)]
#[command(name = "settled", version = VERSION)]
struct Small {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: SmallCommand,
}

#[derive(Debug, Subcommand)]
enum SmallCommand {
    /// See the command of the same name
    #[command(alias = "list")]
    Inbox(inbox::InboxArgs),
    /// See the command of the same name
    Hook(hook::Args),
}

/// Parses one of these commands. Help and errors are left to the full parser.
fn small() -> Option<Small> {
    let first = std::env::args_os().nth(1)?;
    ["inbox", "list", "hook"]
        .iter()
        .find(|name| first == ***name)?;
    Small::try_parse().ok()
}

/// Reads the command line and runs the command it names.
pub fn run() -> Exit {
    if let Some(Small { global, command }) = small() {
        let context = Context::new(global, SettledCli::command);
        let (as_json, doctor) = (context.json, context.command("doctor"));
        let ran = match &command {
            SmallCommand::Inbox(args) => inbox::inbox(args, &context),
            SmallCommand::Hook(args) => hook::run(args, &context),
        };
        return ended(ran.map_err(|failure| failure.or_check(doctor)), as_json);
    }
    let words: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let parsed = help::tailored(SettledCli::command(), &words)
        .try_get_matches()
        .and_then(|matches| SettledCli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) if error.kind() == ErrorKind::InvalidSubcommand && !is_hook() => {
            let as_json = words.iter().any(|word| word == "--json");
            let unknown = nearest::unknown(&SettledCli::command(), &words);
            return ended(Err(unknown), as_json);
        }
        Err(error) => return usage(&error),
    };
    let SettledCli { global, command } = cli;
    let context = Context::new(global, SettledCli::command);
    let (as_json, doctor) = (context.json, context.command("doctor"));
    let ran = match &command {
        Some(command) => command.run(context),
        None => home::run(&context),
    };
    ended(ran.map_err(|failure| failure.or_check(doctor)), as_json)
}

/// Returns the exit code of a command, and reports its failure.
fn ended(ran: Result<Exit, Failure>, as_json: bool) -> Exit {
    ran.unwrap_or_else(|failure| {
        if as_json {
            // The exit code reports the failure even if nobody reads this.
            let _ = answer::print(&answer::failure(&failure));
        }
        answer::complain(&failure);
        failure.exit
    })
}

/// Reports a command line that cannot be parsed, or prints the help it asks for.
fn usage(error: &clap::Error) -> Exit {
    let is_asked = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    // If the terminal is gone, nothing is left to do.
    let _ = error.print();
    // To an agent's program, exit code 2 from a hook means: continue, you are not done.
    if is_asked || is_hook() {
        return Exit::Ok;
    }
    if std::env::args_os().any(|word| word == "--json") {
        let words = ["settled".to_owned()].into_iter().chain(named());
        let help: Vec<String> = words.chain(["--help".to_owned()]).collect();
        let failure = Failure::plain(Exit::Usage, wrong(error)).next(help.join(" "));
        let _ = answer::print(&answer::failure(&failure));
    }
    Exit::Usage
}

/// True if the command line is a hook that reports mail to an agent's program, whatever else is wrong with it.
fn is_hook() -> bool {
    let named = named();
    named.first().is_some_and(|word| word == "hook")
        && named.get(1).is_none_or(|word| word != "install")
}

/// The command and subcommands that the line names, as far as they exist.
fn named() -> Vec<String> {
    let whole = SettledCli::command();
    let (mut command, mut named) = (&whole, Vec::new());
    let mut words = std::env::args_os().skip(1);
    while let Some(word) = words.next() {
        // The name of a workspace or an agent is no command.
        if word == "--root" || word == "--agent" {
            words.next();
        } else if let Some(found) = command.find_subcommand(&word) {
            named.push(found.get_name().to_owned());
            command = found;
        }
    }
    named
}

/// The mistake in the command line, on one line.
fn wrong(error: &clap::Error) -> String {
    let text = error.to_string();
    let said = text
        .lines()
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let said: Vec<&str> = said
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    said.join(" ").trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_command_line_is_one_line_without_the_usage() {
        let wrong = |line: &[&str]| {
            let error = SettledCli::try_parse_from(line).expect_err("a wrong command line");
            wrong(&error)
        };
        assert_eq!(
            wrong(&["settled", "why"]),
            "the following required arguments were not provided: <PR>"
        );
        assert_eq!(
            wrong(&["settled", "status", "--nope"]),
            "unexpected argument '--nope' found tip: to pass '--nope' as a value, use '-- --nope'"
        );
    }
}
