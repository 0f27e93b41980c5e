//! Untrusted YAML as a tree of raw scalars, each with its place in the file.
//!
//! Nothing here knows a message: no types, no schemas. Scalars stay text (`86`, `no` and `12345e7`), limits hold before
//! a tree is built, and YAML features beyond mappings, lists and scalars are refused.

mod complaint;
mod frame;
mod marks;
mod node;
mod quoted;
mod read;
mod slip;

pub(crate) use frame::Layout;
pub use node::{Content, Field, Node, Scalar, Style, Tail};
pub(crate) use quoted::Quoted;
pub(crate) use read::{end_of, read_bytes, read_ours, read_text};

#[cfg(test)]
mod tests;
