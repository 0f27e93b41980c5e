//! `settled host join`: makes this workspace one of the hosts that share a ledger. The first host brings its own
//! ledger; another one starts with an empty ledger, or with a prefix of the shared one.
//!
//! Nothing is written to the log before all checks pass, and every step can be repeated.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fleet::Fleet;
use message_schema::id::AgentName;
use review::{HostChange, JoinedHost};
use serde::Serialize;
use settled_host::keys::HostKey;
use settled_host::place::{AccessFile, HostDirectory, LogPlace};
use spool::Os;
use spool::log::{HostName, Local, Log, LogError};
use views::answer::CommandOutput;
use views::exit::Exit;
use views::failure::Failure;
use views::serving::of_spool;
use workspace::config::{SharedLog, is_workspace_name};
use workspace::directory;
use workspace::shell::quoted;

use super::member::{self, Member};
use super::republish::put_back;
use super::survey::{Survey, patiently, survey};
use super::{HostContext, config, load, of_log, of_place, shared_log};

/// The default name of the workspace in a log.
const WORKSPACE: &str = "mailroom";

/// `settled host join`
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled host join nats://broker.example.org --workspace team
  settled host join tls://one,tls://two --credentials desk.creds --agents codex
  settled host join git@example.org:team/ledger.git --agents codex")]
pub(super) struct JoinArgs {
    /// Where the ledger's end is: brokers, as nats://HOST:PORT or tls://HOST:PORT, separated by commas, or a git repository
    #[arg(value_name = "LOG")]
    log: String,
    /// The workspace's name there, the same on every host
    #[arg(long, value_name = "NAME", default_value = WORKSPACE)]
    workspace: String,
    /// This host's name there [default: the machine's]
    #[arg(long = "as", value_name = "HOST")]
    host: Option<HostName>,
    /// The agents at home on this host, separated by commas [default: those with a mailbox here]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    agents: Vec<AgentName>,
    /// Make a new key: the one before was retired
    #[arg(long)]
    new_key: bool,
    /// A file with the token that the broker asks for
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
    /// A file with the seed of an NKey
    #[arg(long, value_name = "FILE")]
    nkey: Option<PathBuf>,
    /// A file with a JWT and its NKey, as nsc writes it
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// The certificate of the authority that the broker's certificate is from
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,
    /// This host's own certificate
    #[arg(long, value_name = "FILE", requires = "certificate_key")]
    certificate: Option<PathBuf>,
    /// The key of that certificate
    #[arg(long, value_name = "FILE", requires = "certificate")]
    certificate_key: Option<PathBuf>,
}

/// The result of joining.
#[derive(Debug, Serialize)]
struct Joined {
    /// This host.
    host: String,
    /// The log.
    log: String,
    /// The workspace's name there.
    workspace: String,
    /// True if this host brought the ledger.
    began: bool,
    /// The number of records the ledger has.
    records: u64,
    /// The agents at home here.
    agents: Vec<AgentName>,
    /// The other hosts.
    others: Vec<String>,
    /// True if the policy of the other hosts was written into settled.toml.
    took_policy: bool,
}

