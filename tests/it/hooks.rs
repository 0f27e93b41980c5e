//! Checks at the commit: git's own hook as written by `install-hook`, the real `pre-commit` and `prek` with our
//! manifest, and the real `lefthook`, each in a real repository.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use settled_tests::mailroom::said;
use settled_tests::{binaries, peer, read, repository, seed, write};
use tempfile::TempDir;

const MESSAGE: &str = "agents/claude/outbox/ask.yaml";

/// A repository of a user without any configuration.
struct Repo {
    directory: TempDir,
}

impl Repo {
    fn new() -> Self {
        let repo = Self {
            directory: settled_tests::scratch(),
        };
        repo.git(&["init", "--quiet", "--initial-branch=main"]);
        std::fs::create_dir_all(repo.path().join("agents/claude/outbox")).expect("room");
        repo
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A program in the repository; the tested binaries and the hook managers come first on its `PATH`.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let managers = peer::environment().join("bin");
        let mut command = Command::new(program);
        command
            .current_dir(self.path())
            .stdin(Stdio::null())
            .env(
                "PATH",
                format!(
                    "{}:{}:{path}",
                    binaries::directory().display(),
                    managers.display()
                ),
            )
            .env("HOME", self.path())
            .env("XDG_CACHE_HOME", self.path().join(".git/cache"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1");
        for role in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{role}_NAME"), "a")
                .env(format!("GIT_{role}_EMAIL"), "a@example.com");
        }
        command
    }

    fn run(&self, program: &str, args: &[&str]) -> Output {
        self.command(program)
            .args(args)
            .output()
            .expect("the program can be run")
    }

    fn git(&self, args: &[&str]) -> Output {
        let output = self.run("git", args);
        assert!(output.status.success(), "git {args:?}: {}", said(&output));
        output
    }

    fn lay(&self, text: &str) {
        write(self.path().join(MESSAGE), text);
    }

    fn stage(&self, text: &str) {
        self.lay(text);
        self.git(&["add", MESSAGE]);
    }

    fn commit(&self) -> Output {
        self.run("git", &["commit", "--quiet", "--message", "mail"])
    }
}

fn good(n: usize) -> String {
    seed::note(
        "question",
        &format!("q-{n}"),
        "claude",
        "codex",
        "what is it?",
    )
}

fn bad() -> String {
    good(9).replace("priority: P2", "priority: high")
}

/// Checks what every hook must do, however it was installed.
fn holds(repo: &Repo, name: &str) {
    repo.stage(&bad());
    let output = repo.commit();
    assert!(
        !output.status.success(),
        "{name}: a bad message was committed: {}",
        said(&output)
    );
    assert!(
        said(&output).contains("priority"),
        "{name}: {}",
        said(&output)
    );

    repo.stage(&good(1));
    let output = repo.commit();
    assert!(
        output.status.success(),
        "{name}: a good message: {}",
        said(&output)
    );

    // The index counts: a file that is good there and bad in the working tree passes, and the hook does not touch it.
    repo.stage(&good(2));
    repo.lay(&bad());
    let output = repo.commit();
    assert!(
        output.status.success(),
        "{name}: good in the index: {}",
        said(&output)
    );
    assert_eq!(
        read(repo.path().join(MESSAGE)),
        bad(),
        "{name}: the working tree is left alone"
    );
    repo.stage(&bad());
    repo.lay(&good(3));
    let output = repo.commit();
    assert!(
        !output.status.success(),
        "{name}: bad in the index: {}",
        said(&output)
    );
    assert_eq!(
        read(repo.path().join(MESSAGE)),
        good(3),
        "{name}: the working tree is left alone"
    );
    repo.git(&["reset", "--quiet", "--hard"]);
}

/// A packet is checked when it changes without its message.
fn checks_packets(repo: &Repo, name: &str) {
    let packet = "packets/findings/r1.yaml";
    std::fs::create_dir_all(repo.path().join("packets/findings")).expect("room");
    write(repo.path().join(packet), "findings: [{id: F-001}]\n");
    repo.git(&["add", packet]);
    let output = repo.commit();
    assert!(
        !output.status.success() && said(&output).contains("finding_invalid"),
        "{name}: a bad packet: {}",
        said(&output)
    );
    write(repo.path().join(packet), "findings: []\n");
    repo.git(&["add", packet]);
    let output = repo.commit();
    assert!(
        output.status.success(),
        "{name}: a good packet: {}",
        said(&output)
    );
}

/// A packet that a message needs may not be removed.
fn keeps_packets(repo: &Repo, name: &str) {
    let body = "findings_packet: packets/findings/r1.yaml\nround: 1\nblocking_count: 0";
    let feedback = seed::review_message("review_feedback", "f-1", "codex", "claude", "86", body);
    std::fs::create_dir_all(repo.path().join("agents/codex/outbox")).expect("room");
    write(repo.path().join("agents/codex/outbox/f.yaml"), &feedback);
    repo.git(&["add", "agents"]);
    let output = repo.commit();
    assert!(output.status.success(), "{name}: {}", said(&output));
    repo.git(&["rm", "--quiet", "packets/findings/r1.yaml"]);
    let output = repo.commit();
    assert!(
        !output.status.success() && said(&output).contains("packet_missing"),
        "{name}: {}",
        said(&output)
    );
    repo.git(&["reset", "--quiet", "--hard"]);
}

/// A merge is checked too: its index has the changes of the other branch.
fn merges(repo: &Repo, name: &str) {
    for (branch, text, is_good) in [("good", good(5), true), ("bad", bad(), false)] {
        let other = "agents/claude/outbox/other.yaml";
        repo.git(&["checkout", "--quiet", "-b", branch]);
        write(repo.path().join(other), &text);
        repo.git(&["add", other]);
        repo.git(&["commit", "--quiet", "--no-verify", "--message", "theirs"]);
        repo.git(&["checkout", "--quiet", "main"]);
        repo.stage(&good(if is_good { 6 } else { 7 }));
        let output = repo.commit();
        assert!(output.status.success(), "{name}: {}", said(&output));
        repo.git(&["merge", "--quiet", "--no-ff", "--no-commit", branch]);
        let output = repo.commit();
        assert_eq!(
            output.status.success(),
            is_good,
            "{name}: merge of {branch}: {}",
            said(&output)
        );
        if !is_good {
            repo.git(&["merge", "--abort"]);
        }
    }
}

fn install(repo: &Repo, args: &[&str]) -> Output {
    let output = repo
        .command(binaries::validate_message())
        .arg("install-hook")
        .args(args)
        .output();
    output.expect("the command can be run")
}

#[test]
fn the_plain_hook_judges_what_a_commit_holds() {
    let repo = Repo::new();
    let output = install(&repo, &[]);
    assert!(output.status.success(), "{}", said(&output));
    holds(&repo, "install-hook");
    checks_packets(&repo, "install-hook");
    keeps_packets(&repo, "install-hook");
    merges(&repo, "install-hook");

    // A merge without conflicts commits by itself.
    let merge = |branch: &str| {
        let mut command = repo.command("git");
        command
            .args(["merge", "--quiet", "--no-ff", "--no-edit", branch])
            .output()
            .expect("git runs")
    };
    write(repo.path().join("agents/claude/outbox/bad.yaml"), &bad());
    repo.git(&["checkout", "--quiet", "-b", "worse"]);
    repo.git(&["add", "agents"]);
    repo.git(&["commit", "--quiet", "--no-verify", "--message", "theirs"]);
    repo.git(&["checkout", "--quiet", "main"]);
    repo.git(&["commit", "--quiet", "--allow-empty", "--message", "ours"]);
    let output = merge("worse");
    assert!(
        !output.status.success() && said(&output).contains("priority"),
        "{}",
        said(&output)
    );
}

#[test]
fn installing_again_changes_nothing_and_uninstalling_removes_only_ours() {
    let repo = Repo::new();
    let hook = repo.path().join(".git/hooks/pre-commit");
    let of_merges = repo.path().join(".git/hooks/pre-merge-commit");
    assert!(install(&repo, &[]).status.success());
    let written = read(&hook);
    assert!(install(&repo, &[]).status.success());
    assert_eq!((read(&hook), read(&of_merges)), (written.clone(), written));
    assert!(install(&repo, &["--uninstall"]).status.success());
    assert!(!hook.exists() && !of_merges.exists());
    assert!(
        install(&repo, &["--uninstall"]).status.success(),
        "there is nothing left to do"
    );

    write(&hook, "#!/bin/sh\nexit 0\n");
    for args in [&[][..], &["--uninstall"]] {
        let output = install(&repo, args);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(
            said(&output).contains("validate-message --staged || exit $?"),
            "{}",
            said(&output)
        );
        assert_eq!(read(&hook), "#!/bin/sh\nexit 0\n");
        assert!(
            !of_merges.exists(),
            "one of the two alone would be half a promise"
        );
    }
}

#[test]
fn the_hook_goes_where_git_looks_for_it() {
    let repo = Repo::new();
    repo.git(&["commit", "--quiet", "--allow-empty", "--message", "first"]);
    repo.git(&["worktree", "add", "--quiet", "tree"]);
    let in_tree = |directory: &str| {
        let mut command = repo.command(binaries::validate_message());
        command
            .current_dir(repo.path().join(directory))
            .arg("install-hook")
            .output()
            .expect("it runs")
    };
    let output = in_tree("tree");
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        repo.path().join(".git/hooks/pre-commit").exists(),
        "worktrees share their hooks"
    );

