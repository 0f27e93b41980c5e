//! The commands: each parses arguments, makes one call into the room that answers, and prints.

pub mod cli;
pub use views::exit;
