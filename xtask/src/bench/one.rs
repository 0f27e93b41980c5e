//! One message at a time, each awaited: a closed loop in which every message needs its own sync.

use std::path::Path;
use std::time::{Duration, Instant};

use super::figures::{Result, quantile};
use super::ground::Ground;
use super::room::Kind;
use super::{raw, room};

const MESSAGES: usize = 1_000;

/// The ratio to reach: for questions only, because a request makes two files where the raw calls make one.
fn to_reach(kind: Kind) -> &'static str {
    match kind {
        Kind::Question => "to reach: 0.65",
        Kind::Request => "",
    }
}

pub(crate) fn run(ground: &Ground) -> Result<()> {
    println!("one message at a time, from write to seen in the inbox ({MESSAGES} messages)");
    for kind in Kind::ALL {
        of_kind(ground, kind)?;
    }
    println!();
    Ok(())
}

fn of_kind(ground: &Ground, kind: Kind) -> Result<()> {
    let root = ground.fresh("one")?;
    room::init(&root)?;
    let mut limit = raw::Delivery::new(&ground.fresh("one-raw")?)?;
    let served = room::Served::start(&root)?;
    let (outbox, inbox) = (served.outbox(), served.inbox());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for number in 1..=MESSAGES {
        // In turn, so that both meet the same disk and the same neighbours.
        theirs.push(
            limit
                .deliver(kind.message(number).as_bytes())?
                .as_secs_f64(),
        );
        ours.push(deliver(&outbox, &inbox, number, kind)?.as_secs_f64());
    }
    let per_s = |times: &[f64]| times.len() as f64 / times.iter().sum::<f64>();
    println!(" {}", kind.words());
    println!(
        "  append + fdatasync + create + rename  {:>9.0} /s  median {:.3} ms",
        per_s(&theirs),
        quantile(&mut theirs, 0.5) * 1e3
    );
    println!(
        "  settled                               {:>9.0} /s  median {:.3} ms",
        per_s(&ours),
        quantile(&mut ours, 0.5) * 1e3
    );
    println!(
        "  ratio                                 {:>9.2}   {}",
        per_s(&ours) / per_s(&theirs),
        to_reach(kind)
    );
    Ok(())
}

fn deliver(outbox: &Path, inbox: &Path, number: usize, kind: Kind) -> Result<Duration> {
    let name = format!("{number}.yaml");
    let (written, seen, text) = (outbox.join(&name), inbox.join(&name), kind.message(number));
    let start = Instant::now();
    std::fs::write(&written, &text)?;
    while !seen.exists() {
        if start.elapsed() > Duration::from_secs(10) {
            return Err(format!("{name} did not arrive within 10 s").into());
        }
        std::thread::sleep(room::GLANCE);
    }
    Ok(start.elapsed())
}
