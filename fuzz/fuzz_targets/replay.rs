//! `cargo +nightly fuzz run replay --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fathom_fuzz::replay(bytes));
