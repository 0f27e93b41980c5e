//! The commands: each parses arguments, asks the rooms that answer, and prints. `home` also puts an agent's next steps
//! in order.

pub mod cli;
pub use views::exit;
