//! Finds every violation of one message at once, with its place, the value found, the accepted values and a fix.
//!
//! A pure function of the bytes: the packet is handed in and never opened here. The daemon checks what needs the
//! workspace or the review (owners, ids, rounds, threads, the gate).

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod check;
pub mod content;
pub mod explain;
pub mod fix;
pub mod fmt;
mod found;
mod input;
mod lines;
mod rules;
mod signed;
mod suggest;
mod valid;
mod violation;

pub use check::{check, check_delivered, check_packet, is_packet};
pub use input::PacketInput;
pub use message_schema::Level;
pub use signed::is_signed;
pub use suggest::nearest;
pub use valid::{Packet, PacketContent, Valid};
pub use violation::{Source, Violation, Violations};
