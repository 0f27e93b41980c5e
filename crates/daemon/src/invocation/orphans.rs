//! Cleans up after an earlier daemon: ends agents whose keeper was killed with it, and settles runs whose end it
//! missed. It recognizes an agent by its process number and start time, or by the run's name in its environment.

use std::io;

use message_schema::spend::Spend;
use review::ReviewKey;
use runner::folder;
use workspace::clock::Moment;
use workspace::error::chain;

use super::Run;
use super::settle::Settling;
use crate::mailroom::Mailroom;

/// Ends what still runs, and returns the runs that have to be settled.
pub(super) fn see_to(mailroom: &Mailroom, now: Moment) -> Vec<Settling> {
    let folders = folder::all(mailroom.root()).unwrap_or_else(|error| {
        tracing::warn!(error = %chain(&error), "cannot list the runs of earlier daemons");
        Vec::new()
    });
    for folder in folders.iter().filter(|folder| folder.end().is_none()) {
        runner::orphans::end(folder, folder.id());
    }
    let settling = folders.iter().filter_map(|folder| {
        let run = folder.run::<Run>().ok()?;
        let end = folder.end();
        // A run that was cut off left its spend only in the stored output.
        let spend = match &end {
            Some(end) => end.said.spend,
            None => folder
                .printed(run.launch.output)
                .map_or_else(|_| Spend::default(), |said| said.spend),
        };
        if !is_last(mailroom, &run) {
            let report = run.report(spend);
            let is_missing = !mailroom.unrecorded(&report).is_nothing();
            return is_missing.then(|| Settling::paid_only(run, spend, now));
        }
        // The daemon may have counted some turns already. It cannot tell which, so it counts none again.
        let counted = end.as_ref().map_or(0, |end| end.said.turns);
        Some(Settling::of(run, end, counted, now).having_used(spend))
    });
    let mut settling: Vec<Settling> = settling.collect();
    let lost: Vec<ReviewKey> = mailroom
        .open_requests()
        .filter(|(_, _, open)| open.starts > open.failed_start && open.starts_left() == 0)
        .filter(|(key, ..)| {
            let mut known = settling.iter();
            !known.any(|known| known.run.review == **key && !known.is_paid_only)
        })
        .map(|(key, ..)| key.clone())
        .collect();
    // The last start is in the ledger, but a kill came before the run was written, so no run would answer.
    let error = io::Error::other("it was lost with an earlier daemon");
    let lost = lost.iter();
    settling.extend(lost.filter_map(|key| Settling::not_started(key, mailroom, &error, now)));
    settling
}

/// True if the run is the last one started for an open request.
fn is_last(mailroom: &Mailroom, run: &Run) -> bool {
    let open = mailroom
        .review(&run.review)
        .and_then(|review| review.phase.invocation());
    open.is_some_and(|open| open.request == run.request && open.starts == run.start)
}
