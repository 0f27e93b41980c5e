//! Our own program: to start it, and to name it to others.

use std::io;
use std::path::PathBuf;

/// Our own program, also after another version took its name.
pub fn running() -> io::Result<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() {
        Ok(running)
    } else {
        std::env::current_exe()
    }
}

/// The path of our own program, or of its successor: the kernel marks the path of one that was replaced.
pub(crate) fn installed() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let text = own.to_string_lossy();
    let installed = text.strip_suffix(" (deleted)").map(PathBuf::from);
    Ok(installed.unwrap_or_else(|| own.clone()))
}
