//! Tests how the demonstration runs its steps, with a program that shows how it was called.

use std::fs;
use std::path::{Path, PathBuf};

use demo::{Demo, DemoError, DemoStep, Who, files, steps};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/settled");

/// An empty directory of this name.
fn empty(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).expect("a directory");
    root
}

/// A demonstration whose commands end with `exit`.
fn demo(root: &Path, columns: usize, exit: i32) -> Demo {
    fs::write(root.join("exit"), exit.to_string()).expect("a file");
    Demo::start(Path::new(PROGRAM), root, columns).expect("a daemon")
}

fn first_of(who: fn(Who) -> bool) -> &'static DemoStep {
    let mut all = steps().iter();
    all.find(|step| who(step.who)).expect("a step")
}

#[test]
fn a_step_is_told_with_its_command_and_the_output_that_is_the_same_in_every_run() {
    let root = empty("told");
    let demo = demo(&root, 100, 0);
    let step = first_of(|who| matches!(who, Who::Agent(_)));
    let result = demo.step(step).expect("it ends as the script says");
    let words = step.words.len();
    assert_eq!(step.shown, 4);
    assert_eq!(
        result.lines,
        [
            format!("{words} words of claude in .").as_str(),
            "96 columns",
            "line 4",
            "line 5",
            "…"
        ]
    );
    let text = result.text(7);
    assert!(
        text.starts_with(" 7. claude: the author asks for a review\n    $ settled send "),
        "{text}"
    );
    let output = format!(
        "\n    {words} words of claude in .\n    96 columns\n    line 4\n    line 5\n    …\n\n"
    );
    assert!(text.ends_with(&output), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
}

#[test]
fn a_person_is_no_agent_and_sees_all_lines_there_is_room_for() {
    let root = empty("person");
    let demo = demo(&root, 1_000, 0);
    let mut of_person = steps().iter().filter(|step| step.who == Who::Person);
    let step = of_person.find(|step| step.shown == 14).expect("a long one");
    let result = demo.step(step).expect("it ends as the script says");
    assert_eq!(
        result.lines[0],
        format!("{} words of a person in .", step.words.len())
    );
    // The widest story has 200 columns; the problem is told after what was said.
    assert_eq!(result.lines[1], "196 columns");
    assert_eq!(result.lines.len(), 8);
    assert_eq!(result.lines[7], "a problem");
    assert!(
        result.text(10).starts_with("10. you: "),
        "{}",
        result.text(10)
    );
}

#[test]
fn a_command_that_ends_differently_from_the_script_stops_the_demonstration() {
    let root = empty("otherwise");
    let demo = demo(&root, 10, 5);
    let step = first_of(|who| who == Who::Person);
    match demo.step(step) {
        Err(DemoError::Otherwise {
            command,
            found,
            expected,
            said,
        }) => {
            assert_eq!((command.as_str(), expected), ("settled status", step.exit));
            assert!(found.contains('5'), "{found}");
            assert!(
                said.contains("56 columns"),
                "the narrowest story has 60: {said}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_agents_files_are_there_and_the_daemon_ends_with_the_demonstration() {
    let root = empty("daemon");
    let demo = demo(&root, 100, 0);
    for (name, text) in files() {
        assert_eq!(fs::read_to_string(root.join(name)).expect("a file"), text);
    }
    for step in steps() {
        let findings = step.words.iter().skip_while(|word| **word != "--findings");
        for name in findings.skip(1).take(1) {
            assert!(root.join(name).exists(), "{name}");
        }
    }
    assert_eq!(spool::is_served(&root), Some(true));
    drop(demo);
    assert_eq!(spool::is_served(&root), Some(false));
}

#[test]
fn a_workspace_that_cannot_be_created_is_not_served() {
    let root = empty("refused");
    fs::write(root.join("refused"), "").expect("a file");
    let error = Demo::start(Path::new(PROGRAM), &root, 100).expect_err("no workspace");
    assert!(error.to_string().starts_with("settled init: "), "{error}");
}
