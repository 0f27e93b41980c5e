//! The open spool: commits decisions, delivers what is committed, and makes durable what is delivered.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::delivery::{Begun, Lanes, Parked, Pass, SyncOutcome};
use crate::join::join;
use crate::layout::{self, Layout};
use crate::ledger::{Ledger, is_gone};
use crate::lock::LockGuard;
use crate::log::{Signatures, Signed};
use crate::packet::Packets;
use crate::root::{DirState, OpenRoot};
use crate::view::{JudgedOriginals, View};
use crate::{Content, Entry, EntryDraft, FileName, Homes, HostName, SpoolError, dirs};
use disk::Handle;
use ledger_records::{Batch, Head};

/// A record that the ledger holds. Only [`Spool::commit`] and [`Spool::mirror`] make one.
#[derive(Debug, Clone)]
pub struct Committed(Arc<Entry>);

impl Deref for Committed {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        &self.0
    }
}

/// The workspace's files, held by one process at a time. Opened with [`Spool::resume`].
pub struct Spool {
    pub(crate) root: OpenRoot,
    pub(crate) ledger: Ledger,
    pub(crate) lanes: Lanes,
    pub(crate) judged: JudgedOriginals,
    pub(crate) packets: Packets,
    /// The signatures of a shared ledger's batches, once the first one arrived.
    pub(crate) signatures: Option<Signatures>,
    /// The most files of one delivery slice.
    pub(crate) slice_max: usize,
    /// Held as long as the spool lives.
    pub(crate) _lock: LockGuard,
}

/// A checkpoint that was begun, for another thread: deliveries go on meanwhile.
pub struct Checkpoint {
    root: OpenRoot,
    begun: Begun,
    /// Somebody waits for it.
    is_awaited: Arc<AtomicBool>,
}

/// A checkpoint that was synced or failed, to be given back with [`Spool::end_checkpoint`].
#[derive(Debug)]
pub struct SyncedCheckpoint(SyncOutcome);

impl Checkpoint {
    /// Makes durable what was delivered when the checkpoint began, and notes it in the cursors. May take seconds.
    pub fn sync(self) -> SyncedCheckpoint {
        SyncedCheckpoint(self.begun.sync(&self.root, &self.is_awaited))
    }
}

impl Spool {
    /// The number the next record gets, from 1.
    pub fn next_seq(&self) -> u64 {
        self.ledger.next_seq()
    }

    /// Returns the paths of the workspace.
    pub fn layout(&self) -> &Layout {
        &self.root.layout
    }

    /// Starts a new segment once the last one has this many bytes; the default is 64 MiB.
    pub fn limit_segments(&mut self, bytes: u64) {
        self.ledger.limit_segments(bytes);
    }

    /// Limits a delivery slice to about this many files; by default a slice is unlimited.
    pub fn limit_slices(&mut self, files: usize) {
        self.slice_max = files;
    }

    /// Creates the missing mailboxes of a known agent, except its outbox, and returns what it created, relative to the
    /// root. Fails for an unknown agent: one without an outbox and an inbox.
    pub fn make_mailboxes(&self, agent: &str) -> Result<Vec<PathBuf>, SpoolError> {
        if !dirs::is_agent_name(agent) {
            let no_agent = std::io::ErrorKind::InvalidInput.into();
            return Err(self
                .root
                .error("make mailboxes of", Path::new(agent), no_agent));
        }
        let mut made = Vec::new();
        for path in layout::remade_dirs(agent) {
            let (dir, state) = self.root.dir_of_known(&path, Some(agent))?;
            made.extend((state == DirState::Made).then_some(dir.path));
        }
        if !made.is_empty() {
            // A checkpoint syncs their content and relies on the directories themselves being durable.
            let home = self.root.dir(&layout::agent_home(agent))?;
            self.root
                .disk
                .sync_dir(&home.handle)
                .map_err(SpoolError::io("sync", self.root.path(&home.path)))?;
        }
        Ok(made)
    }

