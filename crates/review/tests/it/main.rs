//! The rules of a review, played with real messages.

mod rules;
mod table;
mod walk;
