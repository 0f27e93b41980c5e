//! `settled pr`: what happened to a pull request, told by hand or by a forge's payload.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use message_schema::id::{CommitSha, PrNumber, Repo};
use message_schema::line::escaped;
use review::{Event, PullAction, PullEvent};
use serde::Deserialize;

use super::order::{self, Form};
use super::{Failure, existing_workspace, print};
use crate::exit::Exit;

/// The largest payload that is read, in bytes; a forge sends up to 25 MiB.
const PAYLOAD_MAX: u64 = 32 * 1024 * 1024;

/// What a payload has to be.
const EXPECTED: &str = "a GitHub `pull_request` payload: `action`, `number`, `pull_request` with `merged`, \
                        `head.sha` and `user.login`, `repository` with `full_name`";

/// Tells what happened to a pull request.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled pr synchronize ./mailroom 86 --head 9b2f41c
  settled pr merged ./mailroom 86
  settled pr ingest ./mailroom payload.json")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// It was opened
    #[command(after_help = "Examples:
  settled pr opened ./mailroom 86 --head 9b2f41c --author octocat")]
    Opened(Told),
    /// It has new commits: an approval of another commit is stale from now on
    #[command(after_help = "Examples:
  settled pr synchronize ./mailroom 86 --head 9b2f41c")]
    Synchronize(Told),
    /// It was opened again
    #[command(after_help = "Examples:
  settled pr reopened ./mailroom 86 --head 9b2f41c")]
    Reopened(Told),
    /// It was closed without being merged: its reviews end
    #[command(after_help = "Examples:
  settled pr closed ./mailroom 86")]
    Closed(Told),
    /// It was merged: its reviews end, and findings are handed off
    #[command(after_help = "Examples:
  settled pr merged ./mailroom 86 --repo owner/name --head 9b2f41c")]
    Merged(Told),
    /// Read a GitHub `pull_request` payload
    #[command(after_help = "Examples:
  settled pr ingest ./mailroom payload.json
  settled pr ingest ./mailroom - < \"$GITHUB_EVENT_PATH\"")]
    Ingest(Ingest),
}

/// An event told by hand.
#[derive(Debug, clap::Args)]
struct Told {
    /// The workspace
    #[arg(value_name = "ROOT")]
    root: PathBuf,
    /// The number of the pull request
    #[arg(value_name = "PR")]
    pr: PrNumber,
    /// The repository
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<Repo>,
    /// The commit it stands at
    #[arg(long, value_name = "SHA")]
    head: Option<CommitSha>,
    /// Who opened it, by its name at the forge
    #[arg(long, value_name = "LOGIN")]
    author: Option<String>,
    #[command(flatten)]
    form: Form,
}

/// An event in a file.
#[derive(Debug, clap::Args)]
struct Ingest {
    /// The workspace
    #[arg(value_name = "ROOT")]
    root: PathBuf,
    /// The payload; `-` is standard input
    #[arg(value_name = "PAYLOAD")]
    payload: PathBuf,
    #[command(flatten)]
    form: Form,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    match &args.command {
        Command::Opened(told) => tell(told, PullAction::Opened),
        Command::Synchronize(told) => tell(told, PullAction::Synchronize),
        Command::Reopened(told) => tell(told, PullAction::Reopened),
        Command::Closed(told) => tell(told, PullAction::Closed),
        Command::Merged(told) => tell(told, PullAction::Merged),
        Command::Ingest(args) => ingest(args),
    }
}

fn tell(told: &Told, action: PullAction) -> Result<Exit, Failure> {
    let Told { pr, repo, head, author, .. } = told;
    let event =
        PullEvent { repo: repo.clone(), pr: pr.clone(), action, author: author.clone(), head: head.clone() };
    order::give(&told.root, Event::Pull(event), &told.form)
}

