//! The conformance tests for every log of a shared ledger. The author of another backend implements [`Bench`] for it
//! and names it in [`conformance!`]: each case becomes a test of its own.
//!
//! - `bench` is what a case may do to a log besides calling it: restart it, cut it off, damage it;
//! - `cases` are the cases, one function each;
//! - `appends` answers appends by a function of the test;
//! - `line` loses requests to a log or its answers;
//! - `patient` repeats a question to a real log, which may take a moment to answer;
//! - `fixture` makes batches without a ledger;
//! - `model` is a log in memory that loses, delays and repeats by a seed, and on demand breaks a log's promises;
//! - `dice` makes its random numbers.

mod appends;
mod bench;
pub mod cases;
mod dice;
pub mod fixture;
mod line;
mod model;
mod patient;

pub use appends::Appends;
pub use bench::Bench;
pub use dice::Dice;
pub use line::Line;
pub use model::{ModelBench, ModelLog, Shared, Weather};
pub use patient::{PATIENCE, Patient};

/// Makes a test of each case, on the bench that the expression returns.
#[macro_export]
macro_rules! conformance {
    ($bench:expr) => {
        $crate::each_case!(tests_of $bench);
    };
}
