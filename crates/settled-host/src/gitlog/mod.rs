//! The ledger on a ref of a git repository: no server of its own, eight appends a second, polled every few seconds.
//!
//! The fence is the ref: a push names the commit that the ref must be at. A batch is the same commit on every try,
//! because the commit depends only on the batch and its parent. A thread of its own talks to the remote, so that no
//! call waits for the network longer than `WAIT`. A slower poll or push goes on meanwhile, and the caller that asks
//! again gets its result: a remote may take seconds to answer, as one behind ssh does. A poll that takes longer than
//! this remote's polls usually take counts as trouble before it ends: on a network that drops packets, nothing fails.

mod chain;
mod command;

use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use spool::log::{Appended, Head, Log, LogError, OnChange, Signed};

use self::chain::Link;
use self::command::{FAR, Store};
use crate::{GIVEN_BYTES_MAX, wire};

/// The interval between two polls of the remote, and the shorter one for a remote that answers within `NEAR`. With `LATE`,
/// the shorter one lets a host that is cut off report it within 2 s. A forge takes longer to answer, and a poll costs it more.
pub const POLL: Duration = Duration::from_secs(3);
const POLL_NEAR: Duration = Duration::from_millis(800);
const NEAR: Duration = Duration::from_millis(400);

/// A poll is late after twice the time of the poll before it, but never before `LATE`; the first one after `LATE_FIRST`.
const LATE: Duration = Duration::from_millis(800);
const LATE_FIRST: Duration = Duration::from_secs(2);

/// The time after which a fetch counts as trouble. The fetch goes on, because it may have much to fetch.
const FETCHED: Duration = Duration::from_secs(2);

/// The time after which a second push starts beside one that has not ended. A forge takes a few seconds for a push.
const PUSHED: Duration = Duration::from_secs(5);

/// The longest wait of a call for the thread.
const WAIT: Duration = Duration::from_millis(900);

/// A caller that asks again within this time is still waiting for the poll that its first call asked for.
const RETRY: Duration = Duration::from_millis(500);

/// A ledger on a ref.
pub struct Git {
    store: Store,
    shared: Arc<Exchange>,
    ask: Sender<Errand>,
    /// The number of the poll for which the last call waited in vain, and when it gave up.
    unanswered: Option<(u64, Instant)>,
    /// The end of a batch that the log may have.
    pending: Option<Head>,
}

/// A request to the thread.
enum Errand {
    Push(Box<Signed>),
    /// Polls, unless the poll with this number has begun.
    Look(u64),
}

struct Exchange {
    state: Mutex<State>,
    changed: Condvar,
    on_change: Mutex<Option<OnChange>>,
}

#[derive(Default)]
struct State {
    /// The ref's batches, first to last.
    links: Vec<Link>,
    /// The number of polls that began.
    begun: u64,
    /// The number of the last poll that a call asked for.
    asked: u64,
    /// The number of polls that ended, and the error of the last one.
    looks: u64,
    trouble: Option<LogError>,
    /// The time that the remote takes to answer a poll.
    took: Option<Duration>,
    /// The last push that ended: the end of its batch, and its result.
    pushed: Option<(Head, Result<Appended, LogError>)>,
    /// The end of the batch that is being pushed.
    pushing: Option<Head>,
    /// True while a call waits for that push.
    is_awaited: bool,
}

impl Git {
    /// The most bytes of a batch. Forges accept much larger files; hosts read a batch whole.
    pub const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

    /// Starts to follow a workspace's ref on a remote. `directory` holds a copy of it.
    pub fn open(directory: &Path, remote: &str, workspace: &str) -> Result<Git, LogError> {
        Git::polling(directory, remote, workspace, POLL)
    }

