"""Finds the `fathom` command that belongs to this package."""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Iterator

PACKAGE = os.path.dirname(os.path.abspath(__file__))


def find() -> str | None:
    """In the tree it was built in, where pip puts scripts, or on the PATH."""
    return next((path for path in candidates() if os.access(path, os.X_OK) and os.path.isfile(path)), shutil.which("fathom"))


def candidates() -> Iterator[str]:
    beside = os.path.dirname(PACKAGE)
    yield os.path.join(beside, os.pardir, "target", "release", "fathom")
    yield os.path.join(sysconfig.get_path("scripts"), "fathom")
    yield os.path.join(sysconfig.get_path("scripts", f"{os.name}_user"), "fathom")
    yield os.path.join(beside, "bin", "fathom")  # pip install --target
