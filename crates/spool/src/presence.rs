//! Tells whether delivered files are still in their mailboxes: a file that is gone was taken by its reader.

use std::collections::{BTreeMap, HashSet};

use crate::delivery::Lane;
use crate::root::Dir;
use crate::{FileName, Mailbox, Spool, SpoolError, layout};

/// After this many questions about one mailbox, listing it is cheaper than looking for each file.
const WORTH_A_LIST: usize = 64;

/// One look at many delivered files, which lists a mailbox at most once.
pub struct Presence<'a> {
    spool: &'a Spool,
    mailboxes: BTreeMap<Mailbox, CheckedMailbox>,
}

/// A mailbox that was asked about; `dir` is `None` if it is gone.
#[derive(Default)]
struct CheckedMailbox {
    dir: Option<Dir>,
    times: usize,
    listed: Option<HashSet<FileName>>,
}

impl Spool {
    /// Begins a look at delivered files. It lists a mailbox once it is asked about often, so an answer may be as old as
    /// that list.
    pub fn presence(&self) -> Presence<'_> {
        Presence {
            spool: self,
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
        let Spool { root, lanes, .. } = self.spool;
        if lanes.owes(&Lane::Mailbox(mailbox.clone()), seq) {
            return Ok(false);
        }
        if !self.mailboxes.contains_key(mailbox) {
            let dir = root.dir_if_there(&layout::mailbox_dir(mailbox))?;
            self.mailboxes.insert(
                mailbox.clone(),
                CheckedMailbox {
                    dir,
                    ..CheckedMailbox::default()
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
        // A list may miss a name while others are renamed in the directory, so it proves presence, never absence.
        for name in file.variants(seq) {
            if root.look(dir, &name)?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
