//! Tells people away from the machine that a review needs them or that the daemon stopped. A separate process that
//! outlives the daemon: it follows the ledger from outside and does not take the daemon's lock.
//!
//! - `notice` is the text for people, with the id by which a receiver recognizes it;
//! - `follow` makes notices of records, and of a daemon that is gone;
//! - `lane` is one channel's progress through them: its cursor on disk, its retries, its quiet hours;
//! - `channel` starts the program that carries a notice: the operator's own, `curl` or `notify-send`;
//! - `sign` signs what a webhook gets;
//! - `run` gives each channel a thread.

mod channel;
mod follow;
mod lane;
mod notice;
mod run;
mod sign;

pub use self::channel::{Channel, SendError, channels};
pub use self::lane::{Lane, LaneError, Step};
pub use self::notice::{Kind, Notice};
pub use self::run::{RunError, once, run, test};
pub use self::sign::signature;
