//! Turns signals of a terminal or a service manager into the end of a pair. They do not end this process: the driver
//! ends the running command in order and records the reason.

use std::io;
use std::sync::{Arc, OnceLock};

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind, signal};

/// A request to end the pair, with its cause; set at most once.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<OnceLock<&'static str>>);

impl Stop {
    /// Starts listening, on a thread of its own.
    pub fn listen() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        // A pair started by `nohup` must outlive its terminal.
        let hears_hangup = !is_ignored(Signal::HUP);
        let (mut interrupt, mut terminate, mut hangup) = {
            let _entered = runtime.enter();
            (
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
                hears_hangup
                    .then(|| signal(SignalKind::hangup()))
                    .transpose()?,
            )
        };
        let stop = Self::default();
        let told = stop.clone();
        std::thread::spawn(move || {
            let why = runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => "a person ended it with Ctrl-C",
                    _ = terminate.recv() => "SIGTERM ended it",
                    () = hung_up(hangup.as_mut()) => "its terminal closed",
                }
            });
            // Nothing else sets it.
            let _ = told.0.set(why);
        });
        Ok(stop)
    }

    /// The cause, once a signal has asked to end the pair.
    pub fn cause(&self) -> Option<&'static str> {
        self.0.get().copied()
    }
}

async fn hung_up(hangup: Option<&mut unix::Signal>) {
    match hangup {
        Some(hangup) => {
            hangup.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// True if this process was started with the signal ignored; false without `/proc`.
fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    ignored >> (signal.as_raw() - 1) & 1 == 1
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::io::{Write as _, stdout};
    use std::process::Command;

    use super::*;

    #[test]
    #[ignore = "the test below starts it as a process"]
    fn child() {
        let signals = [Signal::PIPE, Signal::TERM, Signal::USR1];
        let told = format!("ignored: {:?}\n", signals.map(is_ignored));
        stdout().write_all(told.as_bytes()).expect("somebody reads");
    }

    #[test]
    fn an_ignored_signal_is_told_from_others() {
        for (ignored, told) in [
            ("PIPE,TERM", "ignored: [true, true, false]"),
            ("PIPE,USR1", "ignored: [true, false, true]"),
        ] {
            // Rust itself ignores SIGPIPE.
            let output = Command::new("env")
                .args(["--default-signal", &format!("--ignore-signal={ignored}")])
                .arg(std::env::current_exe().expect("this program"))
                .args(["stop::tests::child", "--exact", "--ignored", "--nocapture"])
                .output()
                .expect("`env` can be run");
            let output = String::from_utf8_lossy(&output.stdout);
            assert!(output.contains(told), "{output}");
        }
    }
}
