//! Reviews read from their rows on demand, by pull request number. Reading changes no state, so they grow behind a
//! shared reference; a caller that changes the state clears them. They form a tree that branches on the bits of a
//! number's hash, so each of many thousands is found in a few steps.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, OnceLock};

use message_schema::id::PrNumber;
use review_words::key::ReviewKey;

use crate::parts::review::Review;

/// The reviews of one number; there may be none.
#[derive(Debug)]
struct OfNumber {
    pr: PrNumber,
    reviews: Vec<(Arc<ReviewKey>, Review)>,
    /// The numbers whose hash has the next bit clear, and those whose hash has it set.
    next: [NextNumber; 2],
}

type NextNumber = OnceLock<Box<OfNumber>>;

/// The reviews read so far. A clone is empty.
#[derive(Debug, Default)]
pub(crate) struct LoadedReviews {
    first: NextNumber,
    /// All reviews, once a caller has read all.
    all: OnceLock<Vec<(Arc<ReviewKey>, Review)>>,
}

impl Clone for LoadedReviews {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl LoadedReviews {
    /// Returns the reviews of a number, which `load` reads the first time.
    pub(crate) fn of_number(
        &self,
        pr: &PrNumber,
        load: impl Fn() -> Vec<(Arc<ReviewKey>, Review)>,
    ) -> &[(Arc<ReviewKey>, Review)] {
        let mut hasher = DefaultHasher::new();
        pr.hash(&mut hasher);
        let mut bits = hasher.finish();
        let mut link = &self.first;
        loop {
            // Another thread may put another number there first.
            let number = link.get_or_init(|| {
                Box::new(OfNumber {
                    pr: pr.clone(),
                    reviews: load(),
                    next: Default::default(),
                })
            });
            if number.pr == *pr {
                return &number.reviews;
            }
            // Numbers with one hash follow each other in a chain.
            link = &number.next[(bits & 1) as usize];
            bits >>= 1;
        }
    }

    /// Returns all reviews, which `load` reads the first time.
    pub(crate) fn all(
        &self,
        load: impl FnOnce() -> Vec<(Arc<ReviewKey>, Review)>,
    ) -> &[(Arc<ReviewKey>, Review)] {
        self.all.get_or_init(load)
    }

    /// Forgets all reviews.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::{LoadedReviews, OfNumber, PrNumber};

    fn depth(number: &OfNumber) -> usize {
        let below = number.next.iter().filter_map(|next| next.get());
        1 + below.map(|next| depth(next)).max().unwrap_or(0)
    }

    #[test]
    fn each_of_many_numbers_is_read_once_and_found_in_a_few_steps() {
        let numbers: Vec<PrNumber> = (1..=10_000)
            .map(|number| number.to_string().parse().expect("a number"))
            .collect();
        let mut loaded = LoadedReviews::default();
        let reads = Cell::new(0);
        for pr in numbers.iter().chain(&numbers) {
            loaded.of_number(pr, || {
                reads.set(reads.get() + 1);
                Vec::new()
            });
        }
        assert_eq!(reads.get(), numbers.len());
        let first = loaded.first.get().expect("the first number");
        assert!(depth(first) < 50, "{}", depth(first));
        loaded.clear();
        assert!(loaded.first.get().is_none());
    }
}
