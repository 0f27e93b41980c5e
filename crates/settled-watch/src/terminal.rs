//! Takes the terminal and gives it back as it was: at the end, at an error, at a signal and at a panic.

use std::io::{self, Stdout, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Whether the terminal of this process has to be given back.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// A terminal that is drawn on, until the value is gone.
pub struct Taken {
    /// Where frames go.
    pub terminal: Terminal<CrosstermBackend<Stdout>>,
    is_over: Arc<AtomicBool>,
}

impl Taken {
    /// Takes the terminal. A panic gives it back before its message is printed, so that the message can be read.
    pub fn take() -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&is_over))?;
        }
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
        enable_raw_mode()?;
        IS_TAKEN.store(true, Ordering::Relaxed);
        let entered = execute!(stdout(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match entered {
            Ok(terminal) => Ok(Self { terminal, is_over }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    /// Whether a signal asked for the end.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
    }
}

/// Once: the second time would put the cursor back over what a panic has said. If the terminal is gone, there is nothing
/// to put back.
fn give_back() {
    if !IS_TAKEN.swap(false, Ordering::Relaxed) {
        return;
    }
    let _ = disable_raw_mode();
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
}
