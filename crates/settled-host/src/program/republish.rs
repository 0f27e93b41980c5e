//! `settled host republish` and `settled host restore`: put back into a log what it lost, from this host's mirror and
//! with the original signatures. They only continue a log: if it has a different record, they put nothing back.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use settled_host::keys::HostKey;
use settled_host::place::{HostDirectory, LogPlace};
use spool::Digest;
use spool::log::{Appended, Head, HostName, Local, Log, LogError, Signed};
use views::answer::CommandOutput;
use views::exit::Exit;
use views::failure::Failure;
use workspace::config::SharedLog;

use super::log_summary::{for_each_batch, summarize};
use super::wait::Wait;
use super::{HostContext, config, local, member, of_log, of_new_log, of_place};

/// The pause before the same batch is appended again.
const AGAIN: Duration = Duration::from_millis(50);

/// `settled host restore`
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled host restore git@example.org:team/another.git
  settled host restore nats://spare.example.org")]
pub(super) struct RestoreArgs {
    /// The empty log that takes the place of the lost one
    #[arg(value_name = "LOG")]
    log: String,
}

/// The result of putting records back.
#[derive(Debug, Serialize)]
struct Republished {
    /// The log.
    log: String,
    /// The number of the log's last record before.
    had: u64,
    /// The number of records put back.
    records: u64,
    /// The number of the last record now, in the log and on this host.
    has: u64,
}

/// Puts back the records that the log lost.
pub(super) fn republish(context: &HostContext) -> Result<Exit, Failure> {
    let (root, shared) = context.shared()?;
    let put = put_mirror(root, &shared, context.wait)?;
    let others = if put.records > 0 {
        "the daemons of the other frozen hosts go on by themselves\n"
    } else {
        ""
    };
    report(context, put, others)
}

/// Puts the whole ledger into another log, and switches this host to it.
pub(super) fn restore(args: &RestoreArgs, context: &HostContext) -> Result<Exit, Failure> {
    let (root, before) = context.shared()?;
    let log = LogPlace::parse(&args.log).map_err(|error| Failure::new(Exit::Usage, &error))?;
    let shared = SharedLog {
        log: log.text(),
        ..before
    };
    let put = put_mirror(root, &shared, context.wait)?;
    config::write_log(root, Some(&shared))?;
    report(context, put, "")
}

fn report(context: &HostContext, put: Republished, others: &str) -> Result<Exit, Failure> {
    let mut answer = CommandOutput::new(put);
    answer.next(context.command("serve"), "serve this host");
    context.say(&answer, |put| {
        format!(
            "the log at {} had records up to {}; {} were put back, and it ends with record {} now\n{others}",
            put.log, put.had, put.records, put.has
        )
    })
}

fn put_mirror(root: &Path, shared: &SharedLog, wait: Wait) -> Result<Republished, Failure> {
    let own = HostDirectory::of(root);
    let key = member::key(root, shared)?;
    let mut local = local(root, &shared.host)?;
    let mut log = own.join(shared).map_err(|error| of_place(&error))?;
    let had = wait
        .end_of_new(&mut *log)
        .map_err(|error| of_new_log(&error, &shared.log))?;
    let keys = (shared.workspace.as_str(), &shared.host, &key);
    check_unsigned(&mut local, &mut *log, had, keys, wait)?;
    let records =
        put_back(&mut local, &mut *log, had, keys, wait).map_err(|error| match &error {
            LogError::Forked { .. } | LogError::RolledBack { .. } => {
                match first_difference(&mut local, &mut *log, had, wait) {
                    Ok(Some(parted)) => forked(parted),
                    Ok(None) => shorter(had),
                    Err(error) => of_log(&error),
                }
            }
            LogError::Unreachable { .. }
            | LogError::TooLarge { .. }
            | LogError::Denied { .. }
            | LogError::TooNew(_)
            | LogError::Broken { .. } => of_log(&error),
        })?;
    let has = local.head().map_err(|error| of_log(&error))?;
    Ok(Republished {
        log: shared.log.clone(),
        had: had.seq,
        records,
        has: has.seq,
    })
}