    repo.git(&["config", "core.hooksPath", "own/hooks"]);
    let output = in_tree("agents/claude");
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        repo.path().join("own/hooks/pre-commit").exists(),
        "{}",
        said(&output)
    );
    holds(&repo, "core.hooksPath");

    let nowhere = settled_tests::scratch();
    let mut command = repo.command(binaries::validate_message());
    let output = command
        .current_dir(nowhere.path())
        .arg("install-hook")
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}

#[test]
fn a_hook_whose_program_has_gone_stops_the_commit_and_says_so() {
    let repo = Repo::new();
    assert!(install(&repo, &[]).status.success());
    let hook = repo.path().join(".git/hooks/pre-commit");
    let gone = read(&hook).replace(&*binaries::directory().to_string_lossy(), "/gone");
    write(&hook, &gone);
    repo.stage(&good(1));
    let commit = |path: &str| {
        let mut command = repo.command("git");
        command
            .args(["commit", "--quiet", "--message", "mail"])
            .env("PATH", path)
            .output()
            .expect("git runs")
    };
    let bare = std::env::var("PATH").unwrap_or_default();
    let output = commit(&bare);
    assert!(!output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("--no-verify"), "{}", said(&output));
    let output = commit(&format!("{}:{bare}", binaries::directory().display()));
    assert!(
        output.status.success(),
        "the PATH is the second choice: {}",
        said(&output)
    );
}

