"""What autograd keeps waits in the memory of the host until the backward pass asks for it."""

import torch

from ..edits import passage
from .moments import around_forward

CHANGE = """with torch.autograd.graph.save_on_cpu(pin_memory=True):
    # the forward pass and the loss"""
ABSENT = "nothing large was saved on the card"

# Smaller tensors stay: moving them costs more than their bytes.
LEAST_BYTES = 1 << 20


def apply(options, outcome):
    least = options.get("least", LEAST_BYTES)

    def enter(module):
        return torch.autograd.graph.saved_tensors_hooks(keep, unpack)

    def keep(tensor):
        packed = outcome.party.contain("what is saved", pack, tensor, least, outcome)
        return tensor if packed is None else packed

    def passed(found):
        outcome.edits.contain(write, found)

    undo = [around_forward(outcome, enter), passage.follow(outcome, passed)]
    return lambda: [inverse() for inverse in reversed(undo)]


def write(edits, found):
    if isinstance(found, Exception):
        raise found
    found.wrapped(edits, ["with torch.autograd.graph.save_on_cpu(pin_memory=True):"])
    found.source.imports(edits, "import torch")


def pack(tensor, least, outcome):
    if isinstance(tensor, torch.nn.Parameter) or tensor.nbytes < least:
        return tensor
    outcome.took("saved tensors")
    if not tensor.is_cuda:
        return tensor.device, tensor.clone()
    # The phantom's large tensors have no values: room for them in the host would be filled for nothing.
    return tensor.device, torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def unpack(packed):
    if isinstance(packed, torch.Tensor):
        return packed
    device, tensor = packed
    if tensor.is_meta:
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
    return tensor.to(device)
