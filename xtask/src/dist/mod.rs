//! `cargo xtask dist`: everything that can be installed without a compiler, from our programs.
//!
//! Builds the programs, or takes those of `--programs`, as the tests do. Packs so that the same programs give the same
//! bytes.

mod archive;
mod bom;
mod mirror;
mod npm;
mod platform;
mod stage;
mod wheel;

use std::path::{Path, PathBuf};
use std::process::Command;

use settled_tests::{binaries, debian, repository};
use sha2::{Digest as _, Sha256};

use platform::Platform;
use stage::Stage;

/// The version of all packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What is packed, from which programs and where to.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Pack the programs in DIR instead of building them
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    /// Platform of the programs [default: this one]
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Pack only these
    #[arg(long, value_name = "KIND", value_enum, value_delimiter = ',')]
    only: Vec<Kind>,
    /// Write to DIR [default: target/dist]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Store without compression, for packages that are installed once and removed
    #[arg(long)]
    fast: bool,
}

/// One thing to install.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// A .tar.gz with the programs, manual pages, completions and licences
    Archive,
    /// The bill of materials: CycloneDX
    Sbom,
    /// The Debian package
    Deb,
    /// The Python wheel
    Wheel,
    /// The npm packages: one for this platform, one that chooses
    Npm,
    /// The repository that pre-commit takes its hooks from
    Mirror,
}

/// Packs everything requested; the last line of output names the folder.
pub(crate) fn run(args: &Args) -> Result<bool, String> {
    let out = args
        .out
        .clone()
        .unwrap_or_else(|| binaries::target().join("dist"));
    // cargo-deb runs in another folder.
    let out = std::path::absolute(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let platform = Platform::of(args.target.as_deref())?;
    let programs = match &args.programs {
        Some(directory) => directory.clone(),
        None => built(args.target.as_deref())?,
    };
    std::fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let level = if args.fast { "0" } else { "6" };
    let stage = Stage::make(&programs, platform, out, level)?;
    let all = [
        Kind::Archive,
        Kind::Sbom,
        Kind::Deb,
        Kind::Wheel,
        Kind::Npm,
        Kind::Mirror,
    ];
    for kind in all {
        let is_possible = kind != Kind::Deb || stage.platform.is_linux();
        if !is_possible || !(args.only.is_empty() || args.only.contains(&kind)) {
            continue;
        }
        match kind {
            Kind::Archive => archive::pack(&stage)?,
            Kind::Sbom => bom::write(&stage)?,
            Kind::Deb => deb(&stage),
            Kind::Wheel => wheel::pack(&stage)?,
            Kind::Npm => npm::pack(&stage)?,
            Kind::Mirror => mirror::write(&stage)?,
        }
    }
    sums(&stage.out)?;
    println!("packed into {}", stage.out.display());
    Ok(true)
}

/// Builds the programs as users get them, with the commit in their version. Those for this machine go where `cargo
/// build` puts them, so that a second build is short.
fn built(target: Option<&str>) -> Result<PathBuf, String> {
    let mut build = binaries::cargo();
    build.args(["build", "--release", "--locked", "--bins"]);
    for package in stage::PACKAGES {
        build.args(["--package", package]);
    }
    if let Some(target) = target {
        build.args(["--target", target]);
    }
    build
        .arg("--target-dir")
        .arg(binaries::target())
        .env("SETTLED_REVISION", revision()?)
        .current_dir(repository());
    ran(&mut build)?;
    let below = target.map_or("release".into(), |target| Path::new(target).join("release"));
    Ok(binaries::target().join(below))
}

/// The commit, its date, and whether the sources were changed since.
fn revision() -> Result<String, String> {
    let commit = git(&["log", "-1", "--abbrev=9", "--format=%h %cs"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    let is_clean = changes.is_empty();
    Ok(commit + if is_clean { "" } else { ", modified" })
}

/// The date of every packed file: the commit's, or `SOURCE_DATE_EPOCH`.
fn date() -> Result<String, String> {
    std::env::var("SOURCE_DATE_EPOCH").or_else(|_| git(&["log", "-1", "--format=%ct"]))
}

fn git(args: &[&str]) -> Result<String, String> {
    let mut git = Command::new("git");
    ran(git.args(args).current_dir(repository()))
}

/// Runs a program that must succeed, and returns its output.
fn ran(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(format!("{name} failed: {}", output.status))
    }
}

/// Packs a folder as a `tar` or a `zip`.
fn pack(stage: &Stage, form: &str, folder: &Path, name: &str) -> Result<(), String> {
    let mut python = Command::new("python3");
    python.arg(repository().join("packaging/pack.py")).arg(form);
    python.arg(folder).arg(stage.out.join(name));
    ran(python.args([&date()?, stage.level])).map(drop)
}

fn deb(stage: &Stage) {
    let name = format!("settled_{VERSION}-1_{}.deb", stage.platform.debian());
    let build = stage.work.join("deb");
    debian::make(&stage.root.join("bin"), &build, &stage.out.join(name), "xz");
}

fn write(path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> Result<(), String> {
    let path = path.as_ref();
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if let Some(directory) = to.parent() {
        std::fs::create_dir_all(directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    let copied = std::fs::copy(from, to);
    copied
        .map(drop)
        .map_err(|error| format!("{}: {error}", from.display()))
}

fn sha256(path: &Path) -> Result<[u8; 32], String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Sha256::digest(bytes).into())
}

/// Writes `SHA256SUMS` of every file in the folder, for `sha256sum --check`.
fn sums(out: &Path) -> Result<(), String> {
    let list = out.join("SHA256SUMS");
    let entries = std::fs::read_dir(out).map_err(|error| format!("{}: {error}", out.display()))?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_file() && *path != list)
        .collect();
    files.sort();
    let mut text = String::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        for byte in sha256(&file)? {
            text.push_str(&format!("{byte:02x}"));
        }
        text.push_str(&format!("  {name}\n"));
    }
    write(list, text)
}

/// Every file below a folder, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries =
        std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut below: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    below.sort();
    let mut found = Vec::new();
    for path in below {
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}
