//! What happens next in a review? Pure rules: decide, apply, rank.
