//! Turns signals and the end of standard input into requests to stop or to reload the config.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;

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
    /// Rings at the end of standard input, if that ends the daemon.
    input: Arc<Notify>,
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
        match until {
            Until::Signal => {}
            Until::EndOfInput => {
                let ended = Arc::clone(&input);
                std::thread::spawn(move || {
                    // Input that cannot be read counts as ended.
                    let _ = io::copy(&mut io::stdin(), &mut io::sink());
                    ended.notify_one();
                });
            }
        }
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            is_at_terminal: io::stdin().is_terminal() || io::stderr().is_terminal(),
            input,
        })
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
