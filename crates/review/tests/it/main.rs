//! The rules of a review, played with real messages.

mod records;
mod rules;
mod table;
mod walk;
