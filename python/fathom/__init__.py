"""Where your GPU memory goes, and whether the run will fit, before any GPU is rented.

    import fathom

    report = fathom.run("train.py", gpu="a100-80g")     # the script, or a function, on a GPU that is not there
    report.fits, report.peak.reserved_bytes, report.findings[0].title

    with fathom.record("run"):                           # on a real card: for `fathom explain`, `fathom replay`
        train()

The package is also Fathom's doorway into the processes that it watches: there, importing it must cost nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from .api import Error as Error
    from .api import run as run
    from .report import Report as Report

__version__ = "0.1.0"
__all__ = ["Error", "Report", "record", "run"]


def record(folder: str = "fathom-recording") -> AbstractContextManager[str]:
    """Records the block's use of the card into a folder, whose name it gives."""
    from .recording import record as recording

    return recording(folder)


def __getattr__(name: str) -> object:
    """What starts runs is imported when it is used."""
    if name in ("Error", "run"):
        from . import api

        return getattr(api, name)
    if name == "Report":
        from .report import Report

        return Report
    raise AttributeError(f"module 'fathom' has no attribute {name!r}")
