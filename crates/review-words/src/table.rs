//! Rows found by a key: the rarely needed part of a million records' state. Rows that are new since the last snapshot
//! are in memory; the others are read from the snapshot on demand. The caller that hands in the stored rows decides
//! where they are and whether they can be trusted.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::new_rows::NewRows;

/// The key of a row: its kind, seven bytes of the hash of its group, and twelve of its own hash. No writer can choose
/// texts so that two relevant rows get one key.
pub type RowKey = [u8; 20];

/// The length in bytes of the key prefix that the rows of one group share.
pub(crate) const GROUP: usize = 8;

/// Stored rows, which never change.
pub trait StoredRows: Debug + Send + Sync {
    /// Passes every row whose key begins with `prefix` to `visit`, in key order.
    fn visit(&self, prefix: &[u8], visit: &mut dyn FnMut(RowKey, &[u8]));
}

/// Rows in memory: those of a state that was just written and is read again without a disk.
impl StoredRows for BTreeMap<RowKey, Vec<u8>> {
    fn visit(&self, prefix: &[u8], visit: &mut dyn FnMut(RowKey, &[u8])) {
        let rows = self.iter().filter(|(key, _)| key.starts_with(prefix));
        rows.for_each(|(key, value)| visit(*key, value));
    }
}

/// All rows of one kind.
#[derive(Clone, Debug, Default)]
pub struct Table<const KIND: u8> {
    stored: Option<Arc<dyn StoredRows>>,
    /// New rows that an unfinished snapshot is to write, also if there are none; `None` if no snapshot has begun.
    closing: Option<Arc<NewRows>>,
    new: NewRows,
}

impl<const KIND: u8> Table<KIND> {
    /// Returns the key of a row that is only looked up alone.
    pub fn key(parts: &[&[u8]]) -> RowKey {
        let mut key = [0; size_of::<RowKey>()];
        key[0] = KIND;
        key[1..].copy_from_slice(&hash(parts)[..19]);
        key
    }

    /// Returns the key of a row that is looked up alone or with its group.
    pub fn key_in(group: &[u8], own: &[u8]) -> RowKey {
        let mut key = [0; size_of::<RowKey>()];
        key[..GROUP].copy_from_slice(&Self::group_key(group));
        key[GROUP..].copy_from_slice(&hash(&[own])[..12]);
        key
    }

    fn group_key(group: &[u8]) -> [u8; GROUP] {
        let mut key = [0; GROUP];
        key[0] = KIND;
        key[1..].copy_from_slice(&hash(&[group])[..GROUP - 1]);
        key
    }

