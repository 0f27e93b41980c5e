//! Turns signals and the end of standard input into requests to stop or to reload the config.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

/// The event, besides an error, that ends a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// A signal.
    Signal,
    /// A signal, or the end of standard input: the daemon serves only the process at the other end.
    EndOfInput,
}

/// The signals that the daemon handles.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    /// True if a hang-up comes from a terminal.
    is_at_terminal: bool,
    /// Wakes the daemon at the end of standard input, if that ends the daemon.
    input: Arc<Notify>,
    /// Set when the daemon has to stop; the recovery checks it, because it does not wait for signals.
    stops: Arc<AtomicBool>,
}

/// The request that a signal makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Finish the current batch and end.
    Stop,
    /// Reload the config.
    Reload,
}

impl Signals {
    /// Handles the signals from now on; none of them ends the process any more.
    pub(super) fn listen(until: Until) -> io::Result<Self> {
        let input = Arc::new(Notify::new());
        let stops = Arc::new(AtomicBool::new(false));
        match until {
            Until::Signal => {}
            Until::EndOfInput => {
                let (ended, stops) = (Arc::clone(&input), Arc::clone(&stops));
                std::thread::spawn(move || {
                    // Input that cannot be read counts as ended.
                    let _ = io::copy(&mut io::stdin(), &mut io::sink());
                    stops.store(true, Ordering::Relaxed);
                    ended.notify_one();
                });
            }
        }
        let is_at_terminal = io::stdin().is_terminal() || io::stderr().is_terminal();
        let hangup = is_at_terminal.then_some(SignalKind::hangup());
        for kind in [SignalKind::interrupt(), SignalKind::terminate()]
            .into_iter()
            .chain(hangup)
        {
            signal_hook::flag::register(kind.as_raw_value(), Arc::clone(&stops))?;
        }
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            is_at_terminal,
            input,
            stops,
        })
    }

    /// Returns a flag that is set once a request to stop arrives.
    pub(super) fn stops(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stops)
    }

    /// Waits for the next request. At a terminal a hang-up means that it is gone; elsewhere it asks for a reload.
    pub(super) async fn next(&mut self) -> Heard {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => Heard::Stop,
            _ = self.terminate.recv() => Heard::Stop,
            () = self.input.notified() => Heard::Stop,
            _ = self.hangup.recv() => if self.is_at_terminal { Heard::Stop } else { Heard::Reload },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_known_to_a_recovery_that_waits_for_nothing() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let _entered = runtime.enter();
        for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
            let stops = Signals::listen(Until::Signal).expect("signals").stops();
            assert!(!stops.load(Ordering::Relaxed));
            signal_hook::low_level::raise(kind.as_raw_value()).expect("a signal");
            assert!(stops.load(Ordering::Relaxed), "{kind:?}");
        }
    }
}