fn ingest(args: &Ingest) -> Result<Exit, Failure> {
    existing_workspace(&args.root)?;
    let name = args.payload.display();
    match read(&bytes(&args.payload)?) {
        Ok(Read::Event(event)) => order::give(&args.root, Event::Pull(event), &args.form),
        Ok(Read::Other(action)) => {
            print(&format!("ignored: `{}` moves no review\n", escaped(&action)))?;
            Ok(Exit::Ok)
        }
        Err(why) => {
            Err(Failure::plain(Exit::Failed, format!("{name}: {}; expected {EXPECTED}", escaped(&why))))
        }
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: &std::io::Error| {
        let is_missing = error.kind() == std::io::ErrorKind::NotFound;
        let exit = if is_missing { Exit::NotFound } else { Exit::Failed };
        Failure::plain(exit, format!("{}: {error}", path.display()))
    };
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(PAYLOAD_MAX).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(PAYLOAD_MAX).read_to_end(&mut bytes))
    };
    read.map_err(|error| failed(&error))?;
    Ok(bytes)
}

/// What a payload says.
#[derive(Debug, PartialEq)]
enum Read {
    /// An event that may move reviews.
    Event(PullEvent),
    /// Something else that happens to pull requests.
    Other(String),
}

#[derive(Deserialize)]
struct Payload {
    action: String,
    number: u64,
    pull_request: Pull,
    repository: Option<Repository>,
}

#[derive(Deserialize)]
struct Pull {
    #[serde(default)]
    merged: Option<bool>,
    head: Head,
    user: Option<User>,
}

#[derive(Deserialize)]
struct Head {
    sha: CommitSha,
}

#[derive(Deserialize)]
struct User {
    login: String,
}

#[derive(Deserialize)]
struct Repository {
    full_name: Repo,
}

fn read(bytes: &[u8]) -> Result<Read, String> {
    let payload: Payload = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let pull = payload.pull_request;
    let action = match payload.action.as_str() {
        "opened" => PullAction::Opened,
        "synchronize" => PullAction::Synchronize,
        "reopened" => PullAction::Reopened,
        "closed" => match pull.merged {
            Some(true) => PullAction::Merged,
            Some(false) => PullAction::Closed,
            None => return Err("`closed` does not say whether it was `merged`".to_owned()),
        },
        _ => return Ok(Read::Other(payload.action)),
    };
    Ok(Read::Event(PullEvent {
        repo: payload.repository.map(|repository| repository.full_name),
        pr: payload.number.to_string().parse().expect("a number of at most 20 digits"),
        action,
        author: pull.user.map(|user| user.login),
        head: Some(pull.head.sha),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(action: &str, merged: &str) -> String {
        format!(
            r#"{{"action":"{action}","number":86,"pull_request":{{"merged":{merged},"head":{{"sha":"9b2f41c0","ref":"x"}},
            "user":{{"login":"octocat","id":1}}}},"repository":{{"full_name":"Owner/Name","id":2}},"sender":{{}}}}"#
        )
    }

    #[test]
    fn closed_and_merged_are_told_apart() {
        for (action, merged, expected) in [
            ("opened", "false", PullAction::Opened),
            ("synchronize", "null", PullAction::Synchronize),
            ("reopened", "false", PullAction::Reopened),
            ("closed", "false", PullAction::Closed),
            ("closed", "true", PullAction::Merged),
        ] {
            let event = PullEvent {
                repo: Some("Owner/Name".parse().expect("a repository")),
                pr: "86".parse().expect("a number"),
                action: expected,
                author: Some("octocat".to_owned()),
                head: Some("9b2f41c0".parse().expect("a commit")),
            };
            assert_eq!(read(payload(action, merged).as_bytes()), Ok(Read::Event(event)));
        }
        assert_eq!(read(payload("labeled", "false").as_bytes()), Ok(Read::Other("labeled".to_owned())));
    }

    #[test]
    fn what_is_no_payload_says_what_is_missing() {
        for (text, said) in [
            ("", "EOF"),
            ("[]", "expected struct Payload"),
            (r#"{"action":"opened","issue":{}}"#, "missing field `number`"),
            (&payload("opened", "false").replace("9b2f41c0", "main"), "expected a commit"),
            (&payload("opened", "false").replace("Owner/Name", "name"), "owner/name"),
            (&payload("closed", "null"), "does not say whether it was `merged`"),
        ] {
            let why = read(text.as_bytes()).expect_err(text);
            assert!(why.contains(said), "{text}: {why}");
        }
    }
}
