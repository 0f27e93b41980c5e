//! A workspace with many agents: the time it takes to start, and the time two of them wait for each other's mail while
//! it sweeps and while as many more are added.

use std::path::Path;
use std::time::{Duration, Instant};

use super::ground::Ground;
use super::{Result, idle, quantile, room};

/// The number of agents at first, and the number added later.
const AGENTS: usize = 10_000;
const LATE: usize = 4_000;

/// The time for which latencies are measured.
const QUIET_FOR: Duration = Duration::from_secs(20);

pub(crate) fn run(ground: &Ground) -> Result<()> {
    let root = ground.fresh("agents")?;
    room::init(&root)?;
    for number in 0..AGENTS {
        std::fs::create_dir_all(root.join(format!("agents/crowd-{number:05}/outbox")))?;
    }
    println!("{AGENTS} agents, of whom two write to each other");
    let began = Instant::now();
    let served = room::Served::start(&root)?;
    println!(
        "  first start, all mailboxes made       {:>9.2} s",
        began.elapsed().as_secs_f64()
    );
    drop(served);
    let began = Instant::now();
    let served = room::Served::start(&root)?;
    println!(
        "  next start                            {:>9.2} s",
        began.elapsed().as_secs_f64()
    );
    let mut number = 0;
    let mut quiet = latencies(&served, &mut number, &|| Ok(()))?;
    line("while it sweeps", &mut quiet);
    let mut late = latencies(&served, &mut number, &|| come(&root))?;
    line(&format!("while {LATE} more come"), &mut late);
    let before = idle::processor_s(served.pid())?;
    std::thread::sleep(QUIET_FOR);
    let used = idle::processor_s(served.pid())? - before;
    println!(
        "  processor without mail                {:>9.3} %",
        100.0 * used / QUIET_FOR.as_secs_f64()
    );
    println!(
        "  resident memory                       {:>9.1} MiB\n",
        idle::resident_kib(served.pid())? / 1024.0
    );
    Ok(())
}

fn come(root: &Path) -> Result<()> {
    for number in 0..LATE {
        std::fs::create_dir_all(root.join(format!("agents/late-{number:05}/outbox")))?;
    }
    Ok(())
}

/// The milliseconds from a message's rename into its outbox to its recipient's inbox, one message after the other,
/// while `meanwhile` runs at the beginning.
fn latencies(
    served: &room::Served,
    number: &mut usize,
    meanwhile: &(dyn Fn() -> Result<()> + Sync),
) -> Result<Vec<f64>> {
    std::thread::scope(|scope| {
        let busy = scope.spawn(move || meanwhile().map_err(|error| error.to_string()));
        let began = Instant::now();
        let mut times = Vec::new();
        while began.elapsed() < QUIET_FOR && *number < room::QUESTIONS_MAX {
            *number += 1;
            let name = format!("{number:06}.yaml");
            let hidden = served.outbox().join(format!(".{name}.tmp"));
            std::fs::write(&hidden, room::Kind::Question.message(*number))?;
            let (there, sent) = (served.inbox().join(&name), Instant::now());
            std::fs::rename(&hidden, served.outbox().join(&name))?;
            while !there.exists() {
                if sent.elapsed() > QUIET_FOR {
                    return Err(format!("{name} did not arrive").into());
                }
                std::thread::sleep(room::GLANCE);
            }
            times.push(sent.elapsed().as_secs_f64() * 1e3);
            std::thread::sleep(Duration::from_millis(4));
        }
        busy.join().expect("it does not panic")?;
        Ok(times)
    })
}

fn line(what: &str, times: &mut [f64]) {
    println!(
        "  latency {what:<29} {:>9.2} ms   p99 {:.2} ms   slowest {:.2} ms   to reach: 50 ms",
        quantile(times, 0.5),
        quantile(times, 0.99),
        quantile(times, 1.0)
    );
}
