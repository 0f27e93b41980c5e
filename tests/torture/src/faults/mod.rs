//! Every single failing call in turn, in the real daemon: it goes on, or it stops and says why, and
//! nothing is lost, doubled or wrongly refused.
//!
//! - `call`: which calls fail, and with what each of them can fail on a real disk;
//! - `point`: a run without a fault, and every call in it that can fail;
//! - `strace`: the daemon with one of its calls failing;
//! - `scene`: the workspace before the fault;
//! - `serving`: a daemon that serves while something happens around it;
//! - `trial`: one fault, and what is wrong with what came of it;
//! - `campaign`: all of them, and the table at the end.

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
