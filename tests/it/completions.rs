//! Completions and manual pages are generated from the commands; real shells and manual readers accept them.

use std::process::{Command, Output};

use settled_tests::mailroom::{said, settled};
use settled_tests::{list, names, read, write};

fn run(args: &[&str]) -> Output {
    let output = settled().args(args).output().expect("settled can be run");
    assert!(output.status.success(), "{args:?}: {}", said(&output));
    output
}

#[test]
fn bash_completes_commands_options_and_what_lies_below_a_command() {
    let directory = settled_tests::scratch();
    let script = directory.path().join("settled.bash");
    write(
        &script,
        &String::from_utf8_lossy(&run(&["completions", "bash"]).stdout),
    );
    let bash = |args: &[&str]| {
        Command::new("bash")
            .args(args)
            .output()
            .expect("bash can be run")
    };
    let path = script.display().to_string();
    let read = bash(&["-n", &path]);
    assert!(read.status.success(), "{}", said(&read));
    // The way bash calls it: the words of the line, and the index of the one being typed.
    for (line, expected) in [
        ("settled verd", "verdict"),
        ("settled gate ch", "check"),
        ("settled verdict verify --anc", "--anchor"),
        ("settled thread wont", "wont-fix"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let asked = format!(
            "source '{path}'; COMP_WORDS=({line}); COMP_CWORD={}; \
             _settled settled '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2]
        );
        let output = bash(&["-c", &asked]);
        let offered = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            offered.lines().any(|word| word == expected),
            "{line}: {}",
            said(&output)
        );
    }
}

#[test]
fn every_shell_has_completions_and_another_word_is_a_usage_error() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = String::from_utf8_lossy(&run(&["completions", shell]).stdout).into_owned();
        assert!(script.contains("wont-fix"), "{shell}: {script}");
    }
    let output = settled()
        .args(["completions", "tcsh"])
        .output()
        .expect("settled can be run");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}

#[test]
fn every_command_has_a_manual_page_that_a_formatter_takes() {
    let directory = settled_tests::scratch();
    let pages = directory.path().join("man1");
    run(&["man", &pages.display().to_string()]);
    let names = names(&pages);
    for page in [
        "settled.1",
        "settled-gate-check.1",
        "settled-thread-wont-fix.1",
        "settled-pr-merged.1",
    ] {
        assert!(
            names.iter().any(|name| name == page),
            "{page} is not among {names:?}"
        );
    }
    for path in list(&pages) {
        let text = read(&path);
        assert!(
            text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"),
            "{}",
            path.display()
        );
        let output = Command::new("groff")
            .args(["-man", "-Tascii", "-ww"])
            .arg(&path)
            .output();
        let output = output.expect("this test needs `groff` (Debian: apt-get install groff-base)");
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{}: {}",
            path.display(),
            said(&output)
        );
    }
    let check = read(pages.join("settled-gate-check.1"));
    assert!(
        check.contains("\n.nf\n") && check.contains("gate check \\-\\-pr 86"),
        "{check}"
    );
    let first = String::from_utf8_lossy(&run(&["man"]).stdout).into_owned();
    assert_eq!(first, read(pages.join("settled.1")));
}

#[test]
fn a_directory_that_cannot_be_made_is_a_failure() {
    let output = settled()
        .args(["man", "/dev/null/x"])
        .output()
        .expect("settled can be run");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
}
