//! Every command and the file that implements it.

use clap::Subcommand;

use super::context::Context;
use super::failure::Failure;
use super::{
    agent, agents_md, brief, completions, dead_letter, demo, diff, doctor, explain, gate, gc, home,
    hook, host, inbox, init, keep, ledger, log, mcp, notify, page, pair, person, problems, pull,
    reply, respond, robot, send, serve, service, simulate, states, status, threads, trace, turn,
    up, validate_run, verdict, wait, watch, why,
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
    /// Set up an agent that the daemon starts: the tried command of its program
    Agent(agent::Args),
    /// Maintain the Settled section of AGENTS.md, CLAUDE.md or GEMINI.md
    AgentsMd(agents_md::Args),
    /// Serve an agent's mail as MCP tools over standard input and output
    #[command(after_help = "Examples:
  settled mcp --root ./mailroom --agent codex
  claude mcp add settled -- settled mcp --root /srv/mailroom --agent claude

Tools: next, show, send, wait, why. Each call runs one command with --json;
see docs/mcp.md.")]
    Mcp(mcp::Args),
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
    /// Decide about a review as a person: approve, cancel, reopen or grant
    Review(person::ReviewArgs),
    /// Decide about a thread as a person: resolve, wont-fix, hold, release, queue or drop
    Thread(person::ThreadArgs),
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
    /// Print your status and the next command; the same as `settled` alone
    #[command(after_help = "Examples:
  settled next
  settled next --json | jq -r '.next[0].run'")]
    Next,
    /// Send a message of any type, checked before it is written
    Send(Box<send::Args>),
    /// Reply to a message you received
    Reply(Box<reply::Args>),
    /// Check that a commit is approved
    Gate(gate::Args),
    /// Export a verdict to a file, or verify such a file
    Verdict(verdict::Args),
    /// Print shell completions
    Completions(completions::OfShell),
    /// Tell people that a review needs them or that the daemon stopped
    Notify(notify::Args),
    /// Share one ledger among several hosts
    Host(host::Args),
    /// Show the mailroom as a web page on this machine
    Page(page::Args),
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
    /// Carry the connections of a command out of its sandbox; the daemon starts this command
    #[command(name = runner::sandbox::INSIDE, hide = true)]
    RunInside(keep::InsideArgs),
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
            Command::Agent(args) => agent::run(args, &context),
            Command::AgentsMd(args) => agents_md::run(args, &context),
            Command::Mcp(args) => mcp::run(args, &context),
            Command::Demo(args) => demo::run(args, &context),
            Command::Robot(args) => robot::run(args, &context),
            Command::Diff(args) => diff::run(args, &context),
            Command::ValidateRun(args) => validate_run::run(args, &context),
            Command::Turn(args) => turn::turn(args, &context),
            Command::Take(args) => turn::take(args, &context),
            Command::Pr(args) => pull::run(args, &context),
            Command::Review(args) => person::of_review(args, &context),
            Command::Thread(args) => person::of_thread(args, &context),
            Command::Why(args) => why::run(args, &context),
            Command::Threads(args) => threads::run(args, &context),
            Command::Problems(args) => problems::run(args, context),
            Command::Watch(args) => watch::run(args, context),
            Command::Brief(args) => brief::run(args, &context),
            Command::Feedback(args) => respond::feedback(args, &context),
            Command::Lgtm(args) => respond::lgtm(args, &context),
            Command::Send(args) => send::run(args, &context),
            Command::Reply(args) => reply::run(args, &context),
            Command::Next => home::run(&context),
            Command::Gate(args) => gate::run(args, &context),
            Command::Verdict(args) => verdict::run(args, &context),
            Command::Completions(args) => completions::completions(args, &context),
            Command::Notify(args) => notify::run(args, context),
            Command::Host(args) => host::run(args, &context),
            Command::Page(args) => page::run(args, context),
            Command::Man(args) => completions::man(args, &context),
            Command::Trace(args) => trace::run(args, &context),
            Command::DeadLetter(args) => dead_letter::run(args, &context),
            Command::Doctor(args) => doctor::run(args, context),
            Command::Service(args) => service::run(args, context),
            Command::Pair(args) => pair::run(args, &context),
            Command::KeepRun(args) => keep::run(args),
            Command::RunInside(args) => keep::run_inside(args),
        }
    }
}
