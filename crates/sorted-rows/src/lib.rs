//! Looks up rows by key without reading the whole file, and checks every byte that it reads against a digest. The writer
//! of the files decides their purpose, their names and their removal.

mod digest;
mod layer;
mod rows;

pub use digest::{Digest, Hasher, NotADigest};
pub use layer::{Layer, RowKey, TakeRow, write_layer};
pub use rows::{NewRows, Rows, merged, named};
