//! Tests of the whole, one binary.
