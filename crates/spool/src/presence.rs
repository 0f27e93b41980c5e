//! Whether delivered files still lie where they were delivered. That one is gone says that its reader has it.

use std::collections::{BTreeMap, HashSet};

use crate::delivery::Lane;
use crate::root::Dir;
use crate::{FileName, Mailbox, Spool, SpoolError, layout};

/// From so many questions about one mailbox on, listing it is cheaper than looking for each file by itself.
const WORTH_A_LIST: usize = 64;

/// One look at many delivered files.
pub struct Whereabouts<'a> {
    spool: &'a Spool,
    mailboxes: BTreeMap<Mailbox, Asked>,
}

/// A mailbox that was asked about; without a directory it is gone.
#[derive(Default)]
struct Asked {
    dir: Option<Dir>,
    times: usize,
    listed: Option<HashSet<FileName>>,
}

impl Spool {
    /// Begins a look at delivered files. Where many are asked for it lists their mailbox once, so an answer may be as
    /// old as that.
    pub fn whereabouts(&self) -> Whereabouts<'_> {
        Whereabouts {
            spool: self,
            mailboxes: BTreeMap::new(),
        }
    }
}

impl Whereabouts<'_> {
    /// Says whether a file that record `seq` made in this mailbox has been taken out of it. One that is still to be made,
    /// and one whose whole mailbox is gone, has not; a file of another origin under its name hides that it has.
    pub fn has_left(
        &mut self,
        mailbox: &Mailbox,
        file: &FileName,
        seq: u64,
    ) -> Result<bool, SpoolError> {
        let Spool { root, lanes, .. } = self.spool;
        if lanes.owes(&Lane::Mailbox(mailbox.clone()), seq) {
            return Ok(false);
        }
        if !self.mailboxes.contains_key(mailbox) {
            let dir = root.dir_if_there(&layout::mailbox_dir(mailbox))?;
            self.mailboxes.insert(
                mailbox.clone(),
                Asked {
                    dir,
                    ..Asked::default()
                },
            );
        }
        let asked = self
            .mailboxes
            .get_mut(mailbox)
            .expect("it was there or was put in");
        let Some(dir) = &asked.dir else {
            return Ok(false);
        };
        asked.times += 1;
        if asked.times == WORTH_A_LIST {
            let names = root.disk.list(&dir.handle);
            let names = names.map_err(|source| root.error("list", &dir.path, source))?;
            asked.listed = Some(names.into_iter().collect());
        }
        if asked
            .listed
            .as_ref()
            .is_some_and(|names| names.contains(file))
        {
            return Ok(false);
        }
        // A list may miss a name while others are renamed in its directory, so it proves only what is there.
        for name in file.variants(seq) {
            if root.look(dir, &name)?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
