//! Git's own hooks: finds their place, writes them, and leaves foreign hooks alone.
//!
//! `--staged` judges what a commit would hold; git's other hook managers (pre-commit, prek, lefthook) call it
//! themselves and need nothing from here.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The line that marks a hook as ours, whatever version wrote it.
const MARK: &str = "# Written by `validate-message install-hook`; `--uninstall` takes it out.";

/// The hooks that git runs before a commit, and before the commit of a merge without conflicts.
const HOOKS: [&str; 2] = ["pre-commit", "pre-merge-commit"];

/// Options for installing or removing the hook.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Remove the hook
    #[arg(long)]
    uninstall: bool,
}

/// Why the hook was not installed or removed.
enum HookError {
    /// Git does not say where hooks belong.
    NoRepository(String),
    /// A foreign hook is there.
    Foreign(PathBuf),
    /// A file call failed.
    Disk(PathBuf, io::Error),
}

/// Installs or removes the hook, and reports what was done.
pub(crate) fn run(args: &Args) -> ExitCode {
    let done = places().and_then(|hooks| {
        if args.uninstall {
            uninstall(&hooks)
        } else {
            install(&hooks)
        }
    });
    match done {
        Ok(said) => {
            // The hook is installed even if nobody reads the output.
            let _ = writeln!(io::stdout(), "{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {}", describe(&error));
            ExitCode::from(error.exit_code())
        }
    }
}

impl HookError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::NoRepository(_) | Self::Foreign(_) => 2,
            Self::Disk(..) => 3,
        }
    }
}

fn describe(error: &HookError) -> String {
    match error {
        HookError::NoRepository(said) => format!("git does not say where its hooks are: {said}"),
        HookError::Foreign(hook) => format!(
            "{} exists and is not ours; nothing was changed.\nTo have both, add this line to it:\n    \
             validate-message --staged || exit $?",
            hook.display()
        ),
        HookError::Disk(path, error) => format!("{}: {error}", path.display()),
    }
}

/// Returns the files of the hooks: git knows about `core.hooksPath`, worktrees and submodules.
fn places() -> Result<[PathBuf; 2], HookError> {
    let asked = Command::new("git")
        .args(["rev-parse", "--git-path", "hooks"])
        .output();
    let output = asked.map_err(|error| HookError::NoRepository(error.to_string()))?;
    if !output.status.success() {
        return Err(HookError::NoRepository(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        ));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    // Relative to the working directory, which has not changed; only the line feed is git's own.
    let directory = PathBuf::from(said.strip_suffix('\n').unwrap_or(&said));
    Ok(HOOKS.map(|hook| directory.join(hook)))
}

/// Writes both hooks, or none if one of them is foreign.
fn install(hooks: &[PathBuf]) -> Result<String, HookError> {
    let found = hooks
        .iter()
        .map(|hook| present(hook))
        .collect::<Result<Vec<_>, _>>()?;
    let mut said = Vec::new();
    for (hook, present) in hooks.iter().zip(found) {
        let disk = |error| HookError::Disk(hook.clone(), error);
        let text = text(&std::env::current_exe().map_err(disk)?);
        if present.is_some_and(|before| before == text) {
            said.push(format!("{} already exists", hook.display()));
        } else {
            written(hook, &text).map_err(disk)?;
            said.push(format!(
                "{} checks the files of each commit",
                hook.display()
            ));
        }
    }
    Ok(said.join("\n"))
}

/// Renames the hook into place: a concurrent commit finds a complete hook or none.
fn written(hook: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = hook.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let draft = hook.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::write(&draft, text).and_then(|()| executable(&draft))?;
    std::fs::rename(&draft, hook)
}

fn uninstall(hooks: &[PathBuf]) -> Result<String, HookError> {
    let found = hooks
        .iter()
        .map(|hook| present(hook))
        .collect::<Result<Vec<_>, _>>()?;
    let mut said = Vec::new();
    for (hook, present) in hooks.iter().zip(found) {
        match present {
            None => said.push(format!("{} does not exist", hook.display())),
            Some(_) => {
                std::fs::remove_file(hook).map_err(|error| HookError::Disk(hook.clone(), error))?;
                said.push(format!("{} is removed", hook.display()));
            }
        }
    }
    Ok(said.join("\n"))
}

/// Returns our hook at that path; a foreign one is an error.
fn present(hook: &Path) -> Result<Option<String>, HookError> {
    let disk = |error| HookError::Disk(hook.to_owned(), error);
    // A link leads to a foreign file, even if that does not exist yet.
    match hook.symlink_metadata() {
        Ok(metadata) if !metadata.is_file() => return Err(HookError::Foreign(hook.to_owned())),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(disk(error)),
    }
    let bytes = std::fs::read(hook).map_err(disk)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let is_ours = text.lines().any(|line| line == MARK);
    if is_ours {
        Ok(Some(text))
    } else {
        Err(HookError::Foreign(hook.to_owned()))
    }
}

/// Returns the hook: it runs this very program, else the one on the `PATH`, else stops the commit and says why.
fn text(program: &Path) -> String {
    let program = shell_word(&program.to_string_lossy());
    format!(
        "#!/bin/sh\n{MARK}\nprogram={program}\n[ -x \"$program\" ] || program=$(command -v validate-message) || {{\n    \
         echo \"${{0##*/}}: validate-message is neither at $program nor on the PATH; the messages are not checked.\" >&2\n    \
         echo \"Install it, or remove $0; git commit --no-verify goes on without it.\" >&2\n    exit 1\n}}\n\
         exec \"$program\" --staged\n"
    )
}

/// Quotes the text as one word of a shell.
fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(unix)]
fn executable(file: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755))
}

/// Git for Windows runs hooks whatever their mode.
#[cfg(not(unix))]
fn executable(_: &Path) -> io::Result<()> {
    Ok(())
}
