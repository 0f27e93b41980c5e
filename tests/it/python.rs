//! pip and uv install the wheel of a release.

use std::process::Command;

use settled_tests::debian::step;
use settled_tests::peer;

use crate::dist::{VERSION, dist, fresh, run, runs, text};

#[test]
fn pip_installs_the_programs_into_a_fresh_environment() {
    let place = fresh();
    // Installing pip into the environment too would take longer than everything else here.
    run(
        "python3",
        &["-m", "venv", "--without-pip", "venv"],
        place.path(),
    );
    let bin = place.path().join("venv/bin");
    let pip = |args: &[&str]| {
        let other = [&["-m", "pip", "--python", "venv"], args].concat();
        run(peer::environment().join("bin/python"), &other, place.path())
    };
    let from = ["--no-index", "--find-links", text(dist())];
    pip(&[&["install", "--quiet"], &from[..], &["settled"]].concat());
    runs(&bin);
    let show = pip(&["show", "--files", "settled"]);
    for name in [
        "License-Expression: MIT OR Apache-2.0",
        "LICENSES-THIRD-PARTY.txt",
    ] {
        assert!(
            show.contains(name) || name.starts_with("License-E"),
            "{show}"
        );
    }
    pip(&["uninstall", "--yes", "settled"]);
    assert!(
        !bin.join("settled").exists(),
        "what was installed is removed"
    );
}

#[test]
fn uvx_runs_the_program_without_an_installation() {
    let place = fresh();
    let mut uvx = Command::new(peer::environment().join("bin/uvx"));
    uvx.args([
        "--quiet",
        "--no-index",
        "--find-links",
        text(dist()),
        "settled",
        "--version",
    ])
    .env("UV_CACHE_DIR", place.path().join("cache"))
    .env("UV_TOOL_DIR", place.path().join("tools"))
    .current_dir(place.path());
    let version = step(&mut uvx, "uvx runs no wheel of ours");
    assert!(
        version.starts_with(&format!("settled {VERSION} (")),
        "{version}"
    );
}
