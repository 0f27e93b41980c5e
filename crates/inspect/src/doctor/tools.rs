//! Reports the programs beside Settled on this machine; none of them has to be there.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use runner::program;
use workspace::config::{Config, SandboxSection};

use super::{CheckContext, CheckOutcome, Checked};

/// The programs that are looked for.
const TOOLS: [&str; 7] = [
    "claude",
    "codex",
    "gemini",
    "opencode",
    "oacp",
    "git",
    "validate-message",
];

/// The time that all tools together have to print their versions: Gemini CLI alone needs several seconds on a busy
/// machine.
const PATIENCE: Duration = Duration::from_secs(15);

/// The time between two checks whether a tool has answered.
const POLL: Duration = Duration::from_millis(10);

/// The directories in which systemd looks for units, without the one below the home directory.
const UNITS: [&str; 3] = [
    "/etc/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// Checks whether a service starts the daemon.
pub(super) fn service(_: &CheckContext<'_>) -> Checked {
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".config/systemd/user"));
    let places = UNITS.iter().map(PathBuf::from).chain(home);
    let mut units: Vec<PathBuf> = places
        .flat_map(|place| std::fs::read_dir(place).into_iter().flatten().flatten())
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            name.starts_with("settled") && name.ends_with(".service")
        })
        .collect();
    units.sort();
    let named: Vec<String> = units
        .iter()
        .map(|unit| unit.display().to_string())
        .collect();
    Ok(vec![CheckOutcome::note(if named.is_empty() {
        "no systemd unit starts the daemon".to_owned()
    } else {
        format!("systemd knows {}", named.join(", "))
    })])
}

/// Checks that `bwrap` can make the sandbox that agents' sections ask for; no outcome where none does.
pub(super) fn sandbox(case: &CheckContext<'_>) -> Checked {
    // A config that cannot be read is the business of another check.
    let agents = Config::load(case.root).unwrap_or_default().agents;
    let walled = agents.iter().filter(|(_, agent)| agent.sandbox.is_some());
    let walled: Vec<String> = walled.map(|(name, _)| name.to_string()).collect();
    if walled.is_empty() {
        return Ok(Vec::new());
    }
    let walled = walled.join(", ");
    let fix = "install bubblewrap 0.8 or newer, and let this user make namespaces";
    let mut walls = Command::new(SandboxSection::PROGRAM);
    walls
        .args(["--unshare-all", "--ro-bind", "/", "/", "true"])
        .stdin(Stdio::null());
    Ok(vec![match walls.output() {
        Ok(output) if output.status.success() => {
            CheckOutcome::ok(format!("bwrap makes the sandbox of {walled}"))
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = message_schema::line::escaped(said.trim());
            let what = format!("bwrap cannot make the sandbox of {walled}: {said}");
            CheckOutcome::wrong(what, fix)
        }
        Err(error) => {
            let what = format!("bwrap makes the sandbox of {walled} and cannot be run: {error}");
            CheckOutcome::wrong(what, fix)
        }
    }])
}

/// Looks for the agents' programs on the PATH, and asks each for its version.
pub(super) fn tools(_: &CheckContext<'_>) -> Checked {
    let start = Instant::now();
    let asked: Vec<_> = TOOLS
        .iter()
        .map(|name| (*name, program::find(name).map(|path| ask(&path))))
        .collect();
    Ok(asked
        .into_iter()
        .map(|(name, asked)| {
            CheckOutcome::note(match asked {
                None => format!("{name}: not on the PATH"),
                Some(None) => format!("{name}: there, but cannot be run"),
                Some(Some(child)) => match answer(child, start) {
                    Some(version) => format!("{name}: {version}"),
                    None => format!("{name}: there; it did not say its version"),
                },
            })
        })
        .collect())
}

fn ask(path: &Path) -> Option<Child> {
    let mut command = Command::new(path);
    command
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command.spawn().ok()
}

/// The first line it says, if it is done in time.
fn answer(mut child: Child, start: Instant) -> Option<String> {
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if start.elapsed() < PATIENCE => std::thread::sleep(POLL),
            Ok(None) | Err(_) => {
                // Its version is all we want from it, and it may hang forever.
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
    let mut said = Vec::new();
    // A child of it may still hold the pipe, so no more is read than there is at once.
    child
        .stdout
        .take()?
        .take(4096)
        .read_to_end(&mut said)
        .ok()?;
    let said = String::from_utf8_lossy(&said).into_owned();
    said.lines()
        .next()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| line.chars().take(80).collect())
}
