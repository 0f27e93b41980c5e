//! The rules of a review, played with real messages; one binary.

mod brief;
mod rules;
mod table;
mod walk;
