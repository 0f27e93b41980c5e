//! The real daemon under torture: killed, cut off from power and failed at every call, and then checked by code that
//! shares no line with it.
//!
//! The suite runs short forms (`tests/it`), `cargo xtask crash|faults|powerloss|soak|fuzz` the long ones.
//!
//! - `dice`: random numbers from a seed;
//! - `messages`: the messages that agents write, and the required fate of each;
//! - `onlooker`: watches directories for new files;
//! - `taker`: a reader that empties an inbox while the daemon works;
//! - `checker`: the independent reader of the directories after a run;
//! - `crash`: kills at every call, and at random under load;
//! - `faults`: every call that can fail, in turn;
//! - `power`: a power cut at any instant, on a real file system and on a simulated disk;
//! - `fuzz`: writers that do anything, kills at any change of the disk, moved time, and a model of what must arrive;
//! - `soak`: hours of mixed traffic in minutes, and whether the daemon grows;
//! - `traced`: the daemon under `strace`, with one injected fault.

pub mod checker;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub mod crash;
pub mod dice;
pub mod faults;
pub mod fuzz;
pub mod messages;
pub(crate) mod onlooker;
pub mod power;
pub mod soak;
pub mod taker;
pub mod traced;
