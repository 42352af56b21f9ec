"""Builds all artefacts for one target and lets maturin pack them: the wheel holds several of Rust, maturin builds one.

`pip wheel . -C glibc=2.28` links everything against that glibc by zig, whatever this machine has, and tags the wheel for
it; it fails unless auditwheel, which reads what the files need, agrees. Without it the wheel is for this machine.
"""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import glibc
import maturin
import sdist
import viewer
from maturin import prepare_metadata_for_build_wheel

__all__ = [
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_wheel",
]

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ("phantom", "recorder")
ZIG = ["ziglang>=0.13", "cargo-zigbuild>=0.20", "auditwheel>=6.2"]


def get_requires_for_build_wheel(settings=None):
    return maturin.get_requires_for_build_wheel() + (ZIG if glibc.wanted(settings) else [])


def get_requires_for_build_sdist(settings=None):
    return []


def build_sdist(folder, settings=None):
    """What git knows, without what only the repository needs."""
    return sdist.build(ROOT, Path(folder))


def build_wheel(folder, settings=None, metadata=None):
    """The libraries first, into the package; they are gone again when the wheel is written."""
    wanted = glibc.wanted(settings)
    target = f"{platform.machine()}-unknown-linux-gnu" if wanted else None
    built = compile_libraries(target, wanted)
    wasm = viewer.build()
    packed = ROOT / "python" / "fathom" / "lib"
    packed.mkdir(exist_ok=True)
    try:
        for crate in LIBRARIES:
            shutil.copy2(built / f"libfathom_{crate}.so", packed)
        # Without it everything works but `fathom viewer`, which says what is missing.
        if wasm is not None:
            shutil.copy2(wasm, packed)
        name = maturin.build_wheel(folder, maturin_settings(target, wanted), metadata)
    finally:
        shutil.rmtree(packed)
    if wanted:
        glibc.check(Path(folder) / name, wanted)
    return name


def compile_libraries(target, wanted):
    """Where they are."""
    crates = [word for crate in LIBRARIES for word in ("-p", crate)]
    command = ["cargo", "build", "--release", *crates]
    if target:
        command = ["cargo", "zigbuild", "--release", "--target", f"{target}.{wanted}", *crates]
    subprocess.run(command, cwd=ROOT, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"), target or "", "release")


def maturin_settings(target, wanted):
    if not target:
        return None
    return {"build-args": f"--zig --target {target} --compatibility {glibc.tag(wanted)}"}
