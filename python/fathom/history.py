"""PyTorch's memory history: on for the whole run, read and cleared after each step.

A script that records history itself gets what it asks for: from then on nothing is cleared.
"""

import contextlib
import functools
import inspect
import sys
import threading
import types

import torch

# Allocations carry the Python frames that were running: needed where no function of torch is.
SETTINGS = {"enabled": "all", "context": "alloc", "stacks": "python", "max_entries": 1 << 60}

# With one stream, memory is free as soon as that is requested: a third of all events say nothing new.
WITHOUT_REQUESTS = {**SETTINGS, "skip_actions": ["free_requested"]}

# Before, a pool could not be chosen, or the call lost references to its numbers.
CAN_CHOOSE_POOL = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 15)
NO_POOL = (0, 1 << 62)


class History:
    def __init__(self, scribe):
        self.scribe = scribe
        self.inner = torch.cuda.memory._record_memory_history
        known = inspect.signature(self.inner).parameters
        self.can_clear = "clear_history" in known
        self.is_shared = False
        self.counters = [functools.partial(torch._C._cuda_memoryStats, device) for device in range(torch.cuda.device_count())]
        self.whole = self.events = called_by(torch.cuda.memory._snapshot, "_cuda_memorySnapshot")
        if CAN_CHOOSE_POOL:  # the segments of a pool that does not exist are none: half of the time is theirs
            self.events = functools.partial(torch._C._cuda_memorySnapshot, NO_POOL)
        self.read = {}  # device -> events that were read and not cleared
        self.begin(WITHOUT_REQUESTS if "skip_actions" in known and scribe.sees_streams() else SETTINGS)
        torch.cuda.memory._record_memory_history = self.asked_by_script

    def begin(self, settings):
        self.settings = settings
        self.inner(**settings)
        if self.is_shared:
            self.clear, frames = [], None
        else:
            on, off = self.directly(), self.directly(context=None)
            # Before torch 2.8 it is cleared when it ends.
            self.clear = [self.directly(clear_history=True)] if self.can_clear else [self.directly(enabled=None), on]
            frames = [off, on]
        self.scribe.may_change_history(frames, None if settings is SETTINGS else self.see_requests)

    def see_requests(self):
        """Another stream may still use what is freed: then a request is not the end."""
        self.begin(SETTINGS)

    def directly(self, **changed):
        """Begins, without torch's Python functions."""
        return called_by(lambda: self.inner(**{**self.settings, **changed}), "_cuda_record_memory_history")

    def asked_by_script(self, enabled="all", *args, **kwargs):
        """The script wants to see all that happens."""
        self.is_shared = bool(enabled)
        self.begin(SETTINGS)

    def take(self, with_segments):
        """PyTorch's snapshot, with only the events that were not taken yet."""
        with without_compiler():
            wanted = self.whole if with_segments else self.events
            counters = self.counters if threading.active_count() > 1 else []
            snapshot, is_cleared = self.scribe.take(wanted, counters, self.clear)
        traces = snapshot["device_traces"]
        if self.read:
            snapshot["device_traces"] = [trace[self.read.get(device, 0):] for device, trace in enumerate(traces)]
        # What another thread did meanwhile is still to come.
        self.read = {} if is_cleared else {device: len(trace) for device, trace in enumerate(traces)}
        return snapshot


@contextlib.contextmanager
def without_compiler():
    """For a snapshot PyTorch asks its compiler for the sources of generated code and so imports it: a second or two for
    nothing if nothing was compiled."""
    if "torch._inductor" in sys.modules:
        yield
        return
    torch._inductor = nothing = types.SimpleNamespace()
    try:
        yield
    finally:
        if torch._inductor is nothing:  # else another thread has imported it meanwhile
            del torch._inductor


def called_by(call, name):
    """What a Python function of torch's calls, which only puts the arguments in order."""
    inner, given = getattr(torch._C, name), []
    setattr(torch._C, name, lambda *args: given.append(args))
    try:
        call()
    finally:
        setattr(torch._C, name, inner)
    [args] = given
    return functools.partial(inner, *args)
