//! The real daemon under torture: killed, cut off and failed at every call, and then looked at by
//! somebody who shares no line of code with it.
//!
//! The suite runs short forms (`torture/tests`), `cargo xtask crash|faults|powerloss` the long ones.
//!
//! - `letters`: what agents write, and what must become of it;
//! - `taker`: a reader that empties an inbox while the daemon works;
//! - `checker`: the independent reader of the directories after it all;
//! - `power`: the power cut at any instant, on a real file system and on a simulated disk.

pub mod checker;
pub mod letters;
pub mod power;
pub mod taker;
