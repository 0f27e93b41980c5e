//! Tests the packages of `cargo xtask dist`, packed once for all tests of a run: `archive`, `mirror`, `npm`, `python` and
//! `sbom` have the real installers install them, each in a fresh place, and the programs run there. In one module they would
//! be neighbours, and nearly all threads of the tests would wait for the packing.
//!
//! The programs are those that the tests built, so packing takes seconds. pip, uv, pre-commit and npm come from their
//! registries the first time; what they install here comes only from the packed files.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use settled_tests::debian::step;
use settled_tests::{binaries, installed, list};
use tempfile::TempDir;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The folder with all packages, packed once per run.
pub(crate) fn dist() -> &'static Path {
    static DIST: OnceLock<PathBuf> = OnceLock::new();
    DIST.get_or_init(|| {
        let out = absent("dist-of-the-tests");
        pack(&out, "archive,sbom,wheel,npm,mirror");
        out
    })
}

/// A path in the build folder, without what an earlier run left there.
pub(crate) fn absent(name: &str) -> PathBuf {
    let path = binaries::target().join(name);
    if path.exists() {
        std::fs::remove_dir_all(&path).expect("the build folder can be written");
    }
    path
}

pub(crate) fn pack(out: &Path, kinds: &str) {
    let mut xtask = Command::new(binaries::xtask());
    xtask
        .args(["dist", "--fast", "--only", kinds, "--programs"])
        .arg(binaries::directory())
        .arg("--out")
        .arg(out);
    step(
        &mut xtask,
        "nothing is packed; this needs binutils and Python 3",
    );
}

/// The one file with this prefix and this suffix.
pub(crate) fn file(begins: &str, ends: &str) -> PathBuf {
    let mut files = list(dist());
    files.retain(|path| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.starts_with(begins) && name.ends_with(ends)
    });
    assert_eq!(files.len(), 1, "{begins}…{ends}: {files:?}");
    files.remove(0)
}

pub(crate) fn fresh() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

pub(crate) fn run(program: impl AsRef<OsStr>, args: &[&str], at: &Path) -> String {
    let mut command = Command::new(program);
    step(command.args(args).current_dir(at), &format!("{args:?}"))
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Checks that the programs run, have this version, and find each other.
pub(crate) fn runs(programs: &Path) {
    for name in ["settled", "validate-message"] {
        let version = run(programs.join(name), &["--version"], programs);
        assert!(
            version.starts_with(&format!("{name} {VERSION} (")),
            "{version}"
        );
    }
    let demo = run(programs.join("settled"), &["demo"], programs);
    assert!(demo.contains("approved"), "{demo}");
    let place = fresh();
    installed::works(|name| Command::new(programs.join(name)), place.path());
}