    /// Commits a batch, decided for a ledger whose next record is `expected_seq`, with one write and one sync.
    ///
    /// After `Ok` every record is durable and its files will be made, by [`Spool::deliver`] now or after a restart.
    /// After a retryable error nothing was written. After any other error the spool has stopped.
    pub fn commit(
        &mut self,
        expected_seq: u64,
        drafts: Vec<EntryDraft>,
    ) -> Result<Vec<Committed>, SpoolError> {
        self.ledger.stopped()?;
        let next = self.ledger.next_seq();
        if expected_seq != next {
            return Err(SpoolError::Sequence {
                expected: expected_seq,
                next,
            });
        }
        check_all(&drafts)?;
        if drafts.is_empty() {
            return Ok(Vec::new());
        }
        let files = drafts
            .iter()
            .map(|draft| (&*draft.deliveries, draft.original.as_ref()));
        self.lanes.prepare(&self.root, files, next - 1)?;
        self.append(Batch::write(drafts, self.head(), None))
    }

    fn append(&mut self, batch: Batch) -> Result<Vec<Committed>, SpoolError> {
        let places = self.ledger.append(&batch)?;
        let entries = batch.into_entries();
        for (entry, place) in entries.iter().zip(places) {
            self.lanes.enqueue(entry, place);
            if let Some(original) = &entry.original
                && self.homes().has(&original.outbox)
            {
                self.judged.add(&original.outbox, &original.file);
            }
        }
        Ok(entries.into_iter().map(Committed).collect())
    }

    /// Returns the agents whose mail is delivered here.
    pub fn homes(&self) -> &Homes {
        &self.lanes.homes
    }

    /// The end of the ledger.
    pub fn head(&self) -> Head {
        self.ledger.end()
    }

    /// Encodes what `host` decided for the current end, for a log that several hosts share. Commits nothing.
    pub fn propose(&self, drafts: Vec<EntryDraft>, host: &HostName) -> Result<Batch, SpoolError> {
        check_all(&drafts)?;
        Ok(Batch::write(drafts, self.head(), Some(host)))
    }

    /// Makes the signatures of batches durable with one sync, before any of them is mirrored.
    pub fn note_signatures(&mut self, batches: &[Signed]) -> Result<(), SpoolError> {
        self.ledger.stopped()?;
        let open = self
            .signatures
            .take()
            .map_or_else(|| Signatures::open(&self.root), Ok)?;
        self.signatures.insert(open).add(&self.root, batches)
    }

    /// Mirrors a batch that the log holds, byte for byte; its signature must be noted before. A kill may have left some
    /// of its lines here already. Each batch gets a sync of its own, although the log holds it: a batch that begins
    /// only after the one before is durable is what tells a torn tail from damage.
    ///
    /// After a retryable error nothing was written, and the log returns the batch again.
    pub fn mirror(&mut self, signed: &Signed) -> Result<Vec<Committed>, SpoolError> {
        self.ledger.stopped()?;
        let head = self.head();
        let rest = signed.batch.rest(head).ok_or(SpoolError::Sequence {
            expected: signed.batch.after().seq + 1,
            next: head.seq + 1,
        })?;
        let entries = rest.entries().iter();
        let files = entries.map(|entry| (&*entry.deliveries, entry.original.as_ref()));
        self.lanes.prepare(&self.root, files, head.seq)?;
        self.append(rest)
    }

    /// Makes the files that committed records name and puts their originals away. A lane that fails is parked and
    /// retried in a later pass; `now` is the caller's monotonic clock in milliseconds.
    pub fn deliver(&mut self, now: u64) -> Result<Pass, SpoolError> {
        self.deliver_up_to(usize::MAX, now)
    }

    /// Delivers like [`Spool::deliver`] until a slice is full, so that a flood of files for one agent holds up the
    /// others no longer than that.
    pub fn deliver_slice(&mut self, now: u64) -> Result<Pass, SpoolError> {
        self.deliver_up_to(self.slice_max, now)
    }

