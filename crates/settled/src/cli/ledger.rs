//! `settled ledger`: work with the ledger itself.

use clap::Subcommand;
use serde::Serialize;
use spool::Agreement;
use workspace::index::LedgerIndex;

use super::answer::{CommandOutput, print};
use super::context::{Context, Root, quoted};
use super::failure::Failure;
use crate::exit::Exit;

/// Works with the ledger.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check that every record is whole and chained to the one before, and every snapshot right
    #[command(after_help = "Examples:
  settled ledger verify ./mailroom")]
    Verify(Root),
}

pub(super) fn run(args: &Args, context: Context) -> Result<Exit, Failure> {
    match &args.command {
        Command::Verify(root) => verify(&context.at(root)),
    }
}

/// What the ledger holds.
#[derive(Debug, Serialize)]
struct LedgerView {
    records: u64,
    segments: usize,
    bytes: u64,
    /// The digest of the last record's line: kept elsewhere, it proves later that nothing before it was changed.
    last: String,
    snapshots: Vec<Snapshot>,
}

#[derive(Debug, Serialize)]
struct Snapshot {
    /// The last record it stands for.
    at: u64,
    agrees: bool,
    summary: String,
}

impl Snapshot {
    fn of(at: u64, agreement: &Agreement) -> Self {
        let summary = match agreement {
            Agreement::Agrees => "agrees with the records".to_owned(),
            Agreement::Differs => "says something else than the records".to_owned(),
            Agreement::PassedOver(why) => format!("is passed over: {why}"),
        };
        Self {
            at,
            agrees: *agreement == Agreement::Agrees,
            summary,
        }
    }
}

impl LedgerView {
    fn text(&self) -> String {
        let Self {
            records,
            segments,
            last,
            snapshots,
            ..
        } = self;
        let text = format!("ok: {records} records in {segments} segments, the last is {last}\n");
        snapshots
            .iter()
            .fold(text, |text, Snapshot { at, summary, .. }| {
                text + &format!("the snapshot at {at} {summary}\n")
            })
    }
}

fn verify(context: &Context) -> Result<Exit, Failure> {
    let root = context.workspace()?;
    let (verified, snapshots) = spool::verify_with::<LedgerIndex>(root)
        .map_err(|error| Failure::new(Exit::Failed, &error))?;
    if let Some(torn) = &verified.torn {
        // A daemon that is writing right now looks the same; with none, the next start cuts it off.
        let message = format!(
            "{} whole records, then {} bytes at {}:{} that are no whole record",
            verified.records,
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
    let found = LedgerView {
        records: verified.records,
        segments: verified.segments,
        bytes: verified.bytes,
        last: verified.last.to_string(),
        snapshots: snapshots
            .iter()
            .map(|(seq, agreement)| Snapshot::of(*seq, agreement))
            .collect(),
    };
    let wrong = snapshots
        .iter()
        .find(|(_, agreement)| *agreement == Agreement::Differs);
    match wrong {
        None => {
            context.say(&CommandOutput::new(found), LedgerView::text)?;
            Ok(Exit::Ok)
        }
        Some((seq, _)) => {
            let message = format!("the ledger is whole, but its snapshot at {seq} is wrong");
            let place = spool::Layout::new(root).snapshots();
            if !context.json {
                print(&found.text())?;
            }
            let next = format!("rm -r {}", quoted(place.as_os_str()));
            Err(Failure::plain(Exit::Failed, message)
                .data(&found)
                .next(next))
        }
    }
}
