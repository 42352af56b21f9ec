"""Fathom's doorway into a Python process: watching, recording, true values of small tensors; no analysis."""

__version__ = "0.1.0"


def record(folder="fathom-recording"):
    """Records the block's use of the card; see `fathom.record`."""
    from .record import record as recording

    return recording(folder)
