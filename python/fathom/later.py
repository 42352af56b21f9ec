"""Calls a function with a module as soon as it is imported; at once if it is there already."""

import importlib.abc
import importlib.util
import sys

_waiting = {}


class _Finder(importlib.abc.MetaPathFinder):
    """Lets the other finders do their work, and adds a call after the module's own code has run."""

    def find_spec(self, name, path=None, target=None):
        if name not in _waiting:
            return None
        waiting = _waiting.pop(name)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            for then in waiting:
                then(module)

        spec.loader.exec_module = exec_module
        return spec


_finder = _Finder()


def when_imported(name, then):
    if name in sys.modules:
        then(sys.modules[name])
        return
    _waiting.setdefault(name, []).append(then)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
