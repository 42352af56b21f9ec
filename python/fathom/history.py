"""PyTorch's memory history: on for the whole run, read and cleared after each step.

A script that records history itself gets what it asks for: from then on nothing is cleared.
"""

import inspect
import sys
import types

import torch

# Allocations carry the Python frames that were running: needed where no function of torch is.
SETTINGS = {"enabled": "all", "context": "alloc", "stacks": "python", "max_entries": 1 << 60}


class History:
    def __init__(self):
        self.inner = torch.cuda.memory._record_memory_history
        self.can_clear = "clear_history" in inspect.signature(self.inner).parameters
        self.is_shared = False
        self.read = {}  # device -> events that were read and not cleared
        self.inner(**SETTINGS)
        torch.cuda.memory._record_memory_history = self.asked_by_script

    def asked_by_script(self, enabled="all", *args, **kwargs):
        self.is_shared = bool(enabled)

    def take(self):
        """PyTorch's snapshot, with only the events that were not taken yet."""
        snapshot = _snapshot()
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
            self.inner(**SETTINGS, clear_history=True)
        else:  # before torch 2.8
            self.inner(None)
            self.inner(**SETTINGS)


def _snapshot():
    """PyTorch asks its compiler for the sources of generated code and so imports it: a second or two for nothing if
    nothing was compiled."""
    if "torch._inductor" in sys.modules:
        return torch.cuda.memory._snapshot()
    torch._inductor = types.SimpleNamespace()
    try:
        return torch.cuda.memory._snapshot()
    finally:
        del torch._inductor
