//! The reviews that wait for their author or a person, as rows of a table: people never answer some of them, and authors
//! have days, so their number is unbounded.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use review_words::folded::{fold, unfold};
use review_words::key::ReviewKey;
use review_words::table::{RowKey, Table};

use crate::parts::review::Review;

/// A row for each review, with its key. An empty row is that of a review that has left this table.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitingReviews {
    pub(crate) rows: Table<b'w'>,
    loaded: Loaded,
}

/// All waiting reviews, once a caller has read them. A clone is empty.
#[derive(Debug, Default)]
struct Loaded(OnceLock<BTreeMap<Arc<ReviewKey>, Review>>);

impl Clone for Loaded {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl WaitingReviews {
    pub(crate) fn put(&mut self, key: Arc<ReviewKey>, review: Review) {
        self.rows.put(row_of::<b'w'>(&key), row(&key, &review));
        if let Some(loaded) = self.loaded.0.get_mut() {
            loaded.insert(key, review);
        }
    }

    /// Empties the row of a review that waits no more, if it has one. It gets one all the same while a snapshot is made:
    /// undone batches decide here which reviews are rows, and not where the snapshot is made.
    pub(crate) fn leave(&mut self, key: &ReviewKey) {
        let row = row_of::<b'w'>(key);
        let has_row = || self.rows.get(&row).is_some_and(|row| !row.is_empty());
        if !self.rows.is_in_snapshot() && !has_row() {
            return;
        }
        self.rows.put(row, []);
        if let Some(loaded) = self.loaded.0.get_mut() {
            loaded.remove(key);
        }
    }

    /// Removes all rows put for the review since the last snapshot.
    pub(crate) fn put_back(&mut self, key: &ReviewKey) {
        self.rows.put_back(row_of::<b'w'>(key), None);
        self.loaded.0.take();
    }

    /// Returns all waiting reviews, ordered by key.
    pub(crate) fn all(&self) -> &BTreeMap<Arc<ReviewKey>, Review> {
        self.loaded
            .0
            .get_or_init(|| read(self.rows.all().into_values()).collect())
    }

    /// Returns the review whose row has this key but for the kind, if it waits.
    pub(crate) fn get(&self, row: &RowKey) -> Option<Review> {
        let mut of_kind = *row;
        of_kind[0] = b'w';
        let row = self.rows.get(&of_kind).filter(|row| !row.is_empty())?;
        Some(read_row(&row).1)
    }

    /// Returns the waiting reviews of a number, and those whose number has the same hash.
    pub(crate) fn of_number(
        &self,
        number: &str,
    ) -> impl Iterator<Item = (Arc<ReviewKey>, Review)> + use<> {
        read(self.rows.group(number.as_bytes()).into_iter())
    }

    /// Frees the memory of reviews that callers have read.
    pub(crate) fn release(&mut self) {
        self.loaded.0.take();
    }
}

/// True for the empty row of a review that waits no more: without an older row it says nothing.
pub fn is_removal_of_review(key: &RowKey, value: &[u8]) -> bool {
    key[0] == b'w' && value.is_empty()
}

fn read(rows: impl Iterator<Item = Vec<u8>>) -> impl Iterator<Item = (Arc<ReviewKey>, Review)> {
    rows.filter(|row| !row.is_empty()).map(|row| read_row(&row))
}

/// Returns the row key of a review in a table of reviews.
pub(crate) fn row_of<const KIND: u8>(key: &ReviewKey) -> RowKey {
    let own = serde_json::to_vec(key).expect("a key as JSON");
    Table::<KIND>::key_in(key.pr.as_str().as_bytes(), &own)
}

/// Returns the content of a review's row.
pub(crate) fn row(key: &ReviewKey, review: &Review) -> Vec<u8> {
    fold(&(key, review))
}

/// Reads a row that [`row`] made.
pub(crate) fn read_row(row: &[u8]) -> (Arc<ReviewKey>, Review) {
    let (key, review) = unfold(row).expect("what was folded unfolds");
    (Arc::new(key), review)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_callers_have_read_is_freed() {
        let mut waiting = WaitingReviews::default();
        assert!(waiting.all().is_empty());
        assert!(waiting.loaded.0.get().is_some());
        waiting.release();
        assert!(waiting.loaded.0.get().is_none());
    }
}
