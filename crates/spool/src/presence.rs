//! Tells whether delivered files are still in their mailboxes: a missing file was taken by its reader.

use std::collections::{BTreeMap, HashSet};

use crate::delivery::Lane;
use crate::directory_stamp::DirectoryStamp;
use crate::root::Dir;
use crate::{FileName, Mailbox, Now, Spool, SpoolError, layout};

/// After this many questions about one mailbox, listing it is cheaper than looking for each file.
const WORTH_A_LIST: usize = 64;

/// The time after which an unchanged mailbox is listed again, in milliseconds: some file systems do not keep the times
/// of their directories.
const REMEMBERED_MS: u64 = 30_000;

/// Mailboxes from which nothing had left at the last look, and what they looked like.
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

/// One look at many delivered files, which lists a mailbox at most once, and not at all while it looks as it did.
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
    /// Files of earlier records are there, as the memory says.
    known_below: u64,
    /// Every file in the question is there.
    is_whole: bool,
}

impl Spool {
    /// Begins a look at delivered files. It lists a mailbox after many questions about it, so an answer may be as old
    /// as that list.
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
    /// Says whether its reader took a file that record `seq` made in this mailbox. A file that is still to be made has
    /// not been taken, nor has any if the whole mailbox is gone; another file under the same name hides that it was.
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
            Some(dir) => DirectoryStamp::settled(root, dir, self.now)?,
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

    /// Ends the look: remembers the mailboxes in which everything was there. The questions must have covered every
    /// delivered file.
    pub fn remember(self) {
        let next_seq = self.spool.next_seq();
        let PresenceMemory(memory) = self.memory;
        memory.retain(|mailbox, _| self.mailboxes.contains_key(mailbox));
        for (mailbox, asked) in self.mailboxes {
            match asked.stamp.filter(|_| asked.is_whole) {
                // Only the names that are new since then were looked up.
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
    /// Says whether the file has left; `None` if it cannot have come, or the mailbox no longer exists.
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
            let names = root.disk.list(&dir.handle);
            let names = names.map_err(|source| root.error("list", &dir.path, source))?;
            self.listed = Some(names.into_iter().collect());
        }
        if self
            .listed
            .as_ref()
            .is_some_and(|names| names.contains(file))
        {
            return Ok(Some(false));
        }
        // A list may miss a name while others are renamed in the directory, so it proves presence, never absence.
        for name in file.variants(seq) {
            if root.look(dir, &name)?.is_some() {
                return Ok(Some(false));
            }
        }
        Ok(Some(true))
    }
}
