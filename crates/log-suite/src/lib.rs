//! The conformance tests for every log of a shared ledger. The author of another backend implements [`Bench`] for it
//! and names it in [`conformance!`]: each case becomes a test of its own.
//!
//! - `bench` is what a case may do to a log besides calling it: restart it, cut it off, damage it;
//! - `cases` are the cases, one function each;
//! - `line` loses what is sent to a log or what it answers;
//! - `patient` asks a real log again, which may take a moment to answer;
//! - `fixture` makes batches without a ledger;
//! - `model` is a log in memory that loses, delays and repeats by a seed, and on demand breaks what a log promises;
//! - `dice` is its chance.

mod bench;
pub mod cases;
mod dice;
pub mod fixture;
mod line;
mod model;
mod patient;

pub use bench::Bench;
pub use dice::Dice;
pub use line::Line;
pub use model::{ModelBench, ModelLog, Shared, Weather};
pub use patient::{PATIENCE, Patient};

/// Makes one test of each case, on the bench that the expression makes.
#[macro_export]
macro_rules! conformance {
    ($bench:expr) => {
        $crate::each_case!(tests_of $bench);
    };
}
