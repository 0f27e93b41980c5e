//! Fails every single call of the real daemon in turn. The daemon must continue, or stop and say why, and lose,
//! duplicate or wrongly refuse nothing.
//!
//! - `call`: the calls that can fail, and with which errors on a real disk;
//! - `point`: a run without a fault, and every call in it that can fail;
//! - `strace`: the daemon with a failing call;
//! - `scene`: the workspace before the fault;
//! - `serving`: a daemon that serves while its surroundings change;
//! - `trial`: one fault, and the errors in its outcome;
//! - `campaign`: all faults, and the table at the end.

mod call;
mod campaign;
mod point;
mod scene;
mod serving;
mod strace;
mod trial;

pub use self::call::{CALLS, Call, Errno};
pub use self::campaign::{Campaign, Extent, Row};
pub use self::point::Point;
pub use self::scene::Scene;
pub use self::serving::{Serving, serve};
pub use self::strace::{Fault, Span, Traced, striking};
pub use self::trial::{Ending, Trial};
