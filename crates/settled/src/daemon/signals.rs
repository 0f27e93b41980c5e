//! What ends the daemon from outside, and what makes it read its config anew.

use std::io::{self, IsTerminal as _};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that are listened to.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    /// Whether a hang-up is one of a terminal.
    is_at_terminal: bool,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Finish the batch in hand and end.
    Stop,
    /// Read the config anew.
    Reload,
}

impl Signals {
    /// Listens from now on; none of them ends the process any more.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            is_at_terminal: io::stdin().is_terminal() || io::stderr().is_terminal(),
        })
    }

    /// Waits for the next one. A hang-up says at a terminal that it is gone, and elsewhere what it says to daemons.
    pub(super) async fn next(&mut self) -> Heard {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => Heard::Stop,
            _ = self.terminate.recv() => Heard::Stop,
            _ = self.hangup.recv() => if self.is_at_terminal { Heard::Stop } else { Heard::Reload },
        }
    }
}
