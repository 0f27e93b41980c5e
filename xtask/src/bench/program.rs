//! The program itself: its size, the time it takes to print its version, and to serve a workspace without mail, each
//! beside a process that does nothing.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::figures::{Result, quantile};
use super::ground::{self, Ground};
use super::room;

/// The number of starts of each; the median counts.
const STARTS: usize = 50;

/// The time limit for a daemon without mail to be ready.
const READY_MAX: Duration = Duration::from_secs(20);

pub(crate) fn run(ground: &Ground) -> Result<()> {
    let root = ground.fresh("program")?;
    room::init(&root)?;
    println!("the program, {STARTS} starts each");
    for name in ["settled", "validate-message"] {
        let Ok(data) = std::fs::metadata(ground::target().join("release").join(name)) else {
            continue;
        };
        println!("  {name:<37} {:>9.2} MB", data.len() as f64 / 1e6);
    }
    let raw = line(
        "a process that does nothing",
        &mut many(|| started(&mut Command::new("true")))?,
    );
    let mut version = many(|| started(Command::new(room::settled()).arg("--version")))?;
    let version = line("settled --version", &mut version);
    let ready = line("settled serve, to READY=1", &mut many(|| ready(&root))?);
    println!(
        "  ratios                                {:>9.2} and {:.2}\n",
        version / raw,
        ready / raw
    );
    Ok(())
}

fn many(mut once: impl FnMut() -> Result<f64>) -> Result<Vec<f64>> {
    (0..STARTS).map(|_| once()).collect()
}

/// Prints the median and the slowest of the times in milliseconds; returns the median.
fn line(what: &str, times: &mut [f64]) -> f64 {
    let median = quantile(times, 0.5);
    println!(
        "  {what:<37} {median:>9.2} ms   slowest {:.2} ms",
        quantile(times, 1.0)
    );
    median
}

/// Measures a program from its start to its end.
fn started(command: &mut Command) -> Result<f64> {
    let began = Instant::now();
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    if status.success() {
        Ok(milliseconds(began))
    } else {
        Err(format!("{command:?}: {status}").into())
    }
}

/// Measures from the start of a daemon to its ready notification to the supervisor.
fn ready(root: &Path) -> Result<f64> {
    let path = root.with_extension("notify");
    let _ = std::fs::remove_file(&path);
    let socket = UnixDatagram::bind(&path)?;
    socket.set_read_timeout(Some(READY_MAX))?;
    let began = Instant::now();
    let mut daemon = Command::new(room::settled());
    daemon
        .arg("serve")
        .arg(root)
        .env("NOTIFY_SOCKET", &path)
        .env("SETTLED_LOG", "warn");
    let mut daemon = daemon.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let mut bytes = [0; 1024];
    let said = socket.recv(&mut bytes);
    let took = milliseconds(began);
    let pid = i32::try_from(daemon.id())
        .ok()
        .and_then(Pid::from_raw)
        .expect("a process has a number");
    kill_process(pid, Signal::TERM)?;
    daemon.wait()?;
    if bytes[..said?].starts_with(b"READY=1") {
        Ok(took)
    } else {
        Err("it did not say READY=1".into())
    }
}

fn milliseconds(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e3
}
