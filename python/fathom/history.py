"""PyTorch's memory history: on for the whole run, read and cleared after each step.

A script that records history itself gets what it asks for: from then on nothing is cleared.
"""

import functools
import inspect
import sys
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
        self.read = {}  # device -> events that were read and not cleared
        self.begin(WITHOUT_REQUESTS if "skip_actions" in known and scribe.sees_streams() else SETTINGS)
        torch.cuda.memory._record_memory_history = self.asked_by_script

    def begin(self, settings):
        self.settings = settings
        self.inner(**settings)
        frames = None if self.is_shared else [self.directly(context=None), self.directly()]
        self.scribe.may_change_history(frames, None if settings is SETTINGS else self.see_requests)

    def see_requests(self):
        """Another stream may still use what is freed: then a request is not the end."""
        self.begin(SETTINGS)

    def directly(self, **changed):
        """Begins, without torch's Python functions, which only put the arguments in order."""
        inner, given = torch._C._cuda_record_memory_history, []
        torch._C._cuda_record_memory_history = lambda *args: given.append(args)
        try:
            self.inner(**{**self.settings, **changed})
        finally:
            torch._C._cuda_record_memory_history = inner
        [args] = given
        return functools.partial(inner, *args)

    def asked_by_script(self, enabled="all", *args, **kwargs):
        """The script wants to see all that happens."""
        self.is_shared = bool(enabled)
        self.begin(SETTINGS)

    def take(self, with_segments):
        """PyTorch's snapshot, with only the events that were not taken yet."""
        snapshot = _snapshot(with_segments)
        traces = snapshot["device_traces"]
        if self.is_shared or self.read:
            fresh = [trace[self.read.get(device, 0):] for device, trace in enumerate(traces)]
            self.read = {device: len(trace) for device, trace in enumerate(traces)}
            snapshot["device_traces"] = fresh
        if not self.is_shared:
            self.read = {}
            self.clear()
        return snapshot

    def clear(self):
        if self.can_clear:
            self.inner(**self.settings, clear_history=True)
        else:  # before torch 2.8
            self.inner(None)
            self.inner(**self.settings)
        self.scribe.history_cleared()


def _snapshot(with_segments):
    """PyTorch asks its compiler for the sources of generated code and so imports it: a second or two for nothing if
    nothing was compiled."""
    if "torch._inductor" in sys.modules:
        return _of_memory(with_segments)
    torch._inductor = types.SimpleNamespace()
    try:
        return _of_memory(with_segments)
    finally:
        del torch._inductor


def _of_memory(with_segments):
    """The segments of a pool that does not exist are none: half of the time is theirs."""
    if with_segments or not CAN_CHOOSE_POOL:
        return torch.cuda.memory._snapshot()
    return torch._C._cuda_memorySnapshot(NO_POOL)
