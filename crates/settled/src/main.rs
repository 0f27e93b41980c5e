//! The binary `settled`.

use std::process::ExitCode;

fn main() -> ExitCode {
    settled::cli::run().into()
}
