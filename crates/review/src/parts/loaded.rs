//! Reviews read from their rows on demand, by the number of their pull request. Reading changes no state, so the list
//! grows behind a shared reference; a caller that changes the state clears it.

use std::sync::{Arc, OnceLock};

use message_schema::id::PrNumber;

use crate::parts::review::Review;
use crate::words::key::ReviewKey;

/// The reviews of one number; there may be none.
#[derive(Debug)]
struct OfNumber {
    pr: PrNumber,
    reviews: Vec<(Arc<ReviewKey>, Review)>,
    next: NextNumber,
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
    /// The reviews of a number, which `load` reads the first time.
    pub(crate) fn of_number(
        &self,
        pr: &PrNumber,
        load: impl Fn() -> Vec<(Arc<ReviewKey>, Review)>,
    ) -> &[(Arc<ReviewKey>, Review)] {
        let mut link = &self.first;
        loop {
            // Another thread may put another number there first.
            let number = link.get_or_init(|| {
                Box::new(OfNumber {
                    pr: pr.clone(),
                    reviews: load(),
                    next: NextNumber::new(),
                })
            });
            if number.pr == *pr {
                return &number.reviews;
            }
            link = &number.next;
        }
    }

    /// All reviews, which `load` reads the first time.
    pub(crate) fn all(
        &self,
        load: impl FnOnce() -> Vec<(Arc<ReviewKey>, Review)>,
    ) -> &[(Arc<ReviewKey>, Review)] {
        self.all.get_or_init(load)
    }

    /// Forgets all reviews.
    pub(crate) fn clear(&mut self) {
        self.all.take();
        // One after the other: dropped as a whole each would drop the next within its own drop.
        let mut link = self.first.take();
        while let Some(mut number) = link {
            link = number.next.take();
        }
    }
}

impl Drop for LoadedReviews {
    fn drop(&mut self) {
        self.clear();
    }
}
