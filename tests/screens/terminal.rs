//! `settled-watch` in a real pseudo-terminal: it follows, handles resizing, ends in every way, and restores the
//! terminal.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, tcgetattr, tcsetwinsize};
use settled_tests::mailroom::Mailroom;
use settled_tests::{binaries, seed, wait};

use crate::pseudo_terminal;

/// A program on its own terminal.
struct OnTerminal {
    keyboard: File,
    slave: File,
    child: Child,
    parser: Arc<Mutex<vt100::Parser>>,
    raw: Arc<Mutex<Vec<u8>>>,
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("the screen was\n{}", self.text());
        }
        // It has ended, or a test failed and it must not outlive the test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program on a terminal that nobody reads yet.
struct Seat {
    keyboard: File,
    slave: File,
    child: Child,
}

impl Seat {
    fn take(program: &mut Command, columns: u16, rows: u16) -> Self {
        let (keyboard, slave) = pseudo_terminal::open(columns, rows);
        let end = || Stdio::from(slave.try_clone().expect("a handle"));
        // The terminal has to be the program's controlling one, or a new size does not reach it; `setsid` becomes the
        // program.
        let mut session = Command::new("setsid");
        session
            .arg("--ctty")
            .arg(program.get_program())
            .args(program.get_args())
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .env_remove("SETTLED_ROOT");
        for (name, value) in program.get_envs() {
            if let Some(value) = value {
                session.env(name, value);
            }
        }
        let child = session
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("`setsid` of util-linux can be run");
        Self {
            keyboard,
            slave,
            child,
        }
    }
}

impl OnTerminal {
    fn start(program: &mut Command, columns: u16, rows: u16) -> Self {
        let Seat {
            keyboard,
            slave,
            child,
        } = Seat::take(program, columns, rows);
        let parser = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let raw = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, shown, all) = (
            keyboard.try_clone().expect("a handle"),
            Arc::clone(&parser),
            Arc::clone(&raw),
        );
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                shown
                    .lock()
                    .expect("no test panics with it")
                    .process(&bytes[..count]);
                all.lock()
                    .expect("no test panics with it")
                    .extend(&bytes[..count]);
            }
        });
        Self {
            keyboard,
            slave,
            child,
            parser,
            raw,
        }
    }

    fn text(&self) -> String {
        self.parser
            .lock()
            .expect("no test panics with it")
            .screen()
            .contents()
    }

    fn shows(&self, words: &str) {
        wait::until(words, || self.text().contains(words));
    }

    fn last_row(&self) -> String {
        let parser = self.parser.lock().expect("no test panics with it");
        let columns = parser.screen().size().1;
        parser.screen().rows(0, columns).last().unwrap_or_default()
    }

    fn raw(&self) -> String {
        String::from_utf8_lossy(&self.raw.lock().expect("no test panics with it")).into_owned()
    }

    fn press(&mut self, keys: &str) {
        self.keyboard
            .write_all(keys.as_bytes())
            .expect("the terminal takes keys");
    }

    fn resize(&self, columns: u16, rows: u16) {
        self.parser
            .lock()
            .expect("no test panics with it")
            .screen_mut()
            .set_size(rows, columns);
        tcsetwinsize(&self.keyboard, pseudo_terminal::size(columns, rows)).expect("it has a size");
    }

    /// Waits for the end, and checks that the terminal is as before.
    fn is_left_clean(&mut self) {
        self.child.wait().expect("it is our child");
        wait::until("the terminal to be given back", || {
            let parser = self.parser.lock().expect("no test panics with it");
            !parser.screen().alternate_screen() && !parser.screen().hide_cursor()
        });
        let modes = tcgetattr(self.slave.as_fd())
            .expect("a terminal")
            .local_modes;
        let cooked = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        assert!(modes.contains(cooked), "{modes:?}");
    }
}

fn mailroom() -> Mailroom {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    seed::lay_packet(mailroom.root());
    mailroom
}

