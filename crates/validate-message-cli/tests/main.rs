//! The command `validate-message`: arguments, output, exit status.

mod corpus;
mod directories;
mod files;
mod formats;
mod hooks;
mod services;
mod severity;
mod staged;
