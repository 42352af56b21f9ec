"""The phantom card's memory as ordinary CPU tensors: small tensors are read and written there."""

import ctypes

import torch

from .functions import PLAIN

# Tensors of at most this many elements, in a storage of at most this many bytes, hold true values.
SMALL_ELEMENTS = 1 << 16
SMALL_BYTES = 8 * SMALL_ELEMENTS


def allocated():
    """Bytes, on all cards. PyTorch's own function makes a table of all its numbers first."""
    if not torch.cuda.is_initialized():
        return 0
    stats = (torch._C._cuda_memoryStats(device) for device in range(torch.cuda.device_count()))
    return sum(each["allocated_bytes"]["all"]["current"] for each in stats)


class Unknown(Exception):
    """An argument whose value is not known."""


class Memory:
    """The card's memory seen as CPU tensors."""

    def __init__(self):
        phantom = ctypes.CDLL(None)
        base, size = ctypes.c_uint64(), ctypes.c_uint64()
        if phantom.fathom_arena(ctypes.byref(base), ctypes.byref(size)) != 0:
            raise RuntimeError("the phantom has no memory")
        self.base = base.value
        self.bytes = torch.frombuffer((ctypes.c_uint8 * size.value).from_address(self.base), dtype=torch.uint8)
        self.typed = {}

    def alias(self, tensor):
        """A CPU tensor on the same addresses, if the tensor is small enough to hold values."""
        if type(tensor) not in PLAIN:
            raise Unknown
        if tensor.layout is not torch.strided:
            return rebuild(tensor.detach(), self.alias)
        if tensor.untyped_storage().nbytes() > SMALL_BYTES:
            raise Unknown
        dtype = tensor.dtype
        typed = self.typed.get(dtype)
        if typed is None:
            typed = self.typed[dtype] = self.bytes.view(dtype)
        if tensor.numel() == 0:
            return torch.empty_strided(tensor.size(), tensor.stride(), dtype=dtype)
        offset = (tensor.data_ptr() - self.base) // typed.element_size()
        view = typed.as_strided(tensor.size(), tensor.stride(), offset)
        view = view.conj() if tensor.is_conj() else view
        return torch._neg_view(view) if tensor.is_neg() else view


def rebuild(tensor, part):
    """A sparse tensor made of other parts: the same elements elsewhere."""
    if tensor.layout is torch.sparse_coo:
        return torch.sparse_coo_tensor(
            part(tensor._indices()), part(tensor._values()), tensor.size(),
            is_coalesced=tensor.is_coalesced(), check_invariants=False,
        )  # fmt: skip
    if tensor.layout is torch.sparse_csr:
        rows, columns, values = tensor.crow_indices(), tensor.col_indices(), tensor.values()
        return torch.sparse_csr_tensor(
            part(rows), part(columns), part(values), tensor.size(), check_invariants=False
        )
    raise Unknown