    /// Starts to follow a ref with another interval between two polls.
    pub fn polling(
        directory: &Path,
        remote: &str,
        workspace: &str,
        poll: Duration,
    ) -> Result<Git, LogError> {
        let store = Store::open(directory).map_err(chain::here)?;
        let shared = Arc::new(Exchange {
            state: Mutex::default(),
            changed: Condvar::new(),
            on_change: Mutex::default(),
        });
        let (ask, asked) = mpsc::channel();
        let worker = Worker {
            store: Store::open(directory).map_err(chain::here)?,
            remote: remote.to_owned(),
            reference: reference(workspace),
            shared: Arc::clone(&shared),
            poll,
        };
        std::thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || worker.run(&asked))
            .map_err(|error| chain::here(error.to_string()))?;
        Ok(Git {
            store,
            shared,
            ask,
            unanswered: None,
            pending: None,
        })
    }

    /// Has the thread poll the remote, and waits for the answer. A poll that takes longer than `WAIT` serves the next
    /// call, if that follows at once: with a slow remote, a new poll for each call would never end in time.
    fn poll(&mut self) -> Result<MutexGuard<'_, State>, LogError> {
        let mut state = self.shared.locked();
        let wanted = match self.unanswered.take() {
            Some((wanted, gave_up)) if gave_up.elapsed() < RETRY => wanted,
            // A poll that is already running may have read the ref before this call.
            Some(_) | None => state.begun + 1,
        };
        // At most one request for a poll is queued, so a push waits for no more than that one.
        if state.asked < wanted {
            state.asked = wanted;
            // If the thread has ended, the wait below times out.
            let _ = self.ask.send(Errand::Look(wanted));
        }
        let state = self.shared.wait(state, |state| state.looks >= wanted);
        if state.looks < wanted {
            self.unanswered = Some((wanted, Instant::now()));
            return Err(chain::here("the remote does not answer in time".to_owned()));
        }
        match &state.trouble {
            Some(trouble) => Err(trouble.clone()),
            None => Ok(state),
        }
    }

    /// Pushes the batch, or waits on for the push of it that is running; `None` if it is not done yet.
    fn push(&self, signed: &Signed) -> Option<Result<Appended, LogError>> {
        let head = signed.batch.head();
        let mut state = self.shared.locked();
        let is_done = |state: &State| state.pushed.as_ref().is_some_and(|(of, _)| *of == head);
        // A push that ended after the last call gave up has a result, which another push would discard.
        if state.pushing != Some(head) && !is_done(&state) {
            state.pushed = None;
            state.pushing = Some(head);
            let _ = self.ask.send(Errand::Push(Box::new(signed.clone())));
        }
        state.is_awaited = true;
        let mut state = self.shared.wait(state, is_done);
        state.is_awaited = false;
        match state.pushed.take() {
            Some((of, result)) if of == head => Some(result),
            Some(_) | None => None,
        }
    }
}

/// The ref of a workspace.
pub fn reference(workspace: &str) -> String {
    format!("refs/settled/{workspace}")
}

impl Log for Git {
    fn head(&mut self) -> Result<Head, LogError> {
        let state = self.poll()?;
        Ok(state.end())
    }

    fn append(&mut self, signed: &Signed) -> Result<Appended, LogError> {
        let head = signed.batch.head();
        let bytes = signed.batch.bytes().len();
        if bytes > Git::BATCH_BYTES_MAX {
            let bytes_max = Git::BATCH_BYTES_MAX;
            return Err(LogError::TooLarge { bytes, bytes_max });
        }
        let Some(pushed) = self.push(signed) else {
            // Its own answer decides: it says no if the remote refused this push.
            return Ok(Appended::Unknown("the push is not done yet".to_owned()));
        };
        let appended = match pushed {
            // Once a push may have landed, no failure of a later one takes that back.
            Err(error) if self.pending == Some(head) => Ok(Appended::Unknown(error.to_string())),
            other => other,
        };
        self.pending = matches!(appended, Ok(Appended::Unknown(_))).then_some(head);
        appended
    }

    fn follow(&mut self, from: Head) -> Result<Vec<Signed>, LogError> {
        if self.shared.locked().looks == 0 {
            self.poll().map(drop)?;
        }
        let (links, after) = {
            let state = self.shared.locked();
            if let Some(trouble) = &state.trouble
                && state.end().seq <= from.seq
            {
                return Err(trouble.clone());
            }
            let begin = state.links.partition_point(|link| link.head.seq < from.seq);
            let end = state.end();
            if end.seq < from.seq {
                return Err(LogError::RolledBack {
                    log: end,
                    ours: from,
                });
            }
            // From the batch that holds `from` on.
            let begin = if from.seq == 0 { 0 } else { begin };
            let after = begin
                .checked_sub(1)
                .map_or(Head::EMPTY, |before| state.links[before].head);
            (state.links[begin..].to_vec(), after)
        };
        let (mut given, mut at, mut bytes) = (Vec::new(), after, 0);
        for link in &links {
            if link.head.seq == from.seq {
                if link.head != from {
                    return Err(wire::forked(from, link.head.digest));
                }
                at = from;
                continue;
            }
            let signed = link.read(&self.store, at)?;
            let batch = &signed.batch;
            if batch.after().seq < from.seq && batch.head_at(from.seq) != Some(from) {
                let theirs = batch.head_at(from.seq);
                return Err(wire::forked(
                    from,
                    theirs.map_or(link.head.digest, |head| head.digest),
                ));
            }
            at = link.head;
            bytes += batch.bytes().len();
            given.push(signed);
            if bytes >= GIVEN_BYTES_MAX {
                break;
            }
        }
        Ok(given)
    }

