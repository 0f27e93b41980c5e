//! `settled host join`: makes this workspace one of the hosts that share a ledger. The first host brings its own
//! ledger; another one starts with an empty ledger, or with a prefix of the shared one.
//!
//! `checks` changes nothing that this host or another one has; this module records a join only if all checks pass. Every step
//! can be repeated.

mod checks;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use daemon::mailroom::Sharing;
use fleet::Fleet;
use message_schema::id::AgentName;
use serde::Serialize;
use settled_host::keys::HostKey;
use settled_host::place::{AccessFile, HostDirectory, LogPlace};
use spool::log::{Appended, Head, HostName, Log, LogError, OnChange, Signed};
use views::answer::CommandOutput;
use views::exit::Exit;
use views::failure::Failure;
use workspace::config::{SharedLog, is_workspace_name};
use workspace::directory;
use workspace::shell::quoted;

use self::checks::{JoinTarget, PlannedJoin};
use super::log_summary::summarize;
use super::member::{self, Member};
use super::republish::put_back;
use super::wait::Wait;
use super::{HostContext, config, load, local, of_log, of_place, shared_log};

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
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = directory::agent_name)]
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
    /// True if the other hosts know this host's key, so that `--new-key` made none.
    kept_key: bool,
}

pub(super) fn run(args: &JoinArgs, context: &HostContext) -> Result<Exit, Failure> {
    let root = context.root()?;
    let asked = asked(args, context, root)?;
    if spool::is_served(root) == Some(true) {
        let message =
            "a daemon serves this workspace: stop it, join, and start it again".to_owned();
        return Err(Failure::plain(Exit::Temporary, message));
    }
    let own = HostDirectory::joining(root);
    let (is_new, has_root) = (!own.exists(), root.exists());
    let mut new_keys = vec![own.key(), own.next_key()];
    new_keys.retain(|key| !key.exists());
    let planned = make_room(args, root, &own).and_then(|()| checks::plan(args, context, &asked));
    let planned = planned.inspect_err(|_| {
        // No log has the key of a join that this host refused. If the key stayed, the next join would use it.
        new_keys
            .iter()
            .for_each(|key| drop(std::fs::remove_file(key)));
        // A file that cannot be removed does no harm.
        let _ = own.withdraw();
        if is_new {
            remove_own(&own, root);
        }
        if !has_root {
            let _ = std::fs::remove_dir(root);
        }
    })?;
    let (began, took_policy) = (planned.is_first, planned.takes_policy.is_some());
    let kept_key = args.new_key && planned.has_joined;
    let shared = &asked.shared;
    let recorded = record(args, context, &asked, planned);
    let (fleet, records) = recorded.inspect_err(|_| drop(own.withdraw()))?;
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
        kept_key,
    });
    answer.next(context.command("serve"), "serve this host");
    context.say(&answer, describe)
}

/// Records a join that passed all checks, and then gives this host the key and the credentials it joined with.
///
/// The settings come before the record: a daemon that starts after a kill in between says that this host has not joined,
/// while one without the settings would go on alone. Repeating the join continues here. A first join that the log certainly
/// does not have takes them back.
fn record(
    args: &JoinArgs,
    context: &HostContext,
    JoinTarget { shared, before }: &JoinTarget,
    planned: PlannedJoin,
) -> Result<(Fleet, u64), Failure> {
    let PlannedJoin {
        key,
        is_next_key,
        has_joined: _,
        mut log,
        summary,
        is_first,
        known,
        joined,
        after,
        takes_policy,
    } = planned;
    let (root, wait) = (context.root()?, context.wait);
    let own = HostDirectory::joining(root);
    make_workspace(root, &args.agents)?;
    if is_first {
        bring_ledger(context, shared, &key, (&mut *log, summary.end))?;
    }
    let settings = config::text(root)?;
    if let Some(policy) = &takes_policy {
        config::take_policy(root, policy)?;
    }
    config::write_log(root, Some(shared))?;
    let fleet = match (known.is_empty(), is_first) {
        (false, _) => known,
        // This host is already the home of its agents while it joins.
        (true, true) => after,
        (true, false) => summary.beginning(),
    };
    let public = key.public();
    let (log, answer) = AnsweredLog::around(log);
    let sharing = Sharing {
        workspace: shared.workspace.clone(),
        host: shared.host.clone(),
        fleet,
        policy: member::policy(root)?,
        log,
        key: public.clone(),
        join: member::join_command(root, shared),
        keys: Box::new(key),
    };
    let mut member = Member::open_to_join(root, sharing, wait)?;
    let recorded = member.follow(summary.end).and_then(|()| {
        member.record_while(&|_| Ok(Some(joined.clone())), |since| {
            answer.may_change(since, wait)
        })
    });
    let (fleet, records) = (member.fleet(), member.records());
    member.close();
    if let Err(failure) = recorded {
        if before.is_none() && !answer.may_have_taken() {
            config::put_back(root, &settings)?;
        }
        return Err(match answer.failure() {
            Some(answered) => answered,
            None if is_first && is_begun_by_another(&own, shared, &public, wait) => {
                began_meanwhile()
            }
            None => failure,
        });
    }
    if is_next_key {
        own.accept_key().map_err(|error| of_place(&error))?;
    }
    own.accept().map_err(|error| of_place(&error))?;
    Ok((fleet, records))
}

