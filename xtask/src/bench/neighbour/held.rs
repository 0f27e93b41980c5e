//! An order, a take and a deadline beside one outbox full of messages that wait for packets and are dated in the future.

use settled_tests::crowd::{self, DEADLINE_MS_MAX, ORDER_MS_MAX, TAKE_MS_MAX, Waits};

use super::super::figures::Result;
use super::super::ground::Ground;
use super::super::{idle, room};

/// The numbers of files.
const CROWDS: [usize; 3] = [2_000, 8_000, 14_000];

/// The time in which a command starts and the daemon ends the step that it is in, in milliseconds.
const STEP_MS: i64 = 250;

/// Returns the names of the crowds that contain these words.
pub(super) fn named(only: &str) -> Vec<String> {
    let names = CROWDS.map(name);
    names
        .into_iter()
        .filter(|name| name.contains(only))
        .collect()
}

/// Measures beside each of these crowds; returns the number of those over a limit.
pub(super) fn run(ground: &Ground, crowds: &[String]) -> Result<usize> {
    if crowds.is_empty() {
        return Ok(0);
    }
    println!("an order, a take and a deadline beside held files, seconds");
    println!(
        "  to reach: {}, {} and {} s\n",
        seconds(ORDER_MS_MAX),
        seconds(TAKE_MS_MAX),
        seconds(DEADLINE_MS_MAX)
    );
    println!(
        "  {:<36} {:>9} {:>9} {:>9} {:>12}",
        "", "order", "take", "deadline", "processor"
    );
    let mut over = 0;
    for (count, name) in CROWDS.into_iter().map(|count| (count, name(count))) {
        if !crowds.contains(&name) {
            continue;
        }
        ground.clear()?;
        let root = &ground.fresh("held")?;
        room::init_for(root, &crowd::AGENTS.join(","))?;
        let served = room::Served::start(root)?;
        let waits = crowd::waits_beside(root, &room::settled(), count);
        let processor = idle::processor_s(served.pid())?;
        served.kill();
        let Waits {
            order,
            take,
            deadline,
        } = waits;
        let is_over = order > ORDER_MS_MAX + STEP_MS
            || take > TAKE_MS_MAX + STEP_MS
            || deadline > DEADLINE_MS_MAX;
        over += usize::from(is_over);
        println!(
            "  {name:<36} {:>9.2} {:>9.2} {:>9.2} {processor:>12.2}{}",
            seconds(order),
            seconds(take),
            seconds(deadline),
            if is_over { "  OVER" } else { "" }
        );
    }
    Ok(over)
}

fn name(count: usize) -> String {
    format!("{count} held files from the future")
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1e3
}
