//! Long jobs for developers.
fn main() {}
