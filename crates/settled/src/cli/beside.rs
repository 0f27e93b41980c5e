//! Starts the programs installed beside this one, which keep their dependencies out of `settled`.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::failure::Failure;
use crate::exit::Exit;

/// Replaces this process by such a program, with the options that `with` adds; returns only if that fails.
pub(super) fn become_program(name: &str, with: impl FnOnce(&mut Command, &OsStr)) -> Failure {
    let settled = match std::env::current_exe() {
        Ok(settled) => settled,
        Err(error) => return error.into(),
    };
    let program = settled.with_file_name(name);
    if !program.is_file() {
        let message = format!(
            "{} is missing: packages install both, and from source `cargo build -p {name}` builds it",
            program.display()
        );
        return Failure::plain(Exit::NotFound, message);
    }
    let mut command = Command::new(program);
    with(&mut command, settled.as_os_str());
    Failure::new(Exit::Failed, &command.exec())
}