fn describe(joined: &Joined) -> String {
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
    } else if joined.others.is_empty() {
        text += "no other host\n";
    } else {
        text += &format!("other hosts: {}\n", joined.others.join(", "));
    }
    if joined.took_policy {
        text += "settled.toml has the policy of the other hosts now\n";
    }
    if joined.kept_key {
        text += "its key is not retired, so it keeps that key\n";
    }
    text
}

/// The shared log named on the command line, checked against the config.
fn asked(args: &JoinArgs, context: &HostContext, root: &Path) -> Result<JoinTarget, Failure> {
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
    match &before {
        Some(before) if before.workspace != shared.workspace || before.host != shared.host => {
            let message = format!(
                "this workspace is {} on host {} already, and cannot be {} on host {}: use an empty directory for that, \
                 or join again as what it is",
                before.workspace, before.host, shared.workspace, shared.host
            );
            let again = again(
                args,
                &SharedLog {
                    log: shared.log,
                    ..before.clone()
                },
            );
            Err(Failure::plain(Exit::Usage, message).next(context.command(&again)))
        }
        // The brokers may have new addresses.
        Some(_) | None => Ok(JoinTarget { shared, before }),
    }
}

/// The words of this join for a shell, with the file of each secret that it was given.
fn again(args: &JoinArgs, shared: &SharedLog) -> String {
    if args.new_key {
        return again_with_new_key(args, shared);
    }
    member::join_words(shared) + &offered(args)
}

/// The same words for a host that needs a new key.
fn again_with_new_key(args: &JoinArgs, shared: &SharedLog) -> String {
    member::join_with_new_key(shared) + &offered(args)
}

/// The options of this join for its agents and for the file of each secret, each after a blank.
fn offered(args: &JoinArgs) -> String {
    let mut words = String::new();
    if !args.agents.is_empty() {
        let agents: Vec<&str> = args.agents.iter().map(AgentName::as_str).collect();
        words += &format!(" --agents {}", agents.join(","));
    }
    for (_, option, file) in offers(args) {
        if let Some(file) = file {
            words += &format!(" {option} {}", quoted(file.as_os_str()));
        }
    }
    words
}

