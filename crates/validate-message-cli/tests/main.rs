//! The command `validate-message`: what it is given, what it prints, how it ends.

mod corpus;
mod directories;
mod files;
mod formats;
mod services;
mod severity;
mod staged;
