//! `settled host join`: makes this workspace one of the hosts that share a ledger. The first host brings its own
//! ledger; another one starts with an empty ledger, or with a prefix of the shared one.
//!
//! Nothing is written to the log before all checks pass, and every step can be repeated.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fleet::Fleet;
use message_schema::id::AgentName;
use review::{HostChange, JoinedHost};
use serde::Serialize;
use settled_host::keys::HostKey;
use settled_host::place::{AccessFile, HostDirectory, LogPlace};
use spool::Os;
use spool::log::{Appended, Head, HostName, Local, Log, LogError, Ring, Signed};
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
    let (log, answer) = Watched::new(log);
    let sharing = member::sharing(root, &shared, log, fleet)?;
    let mut member = Member::open_to_join(root, sharing)?;
    let recorded = member
        .follow(survey.end)
        .and_then(|()| member.record_while(&joined, || !answer.is_final()));
    let (fleet, records) = (member.fleet(), member.records());
    member.close();
    recorded.map_err(|failure| match answer.failure() {
        Some(answered) => answered,
        None if began && is_begun_by_another(&own, &shared, &key) => began_meanwhile(),
        None => failure,
    })?;
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
        // Of two hosts that join an empty log at the same time, only one is the first.
        began: began && fleet.members().count() == 1,
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

/// True if a log that was empty when this host read it has another first host now.
fn is_begun_by_another(own: &HostDirectory, shared: &SharedLog, key: &HostKey) -> bool {
    let founder = own
        .join(shared)
        .ok()
        .and_then(|mut log| survey(&mut *log).ok()?.founder);
    founder.is_some_and(|founder| founder.key != key.public())
}

fn began_meanwhile() -> Failure {
    let message = "another host joined the empty log at the same time; run this again".to_owned();
    Failure::plain(Exit::Temporary, message)
}

/// A log that keeps its last answer to an append: the mailroom tells only that the batch was not taken.
struct Watched {
    log: Box<dyn Log>,
    answer: LastAnswer,
}

/// The reason why the log did not take, or may not have taken, the last batch.
#[derive(Clone, Default)]
struct LastAnswer(Arc<Mutex<Option<LogError>>>);

impl LastAnswer {
    /// True if another try gets the same answer.
    fn is_final(&self) -> bool {
        let answer = self.locked();
        answer.as_ref().is_some_and(|error| !error.is_retryable())
    }

    fn failure(&self) -> Option<Failure> {
        let error = self.locked().take()?;
        let failure = of_log(&error);
        Some(if error.is_retryable() {
            let message = format!(
                "{}\n  the log may have the join all the same: run this again",
                failure.message
            );
            Failure { message, ..failure }
        } else {
            failure
        })
    }

    fn locked(&self) -> MutexGuard<'_, Option<LogError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    fn new(log: Box<dyn Log>) -> (Box<dyn Log>, LastAnswer) {
        let answer = LastAnswer::default();
        let watched = Watched {
            log,
            answer: answer.clone(),
        };
        (Box::new(watched), answer)
    }
}

impl Log for Watched {
    fn head(&mut self) -> Result<Head, LogError> {
        self.log.head()
    }

    fn append(&mut self, batch: &Signed) -> Result<Appended, LogError> {
        let appended = self.log.append(batch);
        *self.answer.locked() = match &appended {
            Ok(Appended::Committed | Appended::Moved(_)) => None,
            Ok(Appended::Unknown(why)) => Some(LogError::Unreachable { why: why.clone() }),
            Err(error) => Some(error.clone()),
        };
        appended
    }

    fn follow(&mut self, from: Head) -> Result<Vec<Signed>, LogError> {
        self.log.follow(from)
    }

    fn ring(&mut self, ring: Ring) {
        self.log.ring(ring);
    }

    fn poll_ms(&self) -> u64 {
        self.log.poll_ms()
    }
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

#[cfg(test)]
mod tests {
    use log_suite::{Shared, Weather, fixture};

    use super::*;

    /// A log that this host may only read.
    struct ReadOnly(Box<dyn Log>);

    impl Log for ReadOnly {
        fn head(&mut self) -> Result<Head, LogError> {
            self.0.head()
        }

        fn append(&mut self, _batch: &Signed) -> Result<Appended, LogError> {
            let why = "permission denied".to_owned();
            Err(LogError::Denied { why })
        }

        fn follow(&mut self, from: Head) -> Result<Vec<Signed>, LogError> {
            self.0.follow(from)
        }

        fn ring(&mut self, ring: Ring) {
            self.0.ring(ring);
        }

        fn poll_ms(&self) -> u64 {
            self.0.poll_ms()
        }
    }

    #[test]
    fn a_join_that_the_log_denies_is_not_tried_again_and_says_why() {
        let batch = fixture::batch(Head::EMPTY, &["one"], "tower");
        let shared = Shared::new(1, Weather::default());
        let (mut log, answer) = Watched::new(Box::new(ReadOnly(Box::new(shared.connect()))));
        assert!(log.append(&batch).is_err());
        assert!(answer.is_final());
        let failure = answer.failure().expect("a refusal");
        assert_eq!(failure.exit, Exit::Identity);
        assert_eq!(
            failure.message,
            "the log refuses this host: permission denied"
        );
        let (mut log, answer) = Watched::new(Box::new(shared.connect()));
        assert_eq!(log.append(&batch), Ok(Appended::Committed));
        assert!(!answer.is_final() && answer.failure().is_none());
    }
}
