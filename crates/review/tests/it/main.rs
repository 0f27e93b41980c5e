//! The rules of a review, played with real messages; one binary.

mod rules;
mod table;
mod walk;
