//! Finds finished files in outboxes and reads each once.
//!
//! Judges nothing: the caller handles the content of a file, and the ledger records whether it was judged before.

mod listing;
mod look;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

pub use self::listing::OutboxListing;
pub use self::look::{Body, Unfit};
use self::look::{Memory, OPEN_MS, Readiness, Rules};
use crate::root::Dir;
use crate::{Entry, FileName, Now, SpoolError, Stamp, View, dirs, layout};
use disk::SteadyClock;

/// The quiet time after which a file counts as finished, in milliseconds: events are less exact outside of Linux.
pub const QUIET_MS: u64 = if cfg!(target_os = "linux") { 50 } else { 250 };
/// The first and the longest pause after a file could not be read, in milliseconds.
const PAUSE_MS: (u64, u64) = (100, 30_000);
/// From this pause on, in milliseconds, a caller that wants to end no longer waits for an unreadable file.
const HOPELESS_MS: u64 = 800;

/// The most looks of one call to `take`, so that thousands of unfinished or repeatedly changed files do not hold up other
/// outboxes for long.
const LOOKS_MAX: usize = 256;

/// The most looks of one call to `take` in one outbox that take nothing, and its rest after them, in milliseconds, so that
/// files that somebody closes or renames without a pause cost the others only a part of a processor.
const FRUITLESS_MAX: usize = 32;
const FRUITLESS_REST_MS: u64 = 5;

/// The bytes of messages after which a call to `take` ends, so that its caller can stop behind a large one.
const TAKEN_BYTES_MAX: usize = 128 * 1024;

/// The pause between two files of one outbox that a writer has open, in milliseconds. The intake asks about each of a
/// few files every [`OPEN_MS`]; thousands take turns, so they cost no more than the few.
const ASK_MS: u64 = 10;

/// The most files of one outbox that the intake knows at a time. It looks for the others once half of these are
/// handled, so a flood in one outbox costs neither memory nor the time of the others.
const WINDOW: usize = 16_384;

/// The most names of such an outbox that one call to `take` lists.
const BEYOND_MAX: usize = 4_096;

/// A file to judge now.
#[derive(Debug, Clone)]
pub struct OutboxFile {
    /// The owner of the outbox.
    pub agent: String,
    /// Its name there.
    pub file: FileName,
    /// The file's identity; it goes into the record's original.
    pub stamp: Stamp,
    /// The user it belongs to: the owner of the very file whose bytes were read, or of the entry that must not be read.
    pub owner: u32,
    /// The file's content, or the reason it was not read.
    pub body: Body,
    /// True if the spool cannot tell that the file is closed: its writer may still add bytes that `body` lacks.
    pub may_grow: bool,
    /// The age of its last change when it was read, in milliseconds, unaffected by a change of the wall clock.
    pub age_ms: u64,
    /// The time of its last change, in milliseconds since 1970, UTC.
    pub changed_ms: i64,
}

impl OutboxFile {
    /// Returns a finished file as the daemon would find it in this outbox, unchanged for long. It belongs to user 0.
    pub fn finished(outbox: &str, file: FileName, body: Body) -> OutboxFile {
        OutboxFile {
            agent: outbox.to_owned(),
            file,
            stamp: Stamp::default(),
            owner: 0,
            body,
            may_grow: false,
            age_ms: 0,
            changed_ms: 0,
        }
    }

    /// Returns the file of an accepted message from its record; `None` if the record has no text.
    pub fn recorded(entry: &Entry) -> Option<OutboxFile> {
        let original = entry.original.as_ref()?;
        let bytes = original.text.as_ref()?.clone().into_bytes();
        let file = original.file.clone();
        Some(OutboxFile {
            stamp: original.stamp.unwrap_or_default(),
            ..OutboxFile::finished(&original.outbox, file, Body::message(bytes))
        })
    }
}

