"""One rank of a world whose other ranks do not run: `fathom run --world-size N` asks for it.

PyTorch's own distributed code runs unmodified, over NCCL as the phantom answers it. What would wait for another
rank is answered here as if that rank were there and had done the same as this one: the rendezvous and its store
(`rendezvous.py`, `store.py`), collectives of the CPU (`cpu.py`), groups (`groups.py`). What only another rank knows
comes as a message of that rank (`rank_messages.py`), which then runs first. Who would start the other ranks starts none
(`start.py`). What grows with the number of ranks and holds nothing is made once (`shards.py`).
"""

import os

from ... import contract


class World:
    """Who this process is among how many."""

    def __init__(self, size, rank, cards_per_node):
        self.size = size
        self.rank = rank
        self.cards_per_node = cards_per_node

    def describe(self):
        return f"rank {self.rank} of {self.size}"


def asked_for():
    """The world that the launcher wants, if it wants one."""
    if not os.environ.get(contract.WORLD_SIZE):
        return None
    number = lambda name, default: int(os.environ.get(name) or default)  # noqa: E731
    return World(number(contract.WORLD_SIZE, 1), number(contract.RANK, 0), number(contract.DEVICES, 1))


def install():
    """Torch is there, and no group was made yet."""
    import torch

    world = asked_for()
    if world is None or not torch.distributed.is_available():
        return
    from . import cpu, groups, objects, rank_messages, rendezvous, shards, start, told

    mailbox = rank_messages.Mailbox(world)
    rendezvous.install(world, mailbox)
    cpu.install(world)
    groups.install(world)
    objects.install(world, mailbox)
    start.install(world)
    shards.install()
    told.install()
