//! `settled ledger`: work with the ledger itself.

use clap::Subcommand;
use spool::Agreement;

use super::{Failure, Root, existing_workspace, print};
use crate::exit::Exit;
use crate::fold::Books;

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

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    match &args.command {
        Command::Verify(root) => verify(root),
    }
}

fn verify(root: &Root) -> Result<Exit, Failure> {
    existing_workspace(&root.root)?;
    let (verified, snapshots) =
        spool::verify_with::<Books>(&root.root).map_err(|error| Failure::new(Exit::Failed, &error))?;
    if let Some(torn) = &verified.torn {
        // A daemon that is writing right now looks the same; with none, the next start cuts it off.
        let message = format!(
            "{} whole records, then {} bytes at {}:{} that are no whole record",
            verified.records,
            torn.bytes,
            torn.segment.display(),
            torn.offset
        );
        return Err(if spool::is_served(&root.root) != Some(false) {
            Failure::plain(Exit::Temporary, message)
                .next(format!("settled ledger verify {}", root.root.display()))
        } else {
            Failure::plain(Exit::Failed, message)
                .next(format!("settled serve {}, which keeps a copy and cuts them off", root.root.display()))
        });
    }
    print(&format!(
        "ok: {} records in {} segments, the last is {}\n",
        verified.records, verified.segments, verified.last
    ))?;
    for (seq, agreement) in &snapshots {
        let said = match agreement {
            Agreement::Agrees => "agrees with the records".to_owned(),
            Agreement::Differs => "says something else than the records".to_owned(),
            Agreement::PassedOver(why) => format!("is passed over: {why}"),
        };
        print(&format!("the snapshot at {seq} {said}\n"))?;
    }
    let wrong = snapshots.iter().find(|(_, agreement)| *agreement == Agreement::Differs);
    match wrong {
        None => Ok(Exit::Ok),
        Some((seq, _)) => {
            let message = format!("the ledger is whole, but its snapshot at {seq} is wrong");
            let place = root.root.join(".settled/snapshots");
            Err(Failure::plain(Exit::Failed, message).next(format!("rm -r {}", place.display())))
        }
    }
}
