//! What validate-message says of real messages, and what it makes of them; one binary.

mod check;
mod corpus;
mod fix;
mod fmt;
mod properties;
