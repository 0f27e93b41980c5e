//! An approval before a rebase holds for the rebased head if and only if both make the same change. With real git in
//! real repositories.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use settled_tests::approval::{OTHER, approve, approved, ask, mailroom};
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::write;
use tempfile::TempDir;

/// A repository with a branch `main` and a branch `work` off it.
struct Repository {
    directory: TempDir,
}

const TEXT: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven\ntwelve\n";

impl Repository {
    fn new() -> Self {
        let repository = Self {
            directory: settled_tests::scratch(),
        };
        repository.git(&["init", "--quiet", "--initial-branch=main", "."]);
        repository.commit("text.txt", TEXT);
        repository.git(&["checkout", "--quiet", "-b", "work"]);
        repository
    }

    fn path(&self) -> PathBuf {
        self.directory.path().to_owned()
    }

    fn git(&self, args: &[&str]) -> String {
        git(self.directory.path(), args)
    }

    /// Commits a file and returns the commit.
    fn commit(&self, file: &str, text: &str) -> String {
        write(self.directory.path().join(file), text);
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", file]);
        self.head()
    }

    fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// Another commit on `main`, then back on `work`.
    fn main_moves(&self, file: &str, text: &str) {
        self.git(&["checkout", "--quiet", "main"]);
        self.commit(file, text);
        self.git(&["checkout", "--quiet", "work"]);
    }

    fn rebase(&self) -> String {
        self.git(&["rebase", "--quiet", "main"]);
        self.head()
    }
}

fn git(directory: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.com",
            "-c",
            "core.autocrlf=false",
        ])
        .args(args)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_EDITOR", "true")
        .output()
        .expect("git can be run");
    assert!(output.status.success(), "git {args:?}: {}", said(&output));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn check(mailroom: &Mailroom, head: &str, clone: &Path, base: &str) -> Output {
    let [clone, base] = [
        format!("--repo-dir={}", clone.display()),
        format!("--base={base}"),
    ];
    mailroom.run(&[
        "gate", "check", "--pr", "86", "--head", head, &clone, &base, "--json",
    ])
}

/// The exit code and the result of the comparison.
fn remap(mailroom: &Mailroom, head: &str, clone: &Path) -> (i32, serde_json::Value) {
    let output = check(mailroom, head, clone, "main");
    let answer: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("one JSON document");
    (
        output.status.code().expect("it ends by itself"),
        answer["data"]["reviews"][0]["remap"].clone(),
    )
}

fn assert_void(mailroom: &Mailroom, head: &str, clone: &Path, why: &str) {
    let (code, remap) = remap(mailroom, head, clone);
    let said = remap["why"].as_str().unwrap_or_default();
    assert!(
        code == 8 && remap["remapped"] == false && said.contains(why),
        "{code} {remap}, expected `{why}`"
    );
}

#[test]
fn a_rebase_that_changes_nothing_keeps_the_approval() {
    let repository = Repository::new();
    let before = repository.commit("text.txt", &TEXT.replace("two", "TWO"));
    repository.main_moves("other.txt", "new\n");
    let after = repository.rebase();
    assert_ne!(before, after);
    let mailroom = approved(&before);
    assert_eq!(
        mailroom
            .run(&["gate", "check", "--pr", "86", "--head", &after])
            .status
            .code(),
        Some(8)
    );
    // Still stale for the daemon: a check changes nothing.
    assert!(
        mailroom
            .run(&["pr", "synchronize", "86", "--head", &after])
            .status
            .success()
    );
    let (code, remap) = remap(&mailroom, &after, &repository.path());
    assert_eq!((code, &remap["remapped"]), (0, &true.into()), "{remap}");
    assert_eq!(
        (&remap["from"], &remap["to"]),
        (&before.into(), &after.as_str().into())
    );
    assert_eq!(remap["patch_id"].as_str().map(str::len), Some(40));
    assert_eq!(mailroom.status()["reviews"][0]["stale"], true);

    let paper = settled_tests::scratch();
    let file = paper.path().join("verdict.txt").display().to_string();
    assert!(
        mailroom
            .run(&["verdict", "export", "86", "-o", &file])
            .status
            .success()
    );
    let clone = repository.path().display().to_string();
    let verify = ["verdict", "verify", &file, "--head", &after];
    assert_eq!(mailroom.run(&verify).status.code(), Some(8));
    assert!(
        mailroom
            .run(&[&verify[..], &["--repo-dir", &clone, "--base", "main"]].concat())
            .status
            .success()
    );
}

