//! A process on a terminal: what it takes the screen for, and what it draws there.

#[path = "../../../tests/pseudo_terminal.rs"]
mod pseudo_terminal;

use std::fs::File;
use std::io::{Read as _, Write as _, stdout};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use screen::{AlternateScreen, ProgressLine, Screen, Tone, is_dumb, terminal_size};

/// The variable that tells this program as a child of itself what to do.
const PART: &str = "SCREEN_TEST_PART";

/// The child; its output is between two marks, because the harness prints as well.
#[test]
#[ignore = "the other tests start it as a process"]
fn child() {
    say("<<");
    match &*std::env::var(PART).expect("the other tests set it") {
        "tell" => tell(),
        "draw" => draw(),
        _ => progress(),
    }
    say(">>\n");
}

fn say(text: &str) {
    stdout().write_all(text.as_bytes()).expect("somebody reads");
}

fn tell() {
    let screen = Screen::of_output();
    let is_fitted = !screen.has_room_for(&"x".repeat(1_000));
    let painted =
        [Tone::Alarm, Tone::Care, Tone::Well, Tone::Aside].map(|tone| screen.paint(tone, "x"));
    let size = terminal_size();
    say(&format!(
        "{} {is_fitted} {size:?} {} {}",
        screen.width,
        is_dumb(),
        painted.concat()
    ));
}

fn draw() {
    let alternate = AlternateScreen::enter().expect("a screen");
    say("inside");
    drop(alternate);
    say("outside");
}

/// Steps at once, shows something, and then steps for longer than the least time between two updates.
fn progress() {
    let mut line = ProgressLine::begin("reading");
    (0..2_000).for_each(|done| line.step(done));
    line.show("now");
    let shown = Instant::now();
    let mut steps = 2_000;
    let mut is_over = false;
    while !is_over {
        is_over = shown.elapsed() >= Duration::from_millis(220);
        // The line looks at the clock at one step of so many.
        for _ in 0..256 {
            steps += 1;
            line.step(steps);
        }
    }
    drop(line);
    drop(ProgressLine::begin("never shown"));
}

