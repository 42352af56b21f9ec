//! `cargo +nightly fuzz run recording --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fathom_fuzz::recording(bytes));
