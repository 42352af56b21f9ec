"""Counts the floating-point operations of a forward pass, module by module, with PyTorch's own formulas.

A dispatch mode is on, which changes how PyTorch allocates: such a run is for counting alone.
"""

import atexit
import collections
import os

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from .. import contract
from . import border
from .modules import Modules
from .texts import as_json

FLOPS = border.Party("operations were not counted")


class Counter(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.modules = Modules()
        self.running = []  # paths of the modules that run, the innermost last
        self.flops = collections.Counter()  # by the path of the innermost module
        self.changing = set()  # modules that change their arguments: computed again, they would see others

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **kwargs or {})
        FLOPS.contain("an operator", self.count, func, args, kwargs or {}, result)
        return result

    def count(self, func, args, kwargs, result):
        formula = flop_registry.get(func._overloadpacket)
        if formula is not None and self.running and torch._C._current_graph_task_id() == -1:
            self.flops[self.running[-1]] += formula(*args, **kwargs, out_val=result)

    def enter(self, args, kwargs):
        path = self.modules.paths[self.modules.number(args[0])]
        before = versions(args[1:], kwargs)
        self.running.append(path)
        return path, before

    def leave(self, entered, args, kwargs, *_):
        path, before = entered
        self.running.pop()
        if versions(args[1:], kwargs) != before:
            self.changing.add(path)

    def write(self, folder, pid):
        if os.getpid() == pid:
            with open(os.path.join(folder, contract.flops_file(pid)), "w", encoding="utf-8") as file:
                file.write(as_json(contract.flops(flops=self.flops, changing=sorted(self.changing))))


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
    FLOPS.around(torch.nn.Module, "__call__", counter.enter, counter.leave)
    counter.__enter__()
    atexit.register(FLOPS.callback(counter.write), folder, os.getpid())
