//! `settled page`: becomes the program `settled-page`, which lies beside this one so that the daemon's program has no web
//! server in it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::context::{Context, Root};
use super::failure::Failure;
use crate::exit::Exit;

const PROGRAM: &str = "settled-page";

/// Shows the mailroom as a web page on this machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled page ./mailroom
  settled page ./mailroom -- --listen 127.0.0.1:8460
  settled page ./mailroom -- --listen unix:/run/page.sock --host example.org
  settled page ./mailroom -- --act

It prints the link to open; Ctrl-C stops it. More: docs/page.md.")]
pub(super) struct Args {
    #[command(flatten)]
    root: Root,
    /// Options of settled-page: --listen, --host, --act, --by
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<OsString>,
}

pub(super) fn run(args: &Args, context: Context) -> Result<Exit, Failure> {
    let context = context.at(&args.root);
    let root = context.workspace()?;
    let failed = |error: std::io::Error| Failure::new(Exit::Failed, &error);
    let page = std::env::current_exe()
        .map_err(failed)?
        .with_file_name(PROGRAM);
    if !page.is_file() {
        let message = format!(
            "{} is missing: packages install both, and from source `cargo build -p {PROGRAM}` builds it",
            page.display()
        );
        return Err(Failure::plain(Exit::NotFound, message));
    }
    let error = Command::new(page)
        .arg("--root")
        .arg(root)
        .args(&args.options)
        .exec();
    Err(failed(error))
}