    /// Returns the value of a row.
    pub fn get(&self, key: &RowKey) -> Option<Cow<'_, [u8]>> {
        let closing = || self.closing.as_ref()?.get(key);
        if let Some(value) = self.new.get(key).or_else(closing) {
            return Some(Cow::Borrowed(value));
        }
        let mut found = None;
        self.stored
            .as_ref()?
            .visit(key, &mut |_, value| found = Some(value.to_vec()));
        found.map(Cow::Owned)
    }

    /// True if there is such a row.
    pub fn has(&self, key: &RowKey) -> bool {
        self.get(key).is_some()
    }

    /// Returns the values of a group. Another group may have the same key, so each value must name its group.
    pub fn group(&self, group: &[u8]) -> Vec<Vec<u8>> {
        let of_group = Self::group_key(group);
        self.beginning_with(&of_group).into_values().collect()
    }

    /// Returns all rows, in key order.
    pub fn all(&self) -> BTreeMap<RowKey, Vec<u8>> {
        self.beginning_with(&[KIND])
    }

    fn beginning_with(&self, prefix: &[u8]) -> BTreeMap<RowKey, Vec<u8>> {
        let mut rows = BTreeMap::new();
        if let Some(stored) = &self.stored {
            stored.visit(prefix, &mut |key, value| {
                rows.insert(key, value.to_vec());
            });
        }
        for new in self.closing.as_deref().into_iter().chain([&self.new]) {
            let of_these = new.beginning_with(prefix);
            rows.extend(of_these.map(|(key, value)| (key, value.to_vec())));
        }
        rows
    }

    /// Adds a row or overwrites its value, without reading anything.
    pub fn put(&mut self, key: RowKey, value: impl AsRef<[u8]>) {
        self.new.insert(key, value.as_ref());
    }

    /// Returns the value put under this key since the last snapshot, for [`Self::put_back`].
    pub fn put_before(&self, key: &RowKey) -> Option<Box<[u8]>> {
        self.new.get(key).map(Box::from)
    }

    /// Restores the value of a row from [`Self::put_before`].
    pub fn put_back(&mut self, key: RowKey, before: Option<Box<[u8]>>) {
        match before {
            Some(value) => self.new.insert(key, &value),
            None => self.new.remove(&key),
        }
    }

    /// Returns the rows that a snapshot must add to the stored ones, in no particular order.
    pub fn new_rows(&self) -> impl Iterator<Item = (RowKey, &[u8])> {
        self.new.iter()
    }

    /// Starts a snapshot of all rows; rows that are put from now on are not in it.
    pub fn begin_snapshot(&mut self) {
        self.give_up_snapshot();
        self.closing = Some(Arc::new(std::mem::take(&mut self.new)));
    }

    /// Returns whether a snapshot was started and has not ended.
    pub fn is_in_snapshot(&self) -> bool {
        self.closing.is_some()
    }

    /// Abandons the snapshot that was started.
    pub fn give_up_snapshot(&mut self) {
        if let Some(closing) = self.closing.take() {
            let newer = std::mem::replace(&mut self.new, Arc::unwrap_or_clone(closing));
            self.new.extend(&newer);
        }
    }

    /// Ends a snapshot: `stored` has all rows from when it began, or all current rows if none began.
    pub fn rest_on(&mut self, stored: Arc<dyn StoredRows>) {
        if self.closing.take().is_none() {
            self.new = NewRows::default();
        }
        self.stored = Some(stored);
    }

    /// Ends a snapshot that may lack some of the rows from when it began: it was made from the records, but
    /// values that were undone since also decided which values became rows here. Those stay in memory. Use it only for
    /// a table in which an empty row means no row: the table forgets an empty row that the snapshot lacks.
    pub fn rest_on_what_is_in(&mut self, stored: Arc<dyn StoredRows>) {
        let began = self.closing.clone();
        self.rest_on(stored);
        for (key, value) in began.iter().flat_map(|began| began.iter()) {
            if self.new.get(&key).is_none() && self.get(&key).unwrap_or_default() != value {
                self.new.insert(key, value);
            }
        }
    }
}

/// Tables are equal if they have the same rows, in memory or stored.
impl<const KIND: u8> PartialEq for Table<KIND> {
    fn eq(&self, other: &Self) -> bool {
        let is_in_memory = |table: &Self| table.stored.is_none() && table.closing.is_none();
        if is_in_memory(self) && is_in_memory(other) {
            self.new == other.new
        } else {
            self.all() == other.all()
        }
    }
}

impl<const KIND: u8> Eq for Table<KIND> {}

