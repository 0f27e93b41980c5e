//! One fault, and what is wrong with what came of it.

use std::path::Path;
use std::process::{Command, Stdio};

use settled_tests::binaries;
use settled_tests::mailroom::said;

use super::call::{CALLS, Errno};
use super::point::{self, Point};
use super::scene::{Scene, Set};
use super::strace::{self, Fault, Span, Traced};
use crate::checker::{self, Case};
use crate::letters::Letter;
use crate::taker::Taker;

/// The daemon's answer to a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It went on and did everything in the same process.
    WentOn,
    /// It stopped with this exit code and said why; the next start did the rest.
    Stopped(i32),
    /// The fault was not met: this run did not come by there.
    NotMet,
}

/// One fault in one scene.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The scene of the fault.
    pub scene: Scene,
    /// The call that fails.
    pub point: Point,
    /// The error it fails with.
    pub errno: Errno,
    /// True if every later call of the name fails as well.
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

    /// Runs it; the error lists all that is wrong.
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
        let letters = in_order_of_judgement(root, set.letters);
        wrong.extend(checker::check(&Case {
            root,
            letters: &letters,
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

    /// Sorts how the run ended, and says what about it must not be.
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

    /// The last words name what failed, where, with what, and the next command.
    fn judge_message(&self, stderr: &str, code: i32, wrong: &mut Vec<String>) {
        if self.point.call.name == "write" {
            // It had nowhere to say it.
            return;
        }
        let Some((_, last)) = stderr.rsplit_once("settled: ") else {
            wrong.push("it stopped and did not say why".to_owned());
            return;
        };
        // What waits for a later try was logged when it failed.
        let cause = format!("os error {}", self.errno.number());
        let said = if code == 9 { stderr } else { last };
        // For a file or directory that it may not read, the daemon names the owner's remedy instead of the number.
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

    /// After a failed sync nothing is synced or delivered any more.
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

/// Of two files with the same bytes the one that was read first is the message and the other its
/// repetition: a file that could not be read at once changes places.
fn in_order_of_judgement(root: &Path, mut letters: Vec<Letter>) -> Vec<Letter> {
    let records = checker::records(root).unwrap_or_default();
    let is = |letter: &Letter, kind: &str| {
        let mut of_file = records
            .iter()
            .filter(|record| record["original"]["file"] == letter.file.as_str());
        of_file.next().is_some_and(|record| record["kind"] == kind)
    };
    for n in 0..letters.len() {
        let earlier = (0..n).find(|earlier| letters[*earlier].text == letters[n].text);
        if let Some(earlier) = earlier
            && is(&letters[earlier], "duplicate")
            && is(&letters[n], "accepted")
        {
            let fate = letters[earlier].fate;
            letters[earlier].fate = letters[n].fate;
            letters[n].fate = fate;
        }
    }
    letters
}

/// Sets a scene; what a kill leaves is made by one.
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

/// Every point of a scene, found in a run without a fault, which must come out right itself.
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
        letters: &set.letters,
        takes: &[],
        may_repeat: false,
    });
    assert!(wrong.is_empty(), "without any fault: {wrong:#?}");
    point::points(&traced.trace, set.mailroom.root())
}
