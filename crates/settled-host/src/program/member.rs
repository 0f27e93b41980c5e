//! Makes this host a member of the fleet for one command: follows the log to its end and records a change if no daemon
//! serves.

use std::path::Path;
use std::time::{Duration, Instant};

use daemon::mailroom::{
    HostChangeError, Mailroom, MailroomError, Sharing, SharingState, without_its_key,
};
use daemon::submit_order;
use fleet::{Fleet, FleetRefusal};
use message_schema::line::escaped;
use review::{Event, HostChange};
use settled_host::keys::HostKey;
use settled_host::place::HostDirectory;
use spool::SpoolError;
use spool::log::{Head, HostName, Log};
use views::exit::Exit;
use views::failure::Failure;
use workspace::clock::Clock;
use workspace::config::{self, SharedLog};
use workspace::index::LedgerIndex;
use workspace::shell::{quoted, settled};

use super::wait::Wait;
use super::{log_summary, of_place};

/// The option of a join with another key, behind its words.
const NEW_KEY: &str = " --new-key";

/// The pause between two passes.
const PAUSE: Duration = Duration::from_millis(10);

/// The parts that a mailroom needs in a workspace that shares its ledger.
pub(super) fn sharing(
    root: &Path,
    shared: &SharedLog,
    log: Box<dyn Log>,
    fleet: Fleet,
) -> Result<Sharing, Failure> {
    let key = key(root, shared)?;
    Ok(Sharing {
        workspace: shared.workspace.clone(),
        host: shared.host.clone(),
        fleet,
        policy: policy(root)?,
        log,
        key: key.public(),
        join: join_command(root, shared),
        keys: Box::new(key),
    })
}

/// Checks that the key held here is the one with which this host joined, as of `fleet`. The other hosts freeze at a record
/// that any other key has signed.
pub(super) fn check_key(root: &Path, shared: &SharedLog, fleet: &Fleet) -> Result<(), Failure> {
    let checked = fleet.check_key(&shared.host, &key(root, shared)?.public());
    checked.map_err(|refusal| not_its_key(&refusal, root, shared))
}

/// Returns true if the key held here is the one with which this host joined, as of `fleet`.
pub(super) fn holds_its_key(
    root: &Path,
    shared: &SharedLog,
    fleet: &Fleet,
) -> Result<bool, Failure> {
    let public = key(root, shared)?.public();
    Ok(fleet.check_key(&shared.host, &public).is_ok())
}

/// True if this host is a member that can record its own retirement. Fails if other hosts count on it and it cannot: it
/// has lost its key, or the log has its join and this ledger does not, as a join leaves it that got no answer.
pub(super) fn is_in(root: &Path, shared: &SharedLog, wait: Wait) -> Result<bool, Failure> {
    let host = &shared.host;
    let key = match key(root, shared) {
        Err(_) if !HostDirectory::of(root).key().exists() => None,
        key => Some(key?.public()),
    };
    if let Some(key) = &key {
        match fleet(root)?.check_key(host, key) {
            Err(FleetRefusal::UnknownHost(_)) => {}
            checked => return Ok(checked.is_ok()),
        }
    }
    let (mut log, _) = log_and_end(root, shared, wait)?;
    let summary = log_summary::summarize(&mut *log, wait).map_err(|error| super::of_log(&error))?;
    let known = summary.fleet.key(host);
    let mut others = summary.fleet.members();
    match (key, known) {
        (Some(key), Some(known)) if key == known => {}
        (None, Some(_)) if others.any(|(name, other)| name != host && !other.is_retired) => {
            return Err(without_key(root, shared));
        }
        (Some(_) | None, _) => return Ok(false),
    }
    let message = format!(
        "the log has the join of host {host}, and this ledger does not: join again, then leave"
    );
    let join = join_words(shared);
    Err(Failure::plain(Exit::ActionRequired, message).next(settled(&join, Some(root), None)))
}

/// The key held here.
pub(super) fn key(root: &Path, shared: &SharedLog) -> Result<HostKey, Failure> {
    let path = HostDirectory::of(root).key();
    HostKey::load(&path).map_err(|error| {
        if path.exists() {
            Failure::new(Exit::Usage, &error)
        } else {
            without_key(root, shared)
        }
    })
}

