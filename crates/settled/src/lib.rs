//! The commands: arguments, one call into the room that answers, and printing.

pub mod cli;
pub use views::exit;