/// The result of one call that takes files.
#[derive(Debug, Default)]
pub struct Taken {
    /// Files to be judged.
    pub found: Vec<OutboxFile>,
    /// Files that were given time and no longer exist.
    pub gone: Vec<(String, FileName)>,
    /// Files and outboxes that could not be read; the intake retries them, because an I/O error refuses no message.
    pub errors: Vec<SpoolError>,
}

/// The known files of all outboxes: some are queued, others sleep until a time.
pub struct Intake {
    rules: Rules,
    clock: SteadyClock,
    outboxes: BTreeMap<String, Outbox>,
    /// Files to look at again at a set time, in order of time.
    sleeping: BTreeSet<(u64, String, FileName)>,
    /// The agent whose turn was last.
    last: String,
    /// The outboxes whose turns are skipped.
    passed_over: BTreeSet<String>,
    /// The outboxes that rest, each until a time on the monotonic clock.
    resting: BTreeMap<String, u64>,
    /// The outboxes in which a look took no file since they were asked for.
    fruitless: BTreeSet<String>,
    /// The number of times a file was queued.
    queued: u64,
    /// The listing of an outbox that has more files than a window holds.
    beyond: Option<OutboxListing>,
    /// The agent whose outbox was listed for that reason last.
    beyond_last: String,
}

/// A position in the order in which files were queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueueMark(u64);

#[derive(Default)]
struct Outbox {
    /// The queued files, each with its number among all files ever queued.
    queue: VecDeque<(u64, FileName)>,
    files: HashMap<FileName, File>,
    /// True if the outbox has more files than the intake knows.
    has_more: bool,
    /// The last time that was given to a file for the next question about its writer.
    ask_last: u64,
}

impl Outbox {
    fn is_full(&self) -> bool {
        self.files.len() >= WINDOW
    }

    /// Takes a file out. Gives back the memory of a crowd that is gone, 5 MB for a full window, down to that of 512 files.
    fn take_out(&mut self, name: &FileName) -> File {
        if self.files.len() < self.files.capacity() / 8 {
            self.files.shrink_to(512);
            self.queue.shrink_to(512);
        }
        self.files.remove(name).unwrap_or_default()
    }

    /// Returns when to ask again about a file that a writer has open.
    fn next_question(&mut self, now: Now) -> u64 {
        let earliest = now.mono.saturating_add(OPEN_MS);
        self.ask_last = self.ask_last.saturating_add(ASK_MS).max(earliest);
        self.ask_last
    }

    fn has(&self, mark: QueueMark) -> bool {
        self.queue.iter().any(|(number, _)| *number <= mark.0)
    }

    /// Returns whether there is room to look for the files beyond the window.
    fn wants_more(&self) -> bool {
        self.has_more && self.files.len() <= WINDOW / 2
    }
}

/// The result of a look at the next file of an outbox.
enum Next {
    Found(Box<OutboxFile>),
    /// It was given time and no longer exists.
    Gone(FileName),
    Nothing,
}

#[derive(Default)]
struct File {
    memory: Memory,
    /// The time of the next look; absent while the file is in the queue.
    wake: Option<u64>,
}

impl Intake {
    /// Reads files of at most `size_max` bytes once they were unchanged for `quiet_ms` (see [`QUIET_MS`]).
    pub fn new(size_max: u64, quiet_ms: u64) -> Intake {
        let rules = Rules { size_max, quiet_ms };
        Intake {
            rules,
            clock: SteadyClock::default(),
            outboxes: BTreeMap::new(),
            sleeping: BTreeSet::new(),
            last: String::new(),
            passed_over: BTreeSet::new(),
            resting: BTreeMap::new(),
            fruitless: BTreeSet::new(),
            queued: 0,
            beyond: None,
            beyond_last: String::new(),
        }
    }

    /// Forgets the outboxes of all agents but these.
    pub fn keep(&mut self, is_known: &dyn Fn(&str) -> bool) {
        self.outboxes.retain(|agent, _| is_known(agent));
        self.fruitless.retain(|agent| is_known(agent));
        self.beyond.take_if(|listing| !is_known(listing.agent()));
    }

