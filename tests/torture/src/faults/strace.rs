//! The real daemon under `strace`, which makes chosen calls fail. A failed call does nothing; to the daemon it looks
//! like a failing disk.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use settled_tests::binaries;

use super::call::Errno;

/// The failing calls of one name; each thread counts its own, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// Only this one.
    Once(u32),
    /// This one and every later one.
    From(u32),
    /// From the first to the second, inclusive.
    Between(u32, u32),
}

/// An error to inject.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The call's name.
    pub call: &'static str,
    /// The error it returns.
    pub errno: Errno,
    /// The failing calls of that name.
    pub span: Span,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let when = match self.span {
            Span::Once(n) => format!("{n}"),
            Span::From(n) => format!("{n}+"),
            Span::Between(first, last) => format!("{first}..{last}"),
        };
        write!(f, "{}:error={}:when={when}", self.call, self.errno.name())
    }
}

/// A traced run.
#[derive(Debug)]
pub struct Traced {
    /// Its exit status and its output.
    pub output: Output,
    /// The traced calls in order, one per line.
    pub trace: String,
}

impl Traced {
    /// True if the run met the fault.
    pub fn is_met(&self) -> bool {
        self.trace.contains("(INJECTED)")
    }
}

/// Makes the command that runs `settled ARGS` and traces these calls.
pub(super) fn command(
    trace: &Path,
    calls: &[&str],
    fault: Option<&Fault>,
    args: &[&str],
) -> Command {
    let mut command = Command::new("strace");
    command
        .args(["-f", "-qq", "--seccomp-bpf", "-s", "200", "-o"])
        .arg(trace);
    command.arg("-e").arg(format!("trace={}", calls.join(",")));
    if let Some(fault) = fault {
        command.arg("-e").arg(format!("inject={fault}"));
    }
    command.arg(binaries::settled()).args(args);
    // Cargo's library paths only add calls of the loader.
    command
        .env_remove("SETTLED_ROOT")
        .env_remove("SETTLED_LOG")
        .env_remove("LD_LIBRARY_PATH");
    command.stdin(Stdio::null());
    command
}

/// Returns the words before a program that make its calls fail, if given only those on `path`.
pub fn striking(fault: &Fault, path: Option<&Path>) -> Vec<String> {
    let mut words: Vec<String> = ["strace", "-f", "-qq", "-o", "/dev/null"]
        .map(str::to_owned)
        .to_vec();
    words.extend(
        path.iter()
            .flat_map(|path| ["-P".to_owned(), path.display().to_string()]),
    );
    words.extend(["-e".to_owned(), format!("trace={}", fault.call)]);
    words.extend(["-e".to_owned(), format!("inject={fault}")]);
    words
}

/// Runs `settled serve --once ROOT` to its end.
pub(super) fn once(root: &Path, calls: &[&str], fault: Option<&Fault>) -> Traced {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let trace = directory.path().join("trace");
    let root = root
        .to_str()
        .expect("temporary directories have names of text");
    let run = command(&trace, calls, fault, &["serve", "--once", root]).output();
    let output = run.unwrap_or_else(|error| {
        panic!(
            "`strace` makes calls fail here and cannot be run: {error} (Debian: apt install strace)"
        )
    });
    let trace = std::fs::read(&trace).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let trace = trace.unwrap_or_default();
    assert!(
        !trace.is_empty(),
        "strace traced nothing: {}",
        settled_tests::mailroom::said(&output)
    );
    Traced { output, trace }
}
