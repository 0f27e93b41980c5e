//! `settled page`: becomes the program `settled-page`, which keeps the web server out of this one.

use std::ffi::OsString;

use super::beside::become_program;
use super::context::{Context, Root};
use super::failure::Failure;
use crate::exit::Exit;

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
    Err(become_program("settled-page", |page, _| {
        page.arg("--root").arg(root).args(&args.options);
    }))
}
