//! Gives the library its SONAME: the stubs name it as their dependency.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libfathom_phantom.so");
}
