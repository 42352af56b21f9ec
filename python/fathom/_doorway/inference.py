"""Rounds of scripts without a backward pass: calls of a model with something new.

A model that is given something in which no output of a model takes part begins a round: a batch of an evaluation, a prompt,
the noise that a picture is made of. What it is given later and has to do with its own outputs, as the next token or a
picture with less noise, belongs to the same round, so sampling goes on to its end. A place of the script is a call of a
model, with all calls around it.

The script is stopped where the wanted rounds are over and the next one begins with no more memory than the last. A script
that says somewhere that it trains is not stopped: its training may come later.
"""

import functools
import re
import sys
import threading

import torch

from . import functions as torch_functions
from .card_memory import allocated
from .file_owner import is_library, is_ours
from .guard import undisturbed

# What a script that trains has in its text: in the file that was started, and in others of the user's.
IN_MAIN = re.compile(r"\btrain\w*\(|\.fit\(|backward\(|\boptim|Trainer\(")
IN_OTHERS = re.compile(r"\.backward\(|\.fit\(|Trainer\(")

# After this many times the wanted rounds, memory that grows from one to the next is not waited for.
PATIENCE = 10


class Place:
    """Of the script, where a model is called."""

    def __init__(self):
        self.calls = 0
        self.bytes = None  # that were allocated when the last call began


class Inference:
    def __init__(self, watch):
        self.watch = watch
        self.places = {}  # (model, calls around it) -> Place
        self.is_over = False  # a backward pass was seen, or an optimizer
        self.depth = threading.local()
        torch_functions.install().inner.follow_lineage(True)

    @property
    def rounds(self):
        """Those that have begun."""
        return max((place.calls for place in self.places.values()), default=0)

    def watch_models(self, party):
        """Where no recorder sees models."""
        undo = party.around(torch.nn.Module, "__call__", self.module_called, self.module_returned)
        self.withdraw_watch = undo

    def module_called(self, args, kwargs):
        depth = getattr(self.depth, "now", 0)
        self.depth.now = depth + 1
        if depth == 0 and not self.is_over:
            with undisturbed():
                self.model_called(args[0], args[1:], kwargs or {})
        return True

    def module_returned(self, begun, args, kwargs, result, error):
        self.depth.now = getattr(self.depth, "now", 1) - 1
        if self.depth.now == 0 and error is None and not self.is_over:
            with undisturbed():
                self.model_returned(result)

    def model_called(self, model, args, kwargs):
        """The outermost one."""
        inner = torch_functions.install().inner
        if self.is_over or any(inner.is_of_output(tensor) for tensor in tensors_in((args, kwargs))):
            return
        place = self.places.setdefault((id(model), calls(sys._getframe(1))), Place())
        before, place.bytes = place.bytes, allocated()
        is_settled = before is not None and place.bytes <= before
        makes_graph = torch.is_grad_enabled()
        if before is not None and makes_graph and not is_settled:
            return  # a graph is kept: a backward pass may come
        if place.calls == self.rounds and place.calls:
            self.watch.end_round()
        place.calls += 1
        wanted = self.watch.wanted_steps
        is_long = not makes_graph and place.calls > PATIENCE * wanted
        if wanted and place.calls > wanted and (is_settled or is_long) and not trains():
            self.withdraw()
            self.watch.steps["rounds"] = place.calls - 1
            self.watch.stop()

    def model_returned(self, result):
        inner = torch_functions.install().inner
        for tensor in tensors_in(result):
            inner.set_output(tensor)

    def withdraw(self):
        if not self.is_over:
            self.is_over = True
            torch_functions.install().inner.follow_lineage(False)
            if hasattr(self, "withdraw_watch"):
                self.withdraw_watch()


def tensors_in(value, depth=3):
    """In lists, dictionaries and the attributes of objects such as caches; not in modules."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth and isinstance(value, dict):
        for each in value.values():
            yield from tensors_in(each, depth - 1)
    elif depth and isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors_in(each, depth - 1)
    elif depth and hasattr(value, "__dict__") and not isinstance(value, (type, torch.nn.Module)):
        for each in list(vars(value).values()):
            yield from tensors_in(each, depth - 1)


def calls(frame):
    """Where the script is: the call that each frame is in, if it is not ours. There may be several on a line."""
    found = []
    while frame is not None:
        if not is_ours(frame.f_code.co_filename):
            found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(found)


@functools.cache
def trains():
    """Whether the user's own code says that it trains; if it cannot be read, it may."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    if main is None or found_in(main, IN_MAIN, otherwise=True):
        return True
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())} - {None, main}
    own = [file for file in files if file.endswith(".py") and not is_library(file)]
    return any(found_in(file, IN_OTHERS, otherwise=False) for file in own)


def found_in(file, pattern, otherwise):
    try:
        with open(file, encoding="utf-8", errors="replace") as text:
            return pattern.search(text.read()) is not None
    except (OSError, ValueError):
        return otherwise
