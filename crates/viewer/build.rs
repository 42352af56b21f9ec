//! Files are untrusted, and some nest deeply: the same stack as a thread at home, not the megabyte of wasm's linker.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "wasm32") {
        println!("cargo:rustc-cdylib-link-arg=-zstack-size=8388608");
    }
}
