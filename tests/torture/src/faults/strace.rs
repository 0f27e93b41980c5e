//! The real daemon under `strace`, which makes chosen calls fail. Nothing is done by a call that is
//! made to fail; the daemon cannot tell it from a disk.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use settled_tests::binaries;

use super::call::Errno;

/// The calls of one name that fail; each thread counts its own, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// This one.
    Once(u32),
    /// This one and every later one.
    From(u32),
    /// These, both included.
    Between(u32, u32),
}

/// An error to inject.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The call's name.
    pub call: &'static str,
    /// The error it fails with.
    pub errno: Errno,
    /// The calls of that name that fail.
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

/// A run that was traced.
#[derive(Debug)]
pub struct Traced {
    /// Its exit status and its output.
    pub output: Output,
    /// The traced calls, one a line, in the order in which they were made.
    pub trace: String,
}

impl Traced {
    /// True if the run met the fault.
    pub fn is_met(&self) -> bool {
        self.trace.contains("(INJECTED)")
    }
}

/// The command that runs `settled ARGS` with these calls traced, for as long as it takes.
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
    // Cargo's own paths only make the loader's calls many.
    command
        .env_remove("SETTLED_ROOT")
        .env_remove("SETTLED_LOG")
        .env_remove("LD_LIBRARY_PATH");
    command.stdin(Stdio::null());
    command
}

/// The words before a program's own that make its calls fail, if they concern `path` where one is named.
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
