//! The binaries under test, built once per run so that no test uses a stale one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The folder of the running program and of its profile's programs, and the target directory above it.
struct Place {
    directory: PathBuf,
    target: PathBuf,
}

impl Place {
    fn profile(&self) -> &str {
        match self.directory.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => "dev",
            Some(profile) => profile,
        }
    }
}

/// Returns the program `settled`.
pub fn settled() -> PathBuf {
    directory().join("settled")
}

/// Returns the program `validate-message`.
pub fn validate_message() -> PathBuf {
    directory().join("validate-message")
}

/// Returns the program `xtask`: the running one, or one built only for the tests that need it.
pub fn xtask() -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    let running = std::env::current_exe().expect("the running program has a path");
    if running.file_name() == Some(OsStr::new("xtask")) {
        return running;
    }
    BUILT.get_or_init(|| cargo_build(place(), &["--workspace", "--test=cost", "--bin=xtask"]));
    place().directory.join("xtask")
}

/// Returns the folder of the programs under test, for a `PATH`. The same cargo builds them into the same target
/// directory, with the same profile as the tests.
pub fn directory() -> &'static Path {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| build(place()));
    &place().directory
}

/// Returns the build folder, for what tests install; builds nothing.
pub fn target() -> &'static Path {
    &place().target
}

fn place() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(find)
}

fn find() -> Place {
    let tests = std::env::current_exe().expect("the test program has a path");
    // <target>/<profile>/deps/it-<hash>, or <target>/<profile>/xtask
    let is_deps = |directory: &&Path| directory.ends_with("deps");
    let directory = tests
        .ancestors()
        .skip(1)
        .find(|directory| !is_deps(directory));
    let directory = directory
        .expect("programs lie in their profile's directory, tests one below")
        .to_owned();
    let target = directory
        .parent()
        .expect("profiles lie in the target directory")
        .to_owned();
    Place { directory, target }
}

fn build(place: &Place) {
    let selection: &[&str] = match place.profile() {
        // With the features of the tests: with its own, each crate below would be built twice in a run of all tests,
        // which takes a minute and a half. Cargo unifies the features of dev-dependencies only if a test is named.
        "dev" => &[
            "--workspace",
            "--test=cost",
            "--bin=settled",
            "--bin=validate-message",
            "--bin=settled-mcp",
            "--bin=settled-host",
            "--bin=settled-page",
            "--bin=settled-watch",
        ],
        // With the shipped features: these programs are measured and packed.
        _ => &[
            "--bins",
            "--package=settled",
            "--package=validate-message-cli",
            "--package=settled-mcp",
            "--package=settled-host",
            "--package=settled-page",
            "--package=settled-watch",
        ],
    };
    cargo_build(place, selection);
}

/// Returns the cargo that runs this program, or the one on the `PATH`, without the variables that describe this
/// program's package.
///
/// If any of them changes, the build script of `ring` runs again, and everything above it, including the tests of the
/// whole, would be rebuilt for each package that asks for a build.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let is_of_package = |name: &OsStr| {
        let name = name.as_encoded_bytes();
        name.starts_with(b"CARGO_PKG_") || name.starts_with(b"CARGO_MANIFEST_")
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_package(name)) {
        cargo.env_remove(name);
    }
    cargo
}

fn cargo_build(place: &Place, selection: &[&str]) {
    let status = cargo()
        .args(["build", "--quiet"])
        .args(selection)
        .args(["--profile", place.profile(), "--target-dir"])
        .arg(&place.target)
        .current_dir(crate::repository())
        // A developer sets it to time the tests; with it, cargo would rebuild everything.
        .env_remove("RUSTC_BOOTSTRAP")
        .stdin(Stdio::null())
        .status()
        .expect("cargo can be run");
    assert!(status.success(), "the binaries under test do not build");
}