/// The files of this host's credentials, with their options.
fn offers(args: &JoinArgs) -> [(AccessFile, &'static str, &Option<PathBuf>); 6] {
    [
        (AccessFile::Token, "--token", &args.token),
        (AccessFile::Nkey, "--nkey", &args.nkey),
        (AccessFile::Credentials, "--credentials", &args.credentials),
        (AccessFile::Authority, "--authority", &args.authority),
        (AccessFile::Certificate, "--certificate", &args.certificate),
        (
            AccessFile::CertificateKey,
            "--certificate-key",
            &args.certificate_key,
        ),
    ]
}

/// The machine's name up to the first dot, if it can be a host's name.
fn this_machine() -> Result<HostName, Failure> {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy().to_lowercase();
    let label = name.split('.').next().unwrap_or_default();
    label.parse().map_err(|_| {
        let message = format!(
            "this machine's name `{label}` is not a valid host name: choose one with --as NAME"
        );
        Failure::plain(Exit::Usage, message)
    })
}

fn make_workspace(root: &Path, agents: &[AgentName]) -> Result<(), Failure> {
    let made = directory::init(root, agents);
    made.map(drop)
        .map_err(|error| Failure::new(Exit::Failed, &error))
}

/// Makes the directory for what the checks need: the copy of a repository, a key, and the offered credentials.
fn make_room(args: &JoinArgs, root: &Path, own: &HostDirectory) -> Result<(), Failure> {
    let failed = |error| of_place(&error);
    let settled = root.join(spool::dirs::OWN);
    std::fs::create_dir_all(&settled)
        .map_err(|error| Failure::plain(Exit::Failed, format!("{}: {error}", settled.display())))?;
    own.make().map_err(failed)?;
    // A join that was killed may have left its offer.
    own.withdraw().map_err(failed)?;
    for (what, _, file) in offers(args) {
        if let Some(file) = file {
            own.offer(what, file).map_err(failed)?;
        }
    }
    Ok(())
}

/// Removes the directory that the checks of a refused join needed.
fn remove_own(own: &HostDirectory, root: &Path) {
    let _ = own.remove();
    // A directory that has anything else stays.
    let _ = std::fs::remove_dir(root.join(spool::dirs::OWN));
}

/// True if a log that was empty when this host read it has another first host now.
fn is_begun_by_another(own: &HostDirectory, shared: &SharedLog, key: &str, wait: Wait) -> bool {
    let founder = own
        .join(shared)
        .ok()
        .and_then(|mut log| summarize(&mut *log, wait).ok()?.founder);
    founder.is_some_and(|founder| founder.key != key)
}

fn began_meanwhile() -> Failure {
    let message = "another host joined the empty log at the same time; run this again".to_owned();
    Failure::plain(Exit::Temporary, message)
}

/// A log that keeps its last answer to an append: the mailroom tells only that the batch was not taken.
struct AnsweredLog {
    log: Box<dyn Log>,
    answer: LastAnswer,
}

/// The reason why the log did not take, or may not have taken, the last batch.
#[derive(Clone, Default)]
struct LastAnswer(Arc<Mutex<Answers>>);

#[derive(Default)]
struct Answers {
    last: Option<LogError>,
    /// True if the outcome is unknown. An error for the same batch says later that the log does not have it.
    is_open: bool,
}

impl LastAnswer {
    /// True if another try gets the same answer.
    fn is_final(&self) -> bool {
        let answers = self.locked();
        let last = answers.last.as_ref();
        last.is_some_and(|error| !error.is_retryable())
    }

    /// True if another try may get another answer. Waits longer if the log may have taken the join: its answer then says
    /// whether this host has joined.
    fn may_change(&self, since: Instant, wait: Wait) -> bool {
        let wait = if self.may_have_taken() {
            wait.twice()
        } else {
            wait
        };
        !self.is_final() && !wait.is_over(since)
    }

    /// True if the log may have the batch, or take it late.
    fn may_have_taken(&self) -> bool {
        self.locked().is_open
    }

    fn failure(&self) -> Option<Failure> {
        let error = self.locked().last.take()?;
        let failure = of_log(&error);
        Some(if self.may_have_taken() {
            let message = format!(
                "{}\n  the log may have the join all the same: run this again",
                failure.message
            );
            Failure { message, ..failure }
        } else {
            failure
        })
    }

    fn locked(&self) -> MutexGuard<'_, Answers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AnsweredLog {
    fn around(log: Box<dyn Log>) -> (Box<dyn Log>, LastAnswer) {
        let answer = LastAnswer::default();
        let answered = AnsweredLog {
            log,
            answer: answer.clone(),
        };
        (Box::new(answered), answer)
    }
}

impl Log for AnsweredLog {
    fn head(&mut self) -> Result<Head, LogError> {
        self.log.head()
    }

    fn append(&mut self, batch: &Signed) -> Result<Appended, LogError> {
        let appended = self.log.append(batch);
        let mut answers = self.answer.locked();
        match &appended {
            Ok(Appended::Committed | Appended::Moved(_)) => *answers = Answers::default(),
            Ok(Appended::Unknown(why)) => {
                let why = why.clone();
                answers.last = Some(LogError::Unreachable { why });
                answers.is_open = true;
            }
            Err(error) => {
                answers.last = Some(error.clone());
                answers.is_open = false;
            }
        }
        drop(answers);
        appended
    }

    fn follow(&mut self, from: Head) -> Result<Vec<Signed>, LogError> {
        self.log.follow(from)
    }

    fn on_change(&mut self, on_change: OnChange) {
        self.log.on_change(on_change);
    }

    fn poll_ms(&self) -> u64 {
        self.log.poll_ms()
    }
}

/// Puts the records of this host's ledger into an empty log.
fn bring_ledger(
    context: &HostContext,
    SharedLog {
        workspace, host, ..
    }: &SharedLog,
    key: &HostKey,
    (log, end): (&mut dyn Log, Head),
) -> Result<(), Failure> {
    let mut local = local(context.root()?, host)?;
    put_back(&mut local, log, end, (workspace, host, key), context.wait)
        .map(drop)
        .map_err(|error| of_log(&error))
}

#[cfg(test)]
mod tests {
    use log_suite::{Appends, ModelLog, Shared, Weather, fixture};

    use super::*;

    /// A log that gives these answers to the next appends, last to first, and takes none of their batches.
    fn refusing(log: ModelLog, mut answers: Vec<Result<Appended, LogError>>) -> Box<dyn Log> {
        Box::new(Appends::by(Box::new(log), move |log, batch| {
            answers.pop().unwrap_or_else(|| log.append(batch))
        }))
    }

    #[test]
    fn a_join_that_the_log_denies_is_not_tried_again_and_says_why() {
        let batch = fixture::batch(Head::EMPTY, &["one"], "tower");
        let shared = Shared::new(1, Weather::default());
        let why = "permission denied".to_owned();
        let answers = vec![
            Err(LogError::Denied { why }),
            Ok(Appended::Unknown("no answer in time".to_owned())),
        ];
        let (mut log, answer) = AnsweredLog::around(refusing(shared.connect(), answers));
        assert!(matches!(log.append(&batch), Ok(Appended::Unknown(_))));
        assert!(answer.may_have_taken() && !answer.is_final());
        assert!(log.append(&batch).is_err());
        assert!(answer.is_final() && !answer.may_have_taken());
        let failure = answer.failure().expect("a refusal");
        assert_eq!(failure.exit, Exit::Identity);
        assert_eq!(
            failure.message,
            "the log refuses this host: permission denied"
        );
        let (mut log, answer) = AnsweredLog::around(Box::new(shared.connect()));
        assert_eq!(log.append(&batch), Ok(Appended::Committed));
        assert!(!answer.is_final() && answer.failure().is_none());
    }
}
