//! Fuzzes the reader of `settled.toml`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| settled_tests::readers::config(bytes));