pub(super) fn run(args: &JoinArgs, context: &HostContext) -> Result<Exit, Failure> {
    let root = context.root()?;
    let shared = asked(args, root)?;
    make_workspace(root, &args.agents)?;
    if spool::is_served(root) == Some(true) {
        let message =
            "a daemon serves this workspace: stop it, join, and start it again".to_owned();
        return Err(Failure::plain(Exit::Temporary, message));
    }
    let own = HostDirectory::of(root);
    let key = prepare(args, &own)?;
    let mut log = own.join(&shared).map_err(|error| of_place(&error))?;
    let survey = survey(&mut *log).map_err(|error| of_log(&error))?;
    let claims = claims(args, root, &survey.fleet, &shared.host)?;
    let took_policy = agree_on_policy(root, &survey.fleet)?;
    let joined = HostChange::Joined(JoinedHost {
        host: shared.host.to_string(),
        key: key.public(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        agents: claims,
        policy: member::policy(root)?,
    });
    // Refuses the join before anything is written.
    let mut after = survey.fleet.clone();
    after
        .change(&joined, &shared.host)
        .map_err(|refusal| member::refused(&refusal))?;
    let began = begin(root, &shared, &key, &mut *log, &survey)?;
    config::write_log(root, Some(&shared))?;
    let known = member::fleet(root)?;
    let fleet = match (known.is_empty(), began) {
        (false, _) => known,
        // This host is already the home of its agents while it joins.
        (true, true) => after,
        (true, false) => survey.beginning(),
    };
    let sharing = member::sharing(root, &shared, log, fleet)?;
    let mut member = Member::open_to_join(root, sharing)?;
    member.follow(survey.end)?;
    member.record(&joined)?;
    let (fleet, records) = (member.fleet(), member.records());
    member.close();
    let agents: Vec<AgentName> = fleet.agents().cloned().collect();
    // An agent of another host needs a mailbox here too, so that mail can be addressed to it.
    make_workspace(root, &agents)?;
    let others = fleet
        .members()
        .filter(|(name, member)| **name != shared.host && !member.is_retired);
    let mut answer = CommandOutput::new(Joined {
        host: shared.host.to_string(),
        log: shared.log.clone(),
        workspace: shared.workspace.clone(),
        began,
        records,
        agents: fleet.at_home(&shared.host).cloned().collect(),
        others: others.map(|(name, _)| name.to_string()).collect(),
        took_policy,
    });
    answer.next(context.command("serve"), "serve this host");
    context.say(&answer, said)
}

fn said(joined: &Joined) -> String {
    let agents: Vec<&str> = joined.agents.iter().map(AgentName::as_str).collect();
    let agents = if agents.is_empty() {
        "no agent".to_owned()
    } else {
        agents.join(", ")
    };
    let mut text = format!(
        "host {} shares the ledger {} at {}, with {} records\n",
        joined.host, joined.workspace, joined.log, joined.records
    );
    text += &format!("at home here: {agents}\n");
    if joined.began {
        text += "it is the first host\n";
    } else {
        text += &format!("other hosts: {}\n", joined.others.join(", "));
    }
    if joined.took_policy {
        text += "settled.toml has the policy of the other hosts now\n";
    }
    text
}

/// The shared log named on the command line, checked against the config.
fn asked(args: &JoinArgs, root: &Path) -> Result<SharedLog, Failure> {
    if !is_workspace_name(&args.workspace) {
        let message = format!(
            "the workspace's name is `{}`, expected 1 to 64 letters, digits, `-` or `_`",
            args.workspace
        );
        return Err(Failure::plain(Exit::Usage, message));
    }
    let log = LogPlace::parse(&args.log).map_err(|error| Failure::new(Exit::Usage, &error))?;
    let before = shared_log(&load(root)?)?;
    let host = match (&args.host, &before) {
        (Some(host), _) => host.clone(),
        (None, Some(before)) => before.host.clone(),
        (None, None) => this_machine()?,
    };
    let shared = SharedLog {
        log: log.text(),
        workspace: args.workspace.clone(),
        host,
    };
    match before {
        Some(before) if before.workspace != shared.workspace || before.host != shared.host => {
            let message = format!(
                "this workspace is {} on host {} already, and cannot be {} on host {}",
                before.workspace, before.host, shared.workspace, shared.host
            );
            Err(Failure::plain(Exit::Usage, message).next("settled host leave".to_owned()))
        }
        // The brokers may have new addresses.
        Some(_) | None => Ok(shared),
    }
}

/// The machine's name up to the first dot, if it can be a host's name.
fn this_machine() -> Result<HostName, Failure> {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy().to_lowercase();
    let label = name.split('.').next().unwrap_or_default();
    label.parse().map_err(|_| {
        let message =
            format!("this machine's name `{label}` cannot be a host's: choose one with --as NAME");
        Failure::plain(Exit::Usage, message)
    })
}

fn make_workspace(root: &Path, agents: &[AgentName]) -> Result<(), Failure> {
    let made = directory::init(root, agents);
    made.map(drop)
        .map_err(|error| Failure::new(Exit::Failed, &error))
}

/// Makes the directory with this host's key and credentials.
fn prepare(args: &JoinArgs, own: &HostDirectory) -> Result<HostKey, Failure> {
    let failed = |error| of_place(&error);
    own.make().map_err(failed)?;
    for (what, from) in [
        (AccessFile::Token, &args.token),
        (AccessFile::Nkey, &args.nkey),
        (AccessFile::Credentials, &args.credentials),
        (AccessFile::Authority, &args.authority),
        (AccessFile::Certificate, &args.certificate),
        (AccessFile::CertificateKey, &args.certificate_key),
    ] {
        if let Some(from) = from {
            own.keep(what, from).map_err(failed)?;
        }
    }
    if args.new_key {
        own.set_key_aside().map_err(failed)?;
    }
    let path = own.key();
    let key = if path.exists() {
        HostKey::load(&path)
    } else {
        HostKey::make(&path)
    };
    key.map_err(|error| Failure::new(Exit::Usage, &error))
}

/// The agents that get their home on this host: by default, all that have a mailbox here on the first join; later only
/// the named ones.
fn claims(
    args: &JoinArgs,
    root: &Path,
    fleet: &Fleet,
    host: &HostName,
) -> Result<Vec<AgentName>, Failure> {
    let is_known = fleet.members().any(|(name, _)| name == host);
    if !args.agents.is_empty() || is_known {
        return Ok(args.agents.clone());
    }
    directory::agents(root).map_err(|error| Failure::new(Exit::Failed, &error))
}

/// Compares this host's policy with that of the others; takes theirs if this host has none of its own.
fn agree_on_policy(root: &Path, fleet: &Fleet) -> Result<bool, Failure> {
    let (Some(theirs), ours) = (fleet.policy(), member::policy(root)?) else {
        return Ok(false);
    };
    // A host that joins again may have the one they had when it stopped following.
    let is_earlier =
        || -> Result<bool, Failure> { Ok(member::fleet(root)?.policy() == Some(ours.as_str())) };
    if ours != theirs && (ours.is_empty() || is_earlier()?) {
        config::take_policy(root, theirs)?;
        return Ok(true);
    }
    // The fleet refuses a different policy together with the rest of the change.
    Ok(false)
}

/// Puts the records of this host's ledger into an empty log, or checks that they are a prefix of the log. Returns true
/// if this host began the log.
fn begin(
    root: &Path,
    shared: &SharedLog,
    key: &HostKey,
    log: &mut dyn Log,
    survey: &Survey,
) -> Result<bool, Failure> {
    let local = Local::open(root, Arc::new(Os), shared.host.clone());
    let mut local = local.map_err(|error| of_spool(&error, &error, &quoted(root.as_os_str())))?;
    let failed = |error: LogError| of_log(&error);
    let ours = local.head().map_err(failed)?;
    if survey.founder.is_some() {
        // A ledger as long as the log must end with the log's last record. A log may compare a longer one only later.
        let compared = if ours.seq < survey.end.seq {
            patiently(|| log.follow(ours))
        } else {
            local.follow(survey.end)
        };
        let message = match compared {
            Ok(_) if ours.seq <= survey.end.seq => return Ok(false),
            Ok(_) => format!(
                "the log ends with record {}, and this workspace has {} more from it: `settled host republish` puts them back",
                survey.end.seq,
                ours.seq - survey.end.seq
            ),
            Err(
                LogError::Forked { .. } | LogError::RolledBack { .. } | LogError::Broken { .. },
            ) => format!(
                "this workspace has a ledger of its own, with {} records, and the log has another one: join with an \
                 empty directory, or choose another --workspace",
                ours.seq
            ),
            Err(error) => return Err(of_log(&error)),
        };
        return Err(Failure::plain(Exit::ActionRequired, message));
    }
    if local.follow(survey.end).is_err() {
        // A host brought records, and was killed before it recorded its join.
        let message = format!(
            "the log has {} records, and no host that began it: the host that brought them has to run its join again, or \
             choose another --workspace",
            survey.end.seq
        );
        return Err(Failure::plain(Exit::ActionRequired, message));
    }
    let SharedLog {
        workspace, host, ..
    } = shared;
    put_back(&mut local, log, survey.end, (workspace, host, key)).map_err(failed)?;
    Ok(true)
}