/// Hashes the parts, each with its length, so that different lists of parts never hash the same bytes.
fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Words = Table<7>;

    #[test]
    fn a_row_that_is_put_during_a_snapshot_outlives_it_also_if_none_was_new_before() {
        let mut table = Words::default();
        table.begin_snapshot();
        table.put(key("a"), *b"a");
        table.rest_on(Arc::new(BTreeMap::new()));
        assert!(table.has(&key("a")));
    }

    fn key(word: &str) -> RowKey {
        Words::key_in(&word.as_bytes()[..1], word.as_bytes())
    }

    fn words(table: &Words, group: &str) -> Vec<String> {
        let text = |value| String::from_utf8(value).expect("a word");
        let mut words: Vec<_> = table
            .group(group.as_bytes())
            .into_iter()
            .map(text)
            .collect();
        words.sort();
        words
    }

    #[test]
    fn a_row_is_found_wherever_it_lies_and_the_newest_counts() {
        let mut table = Words::default();
        for word in ["ab", "ac", "b"] {
            table.put(key(word), word.as_bytes());
        }
        let stored = Arc::new(table.all());
        table.begin_snapshot();
        table.put(key("ad"), *b"ad");
        table.put(key("ac"), *b"changed");
        assert_eq!(words(&table, "a"), ["ab", "ad", "changed"]);
        let mut given_up = table.clone();
        given_up.give_up_snapshot();
        assert_eq!(given_up.new_rows().count(), 4);
        table.rest_on(stored);
        assert_eq!(table.new_rows().count(), 2, "the others are stored");
        assert_eq!(words(&table, "a"), ["ab", "ad", "changed"]);
        assert_eq!(table.get(&key("b")).as_deref(), Some(&b"b"[..]));
        assert_eq!(table, given_up);

        // `has` finds a row that is only stored, and `put_back` restores an earlier value.
        assert!(table.has(&key("ab")) && !table.has(&key("x")));
        assert_eq!(table.put_before(&key("ab")), None, "it is not new");
        let before = table.put_before(&key("ac"));
        assert_eq!(before.as_deref(), Some(&b"changed"[..]));
        table.put(key("ac"), *b"again");
        table.put_back(key("ac"), before);
        assert_eq!(words(&table, "a"), ["ab", "ad", "changed"]);

        // Undoing a change shows the row beneath it.
        table.put_back(key("ac"), None);
        assert_eq!(words(&table, "a"), ["ab", "ac", "ad"]);
        assert_ne!(table, given_up);
    }

    #[test]
    fn what_a_snapshot_lacks_stays_in_memory() {
        let mut table = Words::default();
        for word in ["ab", "ac", "ad"] {
            table.put(key(word), word.as_bytes());
        }
        table.put(key("empty"), []);
        table.begin_snapshot();
        table.put(key("ad"), *b"newer");
        let mut all = table.all();
        all.remove(&key("empty"));
        let stored = [("ab", &b"ab"[..]), ("ac", b"other"), ("b", b"b")];
        let stored = stored.map(|(word, value)| (key(word), value.to_vec()));
        table.rest_on_what_is_in(Arc::new(BTreeMap::from(stored)));
        assert_eq!(words(&table, "a"), ["ab", "ac", "newer"]);
        assert_eq!(words(&table, "b"), ["b"]);
        let mut new: Vec<_> = table.new_rows().map(|(key, _)| key).collect();
        new.sort_unstable();
        let mut expected = [key("ac"), key("ad")];
        expected.sort_unstable();
        assert_eq!(new, expected);
        let mut same = Words::default();
        all.into_iter()
            .for_each(|(key, value)| same.put(key, value));
        assert_ne!(table, same);
        same.put(key("b"), *b"b");
        assert_eq!(table, same);
        assert_eq!(same, same.clone());
        let mut fewer = same.clone();
        fewer.put_back(key("b"), None);
        assert_ne!(same, fewer);
    }

    #[test]
    fn a_key_is_that_of_its_kind_and_of_each_part() {
        let keys = [
            Words::key(&[b"a", b"b"]),
            Words::key(&[b"ab"]),
            Words::key(&[b"a", b"c"]),
            Table::<8>::key(&[b"a", b"b"]),
            Words::key_in(b"a", b"b"),
        ];
        let distinct: std::collections::BTreeSet<RowKey> = keys.into();
        assert_eq!(distinct.len(), keys.len());
        assert_eq!(keys.map(|key| key[0]), [7, 7, 7, 8, 7]);
    }
}
