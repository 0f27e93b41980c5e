//! Follows the ledger: makes the files its records name and puts the judged originals away, lane by lane.
//!
//! It sees only committed records, so nothing is delivered before its cause is durable. It decides nothing, so
//! repeating a step after a kill gives the same result.

mod checkpoint;
mod create;
mod cursor;
mod dispose;
mod expected;
mod group;
mod heads;
mod lane;
mod note;
mod pass;
mod queue;
mod slice;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

pub(crate) use self::checkpoint::{Begun, SyncOutcome};
use self::checkpoint::{DurableNote, Touched};
pub(crate) use self::cursor::Cursors;
use self::cursor::{Progress, Trust};
use self::group::GROUP_MAX;
pub(crate) use self::heads::{Heads, LaneHead};
pub use self::lane::Lane;
pub(crate) use self::note::Pos;
pub use self::pass::{Parked, Pass, Placed};
use self::queue::{Backoff, LaneQueue};
pub(crate) use self::queue::{LaneItem, items_of};
use self::slice::Slice;
use crate::join::join;
use crate::ledger::read::LedgerPosition;
use crate::root::{Dir, DirState, OpenRoot};
use crate::view::JudgedOriginals;
use crate::{Away, Delivery, Entry, FileName, Homes, Mailbox, Original, SpoolError, dirs, layout};

/// The first pause of a lane that failed, in milliseconds; each further pause is twice as long.
const PAUSE_MIN_MS: u64 = 100;
/// The longest pause, in milliseconds.
const PAUSE_MAX_MS: u64 = 30_000;

/// From this many waiting files on, a second thread saves more than it costs.
const WORTH_A_THREAD: usize = 128;

/// All lanes of a workspace.
#[derive(Default)]
pub(crate) struct Lanes {
    /// The agents whose mail is delivered here.
    pub(crate) homes: Homes,
    queues: BTreeMap<Lane, LaneQueue>,
    touched: Touched,
    /// A checkpoint has begun and not ended.
    is_syncing: bool,
    /// Cursors of single pull requests: version 0.1 kept one for each.
    single_pulls: Vec<FileName>,
    /// The lane of all pull requests has no cursor yet and continues from those.
    joins_pulls: bool,
}

/// The cursors that could not be trusted, for the operator.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    /// Lanes whose cursor could not be read at all: the start looked for every file in them.
    pub(crate) lost: Vec<Lane>,
    /// The lanes whose cursors kept only their durable part.
    pub(crate) notes_lost: Vec<Lane>,
    /// True if some notes were made in another boot or mount.
    pub(crate) new_boot: bool,
}

/// Marks a file that an earlier process delivered in a lane and may not have synced.
fn touch(touched: &mut Touched, lane: &Lane, item: &LaneItem) {
    let (dir, file) = match lane {
        Lane::Mailbox(_) | Lane::Pulls => {
            let delivery = &item.entry.deliveries[item.index];
            (layout::mailbox_dir(&delivery.mailbox), &delivery.file)
        }
        Lane::Outbox(agent) => {
            let original = item
                .entry
                .original
                .as_ref()
                .expect("an item of an outbox has an original");
            touched.dir(&layout::agent_dir(agent, dirs::OUTBOX));
            match &original.away {
                Away::Sent(file) => (layout::agent_dir(agent, dirs::SENT), file),
                Away::DeadLetter(file) => (layout::agent_dir(agent, dirs::DEAD_LETTER), file),
            }
        }
    };
    // The earlier process may have made the directory as well.
    touched.lane(lane, &dir, DirState::Made);
    touched.file_before(&dir, file, item.pos.seq);
}

/// The work that the lanes have left: the cursors are read first, then each record adds what its lanes have not done.
pub(crate) struct Backlog {
    lanes: Lanes,
    cursors: Cursors,
    doubts: Doubts,
    /// The originals that wait to be put away.
    judged: JudgedOriginals,
    boot: String,
}

impl Backlog {
    pub(crate) fn read(root: &OpenRoot, homes: Homes) -> Result<Backlog, SpoolError> {
        let cursors = Cursors::read(root)?;
        let single_pulls = cursors.of_pulls();
        let has_own = !cursors.of(&Lane::Pulls.cursor_name()).is_empty();
        let lanes = Lanes {
            homes,
            joins_pulls: !single_pulls.is_empty() && !has_own,
            single_pulls,
            ..Lanes::default()
        };
        Ok(Backlog {
            lanes,
            cursors,
            doubts: Doubts::default(),
            judged: JudgedOriginals::default(),
            boot: root.boot.clone(),
        })
    }

