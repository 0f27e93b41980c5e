//! From the writer's close to the file in the inbox, one message every few milliseconds, beside an append and sync of
//! the same bytes at the same time.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::time::{Duration, Instant};

use super::figures::{Result, quantile};
use super::ground::Ground;
use super::{raw, room};

const MESSAGES: usize = 1_000;
const PAUSE: Duration = Duration::from_millis(5);

pub(crate) fn run(ground: &Ground) -> Result<()> {
    let root = ground.fresh("latency")?;
    room::init(&root)?;
    let journal = ground.fresh("latency-raw")?.join("raw.journal");
    let mut journal = OpenOptions::new().create(true).append(true).open(journal)?;
    let served = room::Served::start(&root)?;
    let (outbox, inbox) = (served.outbox(), served.inbox());
    let (mut ours, mut syncs) = (Vec::new(), Vec::new());
    for number in 1..=MESSAGES {
        let text = room::request(number);
        syncs.push(raw::sync_once(&mut journal, text.as_bytes())?.as_secs_f64());
        let name = format!("{number}.yaml");
        let seen = inbox.join(&name);
        let mut file = File::create_new(outbox.join(&name))?;
        file.write_all(text.as_bytes())?;
        let closed = Instant::now();
        drop(file);
        while !seen.exists() {
            if closed.elapsed() > Duration::from_secs(10) {
                return Err(format!("{name} did not arrive within 10 s").into());
            }
            std::thread::sleep(room::GLANCE);
        }
        ours.push(closed.elapsed().as_secs_f64());
        std::thread::sleep(PAUSE);
    }
    let mut ms = |share| {
        (
            quantile(&mut ours, share) * 1e3,
            quantile(&mut syncs, share) * 1e3,
        )
    };
    let ((median, sync_median), (p99, sync_p99)) = (ms(0.5), ms(0.99));
    println!("from close to visible in the inbox ({MESSAGES} messages)");
    println!(
        "  append + fdatasync                    median {sync_median:>7.3} ms  p99 {sync_p99:>7.3} ms"
    );
    println!("  settled                               median {median:>7.3} ms  p99 {p99:>7.3} ms");
    println!(
        "  above one sync                        median {:>7.3} ms             to reach: 2 ms",
        median - sync_median
    );
    println!(
        "  p99 / median                          {:>7.1}                to reach: 5\n",
        p99 / median
    );
    Ok(())
}
