//! Many messages waiting in one outbox: the whole run of `settled serve --once`, with start and final sync, against one
//! append and sync per message, and against the least calls that a mailroom makes for them.

use std::process::{Command, Stdio};
use std::time::Instant;

use super::figures::{Result, quantile};
use super::ground::Ground;
use super::room::Kind;
use super::{raw, room};

const ROUNDS: usize = 3;
const RAW: u32 = 2_000;

/// The ratio to reach.
fn to_reach(kind: Kind) -> u32 {
    match kind {
        Kind::Question => 5,
        Kind::Request => 4,
    }
}

pub(crate) fn run(ground: &Ground, messages: usize) -> Result<()> {
    println!("{messages} messages of 1 KiB waiting in an outbox ({ROUNDS} rounds, medians)");
    for kind in Kind::ALL {
        if kind == Kind::Question && messages > room::QUESTIONS_MAX {
            println!(" no questions: one agent may not ask another so many an hour");
            continue;
        }
        of_kind(ground, kind, messages)?;
    }
    println!();
    Ok(())
}

fn of_kind(ground: &Ground, kind: Kind, messages: usize) -> Result<()> {
    let sample = kind.message(1);
    let (mut ours, mut limit, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let (mut least, mut of_least) = (Vec::new(), Vec::new());
    let all: Vec<String> = (1..=messages).map(|number| kind.message(number)).collect();
    for _ in 0..ROUNDS {
        let raw_dir = ground.fresh("waiting-raw")?;
        let before = raw::append_and_sync(&raw_dir, sample.as_bytes(), RAW)?;
        let rate = once(ground, kind, messages)?;
        let after = raw::append_and_sync(&raw_dir, sample.as_bytes(), RAW)?;
        let relayed = raw::relay(&ground.fresh("waiting-relay")?, &all, kind.files())?;
        let around = f64::midpoint(before, after);
        least.push(relayed);
        of_least.push(rate / relayed);
        ours.push(rate);
        limit.push(around);
        ratios.push(rate / around);
    }
    println!(" {} ({} bytes)", kind.words(), sample.len());
    println!(
        "  append + fdatasync per message        {:>9.0} /s",
        quantile(&mut limit, 0.5)
    );
    println!(
        "  settled serve --once                  {:>9.0} /s",
        quantile(&mut ours, 0.5)
    );
    println!(
        "  ratio                                 {:>9.2}   to reach: {}",
        quantile(&mut ratios, 0.5),
        to_reach(kind)
    );
    println!(
        "  the least calls for them, no judging   {:>9.0} /s",
        quantile(&mut least, 0.5)
    );
    println!(
        "  ratio                                 {:>9.2}",
        quantile(&mut of_least, 0.5)
    );
    Ok(())
}

fn once(ground: &Ground, kind: Kind, messages: usize) -> Result<f64> {
    let root = ground.fresh("waiting")?;
    room::init(&root)?;
    for number in 1..=messages {
        std::fs::write(
            root.join(format!("agents/claude/outbox/{number:06}.yaml")),
            kind.message(number),
        )?;
    }
    rustix::fs::sync();
    let start = Instant::now();
    let status = Command::new(room::settled())
        .args(["serve", "--once"])
        .arg(&root)
        .env("SETTLED_LOG", "warn")
        .stdout(Stdio::null())
        .status()?;
    let took = start.elapsed().as_secs_f64();
    let arrived = std::fs::read_dir(root.join("agents/codex/inbox"))?.count();
    if !status.success() || arrived != messages {
        return Err(format!("{arrived} of {messages} arrived, exit {status}").into());
    }
    Ok(messages as f64 / took)
}
