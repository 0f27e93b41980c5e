//! The program `settled-page`: the mailroom as a web page on this machine.
//!
//! - `door` is where it listens, and the secrets that let a person in;
//! - `patience` ends connections that say nothing;
//! - `guard` refuses requests without a session, before anything else looks at them;
//! - `site` answers: pages, events, the two files they need;
//! - `events` follows the ledger for one open page;
//! - `state` is what every answer needs;
//! - `draw` turns the model of `cockpit` into markup;
//! - `act` gives a person's orders, the same as the commands give.

mod act;
mod door;
mod draw;
mod events;
mod guard;
mod patience;
mod site;
mod state;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Serves the mailroom as a web page on this machine and prints the link to it.
#[derive(Debug, Parser)]
#[command(name = "settled-page", version)]
struct Args {
    /// The workspace
    #[arg(long, value_name = "DIR", env = "SETTLED_ROOT")]
    root: PathBuf,
    /// A loopback address, or unix:PATH
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: door::Listen,
    /// A name that a proxy before the socket is asked for, such as reviews.example.org
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// Let whoever opens the link decide as a person
    #[arg(long)]
    act: bool,
    /// The person who decides [default: your login name]
    #[arg(long, value_name = "NAME", requires = "act")]
    by: Option<String>,
}

/// The exit code of `settled` for a caller who is unknown or may not do this.
const IDENTITY: u8 = 5;

fn main() -> ExitCode {
    let args = Args::parse();
    logs::start(None);
    match site::serve(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            match error {
                state::PageError::SharedUser(_) => ExitCode::from(IDENTITY),
                state::PageError::NoHost
                | state::PageError::Ledger(_)
                | state::PageError::Io { .. }
                | state::PageError::Name(_) => ExitCode::FAILURE,
            }
        }
    }
}
