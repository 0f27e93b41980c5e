//! Checks, fixes and formats real messages.

mod check;
mod corpus;
mod fix;
mod fmt;
mod properties;
mod reports;
mod sentences;
