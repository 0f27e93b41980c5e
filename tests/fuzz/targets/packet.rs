//! Fuzzes the reader of findings packets, and the validator after it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| settled_tests::readers::packet(bytes));
