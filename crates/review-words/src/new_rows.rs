//! Rows in memory, by their keys. Keys are hashes, so a map can use their first bytes directly; rows are sorted only
//! when a caller needs an order.
//!
//! All values are in one block of memory: thousands come and go together with each snapshot, and as many small blocks
//! would be spread over the pages of everything that lives longer.

#![expect(
    clippy::disallowed_types,
    reason = "its hasher has no seed, so its order is the same in every run, and who needs an order sorts"
)]

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use crate::table::{GROUP, RowKey};

const KEY: usize = size_of::<RowKey>();

/// The part of a key behind its group.
type OwnKey = [u8; KEY - GROUP];

/// The values of a table move together once more than this many bytes of their block, and more than half of it, belong to no
/// row.
const UNUSED_MAX: usize = 64 * 1024;

/// All new rows of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewRows {
    groups: HashMap<[u8; GROUP], GroupRows, BuildHasherDefault<FirstBytes>>,
    /// The values, and the number of their bytes that belong to no row.
    values: Vec<u8>,
    unused: usize,
}

/// The rows of one group: nearly always one.
#[derive(Clone, Debug)]
enum GroupRows {
    One(OwnKey, ValuePlace),
    /// Two or more.
    More(BTreeMap<OwnKey, ValuePlace>),
}

/// The place of a value in the block.
#[derive(Clone, Copy, Debug)]
struct ValuePlace {
    begin: usize,
    len: usize,
}

impl ValuePlace {
    fn of(self, values: &[u8]) -> &[u8] {
        &values[self.begin..][..self.len]
    }
}

impl NewRows {
    pub(crate) fn get(&self, key: &RowKey) -> Option<&[u8]> {
        let (group, own) = split(key);
        let place = match self.groups.get(&group)? {
            GroupRows::One(known, place) => (*known == own).then_some(place),
            GroupRows::More(rows) => rows.get(&own),
        };
        Some(place?.of(&self.values))
    }

    pub(crate) fn insert(&mut self, key: RowKey, value: &[u8]) {
        let (group, own) = split(&key);
        let place = ValuePlace {
            begin: self.values.len(),
            len: value.len(),
        };
        self.values.extend_from_slice(value);
        match self.groups.entry(group) {
            std::collections::hash_map::Entry::Vacant(new) => {
                new.insert(GroupRows::One(own, place));
            }
            std::collections::hash_map::Entry::Occupied(mut known) => {
                let before = known.get_mut().insert(own, place);
                self.unused += before.map_or(0, |before| before.len);
                self.move_together();
            }
        }
    }

    pub(crate) fn remove(&mut self, key: &RowKey) {
        let (group, own) = split(key);
        let Some(rows) = self.groups.get_mut(&group) else {
            return;
        };
        let removed = match rows {
            GroupRows::One(known, place) if *known == own => {
                let place = *place;
                self.groups.remove(&group);
                Some(place)
            }
            GroupRows::One(..) => None,
            GroupRows::More(more) => {
                let removed = more.remove(&own);
                // Rows that were removed leave nothing behind.
                if more.len() == 1
                    && let Some((own, place)) = more.pop_first()
                {
                    *rows = GroupRows::One(own, place);
                }
                removed
            }
        };
        self.unused += removed.map_or(0, |place| place.len);
        self.move_together();
    }

    /// Drops the bytes that belong to no row, once they are more than the others.
    fn move_together(&mut self) {
        if self.unused <= UNUSED_MAX.max(self.values.len() / 2) {
            return;
        }
        let before = std::mem::take(self);
        before
            .iter()
            .for_each(|(key, value)| self.insert(key, value));
    }

    pub(crate) fn extend(&mut self, newer: &NewRows) {
        newer
            .iter()
            .for_each(|(key, value)| self.insert(key, value));
    }

    /// Returns all rows, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (RowKey, &[u8])> {
        let groups = self.groups.iter();
        groups.flat_map(|(group, rows)| rows.iter(group, &self.values))
    }

    /// Returns the rows whose keys begin with `prefix`, in no particular order.
    pub(crate) fn beginning_with<'a>(
        &'a self,
        prefix: &'a [u8],
    ) -> Box<dyn Iterator<Item = (RowKey, &'a [u8])> + 'a> {
        match prefix.first_chunk::<GROUP>() {
            Some(group) => {
                let rows = self.groups.get_key_value(group).into_iter();
                let rows = rows.flat_map(|(group, rows)| rows.iter(group, &self.values));
                Box::new(rows.filter(move |(key, _)| key.starts_with(prefix)))
            }
            None => Box::new(self.iter().filter(move |(key, _)| key.starts_with(prefix))),
        }
    }
}

