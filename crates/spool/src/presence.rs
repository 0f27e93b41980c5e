//! Determines whether delivered files are still in their mailboxes: a missing file was taken by its reader.

use std::collections::{BTreeMap, HashSet};

use crate::delivery::Lane;
use crate::root::Dir;
use crate::{DirectoryStamp, FileName, Mailbox, Now, Spool, SpoolError, layout};

/// After this many questions about one mailbox, listing it is cheaper than looking for each file.
const WORTH_A_LIST: usize = 64;

/// After this time an unchanged mailbox is listed again, in milliseconds: some file systems do not keep the times of
/// their directories.
const REMEMBERED_MS: u64 = 30_000;

/// Mailboxes that had lost no file at the last look, and their stamps.
#[derive(Debug, Default)]
pub struct PresenceMemory(BTreeMap<Mailbox, Remembered>);

#[derive(Debug, Clone, Copy)]
struct Remembered {
    stamp: DirectoryStamp,
    /// The time of that look, on the monotonic clock.
    at: u64,
    /// Every file of an earlier record was there.
    next_seq: u64,
}

/// One look at many delivered files. Lists a mailbox at most once, and not at all while its stamp is unchanged.
pub struct Presence<'a> {
    spool: &'a Spool,
    memory: &'a mut PresenceMemory,
    now: Now,
    mailboxes: BTreeMap<Mailbox, CheckedMailbox>,
}

/// A mailbox in the question; `dir` is `None` if it no longer exists.
#[derive(Default)]
struct CheckedMailbox {
    dir: Option<Dir>,
    times: usize,
    listed: Option<HashSet<FileName>>,
    stamp: Option<DirectoryStamp>,
    /// Files of earlier records are there, according to the memory.
    known_below: u64,
    /// Every file in the question is there.
    is_whole: bool,
}

impl Spool {
    /// Begins a look at delivered files. It lists a mailbox after many questions about it, so an answer may be as old
    /// as that listing.
    pub fn presence<'a>(&'a self, memory: &'a mut PresenceMemory, now: Now) -> Presence<'a> {
        Presence {
            spool: self,
            memory,
            now,
            mailboxes: BTreeMap::new(),
        }
    }
}

impl Presence<'_> {
    /// Returns whether the reader took a file that record `seq` made in this mailbox. False if the file is still to be
    /// made or the whole mailbox is gone. Another file under the same name hides that it was taken.
    pub fn has_left(
        &mut self,
        mailbox: &Mailbox,
        file: &FileName,
        seq: u64,
    ) -> Result<bool, SpoolError> {
        if !self.mailboxes.contains_key(mailbox) {
            let checked = self.check(mailbox)?;
            self.mailboxes.insert(mailbox.clone(), checked);
        }
        let asked = self
            .mailboxes
            .get_mut(mailbox)
            .expect("it was there or was put in");
        if seq < asked.known_below {
            return Ok(false);
        }
        let result = asked.has_left(self.spool, mailbox, file, seq);
        asked.is_whole &= matches!(result, Ok(Some(false)));
        result.map(|left| left == Some(true))
    }

    fn check(&self, mailbox: &Mailbox) -> Result<CheckedMailbox, SpoolError> {
        let root = &self.spool.root;
        let dir = root.dir_if_there(&layout::mailbox_dir(mailbox))?;
        let stamp = match &dir {
            Some(dir) => root.settled_stamp(dir, self.now)?,
            None => None,
        };
        let known = self.memory.0.get(mailbox).filter(|known| {
            Some(known.stamp) == stamp && self.now.mono < known.at.saturating_add(REMEMBERED_MS)
        });
        Ok(CheckedMailbox {
            dir,
            stamp,
            known_below: known.map_or(0, |known| known.next_seq),
            is_whole: true,
            ..CheckedMailbox::default()
        })
    }

    /// Ends the look and remembers the mailboxes in which every file was there. The questions must have covered every
    /// delivered file.
    pub fn remember(self) {
        let next_seq = self.spool.next_seq();
        let PresenceMemory(memory) = self.memory;
        memory.retain(|mailbox, _| self.mailboxes.contains_key(mailbox));
        for (mailbox, asked) in self.mailboxes {
            match asked.stamp.filter(|_| asked.is_whole) {
                // Only the names added since then were looked up.
                Some(_) if asked.known_below > 0 => {
                    if let Some(known) = memory.get_mut(&mailbox) {
                        known.next_seq = next_seq;
                    }
                }
                Some(stamp) => {
                    let at = self.now.mono;
                    let remembered = Remembered {
                        stamp,
                        at,
                        next_seq,
                    };
                    memory.insert(mailbox, remembered);
                }
                None => {
                    memory.remove(&mailbox);
                }
            }
        }
    }
}

impl CheckedMailbox {
    /// Returns whether the file has left; `None` if it cannot have arrived or the mailbox no longer exists.
    fn has_left(
        &mut self,
        spool: &Spool,
        mailbox: &Mailbox,
        file: &FileName,
        seq: u64,
    ) -> Result<Option<bool>, SpoolError> {
        let Spool { root, lanes, .. } = spool;
        let Some(dir) = &self.dir else {
            return Ok(None);
        };
        if lanes.owes(&Lane::of(mailbox), seq) {
            return Ok(None);
        }
        self.times += 1;
        if self.times == WORTH_A_LIST {
            // Its owner may have put any number of others there.
            let names = root.names(dir)?.take(64 * WORTH_A_LIST);
            self.listed = Some(names.collect::<Result<_, _>>()?);
        }
        if self
            .listed
            .as_ref()
            .is_some_and(|names| names.contains(file))
        {
            return Ok(Some(false));
        }
        // The listing may have ended early, or missed a renamed name: it proves presence, never absence.
        for name in file.variants(seq) {
            if root.stat(dir, &name)?.is_some() {
                return Ok(Some(false));
            }
        }
        Ok(Some(true))
    }
}