/// Checks that the other hosts can follow this ledger from a log that ends at `end` before the rest of it is put there.
///
/// The host that began the ledger judged the first records before it shared them. They have no signature here, and every
/// other host expects them under the key of that host's first join, in the log as well as behind its end.
pub(super) fn check_unsigned(
    local: &mut Local,
    log: &mut dyn Log,
    end: Head,
    (workspace, host, key): (&str, &HostName, &HostKey),
    wait: Wait,
) -> Result<(), Failure> {
    // `put_back` fails for a ledger that does not continue the log, and that failure names the difference.
    if local.follow(end).is_err() {
        return Ok(());
    }
    let known = local.follow(Head::EMPTY).map_err(|error| of_log(&error))?;
    let entries = known.iter().flat_map(|known| known.batch.entries());
    let mut shared = entries.skip_while(|entry| entry.host.is_none());
    if let Some(alone) = shared.find(|entry| entry.host.is_none()) {
        return Err(judged_alone(alone.seq));
    }
    let mut unsigned = known.iter().filter(|known| known.signature.is_empty());
    let mut entries = unsigned.clone().flat_map(|known| known.batch.entries());
    if let Some(lost) = entries.find(|entry| entry.host.is_some()) {
        let message = format!(
            "this workspace has lost the signature of record {}: run `settled host restore` on another host, which has it",
            lost.seq
        );
        return Err(Failure::plain(Exit::ActionRequired, message));
    }
    let Some(last) = unsigned.next_back().map(|known| known.batch.head().seq) else {
        return Ok(());
    };
    let founder = summarize(local, wait)
        .map_err(|error| of_log(&error))?
        .founder;
    let is_ours = founder
        .as_ref()
        .is_none_or(|founder| founder.host == host.as_str() && founder.key == key.public());
    if last > end.seq && !is_ours {
        let message = "records of this ledger are from before it was shared, and only the key that this host had then can \
                       sign them: run `settled host restore` on another host, which has their signatures"
            .to_owned();
        return Err(Failure::plain(Exit::ActionRequired, message));
    }
    let first = founder.map_or_else(|| key.public(), |founder| founder.key);
    let mut foreign = None;
    for_each_batch(log, end, wait, |signed| {
        let is_old = signed.batch.head().seq <= last;
        if is_old && signed.is_by(&first, workspace, key) {
            return ControlFlow::Continue(());
        }
        foreign = is_old.then(|| signed.batch.after().seq + 1);
        ControlFlow::Break(())
    })
    .map_err(|error| of_log(&error))?;
    foreign.map_or(Ok(()), |seq| Err(signed_by_another(seq)))
}

/// The failure for a ledger that no other host can follow, because every record after the first join names its host.
fn judged_alone(seq: u64) -> Failure {
    let message = format!(
        "this workspace judged record {seq} while it shared nothing, after it had shared its ledger: no other host can follow \
         that\n  share a new ledger: join with an empty directory"
    );
    Failure::plain(Exit::ActionRequired, message)
}

/// The failure for a log that no host can follow, because a key that is gone signed its beginning.
fn signed_by_another(seq: u64) -> Failure {
    let message = format!(
        "record {seq} of the log is signed with another key than this host's first one, so no host can follow that log: choose \
         an empty log, or another --workspace"
    );
    Failure::plain(Exit::ActionRequired, message)
}

/// The first record in which a log and this host's ledger differ.
struct Difference {
    seq: u64,
    theirs: Digest,
    ours: Digest,
}

/// Finds the first difference by comparing from the first record on: the log's end shows only that one exists. `None`
/// if one is a prefix of the other.
fn first_difference(
    local: &mut Local,
    log: &mut dyn Log,
    end: Head,
    wait: Wait,
) -> Result<Option<Difference>, LogError> {
    let ours: BTreeMap<u64, Digest> = local
        .follow(Head::EMPTY)?
        .iter()
        .flat_map(digests)
        .collect();
    let mut found = None;
    for_each_batch(log, end, wait, |signed| {
        let mut theirs = digests(signed);
        found = theirs.find_map(|(seq, theirs)| {
            let ours = *ours.get(&seq)?;
            (ours != theirs).then_some(Difference { seq, theirs, ours })
        });
        match found {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    })?;
    Ok(found)
}

/// The records of a batch, each with the digest of its line, which the next record names.
fn digests(signed: &Signed) -> impl Iterator<Item = (u64, Digest)> {
    let Head { seq, digest } = signed.batch.head();
    let behind = signed.batch.entries().iter().skip(1);
    let before = behind.map(|entry| (entry.seq - 1, entry.prev));
    before.chain(std::iter::once((seq, digest)))
}

fn forked(Difference { seq, theirs, ours }: Difference) -> Failure {
    Failure::plain(
        Exit::ActionRequired,
        format!(
            "record {seq} of the log is not this host's: the log went on without what it lost, and nothing was put back\n  \
             it is the first that differs: its digest is {theirs} in the log and {ours} here\n  \
             choose with the people of the other hosts which history to keep; docs/hosts.md, Two histories, has the steps"
        ),
    )
}

fn shorter(had: Head) -> Failure {
    Failure::plain(
        Exit::ActionRequired,
        format!(
            "the log has record {}, and this host's ledger ends before it: there is nothing to put back\n  \
             `settled host join LOG` takes over what this host lacks, from a log that was restored as well",
            had.seq
        ),
    )
}

/// Appends what this host's ledger has behind the log's end, each batch with its original signature. Unsigned records
/// were judged here before the ledger was shared; this host signs them.
pub(super) fn put_back(
    local: &mut Local,
    log: &mut dyn Log,
    end: Head,
    (workspace, host, key): (&str, &HostName, &HostKey),
    wait: Wait,
) -> Result<u64, LogError> {
    let mut count = 0;
    for known in local.follow(end)? {
        let signed = if known.signature.is_empty() {
            Signed::new(known.batch, workspace, host.clone(), key)
        } else {
            known
        };
        let since = Instant::now();
        loop {
            match wait.answer(|| log.append(&signed))? {
                Appended::Committed => break,
                Appended::Unknown(why) if wait.is_over(since) => {
                    return Err(LogError::Unreachable { why });
                }
                Appended::Unknown(_) => std::thread::sleep(AGAIN),
                Appended::Moved(_) => {
                    let why = "another host appended to it meanwhile; run this again".to_owned();
                    return Err(LogError::Unreachable { why });
                }
            }
        }
        count += signed.batch.entries().len() as u64;
    }
    Ok(count)
}
