//! `cargo +nightly fuzz run pickle --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fathom_fuzz::pickle(bytes));