/// The failure for a host whose key is gone, with the command that lets it in again.
fn without_key(root: &Path, shared: &SharedLog) -> Failure {
    let (host, path) = (&shared.host, HostDirectory::of(root).key());
    let message = format!(
        "host {host} has no key here, expected {}\n  run `settled host retire-key {host}` on another host, then join again",
        path.display()
    );
    let join = join_with_new_key(shared);
    Failure::plain(Exit::ActionRequired, message).next(settled(&join, Some(root), None))
}

/// The failure for a host whose key is not the fleet's, with the command that lets it in again.
fn not_its_key(refusal: &FleetRefusal, root: &Path, shared: &SharedLog) -> Failure {
    let (why, needs_new_key) = without_its_key(refusal, &shared.host);
    let join = if needs_new_key {
        join_with_new_key(shared)
    } else {
        join_words(shared)
    };
    Failure::plain(Exit::ActionRequired, why).next(settled(&join, Some(root), None))
}

/// The command with which this host joins its log again.
pub(super) fn join_command(root: &Path, shared: &SharedLog) -> String {
    settled(&join_words(shared), Some(root), None)
}

/// The words with which a host that shares this log joins it, for a shell.
pub(super) fn join_words(shared: &SharedLog) -> String {
    format!(
        "host join {} --workspace {} --as {}",
        quoted(shared.log.as_ref()),
        quoted(shared.workspace.as_ref()),
        shared.host,
    )
}

/// The same words for a host that needs a new key.
pub(super) fn join_with_new_key(shared: &SharedLog) -> String {
    join_words(shared) + NEW_KEY
}

/// The shared part of this host's `settled.toml`.
pub(super) fn policy(root: &Path) -> Result<String, Failure> {
    let path = root.join(config::FILE);
    config::shared_part(&super::config::text(root)?, &path)
        .map_err(|error| Failure::new(Exit::Usage, &error))
}

/// The hosts, as this host's ledger has them.
pub(super) fn fleet(root: &Path) -> Result<Fleet, Failure> {
    let index = LedgerIndex::read(root);
    let (index, _) = index?;
    Ok(index.fleet)
}

/// Chooses the change to record by the hosts that the ledger has at that moment; `None` if nothing has to be recorded.
pub(super) type Choice<'c> = &'c dyn Fn(&Fleet) -> Result<Option<HostChange>, Failure>;

/// Records a change of hosts: through the daemon, or here if none serves. Returns the change that was recorded.
///
/// The change is chosen at the end of the log, and chosen again if another host recorded something first.
pub(super) fn record(
    root: &Path,
    shared: &SharedLog,
    wait: Wait,
    judges_by: JudgesBy,
    choose: Choice<'_>,
) -> Result<Option<HostChange>, Failure> {
    let fleet = fleet(root)?;
    if spool::is_served(root) != Some(false) {
        // A daemon follows the log, so the ledger here already tells what it would refuse. Without a daemon the ledger
        // may be behind: the change is judged after it has caught up.
        check_key(root, shared, &fleet)?;
        return order(root, shared, &fleet, choose);
    }
    let (log, end) = log_and_end(root, shared, wait)?;
    let sharing = sharing(root, shared, log, fleet.clone())?;
    let mut member = match Member::try_open(root, sharing, wait, judges_by) {
        // A daemon that restarted for the changed homes serves again.
        Err(MailroomError::Spool(SpoolError::Locked { .. })) => {
            return order(root, shared, &fleet, choose);
        }
        opened => opened.map_err(|error| unopened(&error))?,
    };
    let recorded = member.follow(end).and_then(|()| member.record(choose));
    let fleet = member.fleet();
    member.close();
    // A change of the key, here or in the log since, is the reason for any other failure.
    recorded.or_else(|failure| check_key(root, shared, &fleet).and(Err(failure)))
}