    /// Notes that a watcher saw a file finished: closed by a writer, or renamed into the outbox. Such a hint may be missing or
    /// late; it only saves time. A name that is no message's is ignored.
    pub fn hint(&mut self, agent: &str, name: &FileName) {
        if let Some(file) = self.queue(agent, name) {
            file.memory.is_closed = true;
        }
    }

    /// Notes that a watcher saw more files of an outbox finished than it can name: the outbox is listed soon.
    pub fn hint_outbox(&mut self, agent: &str) {
        if dirs::is_agent_name(agent) {
            let outbox = self.outboxes.entry(agent.to_owned()).or_default();
            outbox.has_more = true;
        }
    }

    /// Ends a listing in later calls of [`Intake::take`], a slice in each. If the intake is ending another one, it begins this
    /// one again later.
    pub fn list_later(&mut self, listing: OutboxListing) {
        if self.beyond.is_none() {
            self.beyond = Some(listing);
        } else {
            self.hint_outbox(listing.agent());
        }
    }

    /// Returns the outboxes in which a look since the last call took no file, or a file that was given time. Each call names
    /// them again for as long as they rest.
    pub fn take_fruitless(&mut self) -> BTreeSet<String> {
        let fruitless = self.fruitless.clone();
        self.fruitless
            .retain(|agent| self.resting.contains_key(agent));
        fruitless
    }

    /// Looks at a file whose writer came back to it after it was judged.
    pub fn look_again(&mut self, agent: &str, name: &FileName) {
        self.queue(agent, name);
    }

    /// Queues a file, unless it is in the queue or its outbox has no room for it.
    fn queue(&mut self, agent: &str, name: &FileName) -> Option<&mut File> {
        if !dirs::is_agent_name(agent) || !layout::is_candidate(name) {
            return None;
        }
        let outbox = self.outboxes.entry(agent.to_owned()).or_default();
        let known = outbox.files.contains_key(name);
        if !known && outbox.is_full() {
            outbox.has_more = true;
            return None;
        }
        let file = outbox.files.entry(name.clone()).or_default();
        let wake = file.wake.take();
        if let Some(wake) = wake {
            self.sleeping
                .remove(&(wake, agent.to_owned(), name.clone()));
        }
        if wake.is_some() || !known {
            push_back(&mut outbox.queue, &mut self.queued, name.clone());
        }
        Some(file)
    }

    /// Returns the number of files that are queued or sleep until a time.
    pub fn waiting(&self) -> usize {
        self.outboxes
            .values()
            .map(|outbox| outbox.files.len())
            .sum()
    }

    /// Returns whether this file is queued or sleeps until a time.
    pub fn is_waiting(&self, agent: &str, file: &FileName) -> bool {
        self.file(agent, file).is_some()
    }

    fn file(&self, agent: &str, name: &FileName) -> Option<&File> {
        self.outboxes.get(agent)?.files.get(name)
    }

    /// Takes up to `limit` finished files, one from each outbox in turn and the oldest of each first; fewer after 256
    /// looks or 128 KiB, even if more wait. The caller must commit each or give it time before the next call.
    pub fn take(&mut self, view: &View<'_>, now: Now, limit: usize) -> Taken {
        let now = self.clock.read(now);
        self.resting.retain(|_, until| *until > now.mono);
        self.wake(now.mono);
        let mut taken = Taken {
            errors: self.look_beyond(view).err().into_iter().collect(),
            ..Taken::default()
        };
        let mut dirs: BTreeMap<String, Dir> = BTreeMap::new();
        let mut fruitless: HashMap<String, usize> = HashMap::new();
        let mut round = self.waiting_after_last();
        let (mut looks, mut bytes) = (0, 0);
        let is_over = |taken: &Taken, looks, bytes| {
            taken.found.len() >= limit || looks >= LOOKS_MAX || bytes >= TAKEN_BYTES_MAX
        };
        while !is_over(&taken, looks, bytes) && !round.is_empty() {
            round.retain(|agent| {
                if is_over(&taken, looks, bytes) {
                    return true;
                }
                looks += 1;
                self.last.clone_from(agent);
                let next = self.take_one(view, agent, &mut dirs, now);
                if !matches!(next, Ok(Next::Found(_))) {
                    self.fruitless.insert(agent.clone());
                    let count = fruitless.entry(agent.clone()).or_insert(0);
                    *count += 1;
                    if *count == FRUITLESS_MAX {
                        self.rest(agent, now.mono.saturating_add(FRUITLESS_REST_MS));
                    }
                }
                match next {
                    Ok(Next::Found(found)) => {
                        bytes += found.body.bytes_read();
                        taken.found.push(*found);
                    }
                    Ok(Next::Gone(file)) => taken.gone.push((agent.clone(), file)),
                    Ok(Next::Nothing) => {}
                    Err(error) => taken.errors.push(error),
                }
                self.has_queued(agent) && !self.resting.contains_key(agent)
            });
        }
        taken
    }

