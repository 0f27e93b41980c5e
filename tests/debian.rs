//! The Debian package, made by `cargo-deb` from the programs that are built anyway: for the tests, and for whoever
//! packages a release. What is in it stands in `crates/settled/Cargo.toml`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::{binaries, mailroom, repository, write};

/// The version of `cargo-deb` that is installed into the build folder.
pub const CARGO_DEB: &str = "3.8.0";

/// The package of the programs under test, made once per run.
pub fn package() -> &'static Path {
    static PACKAGE: OnceLock<PathBuf> = OnceLock::new();
    PACKAGE.get_or_init(|| {
        let staged = staged();
        let package = binaries::target().join("package/settled.deb");
        let mut deb = Command::new(cargo_deb());
        deb.args([
            "deb",
            "--no-build",
            "--locked",
            "--offline",
            "--no-strip",
            "--fast",
            "--quiet",
            "--output",
        ]);
        deb.arg(&package)
            .env("CARGO_TARGET_DIR", &staged)
            .current_dir(repository().join("crates/settled"));
        step(&mut deb, "cargo-deb makes no package");
        package
    })
}

/// The build folder that `cargo-deb` is shown: it knows `release` alone, whatever profile the programs are of.
fn staged() -> PathBuf {
    let staged = binaries::target().join("package");
    let release = staged.join("release");
    // A page of a command that is gone would be packaged with the others.
    if release.exists() {
        std::fs::remove_dir_all(&release).expect("the build folder can be written");
    }
    let completions = release.join("completions");
    std::fs::create_dir_all(&completions).expect("the build folder can be written");
    for program in [binaries::settled(), binaries::validate_message()] {
        let mut strip = Command::new("strip");
        strip
            .arg("-o")
            .arg(release.join(program.file_name().expect("a program has a name")))
            .arg(&program);
        step(
            &mut strip,
            "cannot strip the programs; the package needs binutils (Debian: apt install binutils)",
        );
    }
    for shell in ["bash", "fish", "zsh"] {
        let script = step(
            Command::new(binaries::settled()).args(["completions", shell]),
            "no completions",
        );
        write(completions.join(format!("settled.{shell}")), &script);
    }
    let pages = release.join("man");
    step(
        Command::new(binaries::settled()).arg("man").arg(&pages),
        "no manual pages",
    );
    step(
        Command::new("gzip").args(["-9", "-n", "-r"]).arg(&pages),
        "cannot compress the pages; this needs gzip",
    );
    staged
}

/// The program `cargo-deb`, built if it is not there.
fn cargo_deb() -> PathBuf {
    let root = binaries::target().join(format!("cargo-deb-{CARGO_DEB}"));
    let program = root.join("bin/cargo-deb");
    if !program.exists() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        // Whoever has this version has no need to build it.
        let version = Command::new("cargo-deb").arg("--version").output();
        if version.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).trim() == CARGO_DEB) {
            return PathBuf::from("cargo-deb");
        }
        let mut install = Command::new(cargo);
        install
            .args([
                "install",
                "cargo-deb",
                "--locked",
                "--quiet",
                "--version",
                CARGO_DEB,
                "--root",
            ])
            .arg(&root);
        // It runs for seconds and its optimisation takes minutes; what compresses is the program `xz`.
        install.args(["--debug", "--no-default-features"]);
        install.env("CARGO_PROFILE_DEV_DEBUG", "false");
        // Its own build folder: whoever started the tests may hold the lock of this one.
        install.env("CARGO_TARGET_DIR", root.join("build"));
        step(
            &mut install,
            "cannot install cargo-deb; the package needs the registry of crates the first time",
        );
        // Only the program is of use from here on.
        let _ = std::fs::remove_dir_all(root.join("build"));
    }
    program
}

/// What a program prints, which must succeed; a failure says what is missing.
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
