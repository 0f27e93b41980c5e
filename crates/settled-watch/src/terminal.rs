//! Takes the terminal and restores it: at the end, on an error, on a signal and on a panic.

use std::fs::File;
use std::io::{self, IsTerminal as _, Stdout, stdin, stdout};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// True while this process has to restore the terminal.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// A terminal in drawing mode, until the value is dropped.
pub struct Taken {
    /// The target of frames.
    pub terminal: Terminal<CrosstermBackend<Stdout>>,
    is_over: Arc<AtomicBool>,
}

impl Taken {
    /// Takes the terminal. A panic restores it before printing its message, which so stays readable.
    pub fn take() -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
            signal_hook::flag::register(signal, Arc::clone(&is_over))?;
        }
        end_with_terminal()?;
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

    /// True if a signal asked the process to end.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// Ends the process once its terminal is closed. On a closed terminal crossterm reads nothing in an endless loop and
/// never returns, so a check before it reads comes too early: only another thread can end it. There is nothing to
/// restore.
fn end_with_terminal() -> io::Result<()> {
    // The descriptor that crossterm reads.
    let keyboard = if stdin().is_terminal() {
        stdin().as_fd().try_clone_to_owned().map(File::from)?
    } else {
        File::open("/dev/tty")?
    };
    let wait = move || {
        loop {
            // `poll` reports a closed terminal even without requested events.
            let mut closed = [PollFd::new(&keyboard, PollFlags::empty())];
            match poll(&mut closed, None) {
                Ok(_) => std::process::exit(0),
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    };
    std::thread::Builder::new().spawn(wait).map(drop)
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
    }
}

/// Restores the terminal once: a second time would move the cursor over a panic's message. If the terminal is gone,
/// there is nothing to restore.
fn give_back() {
    if !IS_TAKEN.swap(false, Ordering::Relaxed) {
        return;
    }
    let _ = disable_raw_mode();
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
}
