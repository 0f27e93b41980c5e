//! Reports the programs beside Settled on this machine; all of them are optional.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use runner::program;
use workspace::config::{Config, SandboxSection};

use super::{CheckContext, CheckOutcome, Checked};

/// The programs that `doctor` looks for.
const TOOLS: [&str; 7] = [
    "claude",
    "codex",
    "gemini",
    "opencode",
    "oacp",
    "git",
    "validate-message",
];

/// The time for all tools together to print their versions: Gemini CLI alone needs several seconds on a busy machine.
const PATIENCE: Duration = Duration::from_secs(15);

/// The directories in which systemd looks for system units.
const UNITS: [&str; 3] = [
    "/etc/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// Checks whether a service starts the daemon.
pub(super) fn service(_: &CheckContext<'_>) -> Checked {
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".config/systemd/user"));
    let places: Vec<PathBuf> = UNITS.iter().map(PathBuf::from).chain(home).collect();
    Ok(vec![units(&places)])
}

/// Names the units of ours in the directories.
fn units(places: &[PathBuf]) -> CheckOutcome {
    let mut units: Vec<PathBuf> = places
        .iter()
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
    CheckOutcome::note(if named.is_empty() {
        "no systemd unit starts the daemon".to_owned()
    } else {
        format!("systemd knows {}", named.join(", "))
    })
}

/// Checks that `bwrap` can make the sandbox that the agents' sections ask for; reports nothing if none does.
pub(super) fn sandbox(case: &CheckContext<'_>) -> Checked {
    // The check `config` reports a config that cannot be read.
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

/// Looks for the agents' programs in `PATH` and asks each for its version.
pub(super) fn tools(_: &CheckContext<'_>) -> Checked {
    let end = Instant::now() + PATIENCE;
    let asked: Vec<_> = TOOLS
        .iter()
        .map(|name| {
            (
                *name,
                program::find(name).map(|path| program::ask_version(&path)),
            )
        })
        .collect();
    Ok(asked
        .into_iter()
        .map(|(name, asked)| {
            CheckOutcome::note(match asked {
                None => format!("{name}: not on the PATH"),
                Some(None) => format!("{name}: there, but cannot be run"),
                Some(Some(asked)) => match program::version_by(asked, end)
                    .as_deref()
                    .and_then(first_line)
                {
                    Some(version) => format!("{name}: {version}"),
                    None => format!("{name}: there; it did not say its version"),
                },
            })
        })
        .collect())
}

/// The first line of a program's version output, cut to 80 characters.
fn first_line(version: &str) -> Option<String> {
    let line = version.lines().next()?.trim();
    (!line.is_empty()).then(|| line.chars().take(80).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_of_ours_is_found_by_its_name() {
        let folder = tempfile::tempdir().expect("a directory");
        let places = [folder.path().join("none"), folder.path().to_owned()];
        assert_eq!(units(&places).what, "no systemd unit starts the daemon");
        for name in [
            "settled.service",
            "settled-b.service",
            "settled.timer",
            "other.service",
        ] {
            std::fs::write(folder.path().join(name), "").expect("a file");
        }
        let said = units(&places).what;
        let said = said.replace(&folder.path().display().to_string(), "DIR");
        assert_eq!(
            said,
            "systemd knows DIR/settled-b.service, DIR/settled.service"
        );
    }

    #[test]
    fn a_version_is_the_first_line_as_far_as_it_fits() {
        assert_eq!(
            first_line(" git 2.43 \nmore\n").as_deref(),
            Some("git 2.43")
        );
        let cut = first_line(&"ä".repeat(81));
        assert_eq!(cut, Some("ä".repeat(80)));
        for nothing in ["", " \nmore"] {
            assert_eq!(first_line(nothing), None, "{nothing:?}");
        }
    }
}
