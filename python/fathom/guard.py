"""What protects the user's script from its recorder."""

import contextlib
import functools
import gc
import os
import sys

import torch


def guarded(method):
    """The user's script matters more than our record of it: whatever goes wrong here ends the recording only."""

    @functools.wraps(method)
    def call(self, *args, **kwargs):
        if self.is_broken:
            return None
        try:
            with undisturbed():
                return method(self, *args, **kwargs)
        except Exception as error:
            self.is_broken = True
            where = error.__traceback__
            while where.tb_next is not None:
                where = where.tb_next
            place = f"{os.path.basename(where.tb_frame.f_code.co_filename)}:{where.tb_lineno}"
            print(f"fathom: recording ends here: {type(error).__name__}: {error} ({place})", file=sys.stderr)
            return None

    return call


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