    pub(crate) fn deliver_up_to(&mut self, files_max: usize, now: u64) -> Result<Pass, SpoolError> {
        self.ledger.stopped()?;
        let pass = self.lanes.pass(&self.root, &self.judged, now, files_max);
        self.checkpoint_if_due()?;
        Ok(pass)
    }

    /// Makes everything delivered so far survive a power cut and notes that in the cursors; returns when that is done. For
    /// the end. Fails, to be retried, while a checkpoint that was begun has not ended.
    pub fn checkpoint(&mut self) -> Result<(), SpoolError> {
        self.ledger.stopped()?;
        match self.lanes.begin_checkpoint(&self.root)? {
            Some(begun) => self.end(begun.sync(&self.root, &AtomicBool::new(true))),
            None => Ok(()),
        }
    }

    /// Begins a checkpoint of everything delivered so far, if there is anything. It has an effect once
    /// [`Spool::end_checkpoint`] gets it back; if that never happens, there is no other one. Set `is_awaited` to have it
    /// hurry: it then writes what others wrote to the same disk as well.
    pub fn begin_checkpoint(
        &mut self,
        is_awaited: &Arc<AtomicBool>,
    ) -> Result<Option<Checkpoint>, SpoolError> {
        self.ledger.stopped()?;
        let root = self.root.try_clone()?;
        let begun = self.lanes.begin_checkpoint(&self.root)?;
        Ok(begun.map(|begun| Checkpoint {
            root,
            begun,
            is_awaited: Arc::clone(is_awaited),
        }))
    }

    /// Ends a checkpoint. Fails like [`Spool::checkpoint`].
    pub fn end_checkpoint(&mut self, synced: SyncedCheckpoint) -> Result<(), SpoolError> {
        self.ledger.stopped()?;
        self.end(synced.0)
    }

    fn end(&mut self, ended: SyncOutcome) -> Result<(), SpoolError> {
        let ended = self.lanes.end_checkpoint(&self.root, ended);
        ended.inspect_err(|error| {
            if !error.is_retryable() {
                self.ledger.stop(error);
            }
        })
    }

    /// Returns whether a checkpoint has something to do, apart from one that has begun.
    pub fn wants_checkpoint(&self) -> bool {
        self.lanes.is_touched()
    }

    /// Returns whether so much was delivered that a checkpoint should begin without a quiet moment.
    pub fn wants_checkpoint_soon(&self) -> bool {
        self.lanes.has_touched_many()
    }

    /// Fails, not to be retried, if another process moved, removed or changed the root or the ledger: everything written
    /// from then on would go to the wrong place. Costs a few `stat` calls.
    pub fn still_there(&self) -> Result<(), SpoolError> {
        let root = &self.root;
        let path = root.layout.root();
        let replaced = |what: &str| {
            Err(SpoolError::Replaced {
                path: path.to_owned(),
                what: what.to_owned(),
            })
        };
        let look = |handle: &Handle| {
            root.disk
                .stat(handle)
                .map_err(SpoolError::io("look at", path))
        };
        let there = match root.disk.open_root(path) {
            Err(error) if is_gone(&error) => {
                return replaced("was removed or moved away while it was served");
            }
            result => result.map_err(SpoolError::io("open", path))?,
        };
        let (there, ours) = (look(&there)?, look(&root.handle)?);
        if (there.dev, there.ino) != (ours.dev, ours.ino) {
            return replaced("was replaced by another directory while it was served");
        }
        self.ledger.still_there()
    }

    /// Lists the lanes that could not be written and wait for their next try.
    pub fn parked(&self) -> Vec<Parked> {
        self.lanes.parked()
    }

    /// Returns when there is something to deliver, on the caller's monotonic clock in milliseconds: 0 for now,
    /// otherwise the time of a parked lane's next try.
    pub fn next_delivery(&self) -> Option<u64> {
        self.lanes.next_turn()
    }

