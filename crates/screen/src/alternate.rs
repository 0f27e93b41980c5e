//! The terminal's alternate screen, for content that is redrawn again and again.

use std::io::{self, Write as _, stdout};

/// The terminal's alternate screen, with the cursor hidden. Dropping the value leaves it.
#[derive(Debug)]
pub struct AlternateScreen(());

impl AlternateScreen {
    /// Enters it.
    pub fn enter() -> io::Result<Self> {
        write("\u{1b}[?1049h\u{1b}[?25l").map(|()| Self(()))
    }
}

impl Drop for AlternateScreen {
    fn drop(&mut self) {
        // If the terminal is gone, there is nothing to restore.
        let _ = write("\u{1b}[?25h\u{1b}[?1049l");
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
