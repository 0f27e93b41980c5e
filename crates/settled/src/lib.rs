//! The commands: arguments, one call into the room that answers, and printing. The demo stands
//! beside them.

pub mod cli;
pub mod demo;
pub mod exit;
