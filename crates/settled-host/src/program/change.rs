//! The commands that change hosts: each appends one record, with the name of the person who decides.

use std::path::Path;

use fleet::Fleet;
use message_schema::id::AgentName;
use review::{HostChange, HostDecision};
use serde::Serialize;
use spool::log::HostName;
use views::answer::CommandOutput;
use views::exit::Exit;
use views::failure::Failure;
use workspace::config::{SharedLog, is_same_policy};
use workspace::{directory, orders, users};

use super::member::JudgesBy;
use super::wait::Wait;
use super::{HostContext, config, member};

/// The person who decides, and the reason.
#[derive(Debug, clap::Args)]
struct DecidedBy {
    /// The name the decision is recorded under [default: your login name]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// Why
    #[arg(long, value_name = "TEXT", default_value = "no reason given")]
    reason: String,
}

/// `settled host claim`
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled host claim pi")]
pub(super) struct ClaimArgs {
    /// The agents, which have no home yet
    #[arg(required = true, value_name = "AGENT", value_parser = directory::agent_name)]
    agents: Vec<AgentName>,
}

/// `settled host move-home`
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled host move-home codex --to laptop --reason 'the tower is sold'")]
pub(super) struct MoveHomeArgs {
    /// The agent
    #[arg(value_parser = directory::agent_name)]
    agent: AgentName,
    /// Its home now [default: as the ledger has it]
    #[arg(long, value_name = "HOST")]
    from: Option<HostName>,
    /// Its home from now on [default: this host]
    #[arg(long, value_name = "HOST")]
    to: Option<HostName>,
    #[command(flatten)]
    decision: DecidedBy,
}

/// `settled host retire-key`
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled host retire-key laptop --reason 'stolen'")]
pub(super) struct RetireKeyArgs {
    /// The host
    host: HostName,
    #[command(flatten)]
    decision: DecidedBy,
}

/// `settled host policy`
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled host policy           what all hosts judge by
  settled host policy --give    record this host's for all
  settled host policy --take    write theirs into settled.toml")]
pub(super) struct PolicyArgs {
    /// Record the policy of this host's settled.toml for all hosts
    #[arg(long, conflicts_with = "take")]
    give: bool,
    /// Write the policy of all hosts into this host's settled.toml
    #[arg(long)]
    take: bool,
    #[command(flatten)]
    decision: DecidedBy,
}

/// `settled host leave`
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled host leave --reason 'a new laptop'")]
pub(super) struct LeaveArgs {
    #[command(flatten)]
    decision: DecidedBy,
}

/// The recorded change.
#[derive(Debug, Serialize)]
struct Changed {
    /// In one sentence.
    recorded: String,
}

impl DecidedBy {
    fn decided(&self) -> Result<HostDecision, Failure> {
        let by = self.by.clone().unwrap_or_else(users::login);
        let reason = self.reason.clone();
        for text in [&by, &reason] {
            if !orders::is_fit(text) {
                let message = format!(
                    "the name and the reason are expected to have 1 to {} characters on one line each",
                    orders::TEXT_MAX
                );
                return Err(Failure::plain(Exit::Usage, message));
            }
        }
        Ok(HostDecision { by, reason })
    }
}

pub(super) fn claim(args: &ClaimArgs, context: &HostContext) -> Result<Exit, Failure> {
    let (root, shared) = context.shared()?;
    let claimed = member::record(root, &shared, context.wait, JudgesBy::OwnPolicy, &|fleet| {
        let is_new = |agent: &&AgentName| fleet.home(agent) != Some(&shared.host);
        let agents: Vec<AgentName> = args.agents.iter().filter(is_new).cloned().collect();
        Ok((!agents.is_empty()).then(|| HostChange::Claimed {
            host: shared.host.to_string(),
            agents,
        }))
    })?;
    // A claim that is refused makes nothing. After a kill here, the next start of the daemon makes the mailboxes.
    let made = directory::init(root, &args.agents);
    made?;
    let Some(change) = claimed else {
        let agents: Vec<&str> = args.agents.iter().map(AgentName::as_str).collect();
        let recorded = format!(
            "host {} is the home of {} already",
            shared.host,
            agents.join(", ")
        );
        return context.say(&CommandOutput::new(Changed { recorded }), |changed| {
            format!("nothing new: {}\n", changed.recorded)
        });
    };
    say(context, &change)
}

pub(super) fn move_home(args: &MoveHomeArgs, context: &HostContext) -> Result<Exit, Failure> {
    let (root, shared) = context.shared()?;
    let to = args.to.as_ref().unwrap_or(&shared.host);
    let decision = args.decision.decided()?;
    let moved = member::record(root, &shared, context.wait, JudgesBy::OwnPolicy, &|fleet| {
        let from = args.from.as_ref().or(fleet.home(&args.agent));
        Ok(Some(HostChange::HomeMoved {
            agent: args.agent.clone(),
            from: from.map_or_else(String::new, ToString::to_string),
            to: to.to_string(),
            decision: decision.clone(),
        }))
    })?;
    say(
        context,
        &moved.expect("a move is chosen whatever the hosts are"),
    )
}

