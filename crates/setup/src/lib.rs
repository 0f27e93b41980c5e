//! Set-ups of the programs that agents run: the section of `settled.toml` for each, as `cargo xtask agents` tries it,
//! an edit of the file that leaves the rest alone, and a probe that starts a configured command once. Also the unit with
//! which the machine's supervisor starts the daemon.

pub mod probe;
pub mod section;
pub mod service;
pub mod version;

pub use section::{AddOutcome, KnownProgram, OtherCommand, SectionError, SetUpForm};
pub use version::Versions;