    fn on_change(&mut self, on_change: OnChange) {
        *self
            .shared
            .on_change
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(on_change);
    }

    fn poll_ms(&self) -> u64 {
        1_000
    }
}

impl State {
    fn end(&self) -> Head {
        self.links.last().map_or(Head::EMPTY, |link| link.head)
    }

    /// Returns the facts that a poll can change: the end, and whether the remote answers.
    fn known(&self) -> (Head, bool) {
        (self.end(), self.trouble.is_none())
    }
}

impl Exchange {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the condition holds, at most `WAIT`.
    fn wait<'s>(
        &self,
        state: MutexGuard<'s, State>,
        holds: impl Fn(&State) -> bool,
    ) -> MutexGuard<'s, State> {
        let waited = self
            .changed
            .wait_timeout_while(state, WAIT, |state| !holds(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Makes a change, which returns true if it is news; news wakes the daemon. A failed push does not wake it: the caller
    /// already knows of it, and would push again at once.
    fn change(&self, change: impl FnOnce(&mut State) -> bool) {
        let is_news = change(&mut self.locked());
        self.changed.notify_all();
        if !is_news {
            return;
        }
        if let Some(wake) = &*self
            .on_change
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
        {
            wake();
        }
    }
}

/// The thread that talks to the remote.
struct Worker {
    store: Store,
    remote: String,
    reference: String,
    shared: Arc<Exchange>,
    poll: Duration,
}

impl Worker {
    /// Runs until the log is dropped.
    fn run(&self, asked: &Receiver<Errand>) {
        // The first call asks for the first poll: a poll that began before the call would have to run again.
        let mut next_look = Instant::now() + self.pause();
        loop {
            let pause = next_look.saturating_duration_since(Instant::now());
            match asked.recv_timeout(pause) {
                Ok(Errand::Push(signed)) => {
                    let head = signed.batch.head();
                    let pushed = self.append(&signed);
                    self.shared.change(|state| {
                        state.pushing = None;
                        state.pushed = Some((head, pushed));
                        !state.is_awaited
                    });
                }
                Ok(Errand::Look(number)) if self.shared.locked().begun >= number => {}
                Ok(Errand::Look(_)) | Err(RecvTimeoutError::Timeout) => {
                    self.shared.locked().begun += 1;
                    // `poll_remote` itself records an error, here as for a push.
                    let _ = self.poll_remote();
                    self.shared.change(|state| {
                        state.looks = state.begun;
                        false
                    });
                    next_look = Instant::now() + self.pause();
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// The pause before the next poll.
    fn pause(&self) -> Duration {
        let is_near = self.shared.locked().took.is_some_and(|took| took < NEAR);
        if is_near {
            self.poll.min(POLL_NEAR)
        } else {
            self.poll
        }
    }

    /// Polls the remote, and records whether that failed.
    fn poll_remote(&self) -> Result<(), LogError> {
        let before = self.shared.locked().known();
        let looked = self.follow_ref();
        let trouble = looked.as_ref().err().cloned();
        self.shared.change(|state| {
            state.trouble = trouble;
            state.known() != before
        });
        looked
    }

    /// Asks the remote where the ref is, and fetches the new commits.
    fn follow_ref(&self) -> Result<(), LogError> {
        let args = ["ls-remote", "--refs", "--", &self.remote, &self.reference];
        let (began, took) = (Instant::now(), self.shared.locked().took);
        let late = took.map_or(LATE_FIRST, |took| LATE.max(2 * took));
        let said = self.store.run_far(&args, late, || self.tell_late(began));
        let (said, _) = said.map_err(chain::here)?;
        if !said.succeeded {
            return Err(refused(&said.err));
        }
        // One late answer, as after a cut, does not make a remote count as slow; a remote that becomes slow counts as slow a
        // few polls later.
        let measured = began.elapsed();
        let took = took.map_or(measured, |took| measured.min(2 * took));
        self.shared.locked().took = Some(took);
        let text = String::from_utf8_lossy(&said.out).into_owned();
        let tip = text.split_whitespace().next().map(str::to_owned);
        let known = self.tip();
        let Some(tip) = tip else {
            self.shared.locked().links.clear();
            return Ok(());
        };
        if known.as_deref() == Some(&*tip) {
            return Ok(());
        }
        let into = format!("+{0}:{0}", self.reference);
        let args = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"];
        let args = [
            &args[..],
            &["--no-recurse-submodules", "--", &self.remote, &into],
        ]
        .concat();
        self.store.remove_old_locks(&self.reference);
        let began = Instant::now();
        let fetched = self
            .store
            .run_alone(&args, FETCHED, || self.tell_late(began));
        let said = fetched.map_err(chain::here)?;
        if !said.succeeded {
            return Err(refused(&said.err));
        }
        // The ref may have moved since `ls-remote`.
        let tip = self
            .store
            .text(&["rev-parse", "--verify", &self.reference], None);
        let tip = tip.map_err(chain::here)?;
        let is_longer = known.as_deref().is_some_and(|known| {
            let args = ["merge-base", "--is-ancestor", known, &tip];
            matches!(self.store.run(&args, None, FAR), Ok(said) if said.succeeded)
        });
        let known = known.filter(|_| is_longer);
        let links = chain::links(&self.store, known.as_deref(), &tip)?;
        let mut state = self.shared.locked();
        if known.is_none() {
            state.links.clear();
        }
        state.links.extend(links);
        Ok(())
    }

    /// Records that the remote has not answered since this time.
    fn tell_late(&self, since: Instant) {
        let why = format!(
            "the remote has not answered for {:.1} s",
            since.elapsed().as_secs_f64()
        );
        self.shared.change(|state| {
            let was_well = state.trouble.is_none();
            state.trouble = Some(LogError::Unreachable { why });
            was_well
        });
    }

    fn tip(&self) -> Option<String> {
        let state = self.shared.locked();
        state.links.last().map(|link| link.commit.clone())
    }

    /// Pushes a batch; if the push fails, asks the remote whether it has the batch.
    fn append(&self, signed: &Signed) -> Result<Appended, LogError> {
        let (after, head) = (signed.batch.after(), signed.batch.head());
        if self.shared.locked().end() != after {
            self.poll_remote()?;
            if let Some(appended) = self.outcome(after, head) {
                return Ok(appended);
            }
        }
        let parent = self.tip();
        let link = chain::write(&self.store, signed, parent.as_deref()).map_err(chain::here)?;
        let lease = format!(
            "--force-with-lease={}:{}",
            self.reference,
            parent.unwrap_or_default()
        );
        let push = format!("{}:{}", link.commit, self.reference);
        let args = [
            "push",
            "--porcelain",
            "--no-verify",
            "--no-follow-tags",
            &lease,
        ];
        let args = [&args[..], &["--", &self.remote, &push]].concat();
        let mut is_refused = false;
        // A caller that asks learns that the push takes long.
        let why = match self.store.run_far(&args, PUSHED, || {}) {
            Ok((said, _)) if said.succeeded => {
                let mut state = self.shared.locked();
                state.links.push(link);
                state.trouble = None;
                return Ok(Appended::Committed);
            }
            Ok((said, was_beside)) => {
                let text = String::from_utf8_lossy(&said.out);
                let line = text.lines().find(|line| line.starts_with('!'));
                // The remote answered that it did not move the ref. Other failures may hide a lost answer, and one of two
                // pushes may be refused because of the other.
                let is_rejected = line.is_some_and(|line| line.contains("\t[remote rejected]"));
                is_refused = is_rejected && !was_beside;
                line.map_or(said.err, reason)
            }
            Err(why) => why,
        };
        // The remote may have taken the batch anyway, or take it late: only another commit in its place excludes that.
        if let Err(error) = self.poll_remote() {
            return Ok(Appended::Unknown(format!("{why}; {error}")));
        }
        match self.outcome(after, head) {
            Some(appended) => Ok(appended),
            None => {
                let error = refused(&why);
                if is_refused || !error.is_retryable() {
                    Err(error)
                } else {
                    Ok(Appended::Unknown(why))
                }
            }
        }
    }

    /// The outcome for a batch that the log has or can no longer take; `None` while `after` is the log's end.
    fn outcome(&self, after: Head, head: Head) -> Option<Appended> {
        let state = self.shared.locked();
        if state.links.iter().any(|link| link.head == head) {
            return Some(Appended::Committed);
        }
        let end = state.end();
        (end != after).then_some(Appended::Moved(end))
    }
}

/// The reason in a line of `git push --porcelain`, without the commit, which is another one at each try.
fn reason(line: &str) -> String {
    let (_, reason) = line.rsplit_once('\t').unwrap_or_default();
    reason.to_owned()
}

/// True if the name of the remote's host cannot be resolved. A person who has just typed it wants to know at once.
pub fn is_unresolved(error: &LogError) -> bool {
    let said = error.to_string().to_lowercase();
    said.contains("could not resolve host")
}

/// True if git says that the remote does not exist. For a host that has joined, the remote is unreachable and may come back,
/// like a disk that is not mounted; for a host that is joining, the name is wrong.
pub fn is_missing(error: &LogError) -> bool {
    let words = [
        "does not appear to be a git repository",
        "repository not found",
        "' not found",
        "unable to find remote helper",
        "remote helper '",
        "' not allowed",
        // `getaddrinfo` knows that there is no such name; without a network its failure is a temporary one.
        "name or service not known",
    ];
    let LogError::Unreachable { why } = error else {
        return false;
    };
    let lower = why.to_lowercase();
    words.iter().any(|word| lower.contains(word))
}

/// The error for a refusal by the remote: a missing permission is final, anything else is retryable.
fn refused(why: &str) -> LogError {
    let lower = why.to_lowercase();
    let words = [
        "permission denied",
        "authentication failed",
        "access denied",
        "denied to ",
        "returned error: 403",
        "could not read username",
        "not authorized",
        "host key verification failed",
    ];
    let why = why.to_owned();
    if words.iter().any(|word| lower.contains(word)) {
        LogError::Denied { why }
    } else {
        LogError::Unreachable { why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_is_final_and_any_other_failure_may_pass() {
        for said in [
            "git@example.org: Permission denied (publickey).",
            "fatal: Authentication failed for 'https://example.org/'",
            "remote: Access denied",
            "fatal: could not read Username for 'https://example.org': terminal prompts disabled",
            "remote: You are not authorized to push.",
            "ERROR: Permission to team/ledger.git denied to ann.",
            "fatal: unable to access 'https://example.org/': The requested URL returned error: 403",
        ] {
            let why = said.to_owned();
            assert_eq!(refused(said), LogError::Denied { why });
        }
        for said in ["fatal: unable to access: Could not resolve host", ""] {
            let why = said.to_owned();
            assert_eq!(refused(said), LogError::Unreachable { why });
        }
    }

    #[test]
    fn a_remote_that_does_not_exist_is_told_from_one_that_is_away() {
        let is_missing = |said: &str| is_missing(&refused(said));
        for said in [
            "fatal: '/no/such.git' does not appear to be a git repository",
            "ERROR: Repository not found.",
            "fatal: repository 'https://example.org/x.git/' not found",
            "ssh: Could not resolve hostname example.invalid: Name or service not known",
            "fatal: remote helper 'htps' aborted session",
            "fatal: transport 'ext' not allowed",
        ] {
            assert!(is_missing(said), "{said}");
        }
        for said in [
            "ssh: Could not resolve hostname example.org: Temporary failure in name resolution",
            "fatal: unable to access 'https://example.org/': Could not resolve host: example.org",
            "ssh: connect to host example.org port 22: Connection timed out",
            "remote: Access denied",
        ] {
            assert!(!is_missing(said), "{said}");
        }
    }

    #[test]
    fn a_name_that_cannot_be_resolved_is_told_from_a_host_that_is_away() {
        for (said, expected) in [
            (
                "fatal: unable to access 'https://example.org/': Could not resolve host: example.org",
                true,
            ),
            (
                "ssh: Could not resolve hostname example.org: Temporary failure in name resolution",
                true,
            ),
            (
                "ssh: connect to host example.org port 22: Connection timed out",
                false,
            ),
        ] {
            assert_eq!(is_unresolved(&refused(said)), expected, "{said}");
        }
    }

    #[test]
    fn each_workspace_has_a_ref_of_its_own() {
        assert_eq!(reference("team"), "refs/settled/team");
    }
}
