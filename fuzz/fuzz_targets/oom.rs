//! `cargo +nightly fuzz run oom --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fathom_fuzz::oom(bytes));
