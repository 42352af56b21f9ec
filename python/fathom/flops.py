"""Counts the floating-point operations of a forward pass, module by module, with PyTorch's own formulas.

A dispatch mode is on, which changes how PyTorch allocates: such a run is for counting alone.
"""

import atexit
import collections
import json
import os

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from .modules import Modules


class Counter(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.modules = Modules()
        self.running = []  # paths of the modules that run, the innermost last
        self.flops = collections.Counter()  # by the path of the innermost module
        self.changing = set()  # modules that change their arguments: computed again, they would see others

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **kwargs or {})
        formula = flop_registry.get(func._overloadpacket)
        if formula is not None and self.running and torch._C._current_graph_task_id() == -1:
            self.flops[self.running[-1]] += formula(*args, **kwargs or {}, out_val=result)
        return result

    def call(self, inner, module, args, kwargs):
        outer = self.modules.number(module)
        path, before = self.modules.paths[outer], versions(args, kwargs)
        self.running.append(path)
        try:
            return inner(module, *args, **kwargs)
        finally:
            self.running.pop()
            if versions(args, kwargs) != before:
                self.changing.add(path)

    def write(self, folder, pid):
        if os.getpid() == pid:
            with open(os.path.join(folder, f"flops.{pid}.json"), "w", encoding="utf-8") as file:
                json.dump({"flops": self.flops, "changing": sorted(self.changing)}, file)


def versions(*values):
    """What tells whether arguments were changed: lengths of lists and dictionaries, versions of tensors."""
    found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(-1 if value.is_inference() else value._version)
        elif isinstance(value, dict):
            found.append(len(value))
            found.extend(versions(*value.values()))
        elif isinstance(value, (list, tuple)):
            found.append(len(value))
            found.extend(versions(*value))
    return found


def install(folder):
    """From now on everything is counted; the counts are written at the end of the process."""
    counter = Counter()
    inner = torch.nn.Module.__call__

    def __call__(module, *args, **kwargs):
        return counter.call(inner, module, args, kwargs)

    torch.nn.Module.__call__ = __call__
    counter.__enter__()
    atexit.register(counter.write, folder, os.getpid())
