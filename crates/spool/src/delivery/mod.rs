//! Follows the ledger: makes the files its records name and puts the judged originals away, lane by lane.
//!
//! Delivers only what the ledger holds, and never decides anything.

mod away;
mod checkpoint;
mod cursor;
mod fill;
mod heads;
mod lane;
mod note;
mod place;
mod wanted;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::checkpoint::Touched;
pub(crate) use self::cursor::Cursors;
use self::cursor::{Progress, Trust};
pub(crate) use self::heads::Heads;
pub use self::lane::Lane;
use self::lane::{Item, Rest, Work};
pub(crate) use self::note::Pos;
use crate::root::OpenRoot;
use crate::view::InHand;
use crate::{Away, Draft, Entry, FileName, Mailbox, SpoolError, layout};

/// The first pause of a lane that failed, in milliseconds; each further one is twice as long.
const PAUSE_MIN_MS: u64 = 100;
/// The longest pause, in milliseconds.
const PAUSE_MAX_MS: u64 = 30_000;

/// From so many waiting files on a second thread costs less than it saves.
const WORTH_A_THREAD: usize = 128;

/// A file in a mailbox, and the record that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Where.
    pub mailbox: Mailbox,
    /// The name the record gave it.
    pub file: FileName,
    /// The record's number.
    pub seq: u64,
}

/// A lane that is left alone for a while because its directory could not be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    /// Which lane.
    pub lane: Lane,
    /// What failed, with its causes.
    pub why: String,
    /// When it is tried again, on the caller's monotonic clock in milliseconds.
    pub retry_at: u64,
    /// How many files wait in it.
    pub waiting: usize,
}

/// What one pass over the lanes did.
#[derive(Debug, Default)]
pub struct Pass {
    /// How many files were made in mailboxes.
    pub delivered: usize,
    /// How many originals were put away.
    pub put_away: usize,
    /// Lanes that failed in this pass.
    pub parked: Vec<Parked>,
    /// Files in an agent's outbox that hold other bytes than were judged: look at them soon, they are new input.
    pub came_back: Vec<(String, FileName)>,
    /// Files that were delivered although they may have been delivered before a power cut.
    pub redelivered: Vec<Placed>,
    /// Files that a power cut had left empty or torn and that are whole again.
    pub mended: Vec<Placed>,
}

impl Pass {
    /// Both passes as one.
    fn and(mut self, other: Pass) -> Pass {
        self.delivered += other.delivered;
        self.put_away += other.put_away;
        self.parked.extend(other.parked);
        self.came_back.extend(other.came_back);
        self.redelivered.extend(other.redelivered);
        self.mended.extend(other.mended);
        self
    }
}

/// All lanes of a workspace.
pub(crate) struct Lanes {
    works: BTreeMap<Lane, Work>,
    touched: Touched,
    cursors_made: bool,
}

/// What was learned about the lanes while the ledger was read.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    /// Lanes whose cursor could not be read at all: everything in them was looked for.
    pub(crate) lost: Vec<Lane>,
    /// Lanes of which only the durable part of the cursor could be read.
    pub(crate) notes_lost: Vec<Lane>,
    /// Says that some notes were made in another boot of the kernel.
    pub(crate) new_boot: bool,
}

/// Gives what a record wants done, each with its lane; the files of one lane are numbered.
fn items_of(entry: &Arc<Entry>) -> Vec<(Lane, Item)> {
    let mut items: Vec<(Lane, Item)> = Vec::with_capacity(entry.deliveries.len() + 1);
    for (index, delivery) in entry.deliveries.iter().enumerate() {
        let before = entry.deliveries[..index]
            .iter()
            .filter(|earlier| earlier.mailbox == delivery.mailbox)
            .count();
        let n = u32::try_from(before).expect("a record has few deliveries");
        let pos = Pos { seq: entry.seq, n };
        items.push((
            Lane::Mailbox(delivery.mailbox.clone()),
            Item {
                pos,
                entry: Arc::clone(entry),
                index,
            },
        ));
    }
    if let Some(original) = &entry.original {
        let pos = Pos {
            seq: entry.seq,
            n: 0,
        };
        items.push((
            Lane::Outbox(original.outbox.clone()),
            Item {
                pos,
                entry: Arc::clone(entry),
                index: 0,
            },
        ));
    }
    items
}

/// Notes what was done in a lane and is not known to be durable.
fn touch(touched: &mut Touched, lane: &Lane, item: &Item) {
    let (dir, file) = match lane {
        Lane::Mailbox(mailbox) => (
            layout::mailbox_dir(mailbox),
            &item.entry.deliveries[item.index].file,
        ),
        Lane::Outbox(agent) => {
            let original = item
                .entry
                .original
                .as_ref()
                .expect("an item of an outbox has an original");
            touched.dir(&layout::agent_dir(agent, "outbox"));
            match &original.away {
                Away::Sent(file) => (layout::agent_dir(agent, "sent"), file),
                Away::DeadLetter(file) => (layout::agent_dir(agent, "dead_letter"), file),
            }
        }
    };
    // The directory may have been made by that process as well.
    touched.lane(lane, &dir, true);
    touched.file_before(&dir, file, item.pos.seq);
}

