//! The command `validate-message`: arguments, output, exit status.

mod corpus;
mod directories;
#[path = "../../../tests/executable.rs"]
mod executable;
mod files;
mod formats;
mod hooks;
mod services;
mod severity;
mod staged;