    /// Lists the agents whose judged messages are owed at least `files` files, in lanes that can be written. Judging
    /// more of their messages would only make other mail wait.
    pub fn flooding(&self, files: usize) -> BTreeSet<String> {
        self.lanes.flooding(files)
    }

    /// Returns whether all committed files are made and all originals put away, except in parked lanes.
    pub fn is_delivered(&self) -> bool {
        self.lanes.is_delivered()
    }

    /// Returns the number of files that are committed and not yet made or put away.
    pub fn waiting(&self) -> usize {
        self.lanes.waiting()
    }

    /// Returns a view that answers questions while deliveries go on.
    pub fn view(&self) -> View<'_> {
        let next_seq = self.ledger.next_seq();
        View {
            root: &self.root,
            judged: &self.judged,
            packets: &self.packets,
            next_seq,
        }
    }

    /// Notes that a watcher saw a file in this folder of `packets/` finished.
    pub fn hint_packet(&self, folder: &str, file: &FileName) {
        let path = layout::packets_dir(folder).join(file);
        let look = || {
            let file = self.root.disk.open_beneath(&self.root.handle, &path);
            file.and_then(|file| self.root.disk.stat(&file)).ok()
        };
        self.packets.hint(&path, look());
    }

    /// Notes the same without a look at the packet: its next reader looks.
    pub fn note_packet(&self, folder: &str, file: &FileName) {
        self.packets
            .hint(&layout::packets_dir(folder).join(file), None);
    }

    /// Delivers like [`Spool::deliver_slice`] while `work` judges the next batch on another core: the two need
    /// different files.
    pub fn deliver_while<T>(
        &mut self,
        now: u64,
        work: impl FnOnce(&View<'_>) -> T,
    ) -> Result<(Pass, T), SpoolError> {
        self.ledger.stopped()?;
        if self.lanes.waiting() == 0 {
            let done = work(&self.view());
            return Ok((Pass::default(), done));
        }
        let (lanes, files_max) = (&mut self.lanes, self.slice_max);
        let view = View {
            root: &self.root,
            judged: &self.judged,
            packets: &self.packets,
            next_seq: self.ledger.next_seq(),
        };
        let (pass, done) = join(
            || lanes.pass(view.root, view.judged, now, files_max),
            || work(&view),
        );
        self.checkpoint_if_due()?;
        Ok((pass, done))
    }

    fn checkpoint_if_due(&mut self) -> Result<(), SpoolError> {
        if !self.lanes.is_checkpoint_due() {
            return Ok(());
        }
        match self.checkpoint() {
            // The next quiet moment, or the next checkpoint that is due, retries it and reports it; no mail waits.
            Err(error) if error.is_retryable() => Ok(()),
            result => result,
        }
    }
}

/// Fails if one of the drafts cannot be carried out.
fn check_all(drafts: &[EntryDraft]) -> Result<(), SpoolError> {
    let mut drafts = drafts.iter().enumerate();
    drafts.try_for_each(|(index, draft)| {
        check(draft).map_err(|what| SpoolError::Unfit { index, what })
    })
}

/// Fails with the reason if a draft cannot be carried out.
fn check(draft: &EntryDraft) -> Result<(), String> {
    for delivery in &draft.deliveries {
        if !delivery.mailbox.is_possible() {
            return Err(format!("there can be no mailbox {}", delivery.mailbox));
        }
        let has_text = draft
            .original
            .as_ref()
            .is_some_and(|original| original.text.is_some());
        if matches!(delivery.content, Content::Original) && !has_text {
            return Err(format!(
                "{} is to get an original whose text the record does not have",
                delivery.mailbox
            ));
        }
    }
    match &draft.original {
        Some(original) if !dirs::is_agent_name(&original.outbox) => {
            Err(format!("there can be no outbox of `{}`", original.outbox))
        }
        Some(_) | None => Ok(()),
    }
}
