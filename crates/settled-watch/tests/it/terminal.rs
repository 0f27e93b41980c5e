//! The program on a terminal of its own: it follows, handles keys, ends in every way, and restores the terminal.

#[path = "../../../../tests/pseudo_terminal.rs"]
mod pseudo_terminal;

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, tcgetattr};

use super::recorded_workspace::workspace;

const ROWS: u16 = 40;
const COLUMNS: u16 = 130;

/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// The program, and the terminal that nobody else has.
struct OnTerminal {
    /// The end at which a person sits.
    near: File,
    /// Open until the program ends.
    errors: File,
    child: Child,
    screen: vt100::Parser,
    /// Everything that the program wrote.
    written: String,
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        // It has ended, or a test failed and it must not outlive the test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl OnTerminal {
    fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let (near, far) = pseudo_terminal::open(COLUMNS, ROWS);
        let mut child = Command::new("setsid")
            .arg("--ctty")
            .arg(env!("CARGO_BIN_EXE_settled-watch"))
            .args(arguments)
            .env_remove("NO_COLOR")
            .env_remove("SETTLED_AGENT")
            .env_remove("SETTLED_ROOT")
            .env("TERM", "xterm-256color")
            .envs(variables.iter().copied())
            .stdin(far.try_clone().expect("a second handle"))
            .stdout(far)
            .stderr(Stdio::piped())
            .spawn()
            .expect("`setsid` of util-linux can be run");
        let errors = child.stderr.take().expect("a pipe");
        Self {
            near,
            errors: File::from(OwnedFd::from(errors)),
            child,
            screen: vt100::Parser::new(ROWS, COLUMNS, 0),
            written: String::new(),
        }
    }

    fn of(root: &Path) -> Self {
        Self::start(&["--root", text(root)], &[])
    }

    fn text(&self) -> String {
        self.screen.screen().contents()
    }

    fn shows(&mut self, words: &str) {
        self.until(words, |screen| screen.text().contains(words));
    }

    fn until(&mut self, what: &str, is: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is(self) {
            let is_early = begun.elapsed() < PATIENCE;
            assert!(is_early && self.read(), "no {what} on\n{}", self.text());
        }
    }

    /// Reads what the program writes next; false if it has left the terminal.
    fn read(&mut self) -> bool {
        assert!(is_ready(&self.near), "nothing new on\n{}", self.text());
        let mut bytes = [0; 4096];
        // The end of a terminal without a process is an error.
        let count = self.near.read(&mut bytes).unwrap_or(0);
        self.screen.process(&bytes[..count]);
        self.written += &String::from_utf8_lossy(&bytes[..count]);
        count > 0
    }

    fn press(&mut self, keys: &str) {
        let written = self.near.write_all(keys.as_bytes());
        written.expect("the terminal takes keys");
    }

    /// Waits for a good end, and checks that the terminal is as before.
    fn is_left_clean(&mut self) {
        let begun = Instant::now();
        while self.read() {
            assert!(begun.elapsed() < PATIENCE, "no end of\n{}", self.text());
        }
        let mut errors = String::new();
        self.errors.read_to_string(&mut errors).expect("text");
        let status = self.child.wait().expect("it is our child");
        assert!(status.success() && errors.is_empty(), "{status}: {errors}");
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor());
        let modes = tcgetattr(&self.near).expect("a terminal").local_modes;
        let cooked = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        assert!(modes.contains(cooked), "{modes:?}");
    }
}

/// Waits until there is something to read, or nobody any more who writes.
fn is_ready(file: &File) -> bool {
    let mut files = [PollFd::from_borrowed_fd(file.as_fd(), PollFlags::IN)];
    let patience = Timespec::try_from(PATIENCE).expect("a few seconds");
    poll(&mut files, Some(&patience)).expect("it can be waited for") == 1
}

fn text(path: &Path) -> &str {
    path.to_str().expect("plain letters")
}

