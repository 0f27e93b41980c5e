//! Every command and the file that implements it.

use clap::Subcommand;
use review::Act;

use super::context::Context;
use super::failure::Failure;
use super::{
    agents_md, brief, completions, dead_letter, demo, diff, doctor, explain, gate, gc, hook, inbox,
    init, keep, ledger, log, pair, person, problems, pull, reply, respond, robot, send, serve,
    service, simulate, states, status, threads, trace, turn, up, validate_run, verdict, wait,
    watch, why,
};
use crate::exit::Exit;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create the workspace if it does not exist, then serve it in the foreground
    Up(up::Args),
    /// Create a workspace or add agents to one; overwrites nothing
    Init(init::Args),
    /// Serve a workspace in the foreground
    Serve(serve::Args),
    /// Show every review: its phase, its round and who moves next
    Status(status::Args),
    /// Show every decision in the ledger, oldest first
    Log(log::Args),
    /// Run scenarios against the real rules, without a workspace
    Simulate(simulate::Args),
    /// Explain a code: its meaning, an example that yields it, a corrected example
    Explain(explain::Args),
    /// Remove old files that agents have finished with, by the rules in settled.toml
    Gc(gc::Args),
    /// Verify the ledger, or accept one restored from a backup
    Ledger(ledger::Args),
    /// Print the table of states, the legal actions and the bounds
    States(states::Args),
    /// List your mail, most urgent first
    #[command(visible_alias = "list")]
    Inbox(inbox::InboxArgs),
    /// Show a whole message, with its packet
    #[command(visible_aliases = ["get", "read"])]
    Show(inbox::ShowArgs),
    /// Take a message to work on; with --pr, report that a reviewer took its request
    Take(turn::TakeArgs),
    /// Archive messages you have finished with
    #[command(visible_alias = "ack")]
    Done(inbox::DoneArgs),
    /// Wait for mail
    Wait(wait::Args),
    /// Notify agents of mail through their programs' hooks
    Hook(hook::Args),
    /// Maintain the Settled section of AGENTS.md, CLAUDE.md or GEMINI.md
    AgentsMd(agents_md::Args),
    /// Run a whole review between two scripted agents, in seconds
    Demo(demo::Args),
    /// Help agents: print a primer, or the next step as JSON
    Robot(robot::Args),
    /// Print the change of an open request from your own checkout
    Diff(diff::Args),
    /// Run the validation commands of an open request and record the results
    ValidateRun(validate_run::Args),
    /// Count a reviewer's completed turns; the invocation ends at the limit
    Turn(turn::TurnArgs),
    /// Report an event of a pull request
    Pr(pull::Args),
    /// Reopen a finished review for the agents
    #[command(after_help = "Examples:
  settled reopen 86
  settled reopen 86 --reviewer codex --reason \"the blocker was ours\"")]
    Reopen(person::OfReview),
    /// Cancel an open request: end the reviewer's command and let a person decide
    #[command(after_help = "Examples:
  settled cancel 86
  settled cancel 86 --reviewer codex --reason \"the branch is gone\"")]
    Cancel(person::OfReview),
    /// Approve a review as a person, when no agent may
    #[command(after_help = "Examples:
  settled approve 86
  settled approve 86 --head 1c0ffee --reason \"the workflow is right\"")]
    Approve(person::OfCommit),
    /// Grant a review one more round
    #[command(after_help = "Examples:
  settled grant 86 --rounds 1")]
    Grant(person::OfRounds),
    /// Mark a thread resolved
    #[command(after_help = "Examples:
  settled resolve 86 F-001")]
    Resolve(person::OfThread),
    /// Mark a thread as deliberately not fixed
    #[command(after_help = "Examples:
  settled wont-fix 86 F-001")]
    WontFix(person::OfThread),
    /// Hand a thread off when the pull request merges, in any mode
    #[command(after_help = "Examples:
  settled queue 86 F-001")]
    Queue(person::OfThread),
    /// Reserve a thread for people
    #[command(after_help = "Examples:
  settled hold 86 F-001")]
    Hold(person::OfThread),
    /// Return a held thread to the agents
    #[command(after_help = "Examples:
  settled release 86 F-001")]
    Release(person::OfThread),
    /// Show what a review waits for and the command that unblocks it
    Why(why::Args),
    /// Show the threads of a review with their full history
    Threads(threads::Args),
    /// Show every problem that needs action, worst first
    Problems(problems::Args),
    /// Show the status live
    Watch(watch::Args),
    /// Show your brief as the reviewer of this round
    Brief(brief::Args),
    /// Send findings and actions on open threads: packet and message in one step
    Feedback(respond::FeedbackArgs),
    /// Approve: packet and message in one step
    Lgtm(respond::LgtmArgs),
    /// Send a message of any type, checked before it is written
    Send(Box<send::Args>),
    /// Reply to a message you received
    Reply(Box<reply::Args>),
    /// Undo `queue`
    #[command(after_help = "Examples:
  settled drop 86 F-001")]
    Drop(person::OfThread),
    /// Check that a commit is approved
    Gate(gate::Args),
    /// Export a verdict to a file, or verify such a file
    Verdict(verdict::Args),
    /// Print shell completions
    Completions(completions::OfShell),
    /// Print the manual page, or write one for every command
    Man(completions::Manual),
    /// Trace one message through every step, with evidence
    Trace(trace::Args),
    /// List, show and resend refused messages
    DeadLetter(dead_letter::Args),
    /// Check the workspace for problems and print a fix for each
    Doctor(doctor::Args),
    /// Install, remove or inspect the systemd/launchd service
    Service(service::Args),
    /// Alternate an author and a reviewer command until the reviewer approves
    Pair(Box<pair::Args>),
    /// Supervise one agent; the daemon starts this command
    #[command(name = runner::launch::KEEPER, hide = true)]
    KeepRun(keep::Args),
}

