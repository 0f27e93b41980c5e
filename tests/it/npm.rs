//! npm installs the packages of a release.

use std::process::Command;

use settled_tests::debian::step;
use settled_tests::{installed, write};
use tempfile::TempDir;

use crate::dist::{VERSION, file, fresh, run, text};

/// A node project with the packed packages.
fn node_project() -> TempDir {
    let place = fresh();
    write(place.path().join("package.json"), "{\"private\": true}\n");
    let npm = |args: &[&str]| {
        let mut npm = Command::new("npm");
        npm.args(args)
            .current_dir(place.path())
            .env("npm_config_cache", place.path().join("cache"));
        step(
            &mut npm,
            "npm fails; this test needs Node.js with npm (Debian: apt install npm)",
        )
    };
    // The other platforms' packages are optional, and npm asks no registry for them.
    let (ours, platform) = (
        file(&format!("settled-{VERSION}"), ".tgz"),
        file("settled-linux", ".tgz"),
    );
    npm(&[
        "install",
        "--offline",
        "--no-audit",
        "--no-fund",
        text(&ours),
        text(&platform),
    ]);
    place
}

#[test]
fn npx_runs_the_programs_of_the_packed_packages() {
    let place = node_project();
    for name in ["settled", "validate-message"] {
        let version = run("npx", &["--no-install", name, "--version"], place.path());
        assert!(
            version.starts_with(&format!("{name} {VERSION} (")),
            "{version}"
        );
    }
    let mut wrong = Command::new("npx");
    let wrong = wrong
        .args(["--no-install", "settled", "nonsense"])
        .current_dir(place.path());
    assert_eq!(
        wrong.output().expect("npx runs").status.code(),
        Some(2),
        "the exit code is the program's"
    );
}

/// The launchers pass input, output, signals and exit codes between the caller and the programs.
#[test]
fn the_launchers_start_every_program_and_hand_on_signals() {
    let place = node_project();
    let launchers = place.path().join("node_modules/.bin");
    installed::works(|name| Command::new(launchers.join(name)), place.path());
}
