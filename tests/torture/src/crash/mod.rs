//! Kills the daemon: at every system call of a run, of its recovery, and of the recovery of that; and again and again
//! at random moments while agents write and read.
//!
//! - `scene`: the workspace before a run;
//! - `tracer`, `call`: the kill at the n-th call over all threads;
//! - `reader`: the readers during a run;
//! - `trial`: one start, its kills, and the errors afterwards;
//! - `sweep`: all points of a scene, or some;
//! - `storm`: random kills under load.

mod call;
mod reader;
pub mod scene;
pub mod storm;
pub mod sweep;
pub mod tracer;
pub mod trial;

pub use call::Calls;
