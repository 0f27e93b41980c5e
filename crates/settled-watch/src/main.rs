//! `settled-watch`: the screen that `settled watch` shows on a terminal.

use std::io::{Write as _, stderr};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser as _;
use message_schema::id::{AgentName, PrNumber};
use settled_watch::live::{Options, follow};

/// Show a mailroom live: who must move, what is missing, and the command that brings it
#[derive(Debug, clap::Parser)]
#[command(name = "settled-watch", version)]
struct Args {
    /// The workspace
    #[arg(long, value_name = "DIR", env = "SETTLED_ROOT")]
    root: PathBuf,
    /// The agent whose reviews are yours
    #[arg(long, value_name = "NAME", env = "SETTLED_AGENT")]
    agent: Option<AgentName>,
    /// The pull request to begin with
    #[arg(long, value_name = "PR")]
    review: Option<PrNumber>,
}

fn main() -> ExitCode {
    let Args {
        root,
        agent,
        review,
    } = Args::parse();
    // Commands can leave out a workspace that the environment names.
    let is_known = std::env::var_os("SETTLED_ROOT").is_some_and(|known| known == root.as_os_str());
    let options = Options {
        named_root: (!is_known).then(|| root.clone()),
        root,
        agent,
        review,
    };
    match follow(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The terminal may be what failed.
            let _ = writeln!(
                stderr(),
                "settled-watch: {}",
                workspace::error::chain(&*error)
            );
            ExitCode::FAILURE
        }
    }
}
