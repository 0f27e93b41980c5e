//! The tools shared by all tests of the whole: the real binaries, a mailroom in a temporary directory, a reader of the
//! ledger that shares no code with the daemon, and the messages of the first review.
//!
//! Nothing here is a mock. A test writes and reads files, as an agent would.

pub mod approval;
pub mod binaries;
pub mod broker;
pub mod call_path;
pub mod crowd;
pub mod debian;
pub mod golden;
pub mod hostile;
pub mod house;
pub mod imports;
pub mod installed;
pub mod ledger;
pub mod mailroom;
pub mod markdown;
pub mod packages;
pub mod peer;
pub mod readers;
pub mod rust_source;
mod scratch;
pub mod seed;
mod sh;
pub mod tool;
pub mod wait;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use tempfile::TempDir;

/// Returns the root of the repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests are a directory of the repository")
}

/// Reads a text file; a failure names the path.
pub fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Writes a file in place with `open`, `write` and `close`; a failure names the path.
pub fn write(path: impl AsRef<Path>, text: &str) {
    let path = path.as_ref();
    std::fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Makes a temporary directory for thousands of short-lived files.
pub fn scratch() -> TempDir {
    scratch::scratch()
}

/// Writes an executable script through `sh`. The kernel executes no file that a process has open for writing, and a
/// child that another thread forks while this process writes would hold the file open until its own `exec`.
pub fn write_program(path: impl AsRef<Path>, text: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-ec", "printf %s \"$1\" > \"$0\"; chmod 755 \"$0\""]);
    made(shell.arg(path.as_ref()).arg(text));
}

/// Copies a program, through another process for the same reason.
pub fn copy_program(from: &Path, to: &Path) {
    made(Command::new("cp").arg(from).arg(to));
}

fn made(command: &mut Command) {
    let output = command.output().expect("the tools of every system run");
    assert!(output.status.success(), "{}", mailroom::said(&output));
}

/// Runs a script in a directory with a neutral git identity and without the machine's git config; returns its output.
pub fn sh(directory: &Path, script: &str) -> String {
    sh::sh(directory, script)
}

/// Returns the sorted entries of a directory; empty if it does not exist.
pub fn list(directory: impl AsRef<Path>) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a readable entry").path())
        .collect();
    paths.sort();
    paths
}

/// Returns the sorted names in a directory.
pub fn names(directory: impl AsRef<Path>) -> Vec<String> {
    let name = |path: PathBuf| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    list(directory).into_iter().filter_map(name).collect()
}

/// Returns once this file is old enough that a daemon without a hint takes it at its first look.
pub fn settle(path: impl AsRef<Path>) {
    let data = path.as_ref().metadata().expect("the file is there");
    let (changed, nanoseconds) = (data.ctime(), data.ctime_nsec());
    let changed = Duration::new(
        changed.unsigned_abs(),
        u32::try_from(nanoseconds).unwrap_or(0),
    );
    let age = || {
        UNIX_EPOCH
            .elapsed()
            .expect("it is after 1970")
            .checked_sub(changed)
    };
    while age().is_none_or(|age| age.as_millis() <= u128::from(spool::QUIET_MS)) {
        std::hint::spin_loop();
    }
}
