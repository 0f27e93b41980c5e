//! The real daemon under torture: killed, cut off and failed at every call, and then looked at by
//! somebody who shares no line of code with it.
//!
//! The suite runs short forms (`tests/it`), `cargo xtask crash|faults|powerloss|soak|fuzz` the long ones.
//!
//! - `dice`: random numbers from a seed;
//! - `letters`: what agents write, and what must become of it;
//! - `onlooker`: looks at directories whenever something shows in them;
//! - `taker`: a reader that empties an inbox while the daemon works;
//! - `checker`: the independent reader of the directories after it all;
//! - `crash`: kills at every call, and at random under load;
//! - `faults`: every failing call in turn;
//! - `power`: the power cut at any instant, on a real file system and on a simulated disk;
//! - `fuzz`: whatever comes to writers' minds, kills at any change, moved time, and a model of what must arrive;
//! - `soak`: hours of mixed traffic in minutes, and what of the daemon grows;
//! - `traced`: the daemon under `strace`, one call struck.

pub mod checker;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub mod crash;
pub mod dice;
pub mod faults;
pub mod fuzz;
pub mod letters;
pub(crate) mod onlooker;
pub mod power;
pub mod soak;
pub mod taker;
pub mod traced;
