//! Checks a join before it changes anything: the log answers and continues this host's ledger, the hosts there take the
//! host with its key, its agents and its policy, and no host leaves the others behind.

use std::path::Path;

use fleet::{Fleet, FleetRefusal};
use message_schema::id::AgentName;
use review::{HostChange, JoinedHost};
use settled_host::keys::HostKey;
use settled_host::place::HostDirectory;
use spool::log::{Head, HostName, Log, LogError};
use views::exit::Exit;
use views::failure::Failure;
use workspace::config::{SharedLog, is_same_policy};
use workspace::directory;
use workspace::shell::quoted;

use super::super::log_summary::{LogSummary, summarize};
use super::super::republish::check_unsigned;
use super::super::{HostContext, local, member, of_log, of_new_log, of_place};
use super::{JoinArgs, again_with_new_key};

/// A join that nothing refuses so far, and that has changed nothing.
pub(super) struct PlannedJoin {
    pub(super) key: HostKey,
    /// True if the key replaces the one this host has, once the log has the join.
    pub(super) is_next_key: bool,
    /// True if the other hosts know the key that this host has.
    pub(super) has_joined: bool,
    pub(super) log: Box<dyn Log>,
    pub(super) summary: LogSummary,
    /// True if this host brings its ledger into an empty log.
    pub(super) is_first: bool,
    /// The hosts, as this host's ledger has them.
    pub(super) known: Fleet,
    pub(super) joined: HostChange,
    /// The hosts after it.
    pub(super) after: Fleet,
    /// The policy of the other hosts, if it has to be written into settled.toml.
    pub(super) takes_policy: Option<String>,
}

/// The log that a host wants to join, and the one it was in before.
pub(super) struct JoinTarget {
    pub(super) shared: SharedLog,
    /// The shared log in settled.toml.
    pub(super) before: Option<SharedLog>,
}

