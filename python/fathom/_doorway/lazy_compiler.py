"""A run that compiles nothing does not wait for torch's compiler.

Optimizers and dispatch modes import `torch._dynamo`, one to three seconds, only to tell it to keep away. Until
something else wants it, the module stays empty and answers these two questions; then it is loaded as it always is.
"""

import sys
import threading
import types

import torch

from .border import DOORWAY
from .import_hooks import run_import

NAME = "torch._dynamo"

# The function behind which torch hides others from the compiler, and where it keeps what the compiler gave back.
HIDING = torch._disable_dynamo(lambda: None).__code__
KEPT = "__dynamo_disable"

# Attribute reads by `inspect` must not trigger loading.
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


_direct: list = []


def _disable(function, *_, **__):
    _direct.append(function)
    return function


_loading = threading.RLock()
_execute = _then = None  # the module's own code; what follows it
_has_begun = False


def _load(module):
    """Runs the module's code; another thread waits until that is done, as it would for any import."""
    global _has_begun
    with _loading:
        if _has_begun:
            return
        _has_begun = True
        try:
            _execute(module)
        except BaseException:
            sys.modules.pop(NAME, None)
            raise
        finally:
            object.__setattr__(module, "__class__", types.ModuleType)
            for function in _direct:
                vars(function).pop(KEPT, None)
        DOORWAY.contain("the compiler", _then, module)


def _wait(module, execute):
    global _execute
    _execute, module.__class__ = execute, _Waiting


def install(then):
    """`then` is called with the module as soon as it is loaded."""
    global _then
    _then = then
    if NAME in sys.modules:
        DOORWAY.contain("the compiler", then, sys.modules[NAME])
    else:
        run_import(NAME, _wait)
