"""Builds the libraries and lets maturin pack them: the wheel holds several artefacts of Rust, maturin builds one."""

import os
import shutil
import subprocess
from pathlib import Path

import maturin
import viewer
from maturin import get_requires_for_build_wheel, prepare_metadata_for_build_wheel

__all__ = ["build_sdist", "build_wheel", "get_requires_for_build_wheel", "prepare_metadata_for_build_wheel"]

ROOT = Path(__file__).resolve().parent.parent
CRATES = ("phantom", "recorder")


def build_sdist(folder, settings=None):
    """maturin packs the crates that the command depends on, and the libraries are none of them."""
    raise NotImplementedError("there is no source distribution: build the wheel in the repository, with `make wheel`")


def build_wheel(folder, settings=None, metadata=None):
    """The libraries first, into the package; they are gone again when the wheel is written."""
    for crate in CRATES:
        subprocess.run(["cargo", "build", "--release", "-p", crate], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    wasm = viewer.build()
    packed = ROOT / "python" / "fathom" / "lib"
    packed.mkdir(exist_ok=True)
    try:
        for crate in CRATES:
            shutil.copy2(target / "release" / f"libfathom_{crate}.so", packed)
        # Without it everything works but `fathom viewer`, which says what is missing.
        if wasm is not None:
            shutil.copy2(wasm, packed)
        return maturin.build_wheel(folder, settings, metadata)
    finally:
        shutil.rmtree(packed)
