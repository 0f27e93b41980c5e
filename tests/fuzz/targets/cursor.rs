//! Fuzzes the reader of a lane's cursor, and the start that trusts it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| settled_tests::readers::cursor(bytes));