#[test]
fn commits_that_were_squashed_keep_the_approval() {
    let repository = Repository::new();
    repository.commit("text.txt", &TEXT.replace("two", "TWO"));
    repository.commit("more.txt", "more\n");
    let before = repository.commit(
        "text.txt",
        &TEXT.replace("two", "TWO").replace("eleven", "ELEVEN"),
    );
    repository.git(&["reset", "--quiet", "--soft", "main"]);
    repository.git(&["commit", "--quiet", "--message", "all of it"]);
    let after = repository.head();
    assert_eq!(remap(&approved(&before), &after, &repository.path()).0, 0);
}

#[test]
fn a_conflict_that_was_resolved_otherwise_is_another_change() {
    let repository = Repository::new();
    let before = repository.commit("text.txt", &TEXT.replace("two", "TWO"));
    repository.main_moves("text.txt", &TEXT.replace("two", "2"));
    repository.git(&["reset", "--quiet", "--hard", "main"]);
    let after = repository.commit("text.txt", &TEXT.replace("two", "2 TWO"));
    assert_void(
        &approved(&before),
        &after,
        &repository.path(),
        "they differ in text.txt",
    );
}

#[test]
fn a_blank_more_is_another_change() {
    // `git patch-id --stable` calls these the same.
    let repository = Repository::new();
    let before = repository.commit("code.py", "if a:\n    b()\nc()\n");
    repository.git(&["reset", "--quiet", "--hard", "main"]);
    let after = repository.commit("code.py", "if a:\n    b()\n    c()\n");
    assert_void(
        &approved(&before),
        &after,
        &repository.path(),
        "they differ in code.py",
    );
}

#[test]
fn what_a_binary_file_holds_counts() {
    let repository = Repository::new();
    let before = repository.commit("picture", "a\0b");
    repository.git(&["reset", "--quiet", "--hard", "main"]);
    let after = repository.commit("picture", "a\0c");
    assert_void(
        &approved(&before),
        &after,
        &repository.path(),
        "they differ in picture",
    );

    let repository = Repository::new();
    let before = repository.commit("picture", "a\0b");
    repository.main_moves("other.txt", "new\n");
    let after = repository.rebase();
    assert_eq!(remap(&approved(&before), &after, &repository.path()).0, 0);
}

#[test]
fn a_mode_and_a_file_more_are_another_change() {
    let repository = Repository::new();
    let before = repository.commit("tool.sh", "true\n");
    repository.git(&["update-index", "--chmod=+x", "tool.sh"]);
    repository.git(&["commit", "--quiet", "--message", "a mode"]);
    assert_void(
        &approved(&before),
        &repository.head(),
        &repository.path(),
        "they differ in tool.sh",
    );
    let after = repository.commit("more.txt", "more\n");
    assert_void(
        &approved(&before),
        &after,
        &repository.path(),
        "they differ in more.txt",
    );
}

#[test]
fn nothing_changed_is_nothing_approved() {
    let repository = Repository::new();
    repository.git(&["commit", "--quiet", "--allow-empty", "--message", "nothing"]);
    let before = repository.head();
    repository.git(&[
        "commit",
        "--quiet",
        "--allow-empty",
        "--message",
        "nothing again",
    ]);
    assert_void(
        &approved(&before),
        &repository.head(),
        &repository.path(),
        "changes nothing against main",
    );
    // A merged change leaves nothing to compare.
    let before = repository.commit("more.txt", "more\n");
    repository.git(&["checkout", "--quiet", "main"]);
    repository.git(&["merge", "--quiet", "--ff-only", "work"]);
    let after = repository.commit("text.txt", "other\n");
    assert_void(
        &approved(&before),
        &after,
        &repository.path(),
        "changes nothing against main",
    );
}

