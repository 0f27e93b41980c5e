//! The cost of documents that are built to be expensive: processor time and memory, from the file in the outbox to the
//! report, beside a normal message; and the time of `fmt` and `--fix` for the same message.

use peak_alloc::PeakAlloc;
use rustix::time::{ClockId, clock_gettime};
use settled_tests::hostile::{self, Hostile, Room};
use validate_message::fix::fix;
use validate_message::fmt::format;

use super::figures::{Result, quantile};

/// Counts allocations; only this module of the program needs it.
#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const CPU_MS_MAX: f64 = 50.0;
const MEMORY_MIB_MAX: f64 = 32.0;

/// The number of times each document is judged; the median counts.
const ROUNDS: usize = 5;

struct Cost {
    name: &'static str,
    bytes: usize,
    cpu_ms: f64,
    fmt_ms: f64,
    fix_ms: f64,
    memory_mib: f64,
    report_kib: f64,
    ledger_kib: f64,
    refused: bool,
}

impl Cost {
    fn is_over(&self) -> bool {
        let times = [self.cpu_ms, self.fmt_ms, self.fix_ms];
        times.iter().any(|ms| *ms > CPU_MS_MAX) || self.memory_mib > MEMORY_MIB_MAX
    }
}

pub(crate) fn run() -> Result<()> {
    let documents = hostile::documents();
    let mut costs = documents.iter().map(cost).collect::<Result<Vec<Cost>>>()?;
    println!(
        "hostile documents, each alone from its outbox to its report ({ROUNDS} rounds, medians)"
    );
    println!(
        "  limits: {CPU_MS_MAX} ms of processor time, as much for `fmt` and for `--fix`, {MEMORY_MIB_MAX} MiB\n"
    );
    println!(
        "  {:<46} {:>7} {:>8} {:>8} {:>8} {:>9} {:>7} {:>7}",
        "", "KiB", "CPU ms", "fmt ms", "fix ms", "MiB", "report", "ledger"
    );
    costs[1..].sort_by(|one, other| other.cpu_ms.total_cmp(&one.cpu_ms));
    for cost in &costs {
        println!(
            "  {:<46} {:>7.1} {:>8.2} {:>8.2} {:>8.2} {:>9.2} {:>7.1} {:>7.1}  {}{}",
            cost.name,
            cost.bytes as f64 / 1024.0,
            cost.cpu_ms,
            cost.fmt_ms,
            cost.fix_ms,
            cost.memory_mib,
            cost.report_kib,
            cost.ledger_kib,
            if cost.refused { "refused" } else { "accepted" },
            if cost.is_over() { "  OVER" } else { "" },
        );
    }
    let over = costs.iter().filter(|cost| cost.is_over()).count();
    println!("\n  {} documents, {over} over a limit\n", costs.len());
    if over == 0 {
        Ok(())
    } else {
        Err(format!("{over} documents cost too much").into())
    }
}

fn cost(document: &Hostile) -> Result<Cost> {
    let mut cpu = Vec::new();
    let mut memory: usize = 0;
    let (mut report, mut ledger, mut refused) = (0, 0, false);
    for _ in 0..ROUNDS {
        let mut room = Room::new();
        let before = room.ledger_bytes();
        room.lay(document);
        MEMORY.reset_peak_usage();
        let held = MEMORY.current_usage();
        let start = processor_ms();
        let pass = room.judge();
        cpu.push(processor_ms() - start);
        memory = memory.max(MEMORY.peak_usage().saturating_sub(held));
        if pass.accepted + pass.refused != 1 {
            return Err(format!("{}: {pass:?}", document.name).into());
        }
        (report, ledger) = (room.report_bytes(), room.ledger_bytes() - before);
        refused = pass.refused == 1;
    }
    let kib = |bytes: usize| bytes as f64 / 1024.0;
    Ok(Cost {
        name: document.name,
        bytes: document.packet.as_ref().unwrap_or(&document.message).len(),
        cpu_ms: quantile(&mut cpu, 0.5),
        fmt_ms: median_ms(&|| drop(format(&document.message))),
        fix_ms: median_ms(&|| drop(fix(&document.message))),
        memory_mib: memory as f64 / 1_048_576.0,
        report_kib: kib(report),
        ledger_kib: kib(ledger),
        refused,
    })
}

/// The processor time of one call, as the median of several.
fn median_ms(call: &dyn Fn()) -> f64 {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = processor_ms();
            call();
            processor_ms() - start
        })
        .collect();
    quantile(&mut times, 0.5)
}

/// The processor time of this process with all its threads, in milliseconds.
fn processor_ms() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1_000.0 + time.tv_nsec as f64 / 1_000_000.0
}
