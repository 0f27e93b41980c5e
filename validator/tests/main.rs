//! The command `validate-message`: what it is given, what it prints, how it ends.

mod corpus;
mod files;
mod services;
