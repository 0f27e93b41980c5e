//! `list-codes`: every code with its meaning.

use std::process::ExitCode;

use message_schema::Code;
use message_schema::Finder;
use serde::Serialize;

use crate::print::{self, Form};

/// The version of the JSON document.
const JSON_VERSION: u32 = 1;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The output format
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
}

#[derive(Serialize)]
struct CodeList {
    schema_version: u32,
    codes: Vec<Listed>,
}

/// A code in the list; `explain` prints its whole page.
#[derive(Serialize)]
struct Listed {
    code: Code,
    finder: &'static str,
    retryable: bool,
    sentence: &'static str,
}

/// Prints every code with its finder and its meaning.
pub(crate) fn list(args: &Args) -> ExitCode {
    print::out(&match args.format {
        Form::Text => lines(),
        Form::Json => {
            let codes = Code::ALL.iter().map(|code| listed(*code)).collect();
            print::json(&CodeList {
                schema_version: JSON_VERSION,
                codes,
            })
        }
    })
}

fn lines() -> String {
    let widest = Code::ALL
        .iter()
        .map(|code| code.as_str().len())
        .max()
        .unwrap_or(0);
    let line = |code: &Code| {
        let finder = finder(*code);
        format!(
            "{:widest$}  {finder:6}  {}\n",
            code.as_str(),
            code.sentence()
        )
    };
    Code::ALL.iter().map(line).collect()
}

fn listed(code: Code) -> Listed {
    Listed {
        code,
        finder: finder(code),
        retryable: code.is_retryable(),
        sentence: code.sentence(),
    }
}

fn finder(code: Code) -> &'static str {
    match code.finder() {
        Finder::Validator => "file",
        Finder::Daemon => "daemon",
    }
}
