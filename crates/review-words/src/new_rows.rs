//! Rows in memory, by their keys. Keys are hashes, so a map can use their first bytes directly; rows are sorted only
//! when a caller needs an order.

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

/// All new rows of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NewRows(HashMap<[u8; GROUP], GroupRows, BuildHasherDefault<FirstBytes>>);

/// The rows of one group: nearly always one.
#[derive(Clone, Debug, PartialEq)]
enum GroupRows {
    One(OwnKey, Box<[u8]>),
    /// Two or more.
    More(BTreeMap<OwnKey, Box<[u8]>>),
}

impl NewRows {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, key: &RowKey) -> Option<&[u8]> {
        let (group, own) = split(key);
        match self.0.get(&group)? {
            GroupRows::One(known, value) => (*known == own).then_some(value),
            GroupRows::More(rows) => rows.get(&own).map(|value| &**value),
        }
    }

    pub(crate) fn insert(&mut self, key: RowKey, value: Box<[u8]>) {
        let (group, own) = split(&key);
        match self.0.entry(group) {
            std::collections::hash_map::Entry::Vacant(new) => {
                new.insert(GroupRows::One(own, value));
            }
            std::collections::hash_map::Entry::Occupied(mut known) => {
                known.get_mut().insert(own, value);
            }
        }
    }

    pub(crate) fn remove(&mut self, key: &RowKey) {
        let (group, own) = split(key);
        if let Some(rows) = self.0.remove(&group)
            && let Some(rest) = rows.without(&own)
        {
            self.0.insert(group, rest);
        }
    }

    pub(crate) fn extend(&mut self, newer: NewRows) {
        for (group, rows) in newer.0 {
            match rows {
                GroupRows::One(own, value) => self.insert(joined(&group, &own), value),
                GroupRows::More(rows) => {
                    for (own, value) in rows {
                        self.insert(joined(&group, &own), value);
                    }
                }
            }
        }
    }

    /// Returns all rows, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (RowKey, &[u8])> {
        self.0.iter().flat_map(|(group, rows)| rows.iter(group))
    }

    /// Returns the rows whose keys begin with `prefix`, in no particular order.
    pub(crate) fn beginning_with<'a>(
        &'a self,
        prefix: &'a [u8],
    ) -> Box<dyn Iterator<Item = (RowKey, &'a [u8])> + 'a> {
        match prefix.first_chunk::<GROUP>() {
            Some(group) => {
                let rows = self.0.get_key_value(group).into_iter();
                let rows = rows.flat_map(|(group, rows)| rows.iter(group));
                Box::new(rows.filter(move |(key, _)| key.starts_with(prefix)))
            }
            None => Box::new(self.iter().filter(move |(key, _)| key.starts_with(prefix))),
        }
    }
}

impl GroupRows {
    fn insert(&mut self, own: OwnKey, value: Box<[u8]>) {
        match self {
            GroupRows::One(known, before) if *known == own => *before = value,
            GroupRows::One(known, before) => {
                let before = (*known, std::mem::take(before));
                *self = GroupRows::More(BTreeMap::from([before, (own, value)]));
            }
            GroupRows::More(rows) => {
                rows.insert(own, value);
            }
        }
    }

    fn without(self, own: &OwnKey) -> Option<GroupRows> {
        match self {
            GroupRows::One(known, _) if known == *own => None,
            GroupRows::One(..) => Some(self),
            GroupRows::More(mut rows) => {
                rows.remove(own);
                if rows.len() == 1 {
                    let (own, value) = rows.pop_first()?;
                    return Some(GroupRows::One(own, value));
                }
                Some(GroupRows::More(rows))
            }
        }
    }

    fn iter(&self, group: &[u8; GROUP]) -> impl Iterator<Item = (RowKey, &[u8])> {
        let (one, more) = match self {
            GroupRows::One(own, value) => (Some((own, value)), None),
            GroupRows::More(rows) => (None, Some(rows)),
        };
        let rows = one.into_iter().chain(more.into_iter().flatten());
        rows.map(|(own, value)| (joined(group, own), &**value))
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
                    rows.insert(key, Box::new([value]));
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
            model.into_iter().for_each(|(key, value)| same.insert(key, Box::new(value)));
            prop_assert_eq!(rows, same);
        }
    }
}
