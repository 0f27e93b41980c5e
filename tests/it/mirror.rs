//! pre-commit takes its hooks from the mirror of a release.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use settled_tests::mailroom::said;
use settled_tests::{peer, read, repository, write};
use tempfile::TempDir;

use crate::dist::{VERSION, dist, fresh, run, text};

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