#[test]
fn a_commit_the_clone_does_not_have_is_told_with_the_command_that_brings_it() {
    let repository = Repository::new();
    let before = repository.commit("text.txt", &TEXT.replace("two", "TWO"));
    repository.main_moves("other.txt", "new\n");
    let after = repository.rebase();
    let directory = settled_tests::scratch();
    let source = format!("file://{}", repository.path().display());
    git(
        directory.path(),
        &[
            "clone",
            "--quiet",
            "--depth=1",
            "--branch=work",
            &source,
            "shallow",
        ],
    );
    let clone = directory.path().join("shallow");
    git(
        &clone,
        &["fetch", "--quiet", "--depth=1", "origin", "main:main"],
    );
    let mailroom = approved(&before);
    assert_void(&mailroom, &after, &clone, "is not in the clone");
    let output = check(&mailroom, &after, &clone, "main");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let next = answer["next"][0]["run"]
        .as_str()
        .expect("a command")
        .to_owned();
    assert!(next.ends_with(&format!("fetch origin {before}")), "{next}");
    // Fetched alone, it has no history that leads to the branch. With all of the history the approval holds.
    git(
        &repository.path(),
        &["config", "uploadpack.allowAnySHA1InWant", "true"],
    );
    git(
        &clone,
        &["fetch", "--quiet", "--depth=1", "origin", &before],
    );
    assert_void(&mailroom, &after, &clone, "no common commit");
    git(
        &clone,
        &[
            "fetch",
            "--quiet",
            "--unshallow",
            "origin",
            &before,
            "work",
            "main",
        ],
    );
    assert_eq!(remap(&mailroom, &after, &clone).0, 0);
}

#[test]
fn a_branch_named_like_a_commit_is_not_taken_for_it() {
    let repository = Repository::new();
    let good = repository.commit("text.txt", &TEXT.replace("two", "TWO"));
    repository.git(&["branch", &OTHER[..10], &good]);
    assert_void(
        &approved(&good),
        &OTHER[..10],
        &repository.path(),
        "is not in the clone",
    );
}

/// Two functions that look alike around the inserted line.
const TWINS: &str = "fn test() {\n    a();\n    b();\n    c();\n    d();\n    e();\n    f();\n}\n\n\n\n\n\n\n\n\
                     fn live() {\n    a();\n    b();\n    c();\n    d();\n    e();\n    f();\n}\n";

#[test]
fn the_same_lines_at_another_place_of_the_same_file_are_another_change() {
    let repository = Repository::new();
    repository.git(&["checkout", "--quiet", "main"]);
    repository.commit("twins.rs", TWINS);
    repository.git(&["checkout", "--quiet", "-B", "work"]);
    let before = repository.commit(
        "twins.rs",
        &TWINS.replacen("    c();\n", "    c();\n    skip();\n", 1),
    );
    repository.git(&["reset", "--quiet", "--hard", "main"]);
    let (test, live) = TWINS.split_at(TWINS.find("fn live").expect("the second one"));
    let moved = test.to_owned() + &live.replace("    c();\n", "    c();\n    skip();\n");
    let after = repository.commit("twins.rs", &moved);
    assert_void(
        &approved(&before),
        &after,
        &repository.path(),
        "they differ in twins.rs",
    );
}

