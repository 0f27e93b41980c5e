//! The Debian package, made by `cargo xtask` with the library of `cargo-deb`, from programs that are built anyway: for
//! the tests, and for releases. `crates/settled/Cargo.toml` lists its content.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::{binaries, list, mailroom, repository, write};

/// The packed programs, here and in every other package.
pub const PROGRAMS: [&str; 6] = [
    "settled",
    "settled-host",
    "settled-mcp",
    "settled-page",
    "settled-watch",
    "validate-message",
];

/// Returns the package of the programs under test, made once per run.
pub fn package() -> &'static Path {
    static PACKAGE: OnceLock<PathBuf> = OnceLock::new();
    PACKAGE.get_or_init(|| {
        let build = binaries::target().join("package");
        let package = build.join("settled.deb");
        // xz would take ten times as long, for packing and for each installation.
        make(binaries::directory(), &build, &package, "gz");
        package
    })
}

/// Returns a program from one of Debian's packages: the machine's own, or else one in the build folder.
pub fn program(name: &str, package: &str) -> PathBuf {
    if Command::new(name).arg("--version").output().is_ok() {
        return PathBuf::from(name);
    }
    unpacked(package).join("usr/bin").join(name)
}

/// Returns the files of one of Debian's packages, unpacked once into the build folder, for a program that the machine
/// may lack. Needs `apt-get` and `dpkg`, but no permission to install.
pub fn unpacked(package: &str) -> PathBuf {
    let kept = binaries::target().join("debian").join(package);
    if kept.exists() {
        return kept;
    }
    let place = tempfile::tempdir_in(binaries::target()).expect("a directory");
    let unpack = format!(
        "(apt-get download {package} || (apt-get update && apt-get download {package})) && dpkg -x {package}_*.deb whole"
    );
    let output = Command::new("sh")
        .args(["-c", &unpack])
        .current_dir(place.path())
        .output();
    let output = output.expect("a shell");
    assert!(
        output.status.success(),
        "this test needs Debian's package `{package}`: {}",
        mailroom::said(&output)
    );
    std::fs::create_dir_all(kept.parent().expect("a folder for all")).expect("a directory");
    // The rename is atomic. Another test may have been faster.
    let moved = std::fs::rename(place.path().join("whole"), &kept);
    assert!(kept.exists(), "{moved:?}");
    kept
}

/// Returns the library of Debian's `libfaketime`, which fakes the wall clock of a program.
pub fn faketime() -> PathBuf {
    let places = list(unpacked("libfaketime").join("usr/lib"));
    let files = places
        .into_iter()
        .map(|place| place.join("faketime/libfaketime.so.1"));
    let mut files = files.filter(|file| file.exists());
    files.next().expect("the package has the library")
}

/// Makes the package of the programs in a directory, using its own build folder, compressed as `xz` or `gz`.
pub fn make(programs: &Path, build: &Path, package: &Path, compression: &str) {
    stage(programs, build);
    let mut deb = Command::new(binaries::xtask());
    // `cargo-deb` takes the build folder from the environment, and the lists of files from the manifest in its
    // directory.
    deb.arg("deb")
        .arg(package)
        .arg(compression)
        .env("CARGO_TARGET_DIR", build)
        .current_dir(repository().join("crates/settled"));
    step(&mut deb, "cargo-deb makes no package");
}

/// Fills the build folder for `cargo-deb`, which only knows `release`, whatever the programs' profile.
fn stage(programs: &Path, build: &Path) {
    let release = build.join("release");
    // Otherwise the page of a removed command would be packaged too.
    if release.exists() {
        std::fs::remove_dir_all(&release).expect("the build folder can be written");
    }
    let completions = release.join("completions");
    std::fs::create_dir_all(&completions).expect("the build folder can be written");
    let settled = programs.join("settled");
    for name in PROGRAMS {
        let mut strip = Command::new("strip");
        strip
            .arg("-o")
            .arg(release.join(name))
            .arg(programs.join(name));
        step(
            &mut strip,
            "cannot strip the programs; the package needs binutils (Debian: apt install binutils)",
        );
    }
    for shell in ["bash", "fish", "zsh"] {
        let script = step(
            Command::new(&settled).args(["completions", shell]),
            "no completions",
        );
        write(completions.join(format!("settled.{shell}")), &script);
    }
    let pages = release.join("man");
    step(
        Command::new(&settled).arg("man").arg(&pages),
        "no manual pages",
    );
    step(
        Command::new("gzip").args(["-9", "-n", "-r"]).arg(&pages),
        "cannot compress the pages; this needs gzip",
    );
}

/// Runs a program that must succeed, and returns its output; the panic of a failure begins with `why`.
pub fn step(command: &mut Command, why: &str) -> String {
    match command.stdin(Stdio::null()).output() {
        Ok(output) => {
            assert!(
                output.status.success(),
                "{why}: {}",
                mailroom::said(&output)
            );
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
        Err(error) => panic!(
            "{why}: {}: {error}",
            command.get_program().to_string_lossy()
        ),
    }
}
