"""Classes of tensors. Most leave functions as they are: such a tensor is an ordinary one with another name.

The code of others calls functions on ordinary tensors, which are noted. A mode is not on while a function of its runs, and
so does not see what such a class does in there: here it is put on again. Jagged tensors are one, torchvision's boxes another.
"""

import functools
from inspect import getattr_static

import torch

from .. import border, functions
from ..border import DOORWAY
from ..functions import PLAIN
from ..import_hooks import when_imported
from ..storages import has_own_memory, leaves_functions

NESTED = "torch.nested._internal.nested_tensor"


def install():
    when_imported(NESTED, DOORWAY.callback(_follow_nested, f"the import of {NESTED}"))


def _follow_nested(module):
    follow(module.NestedTensor)


def follow(owner):
    """Functions on tensors of this class are noted where its own code carries them out."""
    for name in ("__torch_function__", "__torch_dispatch__"):
        border.exchange(owner, name, classmethod(_seen(vars(owner)[name].__func__)))
    functions.install().ledger.follow(owner)


def meet(owner):
    """A class of tensors is seen for the first time: one whose own code calls functions on ordinary tensors is followed."""
    function = getattr_static(owner, "__torch_function__")
    if owner in PLAIN or leaves_functions(owner) or not has_own_memory(owner) or not isinstance(function, classmethod):
        return
    if function.__func__ not in _ours:
        definer = next(each for each in owner.__mro__ if "__torch_function__" in vars(each))
        ours = _seen(function.__func__)
        _ours.add(ours)
        border.exchange(definer, "__torch_function__", classmethod(ours))
    ledger = functions.install().ledger
    ledger.set_plain_inside(owner)
    ledger.follow(owner)


# Functions that were put into classes.
_ours: set = set()


def _seen(theirs):
    @functools.wraps(theirs)
    def call(cls, *args, **kwargs):
        if not is_off():
            return theirs(cls, *args, **kwargs)
        with functions.install():
            return theirs(cls, *args, **kwargs)

    return call


def is_off():
    """Whether our mode was on and a function of its is running; no mode is put on for code that is compiled."""
    mode = functions.install()
    return not torch.compiler.is_compiling() and torch.overrides._get_current_function_mode() is not mode
