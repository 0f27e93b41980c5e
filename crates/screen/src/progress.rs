//! A line on standard error that shows the progress of a long command. Appears only on a terminal, and only after a
//! second.

use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _, stderr};
use std::time::{Duration, Instant};

/// A faster command shows no progress.
const PATIENCE: Duration = Duration::from_secs(1);

/// The least time between two updates of the line.
const PAUSE: Duration = Duration::from_millis(200);

/// The number of steps between two checks of the clock.
const STEPS: u32 = 256;

/// The progress of a long command, on a line that dropping the value removes.
#[derive(Debug)]
pub struct ProgressLine {
    what: &'static str,
    is_terminal: bool,
    steps: u32,
    next: Instant,
    is_shown: bool,
}

impl ProgressLine {
    /// Begins something that may take long: `reading the ledger`.
    pub fn begin(what: &'static str) -> Self {
        Self {
            what,
            is_terminal: stderr().is_terminal(),
            steps: 0,
            next: Instant::now() + PATIENCE,
            is_shown: false,
        }
    }

    /// Counts one step; `done` is the total so far: `12000 records`.
    pub fn step(&mut self, done: impl Display) {
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS) && Instant::now() >= self.next {
            self.show(done);
        }
    }

    /// Shows at once what a wait is for: `codex, for up to 120 s`.
    pub fn show(&mut self, done: impl Display) {
        if self.is_terminal {
            self.next = Instant::now() + PAUSE;
            self.is_shown = true;
            // A terminal that accepts no more text is no reason to stop.
            let _ = write!(stderr(), "\r\u{1b}[K{}: {done}", self.what);
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(stderr(), "\r\u{1b}[K");
        }
    }
}
