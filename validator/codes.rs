//! The codes: which there are, and what each of them means.

use std::io::{self, Write as _};
use std::process::ExitCode;

use message_schema::Code;
use message_schema::code::Finder;

/// Prints one line for each code: the code, who can find it, what it means.
pub(crate) fn list() -> ExitCode {
    let widest = Code::ALL.iter().map(|code| code.as_str().len()).max().unwrap_or(0);
    let line = |code: &Code| {
        let finder = match code.finder() {
            Finder::Validator => "file  ",
            Finder::Daemon => "daemon",
        };
        format!("{:widest$}  {finder}  {}\n", code.as_str(), code.sentence())
    };
    let lines: String = Code::ALL.iter().map(line).collect();
    // A reader that went away (`| head`) wants no more.
    let _ = io::stdout().lock().write_all(lines.as_bytes());
    ExitCode::SUCCESS
}
