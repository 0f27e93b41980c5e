//! Reads a stretch of the ledger of an open workspace. A module above both, so that the ledger knows no workspace.

use crate::ledger::read::{self, LedgerEnd, Stretch, Visit};
use crate::root::OpenRoot;
use crate::{SpoolError, dirs};

/// Reads the stretch and hands every record to `visit`.
pub(crate) fn read(
    root: &OpenRoot,
    stretch: &Stretch,
    visit: &mut Visit<'_>,
) -> Result<LedgerEnd, SpoolError> {
    let dir = root.dir(dirs::LEDGER.as_ref())?;
    read::read(&*root.disk, &root.layout, &dir.handle, stretch, visit)
}
