//! The command line: files to check, or a subcommand.

use clap::{Parser, Subcommand};

use crate::{check, codes, explain, fmt, hook, new, schema};

const EXAMPLES: &str = "\
Examples:
  validate-message agents/claude/outbox/x.yaml    find its packet in the surrounding workspace
  validate-message --format json a.yaml b.yaml    print one JSON document for both
  validate-message --root . - < draft.yaml        check a message from standard input
  validate-message --packet found.yaml x.yaml     use found.yaml as the packet that x.yaml names
  validate-message --staged                       check the files of the next commit
  validate-message install-hook                   make git do so before each commit
  validate-message --fix x.yaml                   fix unambiguous mistakes, then check
  validate-message list-codes                     every code and its meaning
  validate-message explain finding_invalid        one code, with an example and its correction
  validate-message new review_request             print a template

Exit status: 0 nothing refused (there may be warnings), 1 something refused, 2 wrong usage,
3 a file could not be read.";

/// The version, and the commit it was built from: see `packaging/revision.rs`.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("SETTLED_REVISION"),
    ")"
);

/// Checks Settled messages and the findings packets they name; prints every violation of each.
#[derive(Parser)]
#[command(
    name = "validate-message",
    version = VERSION,
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) check: check::Args,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Explain a code, with an example that yields it and a corrected example
    Explain(explain::Args),
    /// List every code for refusals and warnings
    ListCodes(codes::Args),
    /// Print the JSON Schema of a message type, of the envelope or of the findings packet
    Schema(schema::Args),
    /// Print a valid template of a message or findings packet
    New(Box<new::Args>),
    /// Format message files
    Fmt(fmt::Args),
    /// Install git hooks that check the messages of each commit and merge
    InstallHook(hook::Args),
}
