//! Fuzzes the reader of the ledger's lines and their chain.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| settled_tests::readers::ledger(bytes));