pub(super) fn retire_key(args: &RetireKeyArgs, context: &HostContext) -> Result<Exit, Failure> {
    let (root, shared) = context.shared()?;
    let change = HostChange::KeyRetired {
        host: args.host.to_string(),
        decision: args.decision.decided()?,
    };
    say(context, &record(root, &shared, context.wait, change)?)
}

pub(super) fn policy(args: &PolicyArgs, context: &HostContext) -> Result<Exit, Failure> {
    let (root, shared) = context.shared()?;
    if args.give {
        let change = HostChange::PolicyChanged {
            policy: member::policy(root)?,
            decision: args.decision.decided()?,
        };
        return say(context, &record(root, &shared, context.wait, change)?);
    }
    let fleet = if args.take {
        let fleet = member::caught_up(root, &shared, context.wait)?;
        config::take_policy(root, fleet.policy().unwrap_or_default())?;
        fleet
    } else {
        member::fleet(root)?
    };
    let theirs = fleet.policy().unwrap_or_default();
    let ours = member::policy(root)?;
    let is_same = is_same_policy(&ours, theirs);
    let answer = CommandOutput::new(Policies {
        policy: theirs.to_owned(),
        is_same,
    });
    context.say(&answer, |policies| {
        let shown = if policies.policy.is_empty() {
            "the defaults\n"
        } else {
            &policies.policy
        };
        let of_this = if is_same { "the same" } else { "another one" };
        format!("{shown}this host has {of_this}\n")
    })
}

/// The policy that all hosts apply.
#[derive(Debug, Serialize)]
struct Policies {
    /// The shared part of settled.toml; empty for the defaults.
    policy: String,
    /// True if this host has the same policy.
    is_same: bool,
}

pub(super) fn leave(args: &LeaveArgs, context: &HostContext) -> Result<Exit, Failure> {
    let (root, shared) = context.shared()?;
    if spool::is_served(root) == Some(true) {
        let message = "a daemon serves this workspace: stop it, then leave".to_owned();
        return Err(Failure::plain(Exit::Temporary, message));
    }
    let decision = args.decision.decided()?;
    // Another host may have moved an agent here since this ledger last followed the log, so the log's end decides.
    let retires = |fleet: &Fleet| {
        let mut others = fleet.members();
        if !others.any(|(name, member)| *name != shared.host && !member.is_retired) {
            return Ok(None);
        }
        if let Some(agent) = fleet.at_home(&shared.host).next() {
            let message =
                format!("agent {agent} is at home here: move its home to a host that stays");
            return Err(Failure::plain(Exit::ActionRequired, message)
                .next(context.command(&format!("host move-home {agent} --to HOST"))));
        }
        Ok(Some(HostChange::KeyRetired {
            host: shared.host.to_string(),
            decision: decision.clone(),
        }))
    };
    // A host whose key is not the fleet's has left already and can record nothing: by now the name, and the agents at home
    // under it, may belong to another machine.
    if member::is_in(root, &shared, context.wait).map_err(without_log)? {
        member::record(
            root,
            &shared,
            context.wait,
            JudgesBy::CommonPolicy,
            &retires,
        )
        .map_err(without_log)?;
    }
    config::write_log(root, None)?;
    let recorded = format!(
        "host {} left; this directory keeps a copy of the ledger",
        shared.host
    );
    context.say(&CommandOutput::new(Changed { recorded }), |changed| {
        format!("{}\n", changed.recorded)
    })
}

/// The failure of a host that cannot leave because its log does not answer, with the way out if it never will.
fn without_log(failure: Failure) -> Failure {
    if failure.exit != Exit::Temporary {
        return failure;
    }
    let message = format!(
        "{}\n  only the log says whether other hosts need this one's record; if it is gone for good, remove `log`, \
         `workspace` and `host` from settled.toml",
        failure.message
    );
    Failure { message, ..failure }
}

/// Records a change that does not depend on the hosts.
fn record(
    root: &Path,
    shared: &SharedLog,
    wait: Wait,
    change: HostChange,
) -> Result<HostChange, Failure> {
    let judges_by = match change {
        // Until the change is recorded, the policy of all hosts applies here too.
        HostChange::PolicyChanged { .. } => JudgesBy::CommonPolicy,
        HostChange::Joined(_)
        | HostChange::Claimed { .. }
        | HostChange::HomeMoved { .. }
        | HostChange::KeyRetired { .. } => JudgesBy::OwnPolicy,
    };
    member::record(root, shared, wait, judges_by, &|_| Ok(Some(change.clone())))?;
    Ok(change)
}

fn say(context: &HostContext, change: &HostChange) -> Result<Exit, Failure> {
    let recorded = change.sentence();
    context.say(&CommandOutput::new(Changed { recorded }), |changed| {
        format!("recorded: {}\n", changed.recorded)
    })
}