/// Rows are equal if they have the same values, wherever these are.
impl PartialEq for NewRows {
    fn eq(&self, other: &Self) -> bool {
        self.iter().count() == other.iter().count()
            && self
                .iter()
                .all(|(key, value)| other.get(&key) == Some(value))
    }
}

impl GroupRows {
    /// Adds a row, and returns the value that it had before.
    fn insert(&mut self, own: OwnKey, place: ValuePlace) -> Option<ValuePlace> {
        match self {
            GroupRows::One(known, before) if *known == own => {
                Some(std::mem::replace(before, place))
            }
            GroupRows::One(known, before) => {
                *self = GroupRows::More(BTreeMap::from([(*known, *before), (own, place)]));
                None
            }
            GroupRows::More(rows) => rows.insert(own, place),
        }
    }

    fn iter<'a>(
        &'a self,
        group: &'a [u8; GROUP],
        values: &'a [u8],
    ) -> impl Iterator<Item = (RowKey, &'a [u8])> {
        let (one, more) = match self {
            GroupRows::One(own, place) => (Some((own, place)), None),
            GroupRows::More(rows) => (None, Some(rows)),
        };
        let rows = one.into_iter().chain(more.into_iter().flatten());
        rows.map(move |(own, place)| (joined(group, own), place.of(values)))
    }
}

fn split(key: &RowKey) -> ([u8; GROUP], OwnKey) {
    let (group, own) = key.split_first_chunk().expect("a key is longer");
    (*group, own.try_into().expect("the rest of a key"))
}

fn joined(group: &[u8; GROUP], own: &OwnKey) -> RowKey {
    let mut key = [0; KEY];
    key[..GROUP].copy_from_slice(group);
    key[GROUP..].copy_from_slice(own);
    key
}

/// Hashes a group's key: seven of its bytes are a hash already, and the first is the kind.
#[derive(Debug, Default)]
pub(crate) struct FirstBytes(u64);

impl Hasher for FirstBytes {
    fn write(&mut self, bytes: &[u8]) {
        // The map writes the length of an array before its bytes.
        if let Some(group) = bytes.first_chunk() {
            // The product moves differences to the high bits, which the map looks at first.
            self.0 = u64::from_be_bytes(*group).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    fn write_usize(&mut self, _length: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_that_are_overwritten_or_removed_take_no_more_room_than_the_others() {
        let mut rows = NewRows::default();
        let key = |n: u8| [n; KEY];
        for round in 0..1_000_u32 {
            for n in 0..10 {
                rows.insert(key(n), &[round.to_le_bytes()[0] ^ n; 1_000]);
            }
            rows.remove(&key(10));
            rows.insert(key(10), &[1; 1_000]);
        }
        assert!(
            rows.values.len() <= UNUSED_MAX + 12_000,
            "{}",
            rows.values.len()
        );
        for n in 0..10 {
            assert_eq!(rows.get(&key(n)), Some(&[231 ^ n; 1_000][..]));
        }
    }

    proptest! {
        #[test]
        fn rows_are_those_of_an_ordered_map(
            steps in prop::collection::vec((0..3_u8, 0..3_u8, 0..4_u8), 0..40)
        ) {
            let (mut rows, mut model) = (NewRows::default(), BTreeMap::new());
            for (group, own, value) in steps {
                let mut key = [7; KEY];
                (key[GROUP - 1], key[KEY - 1]) = (group, own);
                if value == 0 {
                    rows.remove(&key);
                    model.remove(&key);
                } else {
                    rows.insert(key, &[value]);
                    model.insert(key, [value]);
                }
                prop_assert_eq!(rows.get(&key), model.get(&key).map(|value| &value[..]));
                for length in [1, GROUP, KEY] {
                    let mut found: Vec<_> = rows.beginning_with(&key[..length]).collect();
                    found.sort_unstable();
                    let of_model = model.iter().map(|(key, value)| (*key, &value[..]));
                    let wanted: Vec<_> =
                        of_model.filter(|(known, _)| known.starts_with(&key[..length])).collect();
                    prop_assert_eq!(found, wanted);
                }
            }
            // Removed rows leave nothing behind.
            let mut same = NewRows::default();
            model.into_iter().for_each(|(key, value)| same.insert(key, &value));
            prop_assert_eq!(rows, same);
        }
    }
}
