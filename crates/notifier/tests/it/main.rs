//! The notifier on a recorded ledger: the progress of one channel, and the program as a whole.

mod lane;
mod recorded;
mod run;
