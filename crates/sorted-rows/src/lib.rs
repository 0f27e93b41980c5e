//! Rows that are found by their keys in files that nobody reads as a whole, and the digest that covers their bytes. The
//! writer of the files decides their purpose, their names and their removal.

mod digest;
mod layer;
mod rows;

pub use digest::{Digest, Hasher, NotADigest};
pub use layer::{Layer, RowKey, TakeRow, write_layer};
pub use rows::{NewRows, Rows, merged, named};
