//! One fault, and the errors in its outcome.

use spool::dirs;
use std::path::Path;
use std::process::{Command, Stdio};

use settled_tests::binaries;
use settled_tests::mailroom::said;

use super::call::{CALLS, Errno};
use super::point::{self, Point};
use super::scene::{Scene, Set};
use super::strace::{self, Fault, Span, Traced};
use crate::checker::{self, Case};
use crate::messages::Message;
use crate::taker::Taker;

/// The daemon's reaction to a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It continued and did everything in the same process.
    WentOn,
    /// It stopped with this exit code and said why; the next start did the rest.
    Stopped(i32),
    /// This run did not make the call.
    NotMet,
}

/// One fault in one scene.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The scene of the fault.
    pub scene: Scene,
    /// The call that fails.
    pub point: Point,
    /// The error it returns.
    pub errno: Errno,
    /// True if every later call of this name fails too.
    pub is_for_good: bool,
}

impl std::fmt::Display for Trial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:?}, {}: {}",
            self.scene,
            self.fault(),
            self.point.shown
        )
    }
}

impl Trial {
    fn fault(&self) -> Fault {
        let n = self.point.n;
        let span = if self.is_for_good {
            Span::From(n)
        } else {
            Span::Once(n)
        };
        Fault {
            call: self.point.call.name,
            errno: self.errno,
            span,
        }
    }

    /// Runs it; the error lists everything wrong.
    pub fn run(&self) -> Result<Ending, Vec<String>> {
        let set = set(self.scene);
        let taker = Taker::start(set.mailroom.root(), "codex");
        let fault = self.fault();
        let mut calls = vec![fault.call];
        if self.point.call.is_sync {
            calls = vec!["fdatasync", "fsync", "syncfs", "renameat2"];
        }
        let traced = strace::once(set.mailroom.root(), &calls, Some(&fault));
        let mut wrong = Vec::new();
        let ending = self.ending(&traced, &mut wrong);
        if ending != Ending::WentOn && ending != Ending::NotMet {
            let output = set.mailroom.once();
            if !matches!(output.status.code(), Some(0 | 7)) {
                wrong.push(format!("the next start: {}", said(&output)));
            }
        }
        let takes = taker.stop();
        let root = set.mailroom.root();
        let messages = in_order_of_judgement(root, set.messages);
        wrong.extend(checker::check(&Case {
            root,
            messages: &messages,
            takes: &takes,
            may_repeat: false,
        }));
        if wrong.is_empty() {
            Ok(ending)
        } else {
            Err(self.told(wrong, &traced))
        }
    }

    fn told(&self, mut wrong: Vec<String>, traced: &Traced) -> Vec<String> {
        wrong.insert(0, self.to_string());
        wrong.push(said(&traced.output));
        wrong
    }

    /// Determines the reaction, and notes what is wrong with it.
    fn ending(&self, traced: &Traced, wrong: &mut Vec<String>) -> Ending {
        let stderr = String::from_utf8_lossy(&traced.output.stderr);
        if stderr.contains("panicked") {
            wrong.push("it panicked".to_owned());
        }
        let code = traced.output.status.code();
        match code {
            _ if !traced.is_met() => Ending::NotMet,
            Some(0 | 7) => {
                if self.point.call.is_sync && self.errno != Errno::Interrupted {
                    wrong.push("a sync failed and it went on".to_owned());
                }
                Ending::WentOn
            }
            // Only another user may not open the lock.
            Some(5) if stderr.contains(dirs::LOCK) && self.errno == Errno::Access => {
                self.judge_message(&stderr, 5, wrong);
                Ending::Stopped(5)
            }
            Some(code @ (1 | 9)) => {
                self.judge_message(&stderr, code, wrong);
                self.judge_sync(traced, wrong);
                Ending::Stopped(code)
            }
            Some(code) => {
                wrong.push(format!("exit code {code}, expected 0, 1, 7 or 9"));
                Ending::Stopped(code)
            }
            None => {
                wrong.push(format!(
                    "it was ended by a signal: {}",
                    traced.output.status
                ));
                Ending::Stopped(-1)
            }
        }
    }