/// The author chooses the base: on an older one git merges the same hunk into the other function.
#[test]
fn the_same_lines_at_another_place_of_an_older_base_are_another_change() {
    let repository = Repository::new();
    repository.git(&["checkout", "--quiet", "main"]);
    repository.commit("twins.rs", &format!("// old\n{TWINS}"));
    repository.git(&["branch", "older"]);
    repository.commit("twins.rs", &format!("// new\n{TWINS}"));
    repository.git(&["checkout", "--quiet", "-B", "work"]);
    let skip = "    c();\n    skip();\n";
    let changed = TWINS.replacen("    c();\n", skip, 1);
    let before = repository.commit("twins.rs", &format!("// new\n{changed}"));
    let mailroom = approved(&before);

    repository.git(&["checkout", "--quiet", "-B", "work", "older"]);
    let same = repository.commit("twins.rs", &format!("// old\n{changed}"));
    let (code, found) = remap(&mailroom, &same, &repository.path());
    assert!(code == 0 && found["remapped"] == true, "{code} {found}");

    repository.git(&["reset", "--quiet", "--hard", "older"]);
    let (test, live) = TWINS.split_at(TWINS.find("fn live").expect("the second one"));
    let moved = format!("// old\n{test}{}", live.replace("    c();\n", skip));
    let other = repository.commit("twins.rs", &moved);
    assert_void(
        &mailroom,
        &other,
        &repository.path(),
        "they differ in twins.rs",
    );
}

#[test]
fn a_tag_named_like_the_branch_moves_no_base() {
    let repository = Repository::new();
    let approved_commit = repository.commit("text.txt", &TEXT.replace("two", "TWO"));
    repository.git(&["checkout", "--quiet", "-b", "evil", "main"]);
    repository.commit("evil.txt", "evil\n");
    repository.git(&["tag", "origin/main"]);
    let head = repository.commit("text.txt", &TEXT.replace("two", "TWO"));
    repository.git(&["update-ref", "refs/remotes/origin/main", "main"]);
    let mailroom = approved(&approved_commit);
    let output = check(&mailroom, &head, &repository.path(), "origin/main");
    assert_eq!(output.status.code(), Some(8), "{}", said(&output));
    repository.git(&["update-ref", "-d", "refs/remotes/origin/main"]);
    let output = check(&mailroom, &head, &repository.path(), "origin/main");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("is a tag"), "{}", said(&output));
}

/// The request names its own base, and so chooses which part of the change its reviewer sees.
#[test]
fn an_approval_of_a_part_of_the_change_is_none_of_the_whole() {
    let repository = Repository::new();
    let first = repository.commit("evil.txt", "evil\n");
    let head = repository.commit("text.txt", &TEXT.replace("two", "TWO"));
    let main = repository.git(&["rev-parse", "main"]);
    let judged = |base: &str| {
        let mailroom = mailroom();
        let asked = format!("{head}\"\nchanged_files: [text.txt]\nbase_sha: \"{base}");
        ask(&mailroom, "codex", &asked);
        let words = format!("merge_ready: true\nvalidated_head: \"{head}\"");
        approve(&mailroom, "codex", &words);
        let output = check(&mailroom, &head, &repository.path(), "main");
        (output.status.code(), said(&output))
    };
    let (code, told) = judged(&main);
    assert_eq!(code, Some(0), "{told}");
    let (code, told) = judged(&first);
    assert_eq!(code, Some(8), "{told}");
    assert!(
        told.contains("other_change") && told.contains("(2 files)"),
        "{told}"
    );
    let (code, told) = judged(OTHER);
    assert_eq!(code, Some(8), "{told}");
    assert!(told.contains("is not in the clone"), "{told}");
}

#[test]
fn no_gitmodules_hides_a_submodule_that_moved() {
    let repository = Repository::new();
    let modules = "[submodule \"sub\"]\n\tpath = sub\n\turl = ../sub\n\tignore = all\n";
    let before = repository.commit(".gitmodules", modules);
    let entry = format!("160000,{OTHER},sub");
    repository.git(&["update-index", "--add", "--cacheinfo", &entry]);
    repository.git(&["commit", "--quiet", "--message", "another submodule"]);
    let after = repository.head();
    assert_void(
        &approved(&before),
        &after,
        &repository.path(),
        "they differ in sub",
    );
}