pub(super) fn plan(
    args: &JoinArgs,
    context: &HostContext,
    asked: &JoinTarget,
) -> Result<PlannedJoin, Failure> {
    let (root, shared) = (context.root()?, &asked.shared);
    let own = HostDirectory::joining(root);
    let mut log = own.join(shared).map_err(|error| of_place(&error))?;
    let summary = summarize(&mut *log, context.wait);
    let summary = summary.map_err(|error| of_new_log(&error, &shared.log))?;
    let is_workspace = is_workspace(root)?;
    let known = if is_workspace {
        member::fleet(root)?
    } else {
        Fleet::default()
    };
    let is_first = summary.founder.is_none();
    if is_first {
        parts_from_nobody(context, asked, &known)?;
    }
    // The first host brings the hosts of its ledger along.
    let fleet = if is_first { &known } else { &summary.fleet };
    let (key, is_next_key) = choose_key(args, &own, fleet, &shared.host)?;
    let ours = member::policy(root)?;
    let takes_policy = policy_to_take(&summary.fleet, &known, &ours);
    let joined = HostChange::Joined(JoinedHost {
        host: shared.host.to_string(),
        key: key.public(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        agents: claims(args, root, is_workspace, (fleet, &shared.host))?,
        policy: takes_policy
            .clone()
            .unwrap_or_else(|| as_they_write_it(fleet, &ours).to_owned()),
    });
    let mut after = fleet.clone();
    after
        .change(&joined, &shared.host)
        .map_err(|refusal| refused(&refusal, args, context, (asked, fleet)))?;
    if is_workspace {
        compare(context, asked, &mut *log, (&summary, &key))?;
    } else if is_first && summary.end != Head::EMPTY {
        return Err(begun_by_nobody(summary.end));
    }
    let has_joined = !is_next_key && fleet.key(&shared.host) == Some(&*key.public());
    Ok(PlannedJoin {
        key,
        is_next_key,
        has_joined,
        log,
        summary,
        is_first,
        known,
        joined,
        after,
        takes_policy,
    })
}

fn is_workspace(root: &Path) -> Result<bool, Failure> {
    directory::is_workspace(root).map_err(|error| Failure::new(Exit::Failed, &error))
}

/// Refuses to go to an empty log without the other hosts of this host's ledger: each log would have a ledger of its own,
/// unnoticed.
fn parts_from_nobody(
    context: &HostContext,
    JoinTarget { shared, before }: &JoinTarget,
    known: &Fleet,
) -> Result<(), Failure> {
    let others: Vec<&str> = known
        .members()
        .filter(|(name, member)| **name != shared.host && !member.is_retired)
        .map(|(name, _)| name.as_str())
        .collect();
    // Hosts may have joined since this one last read the log that it leaves.
    let moves = before.as_ref().filter(|before| before.log != shared.log);
    if known.is_empty() || (others.is_empty() && moves.is_none()) {
        return Ok(());
    }
    let others = match others.len() {
        0 => "hosts that joined since".to_owned(),
        _ => others.join(", "),
    };
    let log = &shared.log;
    let (message, next) = match (moves, before) {
        (Some(moves), _) => (
            format!(
                "{log} is empty, and this host shares the ledger at {}: there it would go on without {others}\n  \
                 to move all hosts, stop their daemons, put the longest ledger into the empty log, and join it on the \
                 others: docs/hosts.md, A log that is gone",
                moves.log
            ),
            Some(format!("host restore {}", quoted(log.as_ref()))),
        ),
        (None, Some(_)) => (
            format!("{log} is empty: it lost the ledger that this host shares with {others}"),
            Some("host republish".to_owned()),
        ),
        (None, None) => (
            format!(
                "{log} is empty, and this workspace has the ledger of {others}: join their log, or join with an empty \
                 directory"
            ),
            None,
        ),
    };
    let failure = Failure::plain(Exit::ActionRequired, message);
    Err(match next {
        Some(words) => failure.next(context.command(&words)),
        None => failure,
    })
}

/// Chooses the key with which this host asks to join; true if it is not this host's key yet.
///
/// A key that the other hosts know stays, even if the command line names another: this host could not replace it, and
/// repeating a join must not lock it out. Otherwise this host keeps the key of an earlier join, because the log may already
/// have that join.
fn choose_key(
    args: &JoinArgs,
    own: &HostDirectory,
    fleet: &Fleet,
    host: &HostName,
) -> Result<(HostKey, bool), Failure> {
    let unfit = |error| Failure::new(Exit::Usage, &error);
    let (path, next_path) = (own.key(), own.next_key());
    let load = |path: &Path| path.exists().then(|| HostKey::load(path)).transpose();
    let key = match load(&path) {
        Err(_) if args.new_key => None,
        loaded => loaded.map_err(unfit)?,
    };
    let next = load(&next_path).map_err(unfit)?;
    let is_known = |key: &HostKey| fleet.key(host) == Some(&*key.public());
    let is_retired = |key: &HostKey| {
        let joined = fleet.clone().join(host.clone(), key.public());
        matches!(joined, Err(FleetRefusal::RetiredKey(_)))
    };
    match (key, next) {
        (Some(key), _) if is_known(&key) => Ok((key, false)),
        (_, Some(next)) if !is_retired(&next) => Ok((next, true)),
        (Some(key), _) if !args.new_key => Ok((key, false)),
        (_, next) => {
            if next.is_some() {
                std::fs::remove_file(&next_path)?;
            }
            let is_next = path.exists();
            let made = HostKey::make(if is_next { &next_path } else { &path });
            Ok((made.map_err(unfit)?, is_next))
        }
    }
}

/// The agents that get their home on this host: by default, all that have a mailbox here on the first join; later only
/// the named ones.
fn claims(
    args: &JoinArgs,
    root: &Path,
    is_workspace: bool,
    (fleet, host): (&Fleet, &HostName),
) -> Result<Vec<AgentName>, Failure> {
    let has_joined = fleet.members().any(|(name, _)| name == host);
    if !args.agents.is_empty() || has_joined || !is_workspace {
        return Ok(args.agents.clone());
    }
    directory::agents(root).map_err(|error| Failure::new(Exit::Failed, &error))
}

/// The policy of the other hosts, if this host takes it: it has none of its own, or the one that they had when it stopped
/// following. The fleet refuses any other one.
fn policy_to_take(fleet: &Fleet, known: &Fleet, ours: &str) -> Option<String> {
    let theirs = fleet.policy()?;
    let had_theirs = || {
        known
            .policy()
            .is_some_and(|known| is_same_policy(known, ours))
    };
    let takes = !is_same_policy(theirs, ours) && (ours.is_empty() || had_theirs());
    takes.then(|| theirs.to_owned())
}

/// This host's policy in the words of the other hosts, if it decides the same: the fleet compares the text.
fn as_they_write_it<'p>(fleet: &'p Fleet, ours: &'p str) -> &'p str {
    let theirs = fleet.policy();
    theirs
        .filter(|theirs| is_same_policy(theirs, ours))
        .unwrap_or(ours)
}

/// The failure for a join that the hosts refuse, with a command for this workspace if one helps.
fn refused(
    refusal: &FleetRefusal,
    args: &JoinArgs,
    context: &HostContext,
    (asked, fleet): (&JoinTarget, &Fleet),
) -> Failure {
    let failed = |fix: &str| Failure::plain(Exit::ActionRequired, format!("{refusal}\n  {fix}"));
    let shared = &asked.shared;
    match refusal {
        FleetRefusal::RetiredKey(_) => {
            failed("join with another key").next(context.command(&again_with_new_key(args, shared)))
        }
        FleetRefusal::OtherPolicy
            if asked.before.is_some() && fleet.key(&shared.host).is_some() =>
        {
            failed("take theirs, and join again").next(context.command("host policy --take"))
        }
        FleetRefusal::OtherPolicy => match fleet.policy().unwrap_or_default().trim_end() {
            "" => failed(
                "theirs has the defaults: remove this host's from settled.toml, and join again",
            ),
            theirs => failed(&format!(
                "write theirs into settled.toml in the place of this host's, and join again:\n\n{theirs}\n"
            )),
        },
        FleetRefusal::AtHomeElsewhere { .. }
        | FleetRefusal::OtherKey(_)
        | FleetRefusal::UnknownHost(_)
        | FleetRefusal::NotAHost(_)
        | FleetRefusal::Homeless(_)
        | FleetRefusal::Elsewhere { .. } => member::refused(refusal),
    }
}

/// Checks that this host's ledger is a prefix of the log, or the log one of the ledger that this host brings.
fn compare(
    context: &HostContext,
    asked: &JoinTarget,
    log: &mut dyn Log,
    (summary, key): (&LogSummary, &HostKey),
) -> Result<(), Failure> {
    let root = context.root()?;
    let mut local = local(root, &asked.shared.host)?;
    let ours = local.head().map_err(|error| of_log(&error))?;
    if summary.founder.is_none() {
        return match local.follow(summary.end) {
            Ok(_) => {
                let shared = &asked.shared;
                let keys = (shared.workspace.as_str(), &shared.host, key);
                check_unsigned(&mut local, log, summary.end, keys, context.wait)
            }
            // A host brought records, and was killed before it recorded its join.
            Err(_) => Err(begun_by_nobody(summary.end)),
        };
    }
    // A ledger as long as the log must end with the log's last record. A log may compare a longer one only later.
    let compared = if ours.seq < summary.end.seq {
        context.wait.answer(|| log.follow(ours))
    } else {
        local.follow(summary.end)
    };
    match compared {
        Ok(_) if ours.seq <= summary.end.seq => Ok(()),
        Ok(_) => Err(longer(context, asked, (summary.end, ours))),
        Err(LogError::Forked { .. } | LogError::RolledBack { .. } | LogError::Broken { .. }) => {
            let message = format!(
                "this workspace has a ledger of its own, with {} records, and the log has another one: join with an \
                 empty directory, or choose another --workspace",
                ours.seq
            );
            Err(Failure::plain(Exit::ActionRequired, message))
        }
        Err(error) => Err(of_log(&error)),
    }
}

/// The failure for a log that ends before this host's ledger.
fn longer(
    context: &HostContext,
    JoinTarget { shared, before }: &JoinTarget,
    (end, ours): (Head, Head),
) -> Failure {
    let (end, more) = (end.seq, ours.seq - end.seq);
    let Some(before) = before else {
        let message = format!(
            "the log ends with record {end}, and this workspace judged {more} more while it shared nothing: join with \
             an empty directory"
        );
        return Failure::plain(Exit::ActionRequired, message);
    };
    let puts_back = if before.log == shared.log {
        "host republish".to_owned()
    } else {
        format!("host restore {}", quoted(shared.log.as_ref()))
    };
    let command = puts_back.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let message = format!(
        "the log ends with record {end}, and this workspace has {more} more from it: `settled {command}` puts them back"
    );
    Failure::plain(Exit::ActionRequired, message).next(context.command(&puts_back))
}

fn begun_by_nobody(end: Head) -> Failure {
    let message = format!(
        "the log has {} records, and no host that began it: the host that brought them has to run its join again, or \
         choose another --workspace",
        end.seq
    );
    Failure::plain(Exit::ActionRequired, message)
}