    /// Checks that the records can be read that the lanes still need from before a snapshot. An error says why it
    /// cannot replace the records up to there.
    pub(crate) fn can_rest_on(&self, root: &OpenRoot, heads: &Heads) -> Result<(), String> {
        let done = |lane: &Lane| match self.lanes.homes.follow(lane) {
            true => self.cursors.done(&self.boot, lane),
            false => Some(Pos::END),
        };
        match heads.lacking(&done) {
            Some(lane) => Err(format!("{lane} still needs records from before it")),
            None => heads.read_owed(root, &mut |_, _| ()),
        }
    }

    /// Adds the lanes of a snapshot, and the records that they still need from before it.
    pub(crate) fn know(&mut self, root: &OpenRoot, heads: &Heads) -> Result<(), SpoolError> {
        for (lane, _) in heads.iter() {
            if self.lanes.homes.follow(lane) {
                self.queue(lane.clone());
            }
        }
        let admit = &mut |entry, place: &_| self.admit(items_of(&Arc::new(entry)), place);
        let read = heads.read_owed(root, admit);
        read.map_err(|why| root.error("read", dirs::LEDGER.as_ref(), io::Error::other(why)))
    }

    /// Returns the item up to which a lane survives a power cut. A lane that this host does not follow needs nothing.
    pub(crate) fn durable(&mut self, lane: &Lane) -> Pos {
        if self.lanes.homes.follow(lane) {
            self.queue(lane.clone()).progress.durable
        } else {
            Pos::END
        }
    }

    /// Queues those items of the record at `place` that their lanes have not done yet.
    pub(crate) fn admit(&mut self, items: Vec<(Lane, LaneItem)>, place: &LedgerPosition) {
        let place = Arc::new(place.clone());
        for (lane, item) in items {
            if !self.lanes.homes.follow(&lane) {
                continue;
            }
            if lane == Lane::Pulls && self.lanes.joins_pulls {
                self.admit_single_pull(item, &place);
                continue;
            }
            let queue = self.queue(lane);
            if item.pos > queue.progress.done {
                let entry = Arc::clone(&item.entry);
                let is_outbox = matches!(queue.lane, Lane::Outbox(_));
                queue.push(item, &place);
                if let Some(original) = entry.original.as_ref().filter(|_| is_outbox) {
                    self.judged.add(&original.outbox, &original.file);
                }
            } else if item.pos > queue.progress.durable {
                // An earlier process of this boot did it and was killed before its checkpoint.
                let lane = queue.lane.clone();
                touch(&mut self.lanes.touched, &lane, &item);
            }
        }
    }

    /// Admits a file of a pull request that has a cursor of its own.
    fn admit_single_pull(&mut self, item: LaneItem, place: &Arc<LedgerPosition>) {
        let mailbox = &item.entry.deliveries[item.index].mailbox;
        let single = self.cursors.of_one_pull(mailbox);
        let bytes = single.map_or(&[][..], |name| self.cursors.of(&name));
        let (single, _) = Progress::read(bytes, &self.boot, u64::MAX);
        let queue = self.queue(Lane::Pulls);
        if item.pos > single.done {
            queue.push(item, place);
            return;
        }
        // The lane cannot advance past a file that is still to be made. Delivery finds the files behind it that exist
        // already.
        if !queue.has_work() {
            let progress = &mut queue.progress;
            if item.pos <= single.durable && progress.durable == progress.done {
                progress.durable = item.pos;
            }
            progress.done = item.pos;
        }
        if item.pos > single.durable {
            touch(&mut self.lanes.touched, &Lane::Pulls, &item);
        }
    }

    fn queue(&mut self, lane: Lane) -> &mut LaneQueue {
        match self.lanes.queues.entry(lane) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => {
                let bytes = self.cursors.of(&new.key().cursor_name());
                // The ledger's end is not known yet; `settle` sets it.
                let (progress, trust) = Progress::read(bytes, &self.boot, u64::MAX);
                match trust {
                    Trust::Lost if *new.key() == Lane::Pulls && self.lanes.joins_pulls => {}
                    Trust::Whole => {}
                    Trust::NewBoot => self.doubts.new_boot = true,
                    Trust::NotesLost => self.doubts.notes_lost.push(new.key().clone()),
                    Trust::Lost => self.doubts.lost.push(new.key().clone()),
                }
                let queue = LaneQueue::new(new.key().clone(), progress);
                new.insert(queue)
            }
        }
    }

    /// Ends the reading; the ledger's last record is `head`.
    pub(crate) fn settle(
        mut self,
        root: &OpenRoot,
        head: u64,
    ) -> Result<(Lanes, JudgedOriginals, Doubts), SpoolError> {
        self.cursors.check(root, head)?;
        for queue in self.lanes.queues.values_mut() {
            queue.progress.verify = queue.progress.verify.min(head);
        }
        Ok((self.lanes, self.judged, self.doubts))
    }
}

