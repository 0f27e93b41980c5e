//! Git's own hook: where it belongs, what stands in it, and that nobody else's is touched.
//!
//! What a commit would hold is judged by `--staged`; git's other clients (pre-commit, prek, lefthook) call that
//! themselves and need nothing from here.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The line by which a hook is known as ours, whatever version wrote it.
const MARK: &str = "# Written by `validate-message install-hook`; `--uninstall` takes it out.";

/// Where to install, or that it is to be taken out.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Take the hook out again
    #[arg(long)]
    uninstall: bool,
}

/// Why there is no hook.
enum Trouble {
    /// Git does not say where hooks belong.
    NoRepository(String),
    /// Another hook is there.
    Foreign(PathBuf),
    /// The disk refused.
    Disk(PathBuf, io::Error),
}

/// Installs the hook, or takes it out; says what was done.
pub(crate) fn run(args: &Args) -> ExitCode {
    let done = place().and_then(|hook| if args.uninstall { uninstall(&hook) } else { install(&hook) });
    match done {
        Ok(said) => {
            // The hook is there, whether or not anybody listens.
            let _ = writeln!(io::stdout(), "{said}");
            ExitCode::SUCCESS
        }
        Err(trouble) => {
            let _ = writeln!(io::stderr(), "error: {}", told(&trouble));
            ExitCode::from(trouble.exit_code())
        }
    }
}

impl Trouble {
    fn exit_code(&self) -> u8 {
        match self {
            Self::NoRepository(_) | Self::Foreign(_) => 2,
            Self::Disk(..) => 3,
        }
    }
}

fn told(trouble: &Trouble) -> String {
    match trouble {
        Trouble::NoRepository(said) => format!("git does not say where its hooks are: {said}"),
        Trouble::Foreign(hook) => format!(
            "{} is there and not ours; nothing was changed.\nTo have both, add this line to it:\n    \
             validate-message --staged || exit $?",
            hook.display()
        ),
        Trouble::Disk(path, error) => format!("{}: {error}", path.display()),
    }
}

/// The file of the hook: git knows about `core.hooksPath`, worktrees and submodules.
fn place() -> Result<PathBuf, Trouble> {
    let asked = Command::new("git").args(["rev-parse", "--git-path", "hooks"]).output();
    let output = asked.map_err(|error| Trouble::NoRepository(error.to_string()))?;
    if !output.status.success() {
        return Err(Trouble::NoRepository(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    // Relative to the working directory, which stays ours; only the line feed is git's own.
    let directory = PathBuf::from(said.strip_suffix('\n').unwrap_or(&said));
    Ok(directory.join("pre-commit"))
}

fn install(hook: &Path) -> Result<String, Trouble> {
    let disk = |error| Trouble::Disk(hook.to_owned(), error);
    let program = std::env::current_exe().map_err(disk)?;
    let text = text(&program);
    match present(hook)? {
        Present::Foreign => return Err(Trouble::Foreign(hook.to_owned())),
        Present::Ours(before) if before == text => return Ok(format!("{} is there already", hook.display())),
        Present::Ours(_) | Present::Nothing => {}
    }
    if let Some(directory) = hook.parent() {
        std::fs::create_dir_all(directory).map_err(disk)?;
    }
    // Renamed into place: a commit that runs meanwhile finds a whole hook, or none.
    let draft = hook.with_file_name(format!("pre-commit.{}.tmp", std::process::id()));
    std::fs::write(&draft, text).and_then(|()| executable(&draft)).map_err(disk)?;
    std::fs::rename(&draft, hook).map_err(disk)?;
    Ok(format!("{} checks what each commit will hold", hook.display()))
}

fn uninstall(hook: &Path) -> Result<String, Trouble> {
    match present(hook)? {
        Present::Nothing => Ok(format!("{} is not there", hook.display())),
        Present::Foreign => Err(Trouble::Foreign(hook.to_owned())),
        Present::Ours(_) => {
            std::fs::remove_file(hook).map_err(|error| Trouble::Disk(hook.to_owned(), error))?;
            Ok(format!("{} is taken out", hook.display()))
        }
    }
}

/// What stands where the hook belongs.
enum Present {
    Nothing,
    Ours(String),
    Foreign,
}

fn present(hook: &Path) -> Result<Present, Trouble> {
    let disk = |error| Trouble::Disk(hook.to_owned(), error);
    // A link leads to somebody's file, even one that is not there yet.
    match hook.symlink_metadata() {
        Ok(metadata) if !metadata.is_file() => return Ok(Present::Foreign),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Present::Nothing),
        Err(error) => return Err(disk(error)),
    }
    let bytes = std::fs::read(hook).map_err(disk)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(if text.lines().any(|line| line == MARK) { Present::Ours(text) } else { Present::Foreign })
}

/// The hook: this very program, else the one on the `PATH`, else a commit that is stopped and says why.
fn text(program: &Path) -> String {
    let program = quoted(&program.to_string_lossy());
    format!(
        "#!/bin/sh\n{MARK}\nprogram={program}\n[ -x \"$program\" ] || program=$(command -v validate-message) || {{\n    \
         echo \"pre-commit: validate-message is neither at $program nor on the PATH; the messages are not checked.\" >&2\n    \
         echo \"Install it, or remove $0; git commit --no-verify goes on without it.\" >&2\n    exit 1\n}}\n\
         exec \"$program\" --staged\n"
    )
}

/// The text as one word of a shell.
fn quoted(text: &str) -> String {
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
