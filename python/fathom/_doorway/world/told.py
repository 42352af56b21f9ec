"""What other ranks are taken to give is this rank's own: a decision by it is modelled, and its line is named."""

from .. import functions
from .patch import WORLD, replace

# Functions that bring something of other ranks, each by where its results are among the arguments.
TOLD = {
    **dict.fromkeys(("all_reduce", "reduce", "broadcast", "scatter"), (0, "tensor")),
    "all_reduce_coalesced": (0, "tensors"),
    "all_gather": (0, "tensor_list"),
    "gather": (1, "gather_list"),
    **dict.fromkeys(("all_gather_into_tensor", "_all_gather_base"), (0, "output_tensor")),
    **dict.fromkeys(("reduce_scatter", "reduce_scatter_tensor", "_reduce_scatter_base", "all_to_all_single"), (0, "output")),
    "all_to_all": (0, "output_tensor_list"),
}


def install():
    for name, (position, word) in TOLD.items():
        replace(name, lambda inner, place=position, word=word: _told(inner, place, word))


def _told(inner, position, word):
    def call(*args, **kwargs):
        result = inner(*args, **kwargs)
        WORLD.contain("what a rank is told", _mark, args[position] if position < len(args) else kwargs.get(word))
        return result

    return call


def _mark(told):
    if told is not None and functions.is_installed():
        functions.install().ledger.set_modelled(list(told) if isinstance(told, (list, tuple)) else [told])
