"""Takes part in the import of modules that are not imported yet."""

import importlib.abc
import importlib.util
import sys

from . import native
from .border import DOORWAY

_waiting: dict[str, list] = {}  # by the name of a module


class _Finder(importlib.abc.MetaPathFinder):
    """Lets the other finders do their work, and has the module's own code run by those who wait for it."""

    def __init__(self):
        self.find_spec = DOORWAY.callback(self.find)

    def find(self, name, path=None, target=None):
        if name not in _waiting:
            return None
        waiting = _waiting.pop(name)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        for run in waiting:
            theirs = spec.loader.exec_module
            spec.loader.exec_module = native.Instead(DOORWAY.native, f"the import of {name}", theirs, _following(run))
        return spec


def _following(run):
    return lambda execute: lambda module: run(module, execute)


_finder = _Finder()


def run_import(name, run):
    """`run(module, execute)` instead of the module's own code, which `execute(module)` runs."""
    _waiting.setdefault(name, []).append(run)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def when_imported(name, then):
    """`then(module)`, a callback, as soon as it is imported; at once if it is there already."""

    def run(module, execute):
        execute(module)
        then(module)

    if name in sys.modules:
        then(sys.modules[name])
    else:
        run_import(name, run)
