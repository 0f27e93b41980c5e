//! The daemon under `strace`: counts the calls of a run, and makes one of them fail or kill it.
//!
//! `strace` counts the occurrences of a call in each thread separately, so with several threads an injection can strike
//! once in each. `Ran::struck` says how often it did. Callers choose the call and check the result.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use settled_tests::binaries;

/// The effect that replaces a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inject {
    /// The process is killed before the call does anything.
    Kill,
    /// The call does nothing and fails with this error, such as `EIO`.
    Error(&'static str),
    /// The call does nothing and returns this.
    Returns(i64),
}

/// One injection: the call and the effect.
#[derive(Clone, Debug)]
pub struct Strike<'a> {
    /// The call's name in `strace`, or several separated by commas.
    pub call: &'a str,
    /// The number of the call within a thread, from 1 to 65 535.
    pub nth: usize,
    /// True if every later call is struck too.
    pub and_on: bool,
    /// If set, counts only calls that name this path or a descriptor of it.
    pub path: Option<&'a Path>,
    /// The injected effect.
    pub inject: Inject,
}

/// The end of a run under `strace`.
#[derive(Debug)]
pub struct Ran {
    /// The daemon's exit status, or signal 9 if it was killed.
    pub status: ExitStatus,
    /// Its standard error.
    pub log: String,
    /// The lines of `strace`, one per call, without those that only resume an unfinished one.
    pub calls: Vec<String>,
    /// The number of times the injection struck.
    pub struck: usize,
}

/// Runs `settled ARGS` to its end with one injection.
pub fn strike(args: &[&str], strike: &Strike<'_>) -> Ran {
    let Strike {
        call,
        nth,
        and_on,
        path,
        inject,
    } = strike;
    let what = match inject {
        Inject::Kill => "signal=KILL".to_owned(),
        Inject::Error(error) => format!("error={error}"),
        Inject::Returns(value) => format!("retval={value}"),
    };
    let when = if *and_on {
        format!("{nth}+")
    } else {
        nth.to_string()
    };
    let path = path.map(|path| path.display().to_string());
    let mut options = vec![
        format!("trace={call}"),
        format!("inject={call}:{what}:when={when}"),
    ];
    options = options
        .into_iter()
        .flat_map(|option| ["-e".to_owned(), option])
        .collect();
    options.extend(path.into_iter().flat_map(|path| ["-P".to_owned(), path]));
    run(&options, args)
}

/// Runs `settled ARGS` to its end and records every call in `Ran::calls`.
pub fn watch(args: &[&str]) -> Ran {
    run(&[], args)
}

/// Counts the calls of these lines, by name.
pub fn counts(calls: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for call in calls.iter().filter_map(|line| name(line)) {
        *counts.entry(call).or_default() += 1;
    }
    counts
}

/// Returns the name of the call in a line of `strace -f`.
pub fn name(line: &str) -> Option<&str> {
    let line = line
        .trim_start_matches(|digit: char| digit.is_ascii_digit())
        .trim_start();
    let (name, _) = line.split_once('(')?;
    name.chars()
        .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        .then_some(name)
}

fn run(options: &[String], args: &[&str]) -> Ran {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let trace: PathBuf = directory.path().join("trace");
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-o"])
        .arg(&trace)
        .args(options)
        .arg(binaries::settled())
        .args(args);
    strace
        .env_remove("SETTLED_ROOT")
        .env_remove("SETTLED_LOG")
        .stdin(Stdio::null());
    let output = strace.output().unwrap_or_else(|error| {
        panic!("these tests strike system calls with `strace`, which cannot be run: {error} (Debian: apt install strace)")
    });
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = std::fs::read(&trace)
        .unwrap_or_else(|error| panic!("strace wrote no trace: {error}\n{log}"));
    let text = String::from_utf8_lossy(&text);
    let calls: Vec<String> = text
        .lines()
        .filter(|line| name(line).is_some())
        .map(str::to_owned)
        .collect();
    let killed = usize::from(text.contains("+++ killed by SIGKILL +++"));
    let struck = text
        .lines()
        .filter(|line| line.contains("(INJECTED)"))
        .count()
        .max(killed);
    Ran {
        status: output.status,
        log,
        calls,
        struck,
    }
}