impl Lanes {
    /// Makes new cursor files in place of lost ones.
    pub(crate) fn replace_cursors(
        &mut self,
        root: &OpenRoot,
        lost: &[Lane],
    ) -> Result<(), SpoolError> {
        let dir = root.dir(dirs::CURSORS.as_ref())?;
        for lane in lost {
            if let Some(queue) = self.queues.get(lane) {
                cursor::make(root, &dir, &lane.cursor_name(), &queue.progress)?;
                self.touched.cursors_made = true;
            }
        }
        self.join_pulls(root, &dir)
    }

    /// Replaces the cursors of single pull requests, which version 0.1 kept, with one.
    fn join_pulls(&mut self, root: &OpenRoot, dir: &Dir) -> Result<(), SpoolError> {
        if self.single_pulls.is_empty() {
            return Ok(());
        }
        if let Some(queue) = self.queues.get(&Lane::Pulls).filter(|_| self.joins_pulls) {
            cursor::make(root, dir, &Lane::Pulls.cursor_name(), &queue.progress)?;
        }
        root.disk
            .sync_dir(&dir.handle)
            .map_err(SpoolError::fatal("sync", root.path(&dir.path)))?;
        for name in std::mem::take(&mut self.single_pulls) {
            root.remove(dir, &name)?;
        }
        Ok(())
    }