#[test]
fn it_follows_a_workspace_and_the_clock_and_copies_and_ends_by_a_key() {
    let root = workspace();
    let root = root.path();
    let ledger = root.join(".settled/ledger/00000000000000000001.jsonl");
    let whole = fs::read_to_string(&ledger).expect("a ledger");
    let begin: usize = whole.split_inclusive('\n').take(4).map(str::len).sum();
    fs::write(&ledger, &whole[..begin]).expect("a shorter ledger");
    let mut screen = OnTerminal::of(root);
    screen.shows("record 4 ✓ chained");
    let mut longer = OpenOptions::new()
        .append(true)
        .open(&ledger)
        .expect("a ledger");
    longer
        .write_all(&whole.as_bytes()[begin..])
        .expect("all records");
    screen.shows("record 12 ✓ chained");
    let clock = |screen: &OnTerminal| {
        let text = screen.text();
        let (before, _) = text.split_once(" UTC").expect("a clock");
        before[before.len() - 8..].to_owned()
    };
    let before = clock(&screen);
    screen.until("later time", |screen| clock(screen) != before);
    // The end of a press, as some terminals report it, is no second press.
    screen.press("\u{1b}[113;1:3uy");
    screen.shows(&format!("copied: settled serve --root {}", root.display()));
    assert!(screen.written.contains("\u{1b}]52;c;"));
    screen.press("q");
    screen.is_left_clean();
}

#[test]
fn it_begins_with_the_review_and_the_agent_it_is_asked_for_and_names_no_workspace_that_is_known() {
    let root = workspace();
    let variables = [("SETTLED_ROOT", text(root.path()))];
    let mut screen = OnTerminal::start(&["--review", "88", "--agent", "codex"], &variables);
    screen.shows("codex -> claude  ✓ approved, round 1 of 2");
    screen.shows("settled send review_request --to claude --pr 88");
    assert!(!screen.text().contains("--root"), "{}", screen.text());
    screen.press("f");
    screen.shows("showing mine");
    screen.until("end of others' rows", |screen| {
        !screen.text().contains("#87")
    });
    screen.press("q");
    screen.is_left_clean();
}

#[test]
fn a_signal_ends_it_and_gives_the_terminal_back() {
    let root = workspace();
    for signal in [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT] {
        let mut screen = OnTerminal::of(root.path());
        screen.shows("quit");
        kill_process(Pid::from_child(&screen.child), signal).expect("it runs");
        screen.is_left_clean();
    }
}

#[test]
fn a_terminal_that_is_closed_ends_it() {
    let root = workspace();
    let mut screen = OnTerminal::of(root.path());
    screen.shows("quit");
    // The window closes, or the connection breaks.
    screen.near = File::open("/dev/null").expect("there is one");
    assert!(is_ready(&screen.errors), "it goes on");
    let status = screen.child.wait().expect("it is our child");
    assert!(status.success(), "{status}");
}

#[test]
fn it_is_coloured_unless_somebody_asks_for_less() {
    let root = workspace();
    for (variables, is_coloured) in [
        (&[][..], true),
        (&[("NO_COLOR", "")], true),
        (&[("NO_COLOR", "1")], false),
        (&[("TERM", "dumb")], false),
        (&[("TERM", "dumb"), ("NO_COLOR", "1")], false),
    ] {
        let mut screen = OnTerminal::start(&["--root", text(root.path())], variables);
        screen.shows("NO DAEMON SERVES");
        assert_eq!(
            screen.written.contains("38;5;196"),
            is_coloured,
            "{variables:?}: {:?}",
            screen.written
        );
    }
}

#[test]
fn without_a_workspace_it_says_so_and_fails() {
    let output = Command::new(env!("CARGO_BIN_EXE_settled-watch"))
        .args(["--root", "/there/is/none"])
        .output()
        .expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(errors.starts_with("settled-watch: "), "{errors}");
}
