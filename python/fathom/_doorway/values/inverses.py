"""Masks that nobody knows, and their inverses: if nothing is kept by the one, the other keeps all.

Points that are pruned are those that others are not: `x[m]` and `x[~m]` cannot both be empty.
"""

from torch.multiprocessing.reductions import StorageWeakRef


class Inverses:
    """Which tensors hold the inverse of another one, by their storages: views of them do too."""

    def __init__(self):
        self.storages = {}

    def add(self, tensor, of):
        """`tensor` is the inverse of another one; that of an inverse is none."""
        self.storages = {key: storage for key, storage in self.storages.items() if not storage.expired()}
        if of not in self:
            storage = StorageWeakRef(tensor.untyped_storage())
            self.storages[storage.cdata] = storage

    def __contains__(self, tensor):
        try:
            # While a weak reference is held, no other storage gets its number.
            return bool(self.storages) and tensor.untyped_storage()._cdata in self.storages
        except (NotImplementedError, RuntimeError):  # a sparse tensor, or a wrapped one
            return False
