//! One trial: starts the daemon on a scene, kills it once for each aim, lets it finish, and lists the errors after each
//! end.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use settled_tests::mailroom::settled;

use super::reader::{Reader, Seen};
use super::scene::{Scene, copy};
use super::tracer::{self, Aim, Ran};
use crate::checker::{self, Case};
use crate::messages::Message;
use crate::taker::Take;

/// The exit codes of a `serve --once` that did its work, without or with refusals.
pub(super) const GOOD: [i32; 2] = [0, 7];

/// The outcome of a trial.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The call at which each run was killed, in order; shorter than the aims if a run ended first.
    pub killed_at: Vec<&'static str>,
    /// For each run, the number of calls that its aim counts.
    pub calls: Vec<usize>,
    /// The errors.
    pub wrong: Vec<String>,
}

/// Runs a trial.
pub fn run(scene: &Scene, aims: &[Aim]) -> Outcome {
    let directory = settled_tests::scratch();
    let root = directory.path().join("mailroom");
    scene.lay_out(&root);
    let mut outcome = Outcome::default();
    let mut seen = Seen::default();
    for aim in aims {
        let reader = Reader::start(&root, seen);
        let ran = tracer::run(&root, *aim);
        seen = reader.stop();
        outcome
            .wrong
            .extend(checker::in_between(&root, &scene.messages, &seen.takes));
        outcome.wrong.extend(ended_badly(&ran));
        outcome.calls.push(ran.calls.len());
        match ran.killed_at {
            Some(call) => outcome.killed_at.push(call),
            // The run was not to be killed, or ended first. In the second case the next kill would not meet a recovery.
            None if *aim == Aim::NOWHERE => {}
            None => break,
        }
    }
    // After a row of kills start once more than needed: that start must find nothing to do.
    let starts = if aims.len() > 1 { 2 } else { 1 };
    let seen = finish(&root, seen, starts, &mut outcome.wrong);
    outcome.wrong.extend(verdict(&root, &scene.messages, &seen));
    outcome.wrong.extend(checker::orders(&root, &scene.orders));
    for wrong in &mut outcome.wrong {
        *wrong = format!(
            "{}, killed at {aims:?} {:?}: {wrong}",
            scene.name, outcome.killed_at
        );
    }
    outcome
}

/// Checks that a run that was not killed ended well.
fn ended_badly(ran: &Ran) -> Option<String> {
    let is_good = ran.killed_at.is_some() || ran.code.is_some_and(|code| GOOD.contains(&code));
    (!is_good).then(|| format!("ended with {:?}: {}", ran.code, ran.log))
}

/// Starts the daemon `starts` times and lets it finish.
fn finish(root: &Path, mut seen: Seen, starts: usize, wrong: &mut Vec<String>) -> Seen {
    for _ in 0..starts {
        let reader = Reader::start(root, seen);
        let output = settled()
            .arg("serve")
            .arg(root)
            .arg("--once")
            .output()
            .expect("settled can be run");
        seen = reader.stop();
        if !output
            .status
            .code()
            .is_some_and(|code| GOOD.contains(&code))
        {
            wrong.push(format!(
                "the recovery failed: {}",
                String::from_utf8_lossy(&output.stderr)
            ));
        }
    }
    seen
}

/// Everything wrong with a workspace whose daemon was left to finish.
pub(super) fn verdict(root: &Path, messages: &[Message], seen: &Seen) -> Vec<String> {
    let mut wrong = checker::check(&Case {
        root,
        messages,
        takes: &seen.takes,
        may_repeat: false,
    });
    wrong.extend(changed_since(root, &seen.sights));
    wrong.extend(not_the_fold(root));
    let verified = settled()
        .args(["ledger", "verify"])
        .arg(root)
        .output()
        .expect("settled can be run");
    if !verified.status.success() {
        wrong.push(format!(
            "ledger verify: {}",
            String::from_utf8_lossy(&verified.stderr)
        ));
    }
    wrong
}

/// Checks that files stay as they were when first seen.
fn changed_since(root: &Path, sights: &[Take]) -> Vec<String> {
    let now = |sight: &Take| {
        std::fs::read(
            root.join("agents")
                .join(&sight.agent)
                .join("inbox")
                .join(&sight.file),
        )
    };
    let changed = sights
        .iter()
        .filter(|sight| now(sight).ok().as_ref() != Some(&sight.bytes));
    changed
        .map(|sight| {
            format!(
                "{} was seen with {} bytes and is another now",
                sight.file,
                sight.bytes.len()
            )
        })
        .collect()
}

/// Checks that the state is the fold of the ledger: a workspace with only the ledger shows the same.
fn not_the_fold(root: &Path) -> Option<String> {
    let bare = settled_tests::scratch();
    copy(
        &root.join(".settled/ledger"),
        &bare.path().join(".settled/ledger"),
    );
    if let Ok(config) = std::fs::read_to_string(root.join("settled.toml")) {
        settled_tests::write(bare.path().join("settled.toml"), &config);
    }
    for agent in settled_tests::names(root.join("agents")) {
        for directory in ["inbox", "outbox"] {
            let path = bare.path().join("agents").join(&agent).join(directory);
            std::fs::create_dir_all(path).expect("a directory can be made");
        }
    }
    let (whole, fold) = (status(root), status(bare.path()));
    (whole != fold || whole.is_null())
        .then(|| format!("the status is {whole}, the fold says {fold}"))
}

/// The part of `settled status --json` that depends only on the ledger; null if the command prints nothing.
fn status(root: &Path) -> Value {
    let mut command: Command = settled();
    let output = command
        .arg("status")
        .arg(root)
        .arg("--json")
        .output()
        .expect("settled can be run");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    let data = &answer["data"];
    if data.is_null() {
        return Value::Null;
    }
    ["accepted", "refused", "ledger", "reviews"]
        .into_iter()
        .map(|key| (key.to_owned(), data[key].clone()))
        .collect()
}
