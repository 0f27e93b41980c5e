//! The commands: arguments, one call into the room that answers, and printing. Beside them `pair`,
//! which drives two commands in turn, and the demo.

pub mod cli;
pub mod demo;
pub mod exit;
mod pair;