    /// Ensures that each lane of these files and originals has a cursor before they are committed: then a record in a
    /// lane without a cursor proves that the cursor was lost.
    pub(crate) fn prepare<'e>(
        &mut self,
        root: &OpenRoot,
        files: impl Iterator<Item = (&'e [Delivery], Option<&'e Original>)>,
        head: u64,
    ) -> Result<(), SpoolError> {
        for (deliveries, original) in files {
            let mailboxes = deliveries
                .iter()
                .map(|delivery| Lane::of(&delivery.mailbox));
            let outbox = original
                .into_iter()
                .map(|original| Lane::Outbox(original.outbox.clone()));
            for lane in mailboxes.chain(outbox) {
                if self.queues.contains_key(&lane) || !self.homes.follow(&lane) {
                    continue;
                }
                let dir = root.dir(dirs::CURSORS.as_ref())?;
                let progress = Progress::new_after(head);
                cursor::make(root, &dir, &lane.cursor_name(), &progress)?;
                self.touched.cursors_made = true;
                self.queues
                    .insert(lane.clone(), LaneQueue::new(lane, progress));
            }
        }
        Ok(())
    }

    /// Queues the work that the committed record at `place` asks of its lanes.
    pub(crate) fn enqueue(&mut self, entry: &Arc<Entry>, place: LedgerPosition) {
        let place = Arc::new(place);
        for (lane, item) in items_of(entry) {
            if !self.homes.follow(&lane) {
                continue;
            }
            self.queues
                .get_mut(&lane)
                .expect("every lane of a committed draft was prepared")
                .push(item, &place);
        }
    }

    /// Gives each lane that has work and is not parked at `now` (milliseconds) a turn, until `files_max` files are
    /// made; the rest waits for the next pass. Packets come first, so that the reader of a message finds the packet it
    /// names. Lanes with few files come next, so that none waits behind a lane with thousands; those with many may then
    /// make up to `files_max` files as well. Lanes share no directory and no cursor, so two threads share them if there
    /// is enough work.
    pub(crate) fn pass(
        &mut self,
        root: &OpenRoot,
        judged: &JudgedOriginals,
        now: u64,
        files_max: usize,
    ) -> Pass {
        let due = |queue: &&mut LaneQueue| {
            (queue.has_work() || queue.backoff.is_some())
                && queue
                    .backoff
                    .as_ref()
                    .is_none_or(|backoff| backoff.until <= now)
        };
        let is_of_packets =
            |queue: &&mut LaneQueue| matches!(queue.lane, Lane::Mailbox(Mailbox::Packets(_)));
        let (mut packets, mut queues): (Vec<&mut LaneQueue>, Vec<&mut LaneQueue>) = self
            .queues
            .values_mut()
            .filter(due)
            .partition(is_of_packets);
        let turns = |queues: &mut [&mut LaneQueue], packets_owed: Option<u64>| {
            // Within each kind, the lane that has waited longest comes first.
            let is_long = |queue: &LaneQueue| queue.owed() > GROUP_MAX;
            queues.sort_by_key(|queue| (is_long(queue), queue.first_owed()));
            let longs = queues.partition_point(|queue| !is_long(queue));
            let (short, long) = queues.split_at_mut(longs);
            let mut done = (Touched::default(), Pass::default());
            for queues in [short, long] {
                let mut slice = Slice::new(files_max, packets_owed);
                for queue in queues {
                    if slice.is_spent() {
                        break;
                    }
                    turn(queue, root, judged, now, &mut slice, &mut done);
                }
            }
            done
        };
        let (packets_touched, packets_pass) = turns(&mut packets, None);
        // The packets of a parked lane hold up nothing.
        let packets_owed = packets
            .iter()
            .filter(|queue| queue.backoff.is_none())
            .filter_map(|queue| queue.first_owed())
            .min();
        let waiting: usize = queues.iter().map(|queue| queue.owed()).sum();
        let (touched, pass) = if queues.len() > 1 && waiting >= WORTH_A_THREAD {
            let (mut ours, mut theirs) = halves(queues);
            let (theirs, ours) = join(
                || turns(&mut theirs, packets_owed),
                || turns(&mut ours, packets_owed),
            );
            self.touched.merge(theirs.0);
            (ours.0, ours.1.and(theirs.1))
        } else {
            turns(&mut queues, packets_owed)
        };
        self.touched.merge(packets_touched);
        self.touched.merge(touched);
        let mut pass = packets_pass.and(pass);
        pass.parked.sort_by(|a, b| a.lane.cmp(&b.lane));
        pass
    }

    /// Returns whether a checkpoint is due even without a quiet moment.
    pub(crate) fn is_checkpoint_due(&self) -> bool {
        !self.is_syncing && self.touched.is_due()
    }

    /// Returns whether so much was touched that a checkpoint should begin without a quiet moment.
    pub(crate) fn has_touched_many(&self) -> bool {
        self.touched.is_many()
    }

    /// Returns whether a checkpoint has something to do.
    pub(crate) fn is_touched(&self) -> bool {
        self.touched.is_any()
    }

    /// Begins a checkpoint of everything touched until now, if there is anything. Fails, to be retried, until the one
    /// before has ended: this one would note as durable what that one has yet to sync.
    pub(crate) fn begin_checkpoint(
        &mut self,
        root: &OpenRoot,
    ) -> Result<Option<Begun>, SpoolError> {
        if self.is_syncing {
            let source = io::ErrorKind::ResourceBusy.into();
            return Err(root.error("sync what was delivered below", "".as_ref(), source));
        }
        if !self.is_touched() {
            return Ok(None);
        }
        self.is_syncing = true;
        let touched = std::mem::take(&mut self.touched);
        let queues = touched.lanes.iter();
        let queues = queues.filter_map(|lane| self.queues.get(lane));
        let lanes = queues.map(|queue| DurableNote {
            lane: queue.lane.clone(),
            slot: queue.progress.turn,
            pos: queue.progress.done,
        });
        Ok(Some(Begun {
            lanes: lanes.collect(),
            touched,
        }))
    }

    /// Ends a checkpoint. Fails with a retryable error if single directories could not be opened; all other lanes are
    /// durable then. Makes removed cursors again, for the next checkpoint to sync.
    pub(crate) fn end_checkpoint(
        &mut self,
        root: &OpenRoot,
        outcome: SyncOutcome,
    ) -> Result<(), SpoolError> {
        self.is_syncing = false;
        self.touched.merge(outcome.left);
        for note in outcome.noted {
            if let Some(queue) = self.queues.get_mut(&note.lane) {
                queue.progress.durable = note.pos;
                queue.progress.turn = note.slot.other();
            }
        }
        let mut result = outcome.result;
        for lane in outcome.without_cursor {
            if let Some(queue) = self.queues.get(&lane) {
                let made = queue.open_cursor_file(root, &mut self.touched);
                self.touched.lanes.insert(lane);
                result = result.and(made.map(drop));
            }
        }
        result
    }

    /// Lists the parked lanes.
    pub(crate) fn parked(&self) -> Vec<Parked> {
        self.queues.values().filter_map(parked).collect()
    }

    /// Returns when the next lane has work, in milliseconds of the caller's monotonic clock: 0 for now, otherwise the
    /// time of a parked lane's next try.
    pub(crate) fn next_turn(&self) -> Option<u64> {
        let turn_of = |queue: &LaneQueue| match &queue.backoff {
            Some(backoff) => Some(backoff.until),
            None => queue.first_owed().map(|_| 0),
        };
        self.queues.values().filter_map(turn_of).min()
    }

    /// Lists the agents whose judged messages are owed at least `files` files, in lanes that can be written.
    pub(crate) fn flooding(&self, files: usize) -> BTreeSet<String> {
        if self.waiting() < files {
            return BTreeSet::new();
        }
        let mut owed: BTreeMap<&str, usize> = BTreeMap::new();
        let queues = self.queues.values().filter(|queue| queue.backoff.is_none());
        for (outbox, files) in queues.flat_map(|queue| &queue.owed_of) {
            *owed.entry(outbox).or_default() += files;
        }
        owed.retain(|_, owed| *owed >= files);
        owed.into_keys().map(str::to_owned).collect()
    }

    /// Returns the number of files that wait in all lanes.
    pub(crate) fn waiting(&self) -> usize {
        self.queues.values().map(LaneQueue::owed).sum()
    }

    /// Returns whether no lane has work except those that are parked.
    pub(crate) fn is_delivered(&self) -> bool {
        let has_none = |queue: &LaneQueue| !queue.has_work() || queue.backoff.is_some();
        self.queues.values().all(has_none)
    }

    /// Returns whether this lane still has work of record `seq` to do.
    pub(crate) fn owes(&self, lane: &Lane, seq: u64) -> bool {
        let next = self.queues.get(lane).and_then(LaneQueue::first_owed);
        next.is_some_and(|next| next <= seq)
    }

    /// Returns the lanes that have work left or that a power cut could set back, each with the item up to which it
    /// survives one. `None` while a lane that is not parked has work, or while a power cut could undo a cursor.
    pub(crate) fn owing(&self) -> Option<BTreeMap<Lane, Pos>> {
        let owes =
            |queue: &&LaneQueue| queue.has_work() || queue.progress.durable < queue.progress.done;
        let owing = self.queues.values().filter(owes);
        let owing = owing.map(|queue| (queue.lane.clone(), queue.progress.durable));
        let is_sure = self.is_delivered() && !self.touched.cursors_made && !self.is_syncing;
        is_sure.then(|| owing.collect())
    }
}