impl Command {
    /// Runs it.
    pub(super) fn run(&self, context: Context) -> Result<Exit, Failure> {
        match self {
            Command::Up(args) => up::run(args, context),
            Command::Init(args) => init::run(args, context),
            Command::Serve(args) => serve::run(args, context),
            Command::Status(args) => status::run(args, context),
            Command::Log(args) => log::run(args, context),
            Command::Simulate(args) => simulate::run(args, &context),
            Command::Explain(args) => explain::run(args, &context),
            Command::Gc(args) => gc::run(args, context),
            Command::Ledger(args) => ledger::run(args, context),
            Command::States(args) => states::run(args, &context),
            Command::Inbox(args) => inbox::inbox(args, &context),
            Command::Show(args) => inbox::show(args, &context),
            Command::Done(args) => inbox::done(args, &context),
            Command::Wait(args) => wait::run(args, &context),
            Command::Hook(args) => hook::run(args, &context),
            Command::AgentsMd(args) => agents_md::run(args, &context),
            Command::Demo(args) => demo::run(args, &context),
            Command::Robot(args) => robot::run(args, &context),
            Command::Diff(args) => diff::run(args, &context),
            Command::ValidateRun(args) => validate_run::run(args, &context),
            Command::Turn(args) => turn::turn(args, &context),
            Command::Take(args) => turn::take(args, &context),
            Command::Pr(args) => pull::run(args, &context),
            Command::Reopen(args) => person::reopen(args, &context),
            Command::Cancel(args) => person::cancel(args, &context),
            Command::Approve(args) => person::approve(args, &context),
            Command::Grant(args) => person::grant(args, &context),
            Command::Resolve(args) => person::of_thread(args, Act::Resolve, &context),
            Command::WontFix(args) => person::of_thread(args, Act::WontFix, &context),
            Command::Queue(args) => person::of_thread(args, Act::Queue, &context),
            Command::Hold(args) => person::of_thread(args, Act::Hold, &context),
            Command::Release(args) => person::of_thread(args, Act::Release, &context),
            Command::Why(args) => why::run(args, &context),
            Command::Threads(args) => threads::run(args, &context),
            Command::Problems(args) => problems::run(args, context),
            Command::Watch(args) => watch::run(args, context),
            Command::Brief(args) => brief::run(args, &context),
            Command::Feedback(args) => respond::feedback(args, &context),
            Command::Lgtm(args) => respond::lgtm(args, &context),
            Command::Send(args) => send::run(args, &context),
            Command::Reply(args) => reply::run(args, &context),
            Command::Drop(args) => person::of_thread(args, Act::Drop, &context),
            Command::Gate(args) => gate::run(args, &context),
            Command::Verdict(args) => verdict::run(args, &context),
            Command::Completions(args) => completions::completions(args, &context),
            Command::Man(args) => completions::man(args, &context),
            Command::Trace(args) => trace::run(args, &context),
            Command::DeadLetter(args) => dead_letter::run(args, &context),
            Command::Doctor(args) => doctor::run(args, context),
            Command::Service(args) => service::run(args, context),
            Command::Pair(args) => pair::run(args, &context),
            Command::KeepRun(args) => keep::run(args),
        }
    }
}
