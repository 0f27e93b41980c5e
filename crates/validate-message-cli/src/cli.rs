//! What the command is asked: files to check, or one of its other services.

use clap::{Parser, Subcommand};

use crate::{check, codes, explain, fmt, hook, new, schema};

const EXAMPLES: &str = "\
Examples:
  validate-message agents/claude/outbox/x.yaml    look for its packet in the workspace around it
  validate-message --format json a.yaml b.yaml    print one JSON document for both
  validate-message --root . - < draft.yaml        check a message from standard input
  validate-message --packet found.yaml x.yaml     take found.yaml for the packet x.yaml names
  validate-message --staged                       check what the next commit will hold
  validate-message install-hook                   have git do so before each commit
  validate-message --fix x.yaml                   mend what has one right form only, then check
  validate-message list-codes                     every code, and what it means
  validate-message explain finding_invalid        one of them, with an example and the same done right
  validate-message new review_request             a message to begin with

Exit status: 0 nothing refused (there may be warnings), 1 something refused, 2 wrong usage,
3 a file could not be read.";

/// Checks Settled messages and the findings packets they name; prints every violation of each.
#[derive(Parser)]
#[command(
    name = "validate-message",
    version,
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
    /// Say what a code means, with an example that yields it and the same done right
    Explain(explain::Args),
    /// List every code that a message may be refused or warned with
    ListCodes(codes::Args),
    /// Print the JSON Schema of a message type, of the envelope or of the findings packet
    Schema(schema::Args),
    /// Print a message or findings packet to begin with, which validates as it stands
    New(Box<new::Args>),
    /// Put message files into their canonical form
    Fmt(fmt::Args),
    /// Have git check the messages of each commit and each merge: write its hooks for them
    InstallHook(hook::Args),
}
