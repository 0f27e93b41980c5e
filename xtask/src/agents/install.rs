//! Installs the real programs from npm, once per build folder, in the versions of `tests/agents/package.json`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;
use settled_tests::{read, repository, write};

/// Installs what is missing or has another version; returns the folder with the programs.
pub(super) fn programs(target: &Path) -> Result<PathBuf, String> {
    let wanted = read(manifest());
    let place = target.join("agents/npm");
    let stamp = place.join("installed.json");
    let bin = place.join("node_modules/.bin");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(bin);
    }
    println!(
        "installing four programs and two MCP clients from npm into {} (1.4 GB, kept between runs)",
        place.display()
    );
    let began = Instant::now();
    std::fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    write(place.join("package.json"), &wanted);
    let status = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--loglevel=error"])
        .current_dir(&place)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("npm cannot be run: {error}"))?;
    if !status.success() {
        return Err(format!("npm ended with {status}"));
    }
    write(&stamp, &wanted);
    println!("installed in {} s", began.elapsed().as_secs());
    Ok(bin)
}

/// Returns the tested version of a package.
pub(super) fn version(package: &str) -> String {
    let wanted: Value = serde_json::from_str(&read(manifest())).expect("a package.json");
    let version = wanted["dependencies"][package].as_str();
    version
        .expect("the manifest names every program")
        .to_owned()
}

fn manifest() -> PathBuf {
    repository().join("tests/agents/package.json")
}