fn child_for(part: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["child", "--exact", "--ignored", "--nocapture"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    for name in ["COLUMNS", "NO_COLOR", "TERM"] {
        command.env_remove(name);
    }
    command.env(PART, part).envs(variables.iter().copied());
    command
}

/// Runs the child to its end; returns what the terminal shows.
fn shown(mut command: Command, mut near: File, far: File) -> String {
    let mut process = command.spawn().expect("this program can be run");
    // Reading ends when the last process has left the terminal.
    drop((command, far));
    let mut bytes = Vec::new();
    // The end of a terminal without a process is an error.
    let _ = near.read_to_end(&mut bytes);
    assert!(process.wait().expect("it ends").success());
    String::from_utf8(bytes).expect("text")
}

/// The part of the output between the marks.
fn marked(text: &str) -> &str {
    let (_, rest) = text.split_once("<<").expect("a mark");
    rest.split_once(">>").expect("a mark").0
}

const PLAIN: &str = "xxxx";
const COLOURED: &str = "\u{1b}[1;38;5;196mx\u{1b}[0m\u{1b}[38;5;130mx\u{1b}[0m\u{1b}[38;5;28mx\u{1b}[0m\u{1b}[38;5;243mx\u{1b}[0m";

#[test]
fn a_screen_is_as_wide_as_its_terminal_and_coloured_unless_somebody_asks_for_less() {
    for ((columns, rows), variables, expected) in [
        (
            (80, 24),
            &[("TERM", "xterm")][..],
            ("80 true Some((80, 24)) false", COLOURED),
        ),
        ((80, 24), &[], ("80 true Some((80, 24)) true", PLAIN)),
        (
            (80, 24),
            &[("TERM", "")],
            ("80 true Some((80, 24)) true", PLAIN),
        ),
        (
            (80, 24),
            &[("TERM", "dumb")],
            ("80 true Some((80, 24)) true", PLAIN),
        ),
        (
            (80, 24),
            &[("TERM", "xterm"), ("NO_COLOR", "1")],
            ("80 true Some((80, 24)) false", PLAIN),
        ),
        (
            (80, 24),
            &[("TERM", "xterm"), ("NO_COLOR", "")],
            ("80 true Some((80, 24)) false", COLOURED),
        ),
        (
            (80, 24),
            &[("COLUMNS", "50")],
            ("50 true Some((80, 24)) true", PLAIN),
        ),
        (
            (80, 24),
            &[("COLUMNS", "5")],
            ("20 true Some((80, 24)) true", PLAIN),
        ),
        (
            (80, 24),
            &[("COLUMNS", "many")],
            ("80 true Some((80, 24)) true", PLAIN),
        ),
        ((0, 24), &[], ("100 true None true", PLAIN)),
        ((80, 0), &[], ("100 true None true", PLAIN)),
    ] {
        let (near, far) = pseudo_terminal::open(columns, rows);
        let mut command = child_for("tell", variables);
        command.stdout(far.try_clone().expect("a second handle"));
        let shown = shown(command, near, far);
        assert_eq!(
            marked(&shown),
            format!("{} {}", expected.0, expected.1),
            "{columns} x {rows}, {variables:?}"
        );
    }
}

#[test]
fn the_reader_of_a_pipe_gets_whole_lines_unless_columns_are_asked_for() {
    let told = |mut command: Command| {
        let output = command.stdout(Stdio::piped()).output().expect("it runs");
        marked(&String::from_utf8_lossy(&output.stdout)).to_owned()
    };
    let variables = [("TERM", "xterm")];
    assert_eq!(
        told(child_for("tell", &variables)),
        "100 false None false xxxx"
    );
    let asked = [("TERM", "xterm"), ("COLUMNS", "50")];
    assert_eq!(told(child_for("tell", &asked)), "50 true None false xxxx");
    // The person who reads the pipe's end may sit at the terminal of another stream.
    let (_near, far) = pseudo_terminal::open(70, 24);
    let mut command = child_for("tell", &variables);
    command.stdin(far.try_clone().expect("a second handle"));
    assert_eq!(told(command), "70 false Some((70, 24)) false xxxx");
    let mut command = child_for("tell", &variables);
    command.stderr(far);
    assert_eq!(told(command), "70 false Some((70, 24)) false xxxx");
}

#[test]
fn the_alternate_screen_is_left_as_it_was_entered() {
    let (near, far) = pseudo_terminal::open(80, 24);
    let mut command = child_for("draw", &[]);
    command.stdout(far.try_clone().expect("a second handle"));
    let shown = shown(command, near, far);
    let expected = "\u{1b}[?1049h\u{1b}[?25linside\u{1b}[?25h\u{1b}[?1049loutside";
    assert_eq!(marked(&shown), expected);
}

/// Takes a quarter of a second: that much lies between two updates of the line.
#[test]
fn progress_is_shown_on_a_terminal_alone_seldom_and_only_of_what_takes_long() {
    let (near, far) = pseudo_terminal::open(80, 24);
    let mut command = child_for("progress", &[]);
    command.stderr(far.try_clone().expect("a second handle"));
    let shown = shown(command, near, far);
    let lines: Vec<&str> = shown.split("\r\u{1b}[K").collect();
    let [before, now, updates @ .., after] = &lines[..] else {
        panic!("{shown:?}");
    };
    assert_eq!((*before, *now, *after), ("", "reading: now", ""));
    assert!((1..10).contains(&updates.len()), "{shown:?}");
    for update in updates {
        let steps = update
            .strip_prefix("reading: ")
            .and_then(|steps| steps.parse::<u32>().ok());
        assert!(
            steps.is_some_and(|steps| steps % 256 == 0 && steps > 2_000),
            "{update}"
        );
    }
    let output = child_for("progress", &[])
        .stderr(Stdio::piped())
        .output()
        .expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
