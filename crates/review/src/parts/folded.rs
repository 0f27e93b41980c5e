//! A finished review in few bytes. Most reviews a daemon knows are finished and hardly ever asked for again, but
//! any of them may be: a late message, a merge, a person who reopens it. So nothing is left out: a folded review is
//! its line of a snapshot, packed.

use std::sync::OnceLock;

use crate::parts::review::Review;
use crate::words::packed_line::{pack, unpack};

/// A finished review, folded.
#[derive(Debug)]
pub(crate) struct FoldedReview {
    packed: Box<[u8]>,
    /// The word for its phase.
    pub(crate) phase: &'static str,
    /// The review as it was last asked for.
    whole: OnceLock<Box<Review>>,
}

impl FoldedReview {
    pub(crate) fn of(review: &Review) -> Self {
        Self {
            packed: pack(json_of(review).as_bytes()).into_boxed_slice(),
            phase: review.phase.word(),
            whole: OnceLock::new(),
        }
    }

    /// The review, unfolded once and kept until [`Self::release`].
    pub(crate) fn review(&self) -> &Review {
        self.whole.get_or_init(|| Box::new(self.unfold()))
    }

    /// Whether nobody has asked for it since it was last folded.
    pub(crate) fn is_folded(&self) -> bool {
        self.whole.get().is_none()
    }

    pub(crate) fn unfold(&self) -> Review {
        serde_json::from_str(&self.json()).expect("what was folded unfolds")
    }

    /// The review as [`json_of`] writes it.
    pub(crate) fn json(&self) -> String {
        String::from_utf8(unpack(&self.packed)).expect("what was folded unfolds")
    }

    /// Gives back what [`Self::review`] keeps.
    pub(crate) fn release(&mut self) {
        self.whole.take();
    }
}

impl Clone for FoldedReview {
    fn clone(&self) -> Self {
        Self {
            packed: self.packed.clone(),
            phase: self.phase,
            whole: OnceLock::new(),
        }
    }
}

impl PartialEq for FoldedReview {
    fn eq(&self, other: &Self) -> bool {
        self.packed == other.packed
    }
}

/// A review as JSON; the same review gives the same text.
pub(crate) fn json_of(review: &Review) -> String {
    serde_json::to_string(review).expect("text keys and plain values are JSON")
}

#[cfg(test)]
mod tests {
    use super::FoldedReview;

    #[test]
    fn a_review_of_two_rounds_with_two_findings_folds_to_500_bytes() {
        let review = include_str!("../../tests/approved.json");
        let review = serde_json::from_str(review).expect("a review");
        let folded = FoldedReview::of(&review);
        let bytes = size_of::<FoldedReview>() + folded.packed.len();
        println!("{bytes} bytes");
        assert!(bytes <= 500, "{bytes} bytes");
        assert_eq!(*folded.review(), review);
    }
}
