"""Classes of PyTorch's own that are made of ordinary tensors: their code calls functions on these, which are noted.

A mode is not on while a function of its runs, and so does not see what such a class does in there: here it is put on
again. Jagged tensors are one; what they do is done by Python code.
"""

import functools

import torch

from .. import border, functions
from ..border import DOORWAY
from ..import_hooks import when_imported

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
