"""`torch.jit.trace` writes down every function that it sees: ours are none of the script's."""

import contextlib
import functools
import threading

import torch

_paused = threading.local()


@contextlib.contextmanager
def paused():
    """What runs here is not traced."""
    with _traced_by(None):
        yield


@contextlib.contextmanager
def resumed():
    """What runs here is the script's, and traced if it was so before the pause."""
    trace = getattr(_paused, "trace", None)
    if trace is None:
        yield
        return
    with _traced_by(trace):
        yield


@contextlib.contextmanager
def _traced_by(trace):
    before, outer = torch._C._get_tracing_state(), getattr(_paused, "trace", None)
    if before is trace:
        yield
        return
    _paused.trace = before
    torch._C._set_tracing_state(trace)
    try:
        yield
    finally:
        torch._C._set_tracing_state(before)
        _paused.trace = outer


def untraced(function):
    """Of a function of ours that works with tensors."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        if torch._C._get_tracing_state() is None:
            return function(*args, **kwargs)
        with paused():
            return function(*args, **kwargs)

    return call