    /// Looks for further files in outboxes that had more than a window holds, a slice of one listing at a time.
    fn look_beyond(&mut self, view: &View<'_>) -> Result<(), SpoolError> {
        if self.beyond.is_none() {
            let outboxes = self.outboxes.iter();
            let wanting = outboxes.filter(|(agent, outbox)| {
                outbox.wants_more() && !self.resting.contains_key(*agent)
            });
            let wanting = wanting.map(|(agent, _)| agent);
            let is_next = |agent: &&String| (**agent <= self.beyond_last, (*agent).clone());
            if let Some(agent) = wanting.min_by_key(is_next).cloned() {
                self.beyond_last.clone_from(&agent);
                self.beyond = self.list(view, &agent)?;
            }
        }
        if let Some(mut listing) = self.beyond.take() {
            let mut left = BEYOND_MAX;
            let is_over = &mut || {
                left -= 1;
                left == 0
            };
            if !self.list_on(view, &mut listing, is_over)? {
                self.beyond = Some(listing);
            }
        }
        Ok(())
    }

    /// Takes nothing from this outbox until this time on the monotonic clock; hints about it are still noted.
    pub fn rest(&mut self, agent: &str, until: u64) {
        let rest = self.resting.entry(agent.to_owned()).or_insert(until);
        *rest = until.max(*rest);
    }

    /// Skips the outboxes of exactly these agents from now on, until the next call.
    pub fn pass_over(&mut self, agents: BTreeSet<String>) {
        self.passed_over = agents;
    }

    /// Returns whether a file of this outbox is queued.
    pub fn has_queued(&self, agent: &str) -> bool {
        self.outboxes
            .get(agent)
            .is_some_and(|outbox| !outbox.queue.is_empty())
    }

    /// Gives a taken file back: the intake looks at it again once it changed, or at `until` on the monotonic clock.
    pub fn give_time(&mut self, found: &OutboxFile, until: u64) {
        self.fruitless.insert(found.agent.clone());
        let outbox = self.outboxes.entry(found.agent.clone()).or_default();
        let file = outbox.files.entry(found.file.clone()).or_default();
        file.memory.given = Some((found.stamp, until));
        if let Some(wake) = file.wake.replace(until) {
            self.sleeping
                .remove(&(wake, found.agent.clone(), found.file.clone()));
        }
        self.sleeping
            .insert((until, found.agent.clone(), found.file.clone()));
    }

    /// Looks at a file that was given time now, before files that came later.
    pub fn recall(&mut self, agent: &str, name: &FileName) {
        let Some(outbox) = self.outboxes.get_mut(agent) else {
            return;
        };
        let Some(file) = outbox.files.get_mut(name) else {
            return;
        };
        if let Some((_, until)) = &mut file.memory.given {
            *until = 0;
        }
        if let Some(wake) = file.wake.take() {
            self.sleeping
                .remove(&(wake, agent.to_owned(), name.clone()));
            self.queued += 1;
            outbox.queue.push_front((self.queued, name.clone()));
        }
    }

