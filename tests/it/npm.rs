//! npm installs the packages of a release.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use settled_tests::debian::step;
use settled_tests::{installed, write};

use crate::dist::{VERSION, absent, file, fresh, run};

/// A node project with the packed packages, installed once for both tests.
fn node_project() -> &'static Path {
    static PROJECT: OnceLock<PathBuf> = OnceLock::new();
    PROJECT.get_or_init(|| {
        let place = absent("npm-of-the-tests");
        std::fs::create_dir(&place).expect("the build folder can be written");
        write(place.join("package.json"), "{\"private\": true}\n");
        // The other platforms' packages are optional, and npm asks no registry for them.
        let (ours, platform) = (
            file(&format!("settled-{VERSION}"), ".tgz"),
            file("settled-linux", ".tgz"),
        );
        let mut npm = Command::new("npm");
        npm.args(["install", "--offline", "--no-audit", "--no-fund"])
            .args([ours, platform])
            .current_dir(&place)
            .env("npm_config_cache", place.join("cache"));
        step(
            &mut npm,
            "npm fails; this test needs Node.js with npm (Debian: apt install npm)",
        );
        place
    })
}

#[test]
fn npx_runs_the_programs_of_the_packed_packages() {
    let place = node_project();
    for name in ["settled", "validate-message"] {
        let version = run("npx", &["--no-install", name, "--version"], place);
        assert!(
            version.starts_with(&format!("{name} {VERSION} (")),
            "{version}"
        );
    }
    let mut wrong = Command::new("npx");
    let wrong = wrong
        .args(["--no-install", "settled", "nonsense"])
        .current_dir(place);
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
    let launchers = place.join("node_modules/.bin");
    installed::works(|name| Command::new(launchers.join(name)), fresh().path());
}
