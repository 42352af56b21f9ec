"""Where your GPU memory goes, and whether the run will fit, before any GPU is rented.

    import fathom

    report = fathom.run("train.py", gpu="a100-80g")     # the script, or a function, on a phantom GPU
    report.fits, report.peak.reserved_bytes, report.findings[0].title

    with fathom.record("run"):                           # on a real card: for `fathom explain`, `fathom replay`
        train()
    fathom.on_oom()                                      # an out-of-memory error leaves a report

The package is also Fathom's doorway into the processes that it watches: there, importing it must cost nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from .api import Error as Error
    from .api import run as run
    from .monitor import Monitor as Monitor
    from .oom_watch import on_oom as on_oom
    from .report import Report as Report

__version__ = "0.1.0"
__all__ = ["Error", "Monitor", "Report", "on_oom", "record", "run"]


# Where each name is; a module that is imported here costs every process that Fathom watches.
HOMES = {"Error": "api", "Monitor": "monitor", "Report": "report", "on_oom": "oom_watch", "run": "api"}


def record(folder: str = "fathom-recording") -> AbstractContextManager[str]:
    """Records the block's use of the card into a folder, whose name it gives."""
    from .recording import record as recording

    return recording(folder)


def __getattr__(name: str) -> object:
    """What starts runs is imported when it is used."""
    if name in HOMES:
        import importlib

        return getattr(importlib.import_module(f".{HOMES[name]}", __name__), name)
    raise AttributeError(f"module 'fathom' has no attribute {name!r}")
