"""FSDP2 cuts each parameter into a piece for every rank, and makes a tensor for each rank that has nothing of it.

In a world of thousands that is most of its time. All of these are the same tensor here: it has no elements.
"""

import torch

from ..import_hooks import when_imported
from .patch import WORLD

MODULES = ("_fsdp_common", "_fsdp_param")


def install():
    for module in MODULES:
        when_imported(f"torch.distributed.fsdp._fully_shard.{module}", WORLD.callback(share_empty))


def share_empty(module):
    if hasattr(module, "_chunk_with_empty"):
        WORLD.instead(module, "_chunk_with_empty", lambda inner: chunk_with_empty)


def chunk_with_empty(tensor, num_chunks, dim):
    chunks = list(torch.chunk(tensor, num_chunks, dim=dim))
    if len(chunks) < num_chunks:
        chunks += [chunks[0].new_empty(0)] * (num_chunks - len(chunks))
    return chunks
