//! `settled ledger`: verifies the ledger, or accepts one that a snapshot contradicts.

use std::path::PathBuf;

use clap::Subcommand;
use daemon::mailroom::accept_ledger;
use inspect::ledger::{self, KeptHead, LedgerCheck, WrongRecord};
use serde::Serialize;
use spool::{Agreement, Digest};

use super::answer::{CommandOutput, print};
use super::context::{Context, Root, quoted};
use super::failure::Failure;
use super::input;
use super::person::Signed;
use crate::exit::Exit;
use views::ledger::LedgerView;
use views::serving;

/// Works with the ledger.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Verify that every record is whole and chained to the one before, and that every snapshot is right
    #[command(after_help = "Examples:
  settled ledger verify ./mailroom
  settled ledger verify --from heads.txt ./mailroom    heads.txt: earlier output")]
    Verify(Verify),
    /// Accept a ledger that a snapshot contradicts, and continue from it
    #[command(after_help = "Examples:
  settled ledger accept --head \"$LAST\" --reason 'restored' ./mailroom")]
    Accept(Accept),
}

#[derive(Debug, clap::Args)]
struct Verify {
    /// The digest of a record the ledger must contain: the last record, as printed earlier
    #[arg(long, value_name = "DIGEST")]
    expect: Vec<Digest>,
    /// A file with earlier output of this command, one or several runs; `-` is standard input
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    #[command(flatten)]
    root: Root,
}

#[derive(Debug, clap::Args)]
struct Accept {
    /// The digest of the last record, as `ledger verify` prints it
    #[arg(long, value_name = "DIGEST")]
    head: Digest,
    #[command(flatten)]
    signed: Signed,
    #[command(flatten)]
    root: Root,
}

pub(super) fn run(args: &Args, context: Context) -> Result<Exit, Failure> {
    match &args.command {
        Command::Verify(args) => verify(args, &context.at(&args.root)),
        Command::Accept(args) => accept(args, &context.at(&args.root)),
    }
}

fn verify(args: &Verify, context: &Context) -> Result<Exit, Failure> {
    let root = context.workspace()?;
    let heads = kept(args)?;
    let check = ledger::check(root, &heads)?;
    let found = LedgerView::of(&check);
    if let Some((message, next)) = wrong(&check, context) {
        if !context.json {
            print(&found.text())?;
        }
        let failure = Failure::plain(Exit::Failed, message).data(&found);
        return Err(match next {
            Some(next) => failure.next(next),
            None => failure,
        });
    }
    if let Some(torn) = &check.verified.torn {
        // A daemon that is writing right now looks the same. Without a daemon, the next start cuts the bytes off.
        let message = format!(
            "{} whole records, then {} bytes at {}:{} that are not a whole record",
            check.verified.records,
            torn.bytes,
            torn.segment.display(),
            torn.offset
        );
        return Err(if spool::is_served(root) != Some(false) {
            Failure::plain(Exit::Temporary, message).next(context.command("ledger verify"))
        } else {
            let message = format!("{message}; the next start keeps a copy and cuts them off");
            Failure::plain(Exit::Failed, message).next(context.command("serve"))
        });
    }
    context.say(&CommandOutput::new(found), LedgerView::text)?;
    Ok(Exit::Ok)
}

/// The heads that the ledger must contain.
fn kept(args: &Verify) -> Result<Vec<KeptHead>, Failure> {
    let mut heads: Vec<KeptHead> = args
        .expect
        .iter()
        .map(|digest| KeptHead {
            record: None,
            digest: *digest,
        })
        .collect();
    if let Some(path) = &args.from {
        let read = ledger::kept_heads(&input::text(path)?);
        heads.extend(
            read.map_err(|why| Failure::plain(Exit::Usage, format!("{}: {why}", path.display())))?,
        );
    }
    Ok(heads)
}

/// The fault of a ledger whose records are chained, and the next command if one helps.
fn wrong(check: &LedgerCheck, context: &Context) -> Option<(String, Option<String>)> {
    let LedgerCheck {
        verified,
        snapshots,
        wrong,
    } = check;
    if let Some(WrongRecord { first, last, what }) = wrong {
        let which = if first == last {
            format!("record {first} has changed")
        } else {
            format!("the first wrong record is one of {first} to {last}; record {last} is wrong")
        };
        let is_contradicted = snapshots
            .iter()
            .any(|(_, agreement)| matches!(agreement, Agreement::Contradicts(_)));
        let how = if is_contradicted {
            format!(
                "; restore the ledger from a backup, or let a person accept it with `settled ledger accept --head {}`",
                verified.last
            )
        } else {
            String::new()
        };
        return Some((format!("{which}: {what}{how}"), None));
    }
    let differs = |(_, agreement): &&(u64, Agreement)| *agreement == Agreement::Differs;
    let (seq, _) = snapshots.iter().find(differs)?;
    let place = spool::Layout::new(context.root().ok()?).snapshots();
    Some((
        format!("the ledger is whole, but its snapshot at {seq} is wrong"),
        Some(format!("rm -r {}", quoted(place.as_os_str()))),
    ))
}

#[derive(Serialize)]
struct AcceptedView {
    /// The number of the record of the acceptance.
    record: u64,
    head: String,
}

fn accept(args: &Accept, context: &Context) -> Result<Exit, Failure> {
    let root = context.workspace()?;
    let (by, reason) = args.signed.decided(root)?;
    let record = accept_ledger::accept(root, args.head, by, reason)
        .map_err(|error| serving::of_daemon(&error.into(), root))?;
    let head = args.head.to_string();
    let answer = CommandOutput::new(AcceptedView { record, head });
    context.say(&answer, |AcceptedView { record, head }| {
        format!("record {record}: the ledger is accepted up to {head}; its snapshots are in .settled/torn\n")
    })?;
    Ok(Exit::Ok)
}
