"""Readers whom no function mode sees: other processes, TorchScript, and libraries that share the host's memory.

What is not known of a tensor on the host is decided before they read it. A file that the script itself has written keeps
what is not known, and whoever loads it gets that back.
"""

import types
import zlib

import torch

from .. import functions
from ..guard import undisturbed

# Objects of a data set that are looked through, at most.
MOST = 100_000

# The first bytes of a storage by which it is known again.
HEAD = 1 << 20

# These have a dictionary, and hold no data of a data set's.
NOT_LOOKED_INTO = (type, types.ModuleType, types.FunctionType, types.MethodType)


class Unseen:
    def __init__(self, values):
        self.values = values
        self.saved = set()  # storages that were written to files: how many bytes, and what the first are

    def install(self):
        around = functions.VALUES.around
        for name in ("_to_dlpack", "_to_dlpack_versioned"):
            if hasattr(torch._C, name):
                around(torch._C, name, before=self.leaves)
        for owner in (torch, torch.utils.dlpack):  # each has it by itself; older tensors call the first
            if hasattr(owner, "to_dlpack"):
                around(owner, "to_dlpack", before=self.leaves)
        for owner in (torch._C.ScriptFunction, torch._C.ScriptMethod):
            around(owner, "__call__", before=self.leaves)
        for name in ("_share_fd_cpu_", "_share_filename_cpu_"):
            around(torch.UntypedStorage, name, before=self.leaves)
        loader = torch.utils.data.dataloader._MultiProcessingDataLoaderIter
        around(loader, "__init__", before=self.to_workers)
        around(torch._C.PyTorchFileWriter, "write_record", before=self.saves)
        around(torch._C.PyTorchFileReader, "get_storage_from_record", after=self.loaded)

    def is_idle(self):
        return not self.values.ledger.watches_host()

    # -- memory ----------------------------------------------------------------------------------------

    def leaves(self, args, kwargs):
        """Somebody else is about to read these."""
        if not self.is_idle():
            name = "another process" if isinstance(args[0], torch.UntypedStorage) else "a reader below Python"
            self.decide_all([args, kwargs], name)

    def to_workers(self, args, kwargs):
        """Workers of a data loader have a copy of the data set, and what they make of it comes back as bytes."""
        if not self.is_idle():
            loader = args[1] if len(args) > 1 else kwargs["loader"]
            self.decide_all([loader.dataset], "DataLoader")

    def decide_all(self, objects, name):
        values = self.values
        with undisturbed():
            for tensor in found_in(objects, MOST):
                is_of_host = tensor.device.type == "cpu" and tensor.layout is torch.strided
                is_unknown = is_of_host and values.ledger.is_unknown(tensor)
                if is_unknown and values.decide_on_host(tensor, name, "unknown", tensor.numel() == 1):
                    values.ledger.know_host(tensor)

    # -- files -----------------------------------------------------------------------------------------

    def saves(self, args, kwargs):
        storage = args[2] if len(args) > 2 else None
        if not self.is_idle() and isinstance(storage, torch.UntypedStorage) and storage.nbytes():
            with undisturbed():
                tensor = bytes_of(storage)
                if self.values.ledger.is_unknown(tensor):
                    self.saved.add(looks(tensor))

    def loaded(self, _, args, kwargs, result, error):
        if error is None and self.saved and isinstance(result, torch.Tensor):
            with undisturbed():
                tensor = bytes_of(result.untyped_storage())
                if tensor.numel() and looks(tensor) in self.saved:
                    self.values.ledger.lose_host(tensor)


def looks(tensor):
    return tensor.numel(), zlib.crc32(tensor[:HEAD].numpy())


def bytes_of(storage):
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def found_in(objects, most):
    """Tensors in objects of the script's and in what these hold."""
    waiting, seen = list(objects), set()
    while waiting and len(seen) < most:
        one = waiting.pop()
        if isinstance(one, torch.UntypedStorage):
            one = bytes_of(one)
        if isinstance(one, torch.Tensor):
            yield one
            continue
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, (list, tuple, set)):
            waiting.extend(one)
        elif type(one).__dictoffset__ and not isinstance(one, NOT_LOOKED_INTO):
            waiting.extend(vars(one).values())
