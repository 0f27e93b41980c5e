//! `install-hook` writes git's own hooks, takes only those out again, and leaves foreign ones alone.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::executable::executable;
use crate::staged::Repository;

const PROGRAM: &str = env!("CARGO_BIN_EXE_validate-message");

/// The output of a run, stdout before stderr, and its exit status.
fn said(output: &Output) -> (String, Option<i32>) {
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    (String::from_utf8(text).expect("text"), output.status.code())
}

fn hook(repository: &Repository, program: &str, args: &[&str]) -> (String, Option<i32>) {
    let mut command = repository.command(program);
    let output = command.arg("install-hook").args(args).output();
    said(&output.expect("the binary runs"))
}

fn of_both(what: &str) -> (String, Option<i32>) {
    let text = format!(".git/hooks/pre-commit {what}\n.git/hooks/pre-merge-commit {what}\n");
    (text, Some(0))
}

#[test]
fn a_hook_is_written_once_checks_each_commit_and_is_taken_out_again() {
    let repository = Repository::new();
    // The path of the program is a word of the hook's shell.
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("it's here");
    executable(&program, &fs::read(PROGRAM).expect("a program"));
    let program = program.to_str().expect("a path in UTF-8");
    let install = || hook(&repository, program, &[]);
    let uninstall = || hook(&repository, program, &["--uninstall"]);
    assert_eq!(uninstall(), of_both("does not exist"));
    assert_eq!(install(), of_both("checks the files of each commit"));
    assert_eq!(install(), of_both("already exists"));

    repository.write("room/agents/codex/outbox/n.yaml", "nonsense: 1\n");
    repository.git(&["add", "--all"]);
    let mut commit = repository.command("git");
    commit.args(["-c", "user.name=a", "-c", "user.email=a@b.c"]);
    let refused = commit.args(["commit", "--quiet", "-m", "x"]).output();
    let (told, code) = said(&refused.expect("git can be run"));
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("nonsense"), "{told}");

    assert_eq!(uninstall(), of_both("is removed"));
    repository.git(&["commit", "--quiet", "-m", "x"]);
}

#[test]
fn a_foreign_hook_is_left_alone_and_so_is_the_other_one() {
    let repository = Repository::new();
    let hooks = repository.path().join(".git/hooks");
    let (ours, theirs) = (hooks.join("pre-commit"), hooks.join("pre-merge-commit"));
    let refused = (
        "error: .git/hooks/pre-merge-commit exists and is not ours; nothing was changed.\n\
         To have both, add this line to it:\n    validate-message --staged || exit $?\n"
            .to_owned(),
        Some(2),
    );
    let is_refused = |theirs: &Path| {
        assert_eq!(hook(&repository, PROGRAM, &[]), refused);
        assert_eq!(hook(&repository, PROGRAM, &["--uninstall"]), refused);
        assert!(!ours.exists() && theirs.symlink_metadata().is_ok());
    };
    repository.write(".git/hooks/pre-merge-commit", "#!/bin/sh\n");
    is_refused(&theirs);
    assert_eq!(fs::read_to_string(&theirs).expect("a hook"), "#!/bin/sh\n");
    // A link may lead to a file that is still to come.
    fs::remove_file(&theirs).expect("a hook");
    std::os::unix::fs::symlink("nowhere", &theirs).expect("a link");
    is_refused(&theirs);
}

#[test]
fn without_a_repository_there_is_no_place_for_a_hook() {
    let repository = Repository::new();
    let mut command = repository.command(PROGRAM);
    let output = command.arg("install-hook").env("GIT_DIR", "nowhere");
    let (told, code) = said(&output.output().expect("the binary runs"));
    assert_eq!(code, Some(2), "{told}");
    let begin = "error: git does not say where its hooks are: fatal: not a git repository";
    assert!(told.starts_with(begin), "{told}");
}
