//! `settled pr`: reports an event of a pull request, by hand or from a forge's payload.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use message_schema::id::{CommitSha, PrNumber, Repo};
use message_schema::line::escaped;
use review::{Event, PullAction, PullEvent};
use serde::Serialize;
use simulate::github;
use workspace::regular_file;

use super::answer::CommandOutput;
use super::context::Context;
use super::failure::Failure;
use super::input;
use super::order;
use crate::exit::Exit;

/// The largest payload to read, in bytes; a forge sends up to 25 MiB.
const PAYLOAD_MAX: u64 = 32 * 1024 * 1024;

/// The expected form of a payload, for error messages.
const EXPECTED: &str = "a GitHub `pull_request` payload: `action`, `number`, `pull_request` with `merged`, \
                        `head.sha` and `user.login`, `repository` with `full_name`";

/// Reports an event of a pull request.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled pr synchronize 86 --head 9b2f41c
  settled pr merged 86
  settled pr ingest payload.json")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Report that it was opened
    #[command(after_help = "Examples:
  settled pr opened 86 --head 9b2f41c --author octocat")]
    Opened(ReportedPull),
    /// Report new commits; an approval of another commit becomes stale
    #[command(after_help = "Examples:
  settled pr synchronize 86 --head 9b2f41c")]
    Synchronize(ReportedPull),
    /// Report that it was reopened
    #[command(after_help = "Examples:
  settled pr reopened 86 --head 9b2f41c")]
    Reopened(ReportedPull),
    /// Report that it was closed without a merge; its reviews end
    #[command(after_help = "Examples:
  settled pr closed 86")]
    Closed(ReportedPull),
    /// Report that it was merged; its reviews end and open findings are handed off
    #[command(after_help = "Examples:
  settled pr merged 86 --repo owner/name --head 9b2f41c")]
    Merged(ReportedPull),
    /// Report the event in a GitHub `pull_request` payload
    #[command(after_help = "Examples:
  settled pr ingest payload.json
  settled pr ingest - < \"$GITHUB_EVENT_PATH\"")]
    Ingest(Ingest),
}

/// An event reported by hand.
#[derive(Debug, clap::Args)]
struct ReportedPull {
    /// The number of the pull request
    #[arg(value_name = "PR")]
    pr: PrNumber,
    /// The repository
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<Repo>,
    /// The head commit
    #[arg(long, value_name = "SHA")]
    head: Option<CommitSha>,
    /// The login of the pull request's author at the forge
    #[arg(long, value_name = "LOGIN")]
    author: Option<String>,
}

/// An event in a file.
#[derive(Debug, clap::Args)]
struct Ingest {
    /// The payload; `-` is standard input
    #[arg(value_name = "PAYLOAD")]
    payload: PathBuf,
}

/// A forge's action that Settled does not use.
#[derive(Debug, Serialize)]
struct Ignored {
    ignored: String,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    match &args.command {
        Command::Opened(told) => report(told, PullAction::Opened, context),
        Command::Synchronize(told) => report(told, PullAction::Synchronize, context),
        Command::Reopened(told) => report(told, PullAction::Reopened, context),
        Command::Closed(told) => report(told, PullAction::Closed, context),
        Command::Merged(told) => report(told, PullAction::Merged, context),
        Command::Ingest(args) => ingest(args, context),
    }
}

fn report(told: &ReportedPull, action: PullAction, context: &Context) -> Result<Exit, Failure> {
    let ReportedPull {
        pr,
        repo,
        head,
        author,
    } = told;
    let event = PullEvent {
        repo: repo.clone(),
        pr: pr.clone(),
        action,
        author: author.clone(),
        head: head.clone(),
    };
    order::give(Event::Pull(event), context)
}

fn ingest(args: &Ingest, context: &Context) -> Result<Exit, Failure> {
    context.workspace()?;
    let name = args.payload.display();
    match github::read(&bytes(&args.payload)?) {
        Ok(github::GithubEvent::Event(event)) => order::give(Event::Pull(event), context),
        Ok(github::GithubEvent::Other(action)) => {
            let ignored = CommandOutput::new(Ignored { ignored: action });
            context.say(&ignored, |Ignored { ignored }| {
                format!("ignored: `{}` moves no review\n", escaped(ignored))
            })?;
            Ok(Exit::Ok)
        }
        Err(why) => Err(Failure::plain(
            Exit::Failed,
            format!("{name}: {}; expected {EXPECTED}", escaped(&why)),
        )),
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let read = if path == Path::new("-") {
        let mut bytes = Vec::new();
        let read = std::io::stdin()
            .lock()
            .take(PAYLOAD_MAX)
            .read_to_end(&mut bytes);
        read.map(|_| bytes)
    } else {
        regular_file::read_given(path, PAYLOAD_MAX)
    };
    read.map_err(|error| input::unreadable(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_read_as_far_as_a_forge_sends_one() {
        let home = tempfile::tempdir().expect("a directory");
        let file = home.path().join("payload.json");
        let longest = vec![b'x'; 25 * 1024 * 1024];
        std::fs::write(&file, &longest).expect("a file");
        assert!(bytes(&file).is_ok_and(|read| read == longest));
        let absent = bytes(&home.path().join("none.json")).expect_err("no file");
        assert_eq!(absent.exit, Exit::NotFound);
    }
}
