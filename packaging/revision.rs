//! The build script of both programs: which commit `--version` names, and where a development build is loaded.
//!
//! Only an optimised build names one. A development build would have to be made again after every commit, and what it is
//! made of is seldom committed. `SETTLED_REVISION` (the commit and its date) replaces what git says, for a build from an
//! archive; without it and without git the program says that its commit is unknown.

#![expect(
    clippy::print_stdout,
    reason = "cargo reads what a build script prints"
)]

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=SETTLED_REVISION");
    println!("cargo:rustc-env=SETTLED_REVISION={}", revision());
    let target = ["CARGO_CFG_TARGET_OS", "CARGO_CFG_TARGET_ENV"].map(std::env::var);
    if !is_release() && target == [Ok("linux".to_owned()), Ok("gnu".to_owned())] {
        // The tests start it by the thousand. A program that may be loaded anywhere corrects 130 000 addresses at each start.
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}

fn is_release() -> bool {
    std::env::var("PROFILE").as_deref() == Ok("release")
}

fn revision() -> String {
    let given = std::env::var("SETTLED_REVISION").unwrap_or_default();
    if !given.is_empty() {
        return given;
    }
    if !is_release() {
        return "development build".to_owned();
    }
    // Another commit, and not every change of a file: a build for others is made by `cargo xtask dist`, which asks git each time.
    for name in ["HEAD", "packed-refs"] {
        watch(name);
    }
    if let Some(branch) = git(&["symbolic-ref", "--quiet", "HEAD"]) {
        watch(&branch);
    }
    let Some(commit) = git(&["log", "-1", "--abbrev=9", "--format=%h %cs"]) else {
        return "commit unknown".to_owned();
    };
    match git(&["status", "--porcelain", "--untracked-files=no"]) {
        Some(changes) if changes.is_empty() => commit,
        Some(_) | None => format!("{commit}, modified"),
    }
}

fn watch(name: &str) {
    if let Some(path) = git(&["rev-parse", "--git-path", name]) {
        let path = Path::new(&path).to_owned();
        // A path that is not there would have the script run at every build.
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
}

/// What git prints of the repository that holds this package; `None` where there is none.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let printed = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| printed.trim().to_owned())
}
