"""What our own work must not disturb."""

import contextlib
import gc

import torch


@contextlib.contextmanager
def undisturbed():
    """No functions of ours are seen, and our many small objects do not make Python collect the user's garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with torch._C.DisableTorchFunction():
            yield
    finally:
        if was_enabled:
            gc.enable()