/// The hosts, once this host's ledger has all that the log has. A host whose key is not the fleet's follows the log only
/// to join: here it has those of its ledger.
pub(super) fn caught_up(root: &Path, shared: &SharedLog, wait: Wait) -> Result<Fleet, Failure> {
    let fleet = fleet(root)?;
    if fleet.key(&shared.host).is_none() || !holds_its_key(root, shared, &fleet)? {
        return Ok(fleet);
    }
    let (mut log, end) = log_and_end(root, shared, wait)?;
    if spool::is_served(root) != Some(false) {
        let summary =
            log_summary::summarize(&mut *log, wait).map_err(|error| super::of_log(&error))?;
        if summary.fleet.policy() == fleet.policy() {
            return Ok(fleet);
        }
        let message = "a daemon serves this workspace, and does not have the last change of the policy yet: stop it, run this \
                       again, and start it"
            .to_owned();
        return Err(Failure::plain(Exit::Temporary, message));
    }
    let sharing = sharing(root, shared, log, fleet)?;
    let mut member = Member::open(root, sharing, wait, JudgesBy::CommonPolicy)?;
    let followed = member.follow(end);
    let fleet = member.fleet();
    member.close();
    if holds_its_key(root, shared, &fleet)? {
        followed?;
    }
    Ok(fleet)
}

/// The log, and its end.
fn log_and_end(
    root: &Path,
    shared: &SharedLog,
    wait: Wait,
) -> Result<(Box<dyn Log>, Head), Failure> {
    let log = HostDirectory::of(root).open_existing(shared);
    let mut log = log.map_err(|error| of_place(&error))?;
    let end = wait
        .answer(|| log.head())
        .map_err(|error| super::of_log(&error))?;
    Ok((log, end))
}

/// Has the daemon record a change of hosts, chosen by the ledger here. The daemon judges it again.
fn order(
    root: &Path,
    shared: &SharedLog,
    fleet: &Fleet,
    choose: Choice<'_>,
) -> Result<Option<HostChange>, Failure> {
    let Some(change) = choose(fleet)? else {
        return Ok(None);
    };
    let asked = fleet.clone().change(&change, &shared.host);
    asked.map_err(|refusal| refused(&refusal))?;
    submit_order::submit(root, Event::Host(change.clone()))
        .map_err(|error| Failure::new(Exit::Temporary, &error))?;
    Ok(Some(change))
}

/// The policy by which a command judges again what the log has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JudgesBy {
    /// The policy in settled.toml: if the hosts have another one, the command fails.
    OwnPolicy,
    /// The policy that all hosts had at the time of each record, whatever settled.toml says.
    CommonPolicy,
}

/// The workspace, opened as one of the hosts.
pub(super) struct Member {
    mailroom: Mailroom,
    host: HostName,
    wait: Wait,
    judges_by: JudgesBy,
    clock: Clock,
}

impl Member {
    pub(super) fn open(
        root: &Path,
        sharing: Sharing,
        wait: Wait,
        judges_by: JudgesBy,
    ) -> Result<Member, Failure> {
        Member::try_open(root, sharing, wait, judges_by).map_err(|error| unopened(&error))
    }

    /// Opens it for a host that joins, although its key may not be the fleet's yet.
    pub(super) fn open_to_join(
        root: &Path,
        sharing: Sharing,
        wait: Wait,
    ) -> Result<Member, Failure> {
        let mut member = Member::open(root, sharing, wait, JudgesBy::CommonPolicy)?;
        member.mailroom.follow_to_join();
        Ok(member)
    }

    fn try_open(
        root: &Path,
        sharing: Sharing,
        wait: Wait,
        judges_by: JudgesBy,
    ) -> Result<Member, MailroomError> {
        let (clock, host) = (Clock::start(), sharing.host.clone());
        let (mut mailroom, _) = Mailroom::open_shared(root, sharing)?;
        // Unless a change wakes it, the mailroom would look again only after the log's own interval.
        let waiting = std::thread::current();
        mailroom.wake_by(move || waiting.unpark());
        Ok(Member {
            mailroom,
            host,
            wait,
            judges_by,
            clock,
        })
    }

