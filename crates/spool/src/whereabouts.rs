//! Whether a delivered file still lies where it was delivered. That it is gone says that its reader has it.

use crate::delivery::Lane;
use crate::{FileName, Mailbox, Spool, SpoolError, disk, layout};

impl Spool {
    /// Says whether a file that record `seq` made in this mailbox has been taken out of it. One that is still to be made,
    /// and one whose whole mailbox is gone, has not; a file of another origin under its name hides that it has.
    pub fn has_left(&self, mailbox: &Mailbox, file: &FileName, seq: u64) -> Result<bool, SpoolError> {
        if self.lanes.owes(&Lane::Mailbox(mailbox.clone()), seq) {
            return Ok(false);
        }
        let Some(dir) = self.ground.dir_if_there(&layout::mailbox_dir(mailbox))? else { return Ok(false) };
        for name in file.variants(seq) {
            let found = disk::if_there(self.ground.disk.stat_at(&dir.handle, name.as_ref()));
            if found.map_err(|source| self.ground.error_at("look at", &dir, &name, source))?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