/// Reads the cursor files before the ledger is read, and collects what is still to be done while it is.
pub(crate) struct Gathering {
    cursors: Cursors,
    works: BTreeMap<Lane, Work>,
    doubts: Doubts,
    touched: Touched,
    boot: String,
}

impl Gathering {
    pub(crate) fn read(root: &OpenRoot) -> Result<Gathering, SpoolError> {
        Ok(Gathering {
            cursors: Cursors::read(root)?,
            works: BTreeMap::new(),
            doubts: Doubts::default(),
            touched: Touched::default(),
            boot: root.boot.clone(),
        })
    }

    /// The cursors as they were read.
    pub(crate) fn cursors(&self) -> &Cursors {
        &self.cursors
    }

    /// Knows these lanes without having seen their records: each has followed them to the end.
    pub(crate) fn know(&mut self, heads: &Heads) {
        for (lane, _) in heads.iter() {
            self.work(lane.clone());
        }
    }

    /// Takes from a record what its lanes have not done yet.
    pub(crate) fn admit(&mut self, entry: &Arc<Entry>) {
        for (lane, item) in items_of(entry) {
            let work = self.work(lane);
            if item.pos > work.progress.done {
                work.push(item);
            } else if item.pos > work.progress.durable {
                // An earlier process of this boot did it and was killed before its checkpoint.
                let lane = work.lane.clone();
                touch(&mut self.touched, &lane, &item);
            }
        }
    }

    fn work(&mut self, lane: Lane) -> &mut Work {
        match self.works.entry(lane) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => {
                let bytes = self.cursors.of(&new.key().cursor_name());
                // The ledger's end is not known yet; `settle` puts it in.
                let (progress, trust) = Progress::read(bytes, &self.boot, u64::MAX);
                match trust {
                    Trust::Whole => {}
                    Trust::NewBoot => self.doubts.new_boot = true,
                    Trust::NotesLost => self.doubts.notes_lost.push(new.key().clone()),
                    Trust::Lost => self.doubts.lost.push(new.key().clone()),
                }
                let work = Work::new(new.key().clone(), progress);
                new.insert(work)
            }
        }
    }

    /// Ends the reading at record `head`.
    pub(crate) fn settle(
        mut self,
        root: &OpenRoot,
        head: u64,
    ) -> Result<(Lanes, Doubts), SpoolError> {
        self.cursors.check(root, head)?;
        for work in self.works.values_mut() {
            work.progress.verify = work.progress.verify.min(head);
        }
        Ok((
            Lanes {
                works: self.works,
                touched: self.touched,
                cursors_made: false,
            },
            self.doubts,
        ))
    }
}

impl Lanes {
    /// Makes new cursor files in place of lost ones.
    pub(crate) fn replace_cursors(
        &mut self,
        root: &OpenRoot,
        lost: &[Lane],
    ) -> Result<(), SpoolError> {
        let dir = root.dir(layout::CURSORS.as_ref())?;
        for lane in lost {
            if let Some(work) = self.works.get(lane) {
                cursor::make(root, &dir, &lane.cursor_name(), &work.progress)?;
                self.cursors_made = true;
            }
        }
        Ok(())
    }

    /// Makes sure that each lane of these drafts has a cursor before the drafts are committed: a record in a lane
    /// without a cursor then proves that the cursor was lost.
    pub(crate) fn prepare(
        &mut self,
        root: &OpenRoot,
        drafts: &[Draft],
        head: u64,
    ) -> Result<(), SpoolError> {
        for draft in drafts {
            let mailboxes = draft
                .deliveries
                .iter()
                .map(|delivery| Lane::Mailbox(delivery.mailbox.clone()));
            let outbox = draft
                .original
                .iter()
                .map(|original| Lane::Outbox(original.outbox.clone()));
            for lane in mailboxes.chain(outbox) {
                if self.works.contains_key(&lane) {
                    continue;
                }
                let dir = root.dir(layout::CURSORS.as_ref())?;
                let progress = Progress::new_after(head);
                cursor::make(root, &dir, &lane.cursor_name(), &progress)?;
                self.cursors_made = true;
                self.works.insert(lane.clone(), Work::new(lane, progress));
            }
        }
        Ok(())
    }

    /// Takes up what a committed record wants done.
    pub(crate) fn enqueue(&mut self, entry: &Arc<Entry>) {
        for (lane, item) in items_of(entry) {
            self.works
                .get_mut(&lane)
                .expect("every lane of a committed draft was prepared")
                .push(item);
        }
    }

