//! Rows that are found by their keys in files nobody reads as a whole, and the digest under which every byte of them is.
//! What the files are for, how they are named, and when one is removed is the business of who writes them.

mod digest;
mod layer;
mod rows;

pub use digest::{Digest, Hasher, NotADigest};
pub use layer::{Layer, LayerWriter, RowKey};
pub use rows::{NewRows, Rows, merged, named};
