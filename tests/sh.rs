//! Runs the shell scripts of tests. Rooms include this file by its path, because no room depends on the tests of the whole.

use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a script in a directory with a neutral git identity and without the machine's git config; returns its output.
pub(crate) fn sh(directory: &Path, script: &str) -> String {
    let output = Command::new("sh")
        .args(["-euc", script])
        .current_dir(directory)
        .env("HOME", directory)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_COMMITTER_NAME", "a")])
        .envs([("GIT_AUTHOR_EMAIL", "a@b"), ("GIT_COMMITTER_EMAIL", "a@b")])
        .stdin(Stdio::null())
        .output()
        .expect("sh runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{errors}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