    /// Gives every lane that has something to do, and is not resting at `now` (milliseconds), its turn. Packets come
    /// first, so that whoever reads a message finds the packet it names. Lanes share no directory and no cursor, so
    /// where there is much to do two threads share the others.
    pub(crate) fn pass(&mut self, root: &OpenRoot, in_hand: &InHand, now: u64) -> Pass {
        let due = |work: &&mut Work| {
            (!work.items.is_empty() || work.rest.is_some())
                && work.rest.as_ref().is_none_or(|rest| rest.until <= now)
        };
        let is_of_packets =
            |work: &&mut Work| matches!(work.lane, Lane::Mailbox(Mailbox::Packets(_)));
        let (mut packets, mut works): (Vec<&mut Work>, Vec<&mut Work>) =
            self.works.values_mut().filter(due).partition(is_of_packets);
        let waiting: usize = works.iter().map(|work| work.items.len()).sum();
        let turns = |works: &mut [&mut Work]| {
            let mut done = (Touched::default(), Pass::default());
            for work in works {
                turn(work, root, in_hand, now, &mut done);
            }
            done
        };
        let (packets_touched, packets_pass) = turns(&mut packets);
        let (touched, pass) = if works.len() > 1 && waiting >= WORTH_A_THREAD {
            works.sort_by_key(|work| std::cmp::Reverse(work.items.len()));
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for (n, work) in works.into_iter().enumerate() {
                if n % 4 == 0 || n % 4 == 3 {
                    ours.push(work);
                } else {
                    theirs.push(work);
                }
            }
            let (ours, shared) = std::thread::scope(|scope| {
                let shared = std::thread::Builder::new()
                    .spawn_scoped(scope, || turns(&mut theirs))
                    .ok();
                (turns(&mut ours), shared.map(|shared| shared.join()))
            });
            // Where no thread is to be had, this one does both halves.
            let theirs = match shared {
                Some(done) => done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                None => turns(&mut theirs),
            };
            self.touched.merge(theirs.0);
            (ours.0, ours.1.and(theirs.1))
        } else {
            turns(&mut works)
        };
        self.touched.merge(packets_touched);
        self.touched.merge(touched);
        let mut pass = packets_pass.and(pass);
        pass.parked.sort_by(|a, b| a.lane.cmp(&b.lane));
        pass
    }

    /// Lists the lanes that rest.
    pub(crate) fn parked(&self) -> Vec<Parked> {
        self.works.values().filter_map(parked).collect()
    }

    /// Says when the next lane is to be tried again, in milliseconds of the caller's monotonic clock.
    pub(crate) fn next_retry(&self) -> Option<u64> {
        self.works
            .values()
            .filter_map(|work| work.rest.as_ref().map(|rest| rest.until))
            .min()
    }

    /// Says how many files wait in all lanes.
    pub(crate) fn waiting(&self) -> usize {
        self.works.values().map(|work| work.items.len()).sum()
    }

    /// Says whether this lane has not yet done all that record `seq` wants of it.
    pub(crate) fn owes(&self, lane: &Lane, seq: u64) -> bool {
        let next = self.works.get(lane).and_then(|work| work.items.front());
        next.is_some_and(|item| item.pos.seq <= seq)
    }

    /// Lists the originals that still wait to be put away, after the start.
    pub(crate) fn in_hand(&self) -> InHand {
        let in_hand = InHand::default();
        let waiting = self
            .works
            .values()
            .filter(|work| matches!(work.lane, Lane::Outbox(_)));
        for original in waiting
            .flat_map(|work| &work.items)
            .filter_map(|item| item.entry.original.as_ref())
        {
            in_hand.add(&original.outbox, &original.file);
        }
        in_hand
    }

    /// Says whether nothing waits and everything done survives a power cut.
    pub(crate) fn are_at_rest(&self) -> bool {
        self.waiting() == 0 && self.touched.lanes.is_empty() && !self.cursors_made
    }
}

fn turn(work: &mut Work, root: &OpenRoot, in_hand: &InHand, now: u64, done: &mut (Touched, Pass)) {
    let (touched, pass) = done;
    match work.turn(root, in_hand, touched, pass) {
        Ok(()) => work.rest = None,
        Err(error) => {
            let pause = work
                .rest
                .as_ref()
                .map_or(PAUSE_MIN_MS, |rest| (rest.pause * 2).min(PAUSE_MAX_MS));
            work.rest = Some(Rest {
                why: error.chain(),
                until: now.saturating_add(pause),
                pause,
            });
            pass.parked.extend(parked(work));
        }
    }
}

fn parked(work: &Work) -> Option<Parked> {
    let rest = work.rest.as_ref()?;
    let lane = work.lane.clone();
    Some(Parked {
        lane,
        why: rest.why.clone(),
        retry_at: rest.until,
        waiting: work.items.len(),
    })
}
