//! The signals that end the daemon or make it reload its config.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

use super::Until;

/// The signals that are listened to.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    /// True if a hang-up comes from a terminal.
    is_at_terminal: bool,
    /// Rings at the end of standard input, where that is an end.
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
    /// Listens from now on; none of them ends the process any more.
    pub(super) fn listen(until: Until) -> io::Result<Self> {
        let input = Arc::new(Notify::new());
        match until {
            Until::Signal => {}
            Until::EndOfInput => {
                let ended = Arc::clone(&input);
                std::thread::spawn(move || {
                    // What cannot be read any more has ended as well.
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

    /// Waits for the next one. At a terminal a hang-up means that the terminal is gone; elsewhere it means what it
    /// means to daemons.
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