    /// Takes over all records up to this end.
    pub(super) fn follow(&mut self, end: Head) -> Result<(), Failure> {
        let mut since = Instant::now();
        let mut at = self.mailroom.head();
        while self.mailroom.head().seq < end.seq {
            self.pass()?;
            if self.mailroom.head() != at {
                (at, since) = (self.mailroom.head(), Instant::now());
            } else if self.wait.is_over(since) {
                let message = format!("record {} did not arrive in time", at.seq + 1);
                return Err(Failure::plain(Exit::Temporary, message));
            } else {
                std::thread::park_timeout(PAUSE);
            }
        }
        Ok(())
    }

    /// Records a change of hosts at the end that the log has by then.
    pub(super) fn record(&mut self, choose: Choice<'_>) -> Result<Option<HostChange>, Failure> {
        let wait = self.wait;
        self.record_while(choose, |since| !wait.is_over(since))
    }

    /// Records it, and tries again only while that may help, by the time of the first try.
    pub(super) fn record_while(
        &mut self,
        choose: Choice<'_>,
        may_help: impl Fn(Instant) -> bool,
    ) -> Result<Option<HostChange>, Failure> {
        let since = Instant::now();
        loop {
            let Some(change) = choose(&self.fleet())? else {
                return Ok(None);
            };
            let moment = self.clock.read();
            let error = match self.mailroom.change_hosts(&change, None, moment) {
                Ok(()) => return Ok(Some(change)),
                Err(HostChangeError::Refused(refusal)) => return Err(refused(&refusal)),
                Err(HostChangeError::Spool(error @ SpoolError::NotTaken { .. })) => error,
                Err(error) => return Err(Failure::new(Exit::Temporary, &error)),
            };
            if !may_help(since) {
                return Err(Failure::new(Exit::Temporary, &error));
            }
            let passed = self.pass();
            if self.has(&change) {
                // The append landed although its outcome was unknown. It may be what stops this host: its retired key.
                return Ok(Some(change));
            }
            passed?;
            // The pass may have ended what the first check waited for.
            if !may_help(since) {
                return Err(Failure::new(Exit::Temporary, &error));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Returns true if the fleet already has this change, so that another one would have no effect.
    fn has(&self, change: &HostChange) -> bool {
        let fleet = self.fleet();
        if let HostChange::HomeMoved { agent, to, .. } = change {
            // The agent has left its earlier home.
            return fleet.home(agent).is_some_and(|home| home.as_str() == to);
        }
        if let HostChange::Joined(_) = change
            && !self.has_recorded(&fleet)
        {
            // The first host follows an empty log with a fleet that already has it.
            return false;
        }
        let mut after = fleet.clone();
        let again = after.change(change, &self.host);
        again.is_ok_and(|()| after == fleet)
    }

    /// True if the fleet has a record of this host, as it does once a log has its join.
    fn has_recorded(&self, fleet: &Fleet) -> bool {
        let mut members = fleet.members();
        members.any(|(name, member)| *name == self.host && member.last_record.is_some())
    }

    pub(super) fn records(&self) -> u64 {
        self.mailroom.head().seq
    }

    pub(super) fn fleet(&self) -> Fleet {
        self.mailroom.fleet().cloned().unwrap_or_default()
    }

    fn pass(&mut self) -> Result<(), Failure> {
        match self.mailroom.pass(self.clock.read()) {
            Ok(_) | Err(SpoolError::NotTaken { .. }) => {}
            Err(error) => return Err(Failure::new(Exit::Failed, &error)),
        }
        match self.mailroom.sharing_state() {
            Some(SharingState::Frozen { seq, why }) => {
                let message = format!("record {seq} of the log does not follow: {}", escaped(why));
                Err(Failure::plain(Exit::ActionRequired, message))
            }
            Some(SharingState::Outdated { why }) => {
                let why = escaped(why);
                if self.judges_by == JudgesBy::CommonPolicy && self.mailroom.take_common_policy() {
                    return Ok(());
                }
                Err(Failure::plain(Exit::ActionRequired, why))
            }
            Some(SharingState::InStep | SharingState::Waiting { .. }) | None => Ok(()),
        }
    }

    pub(super) fn close(mut self) {
        self.mailroom.close();
    }
}

fn unopened(error: &MailroomError) -> Failure {
    let MailroomError::Spool(SpoolError::Locked { .. }) = error else {
        return Failure::new(Exit::Failed, error);
    };
    let failure = Failure::new(Exit::Temporary, error);
    let message = format!(
        "{}; stop it, run this again, and start it again",
        failure.message
    );
    Failure { message, ..failure }
}

/// The failure for a change that the fleet refuses, with its fix.
pub(super) fn refused(refusal: &FleetRefusal) -> Failure {
    let fix = match refusal {
        FleetRefusal::AtHomeElsewhere { agent, home } => format!(
            "an agent has one home: leave it out with --agents, or move it, with `settled host move-home {agent} --from {home} \
             --to HOST`"
        ),
        FleetRefusal::OtherKey(_) => {
            "choose another name with --as, or retire that key with `settled host retire-key` on another host".to_owned()
        }
        FleetRefusal::RetiredKey(_) => format!("make another key: `settled host join LOG{NEW_KEY}`"),
        FleetRefusal::UnknownHost(_) | FleetRefusal::NotAHost(_) => {
            "`settled host list` has the hosts".to_owned()
        }
        FleetRefusal::Homeless(agent) => format!("claim it on its host: `settled host claim {agent}`"),
        FleetRefusal::Elsewhere { .. } => "run this on that host".to_owned(),
        FleetRefusal::OtherPolicy => {
            "`settled host policy --take` writes the policy of the other hosts into settled.toml".to_owned()
        }
    };
    Failure::plain(Exit::ActionRequired, format!("{refusal}\n  {fix}"))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use log_suite::{Appends, ModelLog, Shared, Weather};
    use review::{HostDecision, JoinedHost};
    use spool::log::Appended;
    use tempfile::TempDir;

    use super::*;

    /// A log that carries out the next append but loses the answer if its flag is set.
    fn unanswered(log: ModelLog, is_lost: Arc<AtomicBool>) -> Box<dyn Log> {
        Box::new(Appends::by(Box::new(log), move |log, batch| {
            let appended = log.append(batch)?;
            if is_lost.swap(false, Ordering::Relaxed) {
                return Ok(Appended::Unknown("no answer in time".to_owned()));
            }
            Ok(appended)
        }))
    }

    struct Machine {
        _root: TempDir,
        member: Member,
        key: String,
    }

    fn machine(host: &str, log: Box<dyn Log>) -> Machine {
        let root = tempfile::tempdir().expect("a directory");
        workspace::directory::init(root.path(), &[]).expect("a workspace");
        let own = HostDirectory::of(root.path());
        own.make().expect("a directory for its key");
        let key = HostKey::make(&own.key()).expect("a key").public();
        let shared = SharedLog {
            log: "memory".to_owned(),
            workspace: "team".to_owned(),
            host: host.parse().expect("a name"),
        };
        let mut fleet = Fleet::default();
        let joined = fleet.join(shared.host.clone(), key.clone());
        joined.expect("the first host");
        let sharing = sharing(root.path(), &shared, log, fleet).expect("a host");
        let member = Member::open(
            root.path(),
            sharing,
            "30".parse().expect("seconds"),
            JudgesBy::OwnPolicy,
        );
        Machine {
            _root: root,
            member: member.expect("an open workspace"),
            key,
        }
    }

    impl Machine {
        fn join(&self, agents: &[&str]) -> HostChange {
            let agents = agents.iter().map(|agent| agent.parse().expect("a name"));
            HostChange::Joined(JoinedHost {
                host: self.member.host.to_string(),
                key: self.key.clone(),
                version: "0.1.0".to_owned(),
                agents: agents.collect(),
                policy: String::new(),
            })
        }

        fn record(&mut self, change: &HostChange) {
            let recorded = self.member.record(&|_| Ok(Some(change.clone())));
            recorded.unwrap_or_else(|failure| panic!("{change:?}: {}", failure.message));
        }
    }

    fn claim(host: &str, agent: &str) -> HostChange {
        HostChange::Claimed {
            host: host.to_owned(),
            agents: vec![agent.parse().expect("a name")],
        }
    }

    /// Each kind of change that the tower may record, in a legal order.
    fn changes(tower: &Machine) -> [HostChange; 5] {
        let decision = HostDecision {
            by: "ann".to_owned(),
            reason: "a test".to_owned(),
        };
        [
            tower.join(&["claude"]),
            claim("tower", "pi"),
            HostChange::HomeMoved {
                agent: "claude".parse().expect("a name"),
                from: "tower".to_owned(),
                to: "laptop".to_owned(),
                decision: decision.clone(),
            },
            HostChange::KeyRetired {
                host: "box".to_owned(),
                decision: decision.clone(),
            },
            HostChange::PolicyChanged {
                policy: "[rounds]\nmax = 3\n".to_owned(),
                decision,
            },
        ]
    }

    /// A tower, a laptop and a box, with a flag that loses the next answer to the tower.
    fn machines(log: &Shared) -> ([Machine; 3], Arc<AtomicBool>) {
        let is_lost = Arc::new(AtomicBool::new(false));
        let unanswered = unanswered(log.connect(), Arc::clone(&is_lost));
        let tower = machine("tower", unanswered);
        let mut others = ["laptop", "box"].map(|host| machine(host, Box::new(log.connect())));
        for other in &mut others {
            let joins = other.join(&[]);
            other.record(&joins);
        }
        let [laptop, third] = others;
        ([tower, laptop, third], is_lost)
    }

    #[test]
    fn a_change_whose_answer_is_lost_is_recorded_once() {
        let log = Shared::new(1, Weather::default());
        let ([mut tower, ..], is_lost) = machines(&log);
        for change in changes(&tower) {
            tower.member.pass().expect("a pass");
            let before = log.batches().len();
            is_lost.store(true, Ordering::Relaxed);
            tower.record(&change);
            assert_eq!(log.batches().len(), before + 1, "{change:?}");
            assert!(tower.member.has(&change), "{change:?}");
        }
    }

    #[test]
    fn a_host_whose_own_retirement_lost_its_answer_has_recorded_it() {
        let log = Shared::new(1, Weather::default());
        let ([mut tower, ..], is_lost) = machines(&log);
        let joins = tower.join(&[]);
        tower.record(&joins);
        let before = log.batches().len();
        is_lost.store(true, Ordering::Relaxed);
        tower.record(&HostChange::KeyRetired {
            host: "tower".to_owned(),
            decision: HostDecision {
                by: "ann".to_owned(),
                reason: "a test".to_owned(),
            },
        });
        assert_eq!(log.batches().len(), before + 1);
    }

    #[test]
    fn a_change_is_chosen_again_by_what_another_host_recorded_first() {
        let log = Shared::new(1, Weather::default());
        let ([mut tower, laptop, _third], _) = machines(&log);
        let joins = tower.join(&["claude"]);
        tower.record(&joins);
        let (laptop, before) = (RefCell::new(laptop), log.batches().len());
        let recorded = tower.member.record(&|fleet| {
            if fleet.agents().count() > 1 {
                return Ok(None);
            }
            laptop.borrow_mut().record(&claim("laptop", "pi"));
            Ok(Some(claim("tower", "gpt")))
        });
        let recorded = recorded.map_err(|failure| failure.message);
        assert_eq!(recorded, Ok(None));
        assert_eq!(log.batches().len(), before + 1);
    }

    #[test]
    fn a_change_is_recorded_after_what_another_host_recorded_first() {
        let log = Shared::new(1, Weather::default());
        let ([mut tower, mut laptop, _third], _) = machines(&log);
        for (number, change) in changes(&tower).into_iter().enumerate() {
            tower.member.pass().expect("a pass");
            assert!(!tower.member.has(&change), "{change:?}");
            laptop.record(&claim("laptop", &format!("agent-{number}")));
            let before = log.batches().len();
            tower.record(&change);
            assert_eq!(log.batches().len(), before + 1, "{change:?}");
        }
    }
}
