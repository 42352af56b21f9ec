"""What of a tensor lies on the card."""

import torch

from .functions import PLAIN


def storages(tensor):
    """Itself, or the parts of a sparse or a distributed one."""
    if tensor.layout is not torch.strided:
        return [part for part in (tensor._indices(), tensor._values()) if part.is_cuda] if tensor.is_sparse else []
    local = getattr(tensor, "_local_tensor", tensor)
    local = getattr(local, "elem", local)  # what a collective is still to fill
    return [local] if type(local) in PLAIN else []
