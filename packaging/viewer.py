"""Compiles the analysis to WebAssembly, for `fathom viewer`: with Rust's wasm target, or with Debian's Rust for the web.

`--if-there` is for tests and wheels: where neither is installed it says so and ends well.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WASM = "wasm32-unknown-unknown"
BUILT = "fathom_viewer.wasm"
HINT = f"`rustup target add {WASM}`, or on Debian `apt-get install cargo-web rustc-web rust-web-src lld`, then `make viewer`"


def has_target():
    """Whether this Rust has a standard library for WebAssembly."""
    found = subprocess.run(["rustc", "--print", "target-libdir", "--target", WASM], capture_output=True, text=True)
    return found.returncode == 0 and any(Path(found.stdout.strip()).glob("libstd-*.rlib"))


def debians():
    """Debian's Rust, which compiles the standard library along; None if a part is missing."""
    cargo, rustc, linker = Path("/usr/bin/cargo"), Path("/usr/bin/rustc"), shutil.which("wasm-ld")
    linker = linker or next(map(str, sorted(Path("/usr/bin").glob("wasm-ld-*"))), None)
    if not (cargo.exists() and rustc.exists() and linker):
        return None
    root = subprocess.run([rustc, "--print", "sysroot"], capture_output=True, text=True).stdout.strip()
    if not Path(root, "lib/rustlib/src/rust/library/std").is_dir():
        return None
    extra = {"RUSTC": str(rustc), "RUSTC_BOOTSTRAP": "1", "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER": linker}
    return [str(cargo)], ["-Zbuild-std=std,panic_abort"], extra


def build():
    """Where the file is; None if it cannot be compiled here."""
    way = (["cargo"], [], {}) if shutil.which("rustc") and has_target() else debians()
    if way is None:
        return None
    cargo, flags, extra = way
    command = [*cargo, "build", "--quiet", "--profile", "viewer", "--target", WASM, "-p", "viewer", *flags]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, **extra})
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    (target / "release").mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy2(target / WASM / "viewer" / BUILT, target / "release" / BUILT))


if __name__ == "__main__":
    if build() is None:
        print(f"the viewer was not built: Rust's wasm target is missing\nhint: {HINT}", file=sys.stderr)
        sys.exit(0 if "--if-there" in sys.argv else 1)