    /// Returns when there is something to take: 0 for now, otherwise the time of the next look on the monotonic clock.
    pub fn next_wakeup(&self) -> Option<u64> {
        let sleeping = self.sleeping.first().map(|(wake, _, _)| *wake);
        self.next_turn().into_iter().chain(sleeping).min()
    }

    /// Returns when the next queued file has its turn: 0, or the end of its outbox's rest.
    fn next_turn(&self) -> Option<u64> {
        let has_turn = |outbox: &Outbox| !outbox.queue.is_empty() || outbox.wants_more();
        let turns = self.outboxes.iter().filter(|(_, outbox)| has_turn(outbox));
        let turns = turns.map(|(agent, _)| self.resting.get(agent).copied().unwrap_or(0));
        turns.chain(self.beyond.as_ref().map(|_| 0)).min()
    }

    /// Returns the same as [`Intake::next_wakeup`], without files that repeatedly could not be read: they may never be.
    pub fn next_hopeful(&self) -> Option<u64> {
        let is_hopeless = |agent: &String, name: &FileName| {
            self.file(agent, name)
                .is_some_and(|file| file.memory.pause >= HOPELESS_MS)
        };
        let turn = self.next_turn();
        let mut hopeful = self
            .sleeping
            .iter()
            .filter(|(_, agent, name)| !is_hopeless(agent, name));
        let wake = hopeful.next().map(|(wake, _, _)| *wake);
        turn.into_iter().chain(wake).min()
    }

    /// Returns the number of an agent's files that the intake knows: at most 16 384.
    pub fn known(&self, agent: &str) -> usize {
        self.outboxes
            .get(agent)
            .map_or(0, |outbox| outbox.files.len())
    }

    /// Returns a mark that separates the files queued now from those queued later.
    pub fn mark(&self) -> QueueMark {
        QueueMark(self.queued)
    }

    /// Returns whether a file queued at the mark is still queued. A file that was looked at since and queued again does
    /// not count, so a flood of new files or hints cannot delay the answer forever.
    pub fn has_waiting_since(&self, mark: QueueMark) -> bool {
        self.outboxes.values().any(|outbox| outbox.has(mark))
    }

    /// Returns whether one outbox has such a file.
    pub fn has_waiting_in(&self, agent: &str, mark: QueueMark) -> bool {
        self.outboxes
            .get(agent)
            .is_some_and(|outbox| outbox.has(mark))
    }

    /// Queues the files whose time has come in front of the others: they came earlier.
    fn wake(&mut self, now: u64) {
        let later = self
            .sleeping
            .split_off(&(now.saturating_add(1), String::new(), first_name()));
        let mut woken = Vec::from_iter(std::mem::replace(&mut self.sleeping, later));
        // Files that a start found too young wake together: the oldest goes first, as among the finished ones.
        woken.sort_by_cached_key(|(wake, agent, name)| {
            let still = self.file(agent, name).and_then(|file| file.memory.still);
            (*wake, still.map(|(stat, _)| stat.mtime_ns))
        });
        for (wake, agent, name) in woken.into_iter().rev() {
            let Some(outbox) = self.outboxes.get_mut(&agent) else {
                continue;
            };
            if let Some(file) = outbox
                .files
                .get_mut(&name)
                .filter(|file| file.wake == Some(wake))
            {
                file.wake = None;
                self.queued += 1;
                outbox.queue.push_front((self.queued, name));
            }
        }
    }

    /// Lists the agents with queued files, starting after the one whose turn was last.
    fn waiting_after_last(&self) -> Vec<String> {
        let waiting = || {
            self.outboxes
                .iter()
                .filter(|(_, outbox)| !outbox.queue.is_empty())
                .map(|(agent, _)| agent)
                .filter(|agent| !self.passed_over.contains(*agent))
                .filter(|agent| !self.resting.contains_key(*agent))
        };
        let after = waiting().filter(|agent| **agent > self.last);
        after
            .chain(waiting().filter(|agent| **agent <= self.last))
            .cloned()
            .collect()
    }