#[test]
fn settings_of_whoever_asks_change_no_answer() {
    let repository = Repository::new();
    let before = repository.commit("text.txt", &TEXT.replace("two", "TWO"));
    repository.git(&["reset", "--quiet", "--hard", "main"]);
    let after = repository.commit("text.txt", &TEXT.replace("two", "TWO!"));
    for (key, value) in [
        ("diff.external", "true"),
        ("diff.noprefix", "true"),
        ("diff.context", "0"),
    ] {
        repository.git(&["config", key, value]);
    }
    write(
        repository.path().join(".git/info/attributes"),
        "*.txt diff=nothing\n",
    );
    repository.git(&["config", "diff.nothing.textconv", "true"]);
    repository.git(&["config", "diff.nothing.command", "true"]);
    assert_void(
        &approved(&before),
        &after,
        &repository.path(),
        "they differ in text.txt",
    );
}

#[test]
fn the_same_change_does_not_mend_what_else_is_wrong() {
    let repository = Repository::new();
    let before = repository.commit("text.txt", &TEXT.replace("two", "TWO"));
    repository.main_moves("other.txt", "new\n");
    let after = repository.rebase();
    let mailroom = mailroom();
    ask(&mailroom, "codex", &before);
    approve(&mailroom, "codex", "merge_ready: false");
    let (code, remap) = remap(&mailroom, &after, &repository.path());
    assert_eq!(
        (code, &remap["remapped"]),
        (8, &true.into()),
        "it still waits"
    );
}

#[test]
fn a_clone_or_a_branch_that_is_none_is_a_failure() {
    let repository = Repository::new();
    let commit = repository.commit("text.txt", "one\n");
    let mailroom = approved(OTHER);
    for base in ["absent", "--all", "main^{tree}"] {
        let output = check(&mailroom, &commit, &repository.path(), base);
        assert_eq!(output.status.code(), Some(1), "{base}: {}", said(&output));
    }
    assert_eq!(
        check(&mailroom, &commit, mailroom.root(), "main")
            .status
            .code(),
        Some(1)
    );
    let half = mailroom.run(&[
        "gate",
        "check",
        "--pr",
        "86",
        "--head",
        &commit,
        "--repo-dir",
        ".",
    ]);
    assert_eq!(half.status.code(), Some(2), "{}", said(&half));
}

/// An abbreviated question passes if the clone expands it to exactly one commit, the approved one. An abbreviated
/// approval does not, because its author can make another commit that begins so.
#[test]
fn the_clone_expands_the_commit_of_the_question_and_no_abbreviated_approval() {
    let repository = Repository::new();
    let head = repository.commit("text.txt", &TEXT.replace("six", "6"));
    let mailroom = approved(&head);
    let (code, found) = remap(&mailroom, &head[..9], &repository.path());
    assert!(code == 0 && found["remapped"] == true, "{code} {found}");

    // Without a clone the answer names the command with one, which passes.
    let answer = mailroom.json(&["gate", "check", "--pr", "86", "--head", &head[..9]]);
    let run = answer["next"][0]["run"].as_str().expect("a command");
    let path = repository.path();
    let run = run
        .replace("DIR", path.to_str().expect("a path in UTF-8"))
        .replace("REF", "main");
    let passed = mailroom.shell(&run);
    assert!(passed.status.success(), "{run}\n{}", said(&passed));

    let other = repository.commit("text.txt", &TEXT.replace("six", "7"));
    assert_void(&mailroom, &other, &repository.path(), "");

    let mailroom = approved(&head[..7]);
    let output = check(&mailroom, &head, &repository.path(), "main");
    assert_eq!(output.status.code(), Some(8), "{}", said(&output));
    assert!(
        said(&output).contains("holds for none"),
        "{}",
        said(&output)
    );
}
