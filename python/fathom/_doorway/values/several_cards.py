"""What `torch.cuda.comm` moves between cards of one process, in C++, holds what it held."""

import torch

from .. import functions


def install(values):
    """Results of these functions get recipes, as those of functions that are seen."""
    for name, rule in RULES.items():
        if hasattr(torch._C, name):
            functions.VALUES.around(torch._C, name, after=_after(values, rule))


def _after(values, rule):
    def note(_, args, kwargs, result, error):
        if error is None and not kwargs:
            with torch._C.DisableTorchFunction(), torch.no_grad():
                for tensor, function, *given in rule(result, *args):
                    values.ledger.set_made(tensor, function, *given)

    return note


def broadcast(result, tensor, *_):
    return [(copy, torch.clone, tensor) for copy in result if copy is not tensor]


def broadcast_coalesced(result, tensors, *_):
    return [row for copies in result for copy, tensor in zip(copies, tensors) for row in broadcast([copy], tensor)]


def scatter(result, tensor, _devices, _sizes=None, dim=0, *_):
    starts = [sum(other.shape[dim] for other in result[:number]) for number in range(len(result))]
    return [(part, torch.narrow, tensor, dim, start, part.shape[dim]) for part, start in zip(result, starts)]


def gather(result, tensors, dim=0, *_):
    return [(result, torch.cat, list(tensors), dim)]


RULES = {"_broadcast": broadcast, "_broadcast_coalesced": broadcast_coalesced, "_scatter": scatter, "_gather": gather}
