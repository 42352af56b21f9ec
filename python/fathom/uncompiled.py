"""A run that compiles nothing does not wait for torch's compiler.

Optimizers and dispatch modes import `torch._dynamo`, one to three seconds, only to tell it to keep away. Until
something else wants it, the module stays empty and answers these two questions; then it is loaded as it always is.
"""

import importlib.util
import sys
import threading
import types

import torch

NAME = "torch._dynamo"

# The function behind which torch hides others from the compiler, and where it keeps what the compiler gave back.
HIDING = torch._disable_dynamo(lambda: None).__code__
KEPT = "__dynamo_disable"

# Who looks through all modules, as `inspect` does, is not in want of this one.
KNOWN = {"__spec__", "__class__", "__name__", "__file__", "__cached__", "__loader__", "__package__", "__dict__"}


class _Waiting(types.ModuleType):
    """The module before its code has run."""

    def __getattribute__(self, name):
        if name == "graph_break":
            return _graph_break
        if name == "disable" and sys._getframe(1).f_code is HIDING:
            return _disable
        if name not in KNOWN:
            _load(self)
        return object.__getattribute__(self, name)


def _graph_break(*_, **__):
    """Outside of the compiler this is nothing."""


_direct = []


def _disable(function, *_, **__):
    _direct.append(function)
    return function


_then = None
_loading = threading.RLock()
_is_loading = False


def _load(module):
    """Runs the module's code; another thread waits until that is done, as it would for any import."""
    global _is_loading
    with _loading:
        if _is_loading or type(module) is not _Waiting:
            return
        _is_loading = True
        try:
            spec = object.__getattribute__(module, "__spec__")
            spec.loader.exec_module(module)
        except BaseException:
            sys.modules.pop(NAME, None)
            raise
        finally:
            object.__setattr__(module, "__class__", types.ModuleType)
            for function in _direct:
                vars(function).pop(KEPT, None)
        _then(module)


class _Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != NAME:
            return None
        sys.meta_path.remove(cls)
        spec = importlib.util.find_spec(name)
        if spec is not None:
            execute = spec.loader.exec_module

            def wait(module):
                spec.loader.exec_module = execute
                module.__class__ = _Waiting

            spec.loader.exec_module = wait
        return spec


def install(then):
    """`then` is called with the module as soon as it is loaded."""
    global _then
    _then = then
    if NAME in sys.modules:
        then(sys.modules[NAME])
    else:
        sys.meta_path.insert(0, _Finder)
