//! Compares every snapshot with the whole ledger: its state must equal the fold of the records up to it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::load::{Checked, NO_LANES, NotTaken, heads_of, load};
use super::{Fold, list};
use crate::delivery::{Cursors, Heads, Lane, Pos, items_of};
use crate::ledger::Verified;
use crate::ledger::read::Stretch;
use crate::root::OpenRoot;
use crate::{Entry, FileName, SpoolError, VisitError, stretch};
use disk::Os;

/// The result of comparing a snapshot with the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Agreement {
    /// The fold of the records equals its state.
    Agrees,
    /// It does not, although a start would load it: remove it and report it.
    Differs,
    /// It is intact but was made from records that the ledger does not hold.
    Contradicts(String),
    /// No start loads it, for this reason.
    PassedOver(String),
}

impl From<NotTaken> for Agreement {
    fn from(why: NotTaken) -> Agreement {
        match why {
            NotTaken::Contradicts(what) => Agreement::Contradicts(what),
            NotTaken::OfNoUse(why) => Agreement::PassedOver(why),
        }
    }
}

/// Reads the whole ledger of the workspace at `root` without the lock, checks the chain, and checks that it holds every
/// record the cursors name, as a start does; damage is an error that names the line. Hands every record to `visit`.
/// Then compares each snapshot with the fold of the records up to it, oldest first, keyed by its last record.
pub fn verify_with<F: Fold + Default + PartialEq>(
    root: &Path,
    visit: &mut dyn FnMut(&Entry) -> Result<(), VisitError>,
) -> Result<(Verified, Vec<(u64, Agreement)>), SpoolError> {
    let root = OpenRoot::look_at(root, Arc::new(Os))?;
    // Cursors before the ledger: a running daemon advances both, the ledger first.
    let cursors = Cursors::read(&root)?;
    let mut snapshots: BTreeMap<u64, FileName> = list(&root)?.into_iter().collect();
    let mut owed_after = owed_after(&root, &snapshots);
    let whole = (NO_LANES, Checked::Whole);
    let (mut fold, mut heads) = (F::default(), Heads::default());
    let mut found: BTreeMap<u64, Agreement> = BTreeMap::new();
    let end = stretch::read(&root, &Stretch::default(), &mut |record| {
        let entry = &record.entry;
        heads.note(&items_of(entry), &record.place, &mut owed_after);
        let visited = fold.add(entry).and_then(|()| visit(entry));
        visited.map_err(SpoolError::visit(entry))?;
        if let Some(name) = snapshots.get(&entry.seq) {
            let mut kept = F::default();
            let agreement = match load(&root, whole, entry.seq, name, &mut kept) {
                Ok(taken) if taken.heads.agree_with(&heads) && kept == fold => Agreement::Agrees,
                Ok(_) => Agreement::Differs,
                // A running daemon made a newer one and removed this.
                Err(_) if list(&root)?.iter().all(|(seq, _)| *seq != entry.seq) => {
                    return Ok(());
                }
                Err(why) => Agreement::from(why),
            };
            found.insert(entry.seq, agreement);
        }
        Ok(())
    })?;
    cursors.check(&root, end.place.seq)?;
    for (seq, name) in snapshots.split_off(&(end.place.seq + 1)) {
        let agreement = match load(&root, whole, seq, &name, &mut F::default()) {
            Ok(_) => Agreement::Differs,
            Err(why) => Agreement::from(why),
        };
        found.insert(seq, agreement);
    }
    Ok((end.verified(), found.into_iter().collect()))
}

/// Returns, for each lane, the item after which one of the snapshots lists what the lane needs.
fn owed_after(
    root: &OpenRoot,
    snapshots: &BTreeMap<u64, FileName>,
) -> impl FnMut(&Lane) -> Pos + use<> {
    let mut owed_after: BTreeMap<Lane, Pos> = BTreeMap::new();
    for heads in snapshots
        .values()
        .filter_map(|name| heads_of(root, name).ok())
    {
        for (lane, head) in heads.iter().filter(|(_, head)| !head.owed.is_empty()) {
            let after = owed_after.entry(lane.clone()).or_insert(Pos::END);
            *after = head.owed_after.min(*after);
        }
    }
    move |lane| owed_after.get(lane).copied().unwrap_or(Pos::END)
}
