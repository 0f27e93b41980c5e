//! The measured tools, installed once below the build folder, each with its command to check files.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::super::figures::Result;
use super::super::ground;
use settled_tests::binaries;

/// One tool.
pub(super) struct Peer {
    pub(super) name: &'static str,
    /// The program and its arguments before the files.
    before: Vec<String>,
    /// The argument before each file, if any.
    each: Option<&'static str>,
    /// The most files: more would take minutes.
    pub(super) files_max: usize,
}

/// The peer whose processor time ours is compared with: the fastest that we know. It checks the envelope alone.
pub(super) const FASTEST: &str = "jsonschema-cli (Rust)";

impl Peer {
    /// Returns the command that checks these files.
    pub(super) fn command(&self, files: &[PathBuf]) -> Vec<String> {
        let mut command = self.before.clone();
        for file in files {
            command.extend(self.each.map(str::to_owned));
            command.push(file.display().to_string());
        }
        command
    }
}

/// Returns ours first, then the peers; installs what is missing.
pub(super) fn all(place: &Path) -> Result<Vec<Peer>> {
    done(binaries::cargo().args([
        "build",
        "--release",
        "--quiet",
        "-p",
        "validate-message-cli",
    ]))?;
    let rust = place.join("rust");
    if !rust.join("bin/jsonschema-cli").exists() {
        // This takes minutes, once.
        let mut install = binaries::cargo();
        install
            .args([
                "install",
                "--quiet",
                "--locked",
                "jsonschema-cli@0.60.2",
                "--root",
            ])
            .arg(&rust);
        done(&mut install)?;
    }
    let python = place.join("python/bin");
    if !python.join("check-jsonschema").exists() || !python.join("oacp").exists() {
        done(
            Command::new("python3")
                .args(["-m", "venv"])
                .arg(place.join("python")),
        )?;
        let packages = ["check-jsonschema==0.39.0", "oacp-cli==0.5.4"];
        done(
            Command::new(python.join("pip"))
                .args(["install", "--quiet"])
                .args(packages),
        )?;
    }
    let node = place.join("node_modules/.bin");
    if !node.join("jsonschema").exists() || !node.join("ajv").exists() {
        let packages = ["@sourcemeta/jsonschema", "ajv-cli@5", "ajv-formats@2"];
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
            .arg(place)
            .args(packages);
        done(&mut npm)?;
    }
    let text = |path: PathBuf| path.display().to_string();
    let schema = text(std::env::current_dir()?.join("schemas/envelope.schema.json"));
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let ours = text(ground::target().join("release/validate-message"));
    let sourcemeta = text(node.join("jsonschema"));
    let rust = text(rust.join("bin/jsonschema-cli"));
    let check = text(python.join("check-jsonschema"));
    let ajv = text(node.join("ajv"));
    let ajv = [
        &ajv,
        "validate",
        "--spec=draft2020",
        "--strict=false",
        "-c",
        "ajv-formats",
        "-s",
        &schema,
    ];
    let oacp = format!(
        "for file; do {} validate --quiet \"$file\" || bad=1; done; exit $bad",
        text(python.join("oacp"))
    );
    Ok(vec![
        Peer {
            name: "validate-message",
            before: vec![ours],
            each: None,
            files_max: usize::MAX,
        },
        Peer {
            name: "sourcemeta jsonschema",
            before: words(&[&sourcemeta, "validate", &schema]),
            each: None,
            files_max: usize::MAX,
        },
        Peer {
            name: FASTEST,
            before: words(&[&rust, "validate", &schema]),
            each: Some("-i"),
            files_max: usize::MAX,
        },
        Peer {
            name: "ajv-cli",
            before: words(&ajv),
            each: Some("-d"),
            files_max: 1_000,
        },
        Peer {
            name: "check-jsonschema",
            before: words(&[&check, "--schemafile", &schema]),
            each: None,
            files_max: 1_000,
        },
        Peer {
            name: "oacp validate, a process a file",
            before: words(&["sh", "-c", &oacp, "sh"]),
            each: None,
            files_max: 20,
        },
    ])
}

fn done(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
}
