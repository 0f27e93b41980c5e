//! Takes the terminal and gives it back as it was: at the end, at an error, at a signal and at a panic.

use std::fs::File;
use std::io::{self, IsTerminal as _, Stdout, stdin, stdout};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{event, execute};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// Whether the terminal of this process has to be given back.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// A terminal that is drawn on, until the value is gone.
pub struct Taken {
    /// Where frames go.
    pub terminal: Terminal<CrosstermBackend<Stdout>>,
    /// Where keys come from.
    keyboard: File,
    is_over: Arc<AtomicBool>,
}

impl Taken {
    /// Takes the terminal. A panic gives it back before its message is printed, so that the message can be read.
    pub fn take() -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
            signal_hook::flag::register(signal, Arc::clone(&is_over))?;
        }
        let keyboard = keyboard()?;
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
            Ok(terminal) => Ok(Self {
                terminal,
                keyboard,
                is_over,
            }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    /// Whether a signal asked for the end, or the terminal is gone.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Waits for a key or a new size. Before crossterm reads, the terminal has to be there: from one that was closed
    /// crossterm reads nothing, again and again, and never returns.
    pub fn poll(&self, patience: Duration) -> io::Result<bool> {
        // What crossterm has read already comes first.
        for patience in [Duration::ZERO, patience] {
            let mut keyboard = [PollFd::new(&self.keyboard, PollFlags::IN)];
            let patience = Timespec::try_from(patience).expect("a short time");
            match poll(&mut keyboard, Some(&patience)) {
                // A signal: it may have brought a new size.
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
            if keyboard[0].revents().intersects(gone) {
                self.is_over.store(true, Ordering::Relaxed);
                return Ok(false);
            }
            if self.is_over() || event::poll(Duration::ZERO)? {
                return Ok(!self.is_over());
            }
        }
        Ok(false)
    }
}

/// The terminal that crossterm reads.
fn keyboard() -> io::Result<File> {
    if stdin().is_terminal() {
        stdin().as_fd().try_clone_to_owned().map(File::from)
    } else {
        File::open("/dev/tty")
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