/// Configures our manifest's hooks that need no compiler, the way users do.
fn configured(repo: &Repo, hook: &str) -> PathBuf {
    let config = repo.path().join(".pre-commit-config.yaml");
    let manifest = repo.path().join(".git/manifest");
    std::fs::create_dir_all(&manifest).expect("room");
    let git = |args: &[&str]| {
        let output = repo
            .command("git")
            .current_dir(&manifest)
            .args(args)
            .output()
            .expect("git runs");
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    write(
        manifest.join(".pre-commit-hooks.yaml"),
        &read(repository().join(".pre-commit-hooks.yaml")),
    );
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "hooks"]);
    let rev = git(&["rev-parse", "HEAD"]);
    let text = format!(
        "repos:\n  - repo: {}\n    rev: {rev}\n    hooks:\n      - id: {hook}\n",
        manifest.display()
    );
    write(&config, &text);
    repo.git(&["add", ".pre-commit-config.yaml"]);
    config
}

#[test]
fn pre_commit_and_prek_judge_what_a_commit_holds() {
    for manager in ["pre-commit", "prek"] {
        for hook in ["validate-message-system", "validate-message-staged"] {
            let repo = Repo::new();
            configured(&repo, hook);
            let output = repo.run(manager, &["install"]);
            assert!(output.status.success(), "{manager}: {}", said(&output));
            let name = format!("{manager} with {hook}");
            holds(&repo, &name);
            checks_packets(&repo, &name);
            // In a merge a manager names only the files in conflict; `--staged` asks git itself.
            if hook == "validate-message-staged" {
                keeps_packets(&repo, &name);
                merges(&repo, &name);
            }
        }
    }
}

