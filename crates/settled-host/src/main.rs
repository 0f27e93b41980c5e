//! The program `settled-host`: the commands and the daemon of a workspace whose ledger several hosts share.

mod program;

use std::process::ExitCode;

fn main() -> ExitCode {
    program::run().into()
}
