//! Starting on a large ledger: from the start of the process to the open mailroom.
use std::time::Instant;

use super::figures::Result;
use super::ground::Ground;
use super::{idle, room};

/// The messages per batch, so that the outbox stays small.
const PORTION: usize = 10_000;

pub(crate) fn run(ground: &Ground, records: usize) -> Result<()> {
    let root = ground.fresh("start")?;
    room::init(&root)?;
    for first in (1..=records).step_by(PORTION) {
        for number in first..(first + PORTION).min(records + 1) {
            std::fs::write(
                root.join(format!("agents/claude/outbox/{number:06}.yaml")),
                room::request(number),
            )?;
        }
        room::once(&root)?;
    }
    let bytes: u64 = std::fs::read_dir(root.join(".settled/ledger"))?
        .filter_map(|entry| entry.ok()?.metadata().ok())
        .map(|metadata| metadata.len())
        .sum();
    let start = Instant::now();
    room::once(&root)?;
    let took = start.elapsed().as_secs_f64();
    let read = Instant::now();
    for segment in std::fs::read_dir(root.join(".settled/ledger"))? {
        std::fs::read(segment?.path())?;
    }
    let read = read.elapsed().as_secs_f64();
    let chained = Instant::now();
    spool::read_ledger(&root, &mut |_| Ok(()))?;
    let chained = chained.elapsed().as_secs_f64();
    let parsed = Instant::now();
    spool::read_ledger(&root, &mut |entry| {
        Ok(workspace::index::decision(entry).map(drop)?)
    })?;
    let parsed = parsed.elapsed().as_secs_f64();
    let folded = Instant::now();
    let mut state = review::State::default();
    spool::read_ledger(&root, &mut |entry| {
        Ok(workspace::index::apply(&mut state, entry)?)
    })?;
    let folded = folded.elapsed().as_secs_f64();
    let served = room::Served::start(&root)?;
    let resident = idle::resident_kib(served.pid())? / 1024.0;
    println!(
        "start with {records} records in the ledger ({:.0} MiB), every one an open review",
        bytes as f64 / 1048576.0
    );
    println!("  reading the bytes                     {read:>9.2} s");
    println!("  its lines and their chain             {chained:>9.2} s");
    println!("  the same and every decision           {parsed:>9.2} s");
    println!("  the fold: chain, lines and state      {folded:>9.2} s    to reach: 1 s");
    println!("  settled serve --once                  {took:>9.2} s    to reach: 2 s");
    println!(
        "  ratio                                 {:>9.2}",
        took / read
    );
    println!("  resident memory while serving         {resident:>9.1} MiB\n");
    Ok(())
}