/// The working tree during the hook and after the commit, with unstaged changes to two files: one of them also has
/// staged changes, the other is removed, as the daemon does with a message.
fn unstaged(manager: &str) -> [String; 2] {
    let repo = Repo::new();
    let outbox = repo.path().join("agents/claude/outbox");
    let seen = || {
        let text =
            |name: &str| std::fs::read_to_string(outbox.join(name)).unwrap_or("gone".to_owned());
        format!("{} {} {}", text("partly"), text("taken"), text("untracked"))
    };
    let look = "#!/bin/sh\ncd agents/claude/outbox\nfor file in partly taken untracked\ndo cat $file 2> /dev/null || \
                printf gone; printf ' '\ndone > ../../../.git/seen\n";
    write(repo.path().join(".git/look"), look);
    repo.run("chmod", &["+x", ".git/look"]);
    for name in ["partly", "taken"] {
        write(outbox.join(name), "committed");
    }
    let config = |file: &str, text: &str| write(repo.path().join(file), text);
    match manager {
        "git" => {
            repo.run("cp", &[".git/look", ".git/hooks/pre-commit"]);
        }
        "lefthook" => config(
            "lefthook.yml",
            "pre-commit: {commands: {look: {run: .git/look}}}\n",
        ),
        _ => config(
            ".pre-commit-config.yaml",
            "repos: [{repo: local, hooks: [{id: look, name: look, language: system, entry: .git/look, \
             always_run: true, pass_filenames: false}]}]\n",
        ),
    }
    repo.git(&["add", "."]);
    repo.git(&["commit", "--quiet", "--no-verify", "--message", "first"]);
    if manager != "git" {
        let output = repo.run(manager, &["install"]);
        assert!(output.status.success(), "{manager}: {}", said(&output));
    }
    write(outbox.join("partly"), "staged");
    repo.git(&["add", "agents"]);
    write(outbox.join("partly"), "unstaged");
    std::fs::remove_file(outbox.join("taken")).expect("it is there");
    write(outbox.join("untracked"), "untracked");
    let output = repo.commit();
    assert!(output.status.success(), "{manager}: {}", said(&output));
    [
        read(repo.path().join(".git/seen")).trim().to_owned(),
        seen(),
    ]
}

#[test]
fn what_is_not_staged_meets_each_hook_as_the_page_says() {
    let after = "unstaged gone untracked";
    for (manager, during) in [
        ("git", after),
        ("pre-commit", "staged committed untracked"),
        ("prek", "staged committed untracked"),
        ("lefthook", "staged gone untracked"),
    ] {
        assert_eq!(unstaged(manager), [during, after], "{manager}");
    }
}

#[test]
fn the_manifest_is_one_to_pre_commit_and_to_prek() {
    let repo = Repo::new();
    let manifest = repository().join(".pre-commit-hooks.yaml");
    for manager in ["pre-commit", "prek"] {
        let output = repo.run(manager, &["validate-manifest", &manifest.to_string_lossy()]);
        assert!(output.status.success(), "{manager}: {}", said(&output));
    }
}