    /// Checks that the last message names the failure, the path, the error and the next command.
    fn judge_message(&self, stderr: &str, code: i32, wrong: &mut Vec<String>) {
        if self.point.call.name == "write" {
            // The daemon could not print anything.
            return;
        }
        let Some((_, last)) = stderr.rsplit_once("settled: ") else {
            wrong.push("it stopped and did not say why".to_owned());
            return;
        };
        // The log of a postponed file has the error where it happened, not at the end.
        let cause = format!("os error {}", self.errno.number());
        let said = if code == 9 { stderr } else { last };
        // For a file or directory that it may not read, the daemon prints the owner's remedy instead of the number.
        let is_told = said.contains(&cause)
            || (self.errno == Errno::Access
                && code == 9
                && said.contains("cannot read this and will retry"));
        if !is_told {
            wrong.push(format!("it does not say `{cause}`"));
        }
        if code == 1 && !last.contains('/') {
            wrong.push("it does not say where".to_owned());
        }
        if !last.contains("  try: ") {
            wrong.push("it does not say what to do next".to_owned());
        }
    }

    /// Checks that the daemon neither syncs nor delivers anything after a failed sync.
    fn judge_sync(&self, traced: &Traced, wrong: &mut Vec<String>) {
        if !self.point.call.is_sync || self.errno == Errno::Interrupted {
            return;
        }
        let mut after = traced
            .trace
            .lines()
            .skip_while(|line| !line.contains("(INJECTED)"))
            .skip(1);
        if let Some(line) = after.find(|line| {
            CALLS
                .iter()
                .any(|call| line.contains(&format!("{}(", call.name)))
        }) {
            wrong.push(format!("after a failed sync: {line}"));
        }
    }
}

/// Swaps the fates of two messages with the same bytes if they were read in the other order: the one read first is
/// accepted, the other is its duplicate, and a fault may delay the first.
fn in_order_of_judgement(root: &Path, mut messages: Vec<Message>) -> Vec<Message> {
    let records = checker::records(root).unwrap_or_default();
    let is = |message: &Message, kind: &str| {
        let mut of_file = records
            .iter()
            .filter(|record| record["original"]["file"] == message.file.as_str());
        of_file.next().is_some_and(|record| record["kind"] == kind)
    };
    for n in 0..messages.len() {
        let earlier = (0..n).find(|earlier| messages[*earlier].text == messages[n].text);
        if let Some(earlier) = earlier
            && is(&messages[earlier], "duplicate")
            && is(&messages[n], "accepted")
        {
            let fate = messages[earlier].fate;
            messages[earlier].fate = messages[n].fate;
            messages[n].fate = fate;
        }
    }
    messages
}

/// Prepares a scene; a real kill makes the leftovers.
pub(super) fn set(scene: Scene) -> Set {
    scene.set(|root| {
        let mut kill = Command::new("strace");
        kill.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=renameat2"]);
        kill.args(["-e", "inject=renameat2:signal=KILL:when=3"])
            .arg(binaries::settled());
        kill.args(["serve", "--once"])
            .arg(root)
            .env_remove("SETTLED_ROOT")
            .stderr(Stdio::null());
        let status = kill
            .stdout(Stdio::null())
            .status()
            .expect("strace can be run");
        assert!(!status.success(), "the daemon was to be killed: {status}");
    })
}

/// Finds every point of a scene in a run without a fault, which must itself be correct.
pub(super) fn points(scene: Scene) -> Vec<Point> {
    let set = set(scene);
    let calls: Vec<&str> = CALLS.iter().map(|call| call.name).collect();
    let traced = strace::once(set.mailroom.root(), &calls, None);
    assert!(
        matches!(traced.output.status.code(), Some(0 | 7)),
        "{}",
        said(&traced.output)
    );
    let root = set.mailroom.root();
    let wrong = checker::check(&Case {
        root,
        messages: &set.messages,
        takes: &[],
        may_repeat: false,
    });
    assert!(wrong.is_empty(), "without any fault: {wrong:#?}");
    point::points(&traced.trace, set.mailroom.root())
}
