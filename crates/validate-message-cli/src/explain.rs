//! `explain`: the page of a code, as `settled explain` prints it.

use std::process::ExitCode;

use message_schema::Code;
use validate_message::explain;

use crate::print::{self, Form};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The code, as printed after the place
    code: String,

    /// The output format
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
}

/// Prints the page; for an unknown code, names the nearest one and exits with 3.
pub(crate) fn run(args: &Args) -> ExitCode {
    match explain::find(&args.code) {
        Ok(code) => print::out(&match args.format {
            Form::Text => explain::explain(code).text(),
            Form::Json => print::json(&explain::explain(code)),
        }),
        Err(near) => {
            let next = near.map_or("list-codes".to_owned(), |near| {
                format!("explain {}", Code::as_str(near))
            });
            print::complain(&format!(
                "there is no code {:?}\n  try: validate-message {next}\n",
                args.code
            ));
            ExitCode::from(3)
        }
    }
}