    /// Looks at the next file of one outbox.
    fn take_one(
        &mut self,
        view: &View<'_>,
        agent: &str,
        dirs: &mut BTreeMap<String, Dir>,
        now: Now,
    ) -> Result<Next, SpoolError> {
        let Some(outbox) = self.outboxes.get_mut(agent) else {
            return Ok(Next::Nothing);
        };
        let Some((_, name)) = outbox.queue.pop_front() else {
            return Ok(Next::Nothing);
        };
        let mut file = outbox.take_out(&name);
        if view.is_judged(agent, &name) {
            return Ok(Next::Nothing);
        }
        let was_given_time = file.memory.given.is_some();
        let looked = open(view, agent, dirs).and_then(|dir| match dir {
            Some(dir) => {
                look::read_if_finished(view.root, dir, &name, &mut file.memory, self.rules, now)
            }
            None => Ok(Readiness::Gone),
        });
        let result = match looked {
            Ok(Readiness::Take(finished)) => {
                return Ok(Next::Found(Box::new(OutboxFile {
                    agent: agent.to_owned(),
                    file: name,
                    stamp: finished.stamp,
                    owner: finished.owner,
                    body: finished.body,
                    may_grow: finished.may_grow,
                    age_ms: finished.age_ms,
                    changed_ms: finished.changed_ms,
                })));
            }
            Ok(Readiness::Gone) if was_given_time => return Ok(Next::Gone(name)),
            Ok(Readiness::Gone) => return Ok(Next::Nothing),
            Ok(Readiness::Wait(until)) => {
                file.wake = Some(until);
                Ok(Next::Nothing)
            }
            Ok(Readiness::Open(until)) => {
                let next = outbox.next_question(now);
                file.wake = Some(until.min(next));
                let was_open = std::mem::replace(&mut file.memory.was_open, true);
                if !was_open && next > now.mono.saturating_add(2 * OPEN_MS) {
                    // A crowd has writers: its first questions take turns as well.
                    self.resting.insert(agent.to_owned(), now.mono + ASK_MS);
                }
                Ok(Next::Nothing)
            }
            Err(error) => {
                let (first, longest) = PAUSE_MS;
                file.memory.pause = (file.memory.pause * 2).clamp(first, longest);
                let until = now.mono.saturating_add(file.memory.pause);
                file.wake = Some(until);
                Err(error)
            }
        };
        if let Some(wake) = file.wake {
            self.sleeping.insert((wake, agent.to_owned(), name.clone()));
        }
        outbox.files.insert(name, file);
        result
    }
}

fn push_back(queue: &mut VecDeque<(u64, FileName)>, queued: &mut u64, name: FileName) {
    *queued += 1;
    queue.push_back((*queued, name));
}

/// Opens an outbox once per `take`.
fn open<'a>(
    view: &View<'_>,
    agent: &str,
    dirs: &'a mut BTreeMap<String, Dir>,
) -> Result<Option<&'a Dir>, SpoolError> {
    if !dirs.contains_key(agent)
        && let Some(dir) = view
            .root
            .dir_if_there(&layout::agent_dir(agent, dirs::OUTBOX))?
    {
        dirs.insert(agent.to_owned(), dir);
    }
    Ok(dirs.get(agent))
}

/// Returns a name that sorts before all candidates.
fn first_name() -> FileName {
    FileName::new([1]).expect("one byte is a name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_that_is_gone_leaves_no_memory_behind() {
        let mut outbox = Outbox::default();
        let name = |number: usize| FileName::new(format!("{number}.yaml")).expect("a name");
        for number in 0..WINDOW {
            outbox.files.insert(name(number), File::default());
            outbox.queue.push_back((0, name(number)));
        }
        for number in 0..WINDOW {
            outbox.queue.pop_front();
            outbox.take_out(&name(number));
        }
        let left = outbox.files.capacity().max(outbox.queue.capacity());
        assert!(left <= 1024, "{left}");
    }
}
