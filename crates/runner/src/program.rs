//! Finds programs on the `PATH`, and our own program to start it and to name it to others.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};

use crate::drain::drain;

/// The pause between two checks whether a program has ended.
const POLL: Duration = Duration::from_millis(10);

/// The most bytes of a version to keep.
const VERSION_BYTES_MAX: usize = 4_096;

/// The time that reading the version may take after the program has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Adds the program's name to the error of a failed start; the system's message lacks it.
pub(crate) fn unstarted(command: &Command, error: &io::Error) -> io::Error {
    let program = command.get_program().display();
    io::Error::new(error.kind(), format!("`{program}`: {error}"))
}

/// Finds a program by its name or absolute path: the first file of that name on the `PATH` that we may run. Skips
/// relative directories on the `PATH`.
pub fn find(name: &str) -> Option<PathBuf> {
    find_on(&std::env::var_os("PATH").unwrap_or_default(), name)
}

fn find_on(path: &OsStr, name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|file| file.is_absolute() && is_program(file));
    }
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    file.is_file() && access(file, Access::EXEC_OK).is_ok()
}

/// Starts a program with `--version`, for [`version_by`]; `None` if it cannot be started. It runs in the root
/// directory, because a program may read settings from its working directory.
pub fn ask_version(program: &Path) -> Option<Child> {
    let mut command = Command::new(program);
    command
        .arg("--version")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command.spawn().ok()
}

/// The text that [`ask_version`] made a program print, if the program ends in time; otherwise it is killed, because it
/// may hang. It does not wait for the end of the output, which a process left running may hold open.
pub fn version_by(mut asked: Child, end: Instant) -> Option<String> {
    let output = asked.stdout.take()?;
    let said = Arc::<Mutex<Vec<u8>>>::default();
    let (tell, is_read) = channel();
    {
        let said = Arc::clone(&said);
        thread::spawn(move || {
            read_beginning(output, &said);
            let _ = tell.send(());
        });
    }
    loop {
        match asked.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if Instant::now() < end => thread::sleep(POLL),
            Ok(None) | Err(_) => {
                let _ = asked.kill();
                let _ = asked.wait();
                return None;
            }
        }
    }
    let _ = is_read.recv_timeout(LAST_WORDS);
    let said = said.lock().expect("no thread panics with it");
    Some(String::from_utf8_lossy(&said).into_owned())
}

/// Reads all of an output, so that the program never blocks, and keeps the first bytes.
fn read_beginning(output: impl io::Read, said: &Mutex<Vec<u8>>) {
    drain(output, |bytes| {
        let mut said = said.lock().expect("no thread panics with it");
        let left = VERSION_BYTES_MAX - said.len();
        said.extend(&bytes[..bytes.len().min(left)]);
    });
}

/// The path of our own running program, even if another version has replaced its file.
pub fn running() -> io::Result<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() {
        Ok(running)
    } else {
        std::env::current_exe()
    }
}

/// The path of `settled`, or of the version that replaced it; the kernel marks the path of a replaced file. The daemon of a
/// shared ledger is another program, installed beside it.
pub(crate) fn settled() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let text = own.to_string_lossy();
    let installed = text.strip_suffix(" (deleted)").map(PathBuf::from);
    let own = installed.unwrap_or_else(|| own.clone());
    let beside = own.with_file_name("settled");
    Ok(if beside.is_file() { beside } else { own })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_program_is_the_first_file_of_its_name_that_can_be_run() {
        let home = tempfile::tempdir().expect("a directory");
        let at = |folder: &str| home.path().join(folder);
        for (folder, mode) in [("text", 0o644), ("first", 0o755), ("second", 0o755)] {
            fs::create_dir(at(folder)).expect("a folder");
            let file = at(folder).join("agent");
            fs::write(&file, "").expect("a file");
            fs::set_permissions(&file, Permissions::from_mode(mode)).expect("its mode");
        }
        fs::create_dir_all(at("folder/agent")).expect("a folder");
        let path = ["none", "folder", "text", "first", "second"].map(at);
        let path = std::env::join_paths(path).expect("a PATH");

        assert_eq!(find_on(&path, "agent"), Some(at("first/agent")));
        assert_eq!(find_on(&path, "other"), None);
    }

    #[test]
    fn a_version_is_known_when_its_program_has_ended_whatever_it_prints_or_leaves_running() {
        let home = tempfile::tempdir().expect("a directory");
        let version_within = |text: &str, limit: Duration| {
            let program = home.path().join("program");
            fs::write(&program, format!("#!/bin/sh\n{text}\n")).expect("a file");
            fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("its mode");
            // It is busy as long as a process that another test forked has it open.
            let asked = (0..1_000).find_map(|_| ask_version(&program));
            let asked = asked.expect("it starts");
            version_by(asked, Instant::now() + limit)
        };
        let version = |text: &str| version_within(text, Duration::from_secs(20));
        let start = Instant::now();
        // An updater in the background holds the output open much longer.
        let said = version("echo 1.2.3; sleep 15 &");
        assert_eq!(said.as_deref(), Some("1.2.3\n"));
        let said = version("echo 1.2.3; yes | head -c 1000000");
        assert!(said.is_some_and(|said| said.starts_with("1.2.3\n") && said.len() == 4_096));
        assert_eq!(version_within("exec sleep 300", Duration::ZERO), None);
        assert!(start.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_program_that_is_named_by_its_path_is_only_found_there() {
        assert_eq!(find_on("".as_ref(), "/bin/sh"), Some("/bin/sh".into()));
        assert_eq!(find_on("/bin".as_ref(), "/bin/no-such-program"), None);
        assert_eq!(find_on("/".as_ref(), "bin/sh"), None);
        assert_eq!(find_on("/bin".as_ref(), "./sh"), None);
        let from_here = format!("{}bin/sh", "../".repeat(64));
        assert!(Path::new(&from_here).exists());
        assert_eq!(find_on("/bin".as_ref(), &from_here), None);
    }

    #[test]
    fn our_own_program_and_that_of_others_are_found() {
        let own = std::env::current_exe().and_then(|own| own.canonicalize());
        let running = running().and_then(|running| running.canonicalize());
        assert_eq!(running.expect("a path"), own.expect("a path"));
        assert!(settled().is_ok_and(|settled| is_program(&settled)));
        let shell = find("sh").expect("every PATH has a shell");
        assert!(shell.is_absolute() && shell.ends_with("sh"));
    }

    #[test]
    fn a_place_that_depends_on_where_we_are_is_passed_over() {
        let up_to_the_root = "../".repeat(64);
        let path = format!("{up_to_the_root}bin");
        assert!(Path::new(&path).join("sh").exists());
        assert_eq!(find_on(path.as_ref(), "sh"), None);
        assert_eq!(find_on("/bin".as_ref(), "sh"), Some("/bin/sh".into()));
    }
}