fn watch(mailroom: &Mailroom) -> Command {
    // `settled watch` becomes it.
    let mut command = Command::new(binaries::settled());
    command.arg("watch").arg("--root").arg(mailroom.root());
    command
}

#[test]
fn it_follows_is_resized_and_ends_by_a_key() {
    let mailroom = mailroom();
    let mut screen = OnTerminal::start(&mut watch(&mailroom), 80, 24);
    screen.shows("no review yet");
    for (number, post) in seed::review().iter().enumerate().take(4) {
        mailroom.post(post.from, post.file, &post.text);
        assert!(mailroom.once().status.success());
        // Resized while it updates.
        let (columns, rows) = [(200, 60), (60, 24), (120, 40), (80, 24)][number];
        screen.resize(columns, rows);
        screen.shows(post.phase);
    }
    // crossterm 0.29 delivers a key that arrives together with a new size only with the next key.
    wait::until("the frame of the last size", || {
        screen.last_row().contains("q quit")
    });
    screen.press("y");
    wait::until("the command to be copied", || {
        screen.raw().contains("\u{1b}]52;c;")
    });
    screen.press("q");
    screen.is_left_clean();
    assert!(screen.child.wait().expect("it is our child").success());
}

#[test]
fn a_signal_ends_it_and_gives_the_terminal_back() {
    let mailroom = mailroom();
    for signal in [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT] {
        let mut screen = OnTerminal::start(&mut watch(&mailroom), 80, 24);
        screen.shows("no review yet");
        kill_process(Pid::from_child(&screen.child), signal).expect("it runs");
        screen.is_left_clean();
    }
}

/// A running program; dropping the value kills it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_terminal_that_is_closed_ends_it() {
    let mailroom = mailroom();
    let Seat {
        mut keyboard,
        slave,
        child,
    } = Seat::take(&mut watch(&mailroom), 80, 24);
    let mut running = Running(child);
    let (mut seen, mut bytes) = (String::new(), [0; 4096]);
    // A single word, since blanks between words may not be drawn.
    while !seen.contains("somebody") {
        let count = keyboard.read(&mut bytes).expect("it draws");
        seen += &String::from_utf8_lossy(&bytes[..count]);
    }
    // The window closes, or the connection breaks.
    drop((keyboard, slave));
    wait::until("the end", || {
        running.0.try_wait().expect("it is our child").is_some()
    });
}

#[test]
fn a_terminal_that_shows_control_sequences_gets_none() {
    let mailroom = mailroom();
    let screen = OnTerminal::start(watch(&mailroom).env("TERM", "dumb"), 80, 24);
    screen.shows("0 accepted");
    let [request, ..] = seed::review();
    mailroom.post(request.from, request.file, &request.text);
    assert!(mailroom.once().status.success());
    screen.shows("1 accepted");
    assert!(!screen.raw().contains('\u{1b}'), "{}", screen.raw());
}

#[test]
fn a_panic_gives_the_terminal_back_before_it_says_why() {
    let mut itself = Command::new(std::env::current_exe().expect("this test"));
    itself
        .args([
            "--exact",
            "terminal::panics_on_purpose",
            "--ignored",
            "--nocapture",
        ])
        .env("SETTLED_TEST_PANICS", "1");
    let mut screen = OnTerminal::start(&mut itself, 80, 24);
    screen.is_left_clean();
    wait::until("the message", || screen.raw().contains("on purpose"));
    let raw = screen.raw();
    let given_back = raw.find("\u{1b}[?1049l").expect("it was given back");
    assert!(
        given_back < raw.find("on purpose").expect("seen above"),
        "{raw}"
    );
}

/// Run on a terminal, and only by the test above.
#[test]
#[ignore = "takes the terminal and panics"]
fn panics_on_purpose() {
    if std::env::var_os("SETTLED_TEST_PANICS").is_none() {
        return;
    }
    let taken = settled_watch::terminal::Taken::take().expect("a terminal");
    assert!(taken.is_over(), "on purpose");
}
