//! Programs that a test writes and starts.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a program that anybody may start.
///
/// Another process writes it. If this one did, a child that another thread starts meanwhile would have the descriptor
/// until it executes its own program, and the kernel starts no file that is open for writing (`ETXTBSY`).
pub(crate) fn executable(path: &Path, program: &[u8]) {
    let mut writer = Command::new("install")
        .args(["-m", "755", "/dev/stdin"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("install runs");
    let input = writer.stdin.take();
    input
        .expect("its input")
        .write_all(program)
        .expect("a program");
    assert!(writer.wait().expect("it is our child").success());
}
