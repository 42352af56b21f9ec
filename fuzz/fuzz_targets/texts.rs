//! `cargo +nightly fuzz run texts --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fathom_fuzz::texts(bytes));
