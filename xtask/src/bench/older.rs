//! An older program against this build, in pairs on the same work: what a change costs or saves, whatever the machine
//! does meanwhile.

use std::path::Path;

use super::figures::{Result, quantile};
use super::ground::Ground;
use super::room::{self, Kind};
use super::validate::{Cost, cost};

const PAIRS: usize = 10;

/// The most messages of a run, which has to write them first.
const MESSAGES: usize = 3_000;

/// The most that this build may take of what the older one takes, at the median.
const SHARE_MAX: f64 = 1.05;

/// Runs both programs in turn; fails if this build takes more processor or wall time.
pub(crate) fn run(ground: &Ground, older: &Path, messages: usize) -> Result<()> {
    let messages = messages.min(MESSAGES);
    println!(
        "this build beside {}: {PAIRS} pairs of `serve --once` on {messages} waiting messages",
        older.display()
    );
    let mut over = Vec::new();
    for kind in Kind::ALL {
        let (mut wall, mut processor) = (Vec::new(), Vec::new());
        for pair in 0..PAIRS {
            let now = || once(ground, kind, messages, &room::settled());
            let before = || once(ground, kind, messages, older);
            // Each goes first in every second pair.
            let (now, before) = if pair % 2 == 0 {
                let now = now()?;
                (now, before()?)
            } else {
                let before = before()?;
                (now()?, before)
            };
            wall.push(now.wall_s / before.wall_s);
            processor.push(now.cpu_s / before.cpu_s);
        }
        println!(" {}", kind.words());
        for (what, ratios) in [("wall", &mut wall), ("processor", &mut processor)] {
            let median = quantile(ratios, 0.5);
            let (least, most) = (quantile(ratios, 0.0), quantile(ratios, 1.0));
            println!(
                "  {what:<10} {median:>5.2} of the older, {least:.2} to {most:.2}    to reach: {SHARE_MAX}"
            );
            if median > SHARE_MAX {
                over.push(format!("{what} of {}: {median:.2}", kind.words()));
            }
        }
    }
    println!();
    match over.is_empty() {
        true => Ok(()),
        false => Err(format!("more than the older program: {}", over.join(", ")).into()),
    }
}

/// Returns what it costs a program to judge and deliver these messages.
fn once(ground: &Ground, kind: Kind, messages: usize, program: &Path) -> Result<Cost> {
    let root = ground.fresh("older")?;
    room::init(&root)?;
    for number in 1..=messages {
        let file = format!("agents/claude/outbox/{number:06}.yaml");
        std::fs::write(root.join(file), kind.message(number))?;
    }
    rustix::fs::sync();
    let words = [program, Path::new("serve"), Path::new("--once"), &root];
    cost(words.map(|word| word.display().to_string()).into())
}
