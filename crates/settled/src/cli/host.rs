//! `settled host`: becomes the program `settled-host`, the only one with a network client. Serving a workspace whose
//! ledger several hosts share does the same.

use std::ffi::OsString;
use std::path::Path;

use daemon::serve::Until;

use super::beside::become_program;
use super::context::Context;
use super::failure::Failure;
use crate::exit::Exit;

const PROGRAM: &str = "settled-host";

/// Shares one ledger among several hosts.
#[derive(Debug, clap::Args)]
#[command(
    disable_help_flag = true,
    after_help = "Examples:
  settled host join nats://broker.example.org --workspace team
  settled host join git@example.org:team/ledger.git --agents codex
  settled host list
  settled host --help        every command of it

More: docs/hosts.md."
)]
pub(super) struct Args {
    /// Its command and options: join, list, claim, move-home, retire-key, policy, check, leave, ...
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    words: Vec<OsString>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    Err(become_program(PROGRAM, |host, _| {
        if let Ok(root) = context.root() {
            host.env("SETTLED_ROOT", root);
        }
        host.args(context.json.then_some("--json"))
            .args(&args.words);
    }))
}

/// Serves a workspace as one of several hosts; with `once`, answers that context and ends.
pub(super) fn serve(
    root: &Path,
    until: Until,
    log: Option<&str>,
    once: Option<&Context>,
) -> Failure {
    become_program(PROGRAM, |host, _| {
        host.arg("serve").arg("--root").arg(root);
        if let Some(context) = once {
            host.arg("--once");
            host.args(context.json.then_some("--json"));
        }
        host.args((until == Until::EndOfInput).then_some("--until-eof"));
        host.args(log.iter().flat_map(|form| ["--log-format", form]));
    })
}
