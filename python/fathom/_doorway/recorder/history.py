"""PyTorch's memory history: on for the whole run, read and cleared after each step.

There is one history in a process, and the script may want it too: then it records all that either wants, and what the
script gets to see is put together from what it would have recorded without us (`script_history.py`).
"""

import contextlib
import functools
import inspect
import sys
import threading
import types

import torch

from .. import border
from .script_history import ScriptHistory

# Allocations carry the Python frames that were running: needed where no function of torch is.
SETTINGS = {"enabled": "all", "context": "alloc", "stacks": "python", "max_entries": 1 << 60}

# With one stream, memory is free as soon as that is requested: a third of all events say nothing new.
WITHOUT_REQUESTS = {**SETTINGS, "skip_actions": ["free_requested"]}

# Before, a pool could not be chosen, or the call lost references to its numbers.
CAN_CHOOSE_POOL = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 15)
NO_POOL = (0, 1 << 62)


class History:
    def __init__(self, note_taker, drain):
        self.note_taker = note_taker
        self.drain = drain  # writes what has happened so far
        snapshot = border.unwrapped(torch._C._cuda_memorySnapshot)
        setter = border.unwrapped(torch._C._cuda_record_memory_history)
        self.record = Recorded(setter, torch.cuda.memory._record_memory_history_impl)
        self.counters = [functools.partial(torch._C._cuda_memoryStats, device) for device in range(torch.cuda.device_count())]
        self.whole = self.events = functools.partial(snapshot, *arguments_of(torch.cuda.memory._snapshot))
        if CAN_CHOOSE_POOL:  # the segments of a pool that does not exist are none: half of the time is theirs
            self.events = functools.partial(snapshot, NO_POOL)
        self.read = {}  # device -> events that were read and not cleared
        self.is_ended = False
        self.ours = WITHOUT_REQUESTS if "skip_actions" in self.record.names and note_taker.sees_streams() else SETTINGS
        self.of_script = ScriptHistory(self)
        self.begin()

    def begin(self):
        """Records what we want, and what the script wants."""
        settings = self.of_script.wanted(self.ours)
        self.record(**settings)
        on, off = self.record.bound(**settings), self.record.bound(**{**settings, "context": None})
        # Before torch 2.8 it is cleared when it ends.
        can_clear = "clear_history" in self.record.names
        ended = self.record.bound(**{**settings, "enabled": None})
        self.clear = [self.record.bound(**settings, clear_history=True)] if can_clear else [ended, on]
        # What the script wants to see has frames all the time.
        frames = None if self.of_script.is_on else [off, on]
        self.note_taker.may_change_history(frames, None if self.ours is SETTINGS else self.see_requests)

    def see_requests(self):
        """Another stream may still use what is freed: then a request is not the end."""
        self.ours = SETTINGS
        self.begin()

    def end(self):
        """Nothing more is recorded for us."""
        self.is_ended = True
        self.note_taker.may_change_history(None, None)
        if not self.of_script.is_on:
            self.record(**{**SETTINGS, "enabled": None})
            self.of_script.party.withdraw()

    def take(self, with_segments):
        """PyTorch's snapshot, with only the events that were not taken yet."""
        with without_compiler():
            wanted = self.whole if with_segments else self.events
            counters = self.counters if threading.active_count() > 1 else []
            snapshot, is_cleared = self.note_taker.take(wanted, counters, self.clear)
        traces = snapshot["device_traces"]
        self.of_script.keep(traces, is_cleared)
        if self.read:
            snapshot["device_traces"] = [trace[self.read.get(device, 0):] for device, trace in enumerate(traces)]
        # What another thread did meanwhile is still to come.
        self.read = {} if is_cleared else {device: len(trace) for device, trace in enumerate(traces)}
        return snapshot


class Recorded:
    """The function of torch's that turns the history on and off, by names of its arguments."""

    def __init__(self, function, caller):
        self.function = function
        self.names = list(inspect.signature(caller).parameters)
        given = {name: object() for name in self.names}
        named = {id(value): name for name, value in given.items()}
        self.places = [named.get(id(value)) for value in arguments_of(caller, **given)]
        defaults = {name: each.default for name, each in inspect.signature(caller).parameters.items()}
        self.defaults = {**defaults, "skip_actions": []}

    def bound(self, **given):
        """The call with these arguments, by itself no code of Python's."""
        given = {**self.defaults, **given}
        return functools.partial(self.function, *(given[name] for name in self.places))

    def __call__(self, **given):
        self.bound(**given)()

    def read(self, args):
        """What the arguments of a call are, by name."""
        return {**self.defaults, **dict(zip(self.places, args))}


def arguments_of(function, **given):
    """What a Python function of torch's gives to the one of C++ that it calls, where it only puts arguments in order."""
    found = []

    class Caught:
        def __getattr__(self, name):
            return lambda *args: found.append(args)

    inner = types.SimpleNamespace(_C=Caught())
    with contextlib.suppress(Exception):
        known = {**function.__globals__, "_C": inner._C, "torch": inner}
        types.FunctionType(function.__code__, known, argdefs=function.__defaults__)(**given)
    return found[0] if found else ()


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
