//! Formats the state of reviews for people and agents: one file for each command that shows it, and the common form of
//! every answer and failure, with the exit codes. Values in, text out.

pub mod answer;
pub mod board;
pub mod brief;
pub mod decisions;
pub mod exit;
pub mod failure;
pub mod home;
pub mod inbox;
pub mod ledger;
pub mod posted;
pub mod review_line;
pub mod serving;
pub mod table;
pub mod threads;
pub mod trace;
pub mod why;