/// Splits lanes between two threads so that each gets about as many files.
fn halves(mut queues: Vec<&mut LaneQueue>) -> (Vec<&mut LaneQueue>, Vec<&mut LaneQueue>) {
    queues.sort_by_key(|queue| std::cmp::Reverse(queue.owed()));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for (n, queue) in queues.into_iter().enumerate() {
        if n % 4 == 0 || n % 4 == 3 {
            ours.push(queue);
        } else {
            theirs.push(queue);
        }
    }
    (ours, theirs)
}

fn turn(
    queue: &mut LaneQueue,
    root: &OpenRoot,
    judged: &JudgedOriginals,
    now: u64,
    slice: &mut Slice,
    done: &mut (Touched, Pass),
) {
    let (touched, pass) = done;
    let before = queue.owed();
    match queue.turn(root, judged, slice, touched, pass) {
        Ok(()) => queue.backoff = None,
        Err(error) => {
            // A lane that makes progress is retried soon; otherwise an occasional failure would hold its files for
            // minutes.
            let failed_before = queue.backoff.as_ref().filter(|_| queue.owed() == before);
            let pause = failed_before.map_or(PAUSE_MIN_MS, |backoff| {
                (backoff.pause * 2).min(PAUSE_MAX_MS)
            });
            queue.backoff = Some(Backoff {
                why: error.chain(),
                until: now.saturating_add(pause),
                pause,
            });
            pass.parked.extend(parked(queue));
        }
    }
}

fn parked(queue: &LaneQueue) -> Option<Parked> {
    let backoff = queue.backoff.as_ref()?;
    let lane = queue.lane.clone();
    Some(Parked {
        lane,
        why: backoff.why.clone(),
        retry_at: backoff.until,
        waiting: queue.owed(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_share_the_lanes_evenly() {
        let progress = || Progress::read(&[], "boot", u64::MAX).0;
        let mut queues: Vec<LaneQueue> = (0..8)
            .map(|n| LaneQueue::new(Lane::Outbox(format!("agent-{n}")), progress()))
            .collect();
        let (ours, theirs) = halves(queues.iter_mut().collect());
        let names = |half: Vec<&mut LaneQueue>| -> Vec<String> {
            half.iter().map(|queue| queue.lane.to_string()).collect()
        };
        let half = |numbers: [u32; 4]| numbers.map(|n| format!("agent-{n}/outbox"));
        assert_eq!(names(ours), half([0, 3, 4, 7]));
        assert_eq!(names(theirs), half([1, 2, 5, 6]));
    }
}
